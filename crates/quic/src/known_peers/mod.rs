//! Known peers: connections without a handshake (`docs/known-peers.md`).
//!
//! After one TLS handshake a client and a server share a path secret. A later connection's keys
//! follow from it and from a key ID that the client draws, and its first datagram carries the
//! request. [`KnownServers`] holds a client's secrets, [`KnownClients`] a server's, each with the
//! replay window of its key IDs.

mod clients;
mod hkdf;
mod keys;
mod refusal;
mod secret;
mod servers;
mod session;
#[cfg(test)]
mod tests;
mod window;

pub(crate) use clients::{KnownClient, KnownClientRecord};
pub use clients::{KnownClients, KnownClientsConfig, KnownClientsCounters};
pub(crate) use refusal::{Refusal, RefusalKind, refusal_token};
pub use secret::CredentialId;
pub(crate) use secret::PathSecret;
pub(crate) use servers::{HandshakePermit, KnownServer, spread_end};
pub use servers::{KnownServers, KnownServersCounters};
pub(crate) use session::{
    KnownSession, PARAMETERS_ADDED, PARAMETERS_ALL, write_parameters_message,
};
pub(crate) use window::Verdict;

/// The QUIC version of connections without a handshake: "WEI" and the number of the protocol.
pub const KNOWN_PEERS_VERSION: u32 = 0x5745_4901;

/// The label of the exporter that a path secret comes from.
pub(crate) const EXPORTER_LABEL: &[u8] = b"EXPORTER-weir-known-peers";

/// A client's key ID of one connection.
pub(crate) type KeyId = u64;

/// The key IDs of one secret: a client stops to use it beyond this many.
pub(crate) const MOST_KEY_IDS: KeyId = 1 << 32;

/// The result of the search for a key ID that a client has abandoned (section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abandonment {
    /// No connection began with it, and none can begin now.
    Fresh,
    /// A connection may have begun with it.
    Used,
    /// The secret is not known to this server.
    Unknown,
}

impl Abandonment {
    /// Returns the wire value.
    pub(crate) const fn as_u8(self) -> u8 {
        match self {
            Self::Fresh => 1,
            Self::Used => 2,
            Self::Unknown => 3,
        }
    }

    /// Returns the result with this wire value.
    pub(crate) const fn from_wire(value: u8) -> Option<Self> {
        match value {
            1 => Some(Self::Fresh),
            2 => Some(Self::Used),
            3 => Some(Self::Unknown),
            _ => None,
        }
    }
}
