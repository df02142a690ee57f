//! The key interface of the engine.
//!
//! The engine uses packet keys, header keys and a [`Session`] that runs a handshake; it does not
//! depend on TLS. `tls` implements the interface with rustls, `seeded` with a deterministic
//! stand-in for simulations and tests. `known_peers` has one more session, without a handshake.

mod any_key;
mod inbound;
pub(crate) mod packet_protection;
#[cfg(test)]
mod pair;
pub mod seeded;
pub mod tls;

use std::fmt;
use std::sync::Arc;

pub use any_key::{AnyHeaderKey, AnyPacketKey};
pub(crate) use inbound::HandshakeBuffer;

use weir_units::Time;

use crate::{ConnectionId, Level, Side, TransportError, Version};

/// The AEAD of one direction at one level (RFC 9001, section 5.3).
pub trait PacketKey: Send + Sync {
    /// Seals a packet in place: `packet` is header, payload, and room for the tag at the end.
    fn seal(&self, packet_number: u64, header_length: usize, packet: &mut [u8]);

    /// Opens a payload (tag included) in place and returns the length of the plaintext, which is at
    /// the start of the payload.
    ///
    /// # Errors
    /// [`OpenError`] if the packet is not authentic.
    fn open(
        &self,
        packet_number: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, OpenError>;

    /// Returns the length of the tag in bytes.
    fn tag_length(&self) -> usize;

    /// Returns how many packets may be sealed with this key (RFC 9001, section 6.6).
    fn confidentiality_limit(&self) -> u64;

    /// Returns how many packets may fail authentication before the connection must close.
    fn integrity_limit(&self) -> u64;
}

/// A packet that is not authentic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the packet is not authentic")]
pub struct OpenError;

/// Header protection of one direction at one level (RFC 9001, section 5.4).
pub trait HeaderKey: Send + Sync {
    /// Protects the first byte and the packet number of `packet`, whose packet number starts at
    /// `number_offset`. The sample must lie within the packet; the caller pads if necessary.
    fn protect(&self, number_offset: usize, packet: &mut [u8]);

    /// Removes the protection and returns the packet number's length in bytes; `None` if the packet
    /// is too short for the sample.
    fn unprotect(&self, number_offset: usize, packet: &mut [u8]) -> Option<usize>;
}

/// The keys of one direction at one level.
pub struct DirectionKeys {
    /// Header protection.
    pub header: AnyHeaderKey,
    /// The AEAD.
    pub packet: AnyPacketKey,
}

/// The keys of one level.
pub struct Keys {
    /// For packets that we send.
    pub local: DirectionKeys,
    /// For packets that the peer sends.
    pub remote: DirectionKeys,
}

/// The packet keys of a key phase; header keys do not change (RFC 9001, section 6).
pub struct PacketKeys {
    /// For packets that we send.
    pub local: AnyPacketKey,
    /// For packets that the peer sends.
    pub remote: AnyPacketKey,
}

/// Derives the packet keys of the next key phases, one after another.
pub trait KeyUpdates: Send + Sync {
    /// Returns the keys of the next phase.
    fn next_keys(&mut self) -> PacketKeys;
}

/// New keys.
pub enum KeyChange {
    /// Early data may be sent (client) or opened (server).
    ZeroRtt(DirectionKeys),
    /// Handshake packets.
    Handshake(Keys),
    /// For application data, with the source of key updates.
    OneRtt(Keys, Box<dyn KeyUpdates>),
}

/// An action that a session requests, in this order. A server's first event is `Version` if it
/// answers in another version than the client's.
///
/// - A client: `Send` the ClientHello; if early data is possible, remembered `PeerParameters` and
///   `ZeroRtt` keys; `Handshake` keys; `EarlyData` if it was offered; `PeerParameters`; `Send` its
///   Finished; `OneRtt` keys; `Complete`.
/// - A server: `PeerParameters`; `ZeroRtt` keys if it accepts early data; `Send` the ServerHello;
///   `Handshake` keys; `Send` the rest of its flight; `OneRtt` keys, with which it may send before
///   the client is authenticated; then, with the client's Finished, `Send` tickets; `Complete`.
pub enum SessionEvent {
    /// Handshake bytes for the peer, at this level (never [`Level::ZeroRtt`]).
    Send(Level, Vec<u8>),
    /// New keys for the engine.
    Keys(KeyChange),
    /// The peer's transport parameters, encoded. `remembered` ones come from the resumed session
    /// and apply to early data only, until the peer's own arrive.
    PeerParameters {
        /// As encoded in the peer's handshake message.
        encoded: Vec<u8>,
        /// Whether they come from the resumed session.
        remembered: bool,
    },
    /// The server's decision on a client's early data.
    EarlyData {
        /// Whether the server accepted it.
        accepted: bool,
    },
    /// The server continues in this compatible version (RFC 9368, section 2.3).
    Version(Version),
    /// The transport parameters of a known peer that differ from the remembered ones.
    KnownParameters {
        /// As encoded in the peer's message.
        encoded: Vec<u8>,
        /// Whether they are added to the remembered ones; otherwise they replace them.
        added: bool,
    },
    /// The handshake is complete (RFC 9001, section 4.1.1).
    Complete,
}

/// The content of a client's first message that the answer depends on.
#[derive(Clone, Copy, Debug)]
pub struct ClientOffer<'a> {
    /// The client's transport parameters, encoded.
    pub parameters: &'a [u8],
    /// Whether it sends early data, whose keys belong to the version of its packets.
    pub early_data: bool,
}

/// A server's answer to a client's first message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAnswer {
    /// The version of the rest of the handshake.
    pub version: Version,
    /// The server's transport parameters, encoded.
    pub parameters: Vec<u8>,
}

/// Chooses the answer to a client's first message, or returns the error with which the connection
/// must close.
pub type Answerer =
    Box<dyn FnOnce(&ClientOffer<'_>) -> Result<ServerAnswer, TransportError> + Send + Sync>;

/// The authenticated properties of the peer and the session, once the handshake is complete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The certificates that the peer presented, its own first, DER-encoded.
    pub peer_certificates: Vec<Vec<u8>>,
    /// The negotiated application protocol (ALPN).
    pub application_protocol: Option<Vec<u8>>,
    /// The server name that the client requested.
    pub server_name: Option<String>,
    /// Whether an earlier session was resumed, by TLS or as a known peer.
    pub resumed: bool,
    /// When the peer's own certificate expires, since 1970; `None` without a certificate.
    pub expires: Option<Time>,
}

/// A handshake in progress.
pub trait Session: Send + Sync {
    /// Processes handshake bytes, in order.
    ///
    /// # Errors
    /// The transport error with which the connection must close (TLS alerts: RFC 9001, 4.8).
    fn read(&mut self, level: Level, data: &[u8]) -> Result<(), TransportError>;

    /// Sets the version of the server's answer, if it is not the one that the client started with.
    /// Call it before any data of the server is read.
    fn set_version(&mut self, version: Version);

    /// Sets the key ID of a known peer's connection; nothing for sessions with a handshake.
    fn set_key_id(&mut self, _: u64) {}

    /// Returns the next event, until `None`.
    fn poll(&mut self) -> Option<SessionEvent>;

    /// Returns the peer's identity; complete after [`SessionEvent::Complete`].
    fn identity(&self) -> Identity;

    /// Exports keying material for the application (RFC 8446, section 7.5) into `output`. Returns
    /// `false` before the handshake is complete or if the provider has none.
    fn export(&self, output: &mut [u8], label: &[u8], context: &[u8]) -> bool;
}

/// Provides keys that need no handshake, the same on every connection.
pub trait Provider: Send + Sync + fmt::Debug {
    /// Returns the keys of Initial packets for the destination connection ID of the client's first
    /// packet, or of its first one after a Retry packet (RFC 9001, section 5.2; RFC 9369, section
    /// 3.3).
    fn initial_keys(&self, version: Version, client_destination: &ConnectionId, side: Side)
    -> Keys;

    /// Returns the integrity tag of a Retry packet (RFC 9001, section 5.8; RFC 9369, section 3.3.3)
    /// over the packet without its tag.
    fn retry_tag(
        &self,
        version: Version,
        original_destination: &ConnectionId,
        packet: &[u8],
    ) -> [u8; 16];
}

/// The parameters of a client's handshake.
#[derive(Clone, Copy, Debug)]
pub struct ClientStart<'a> {
    /// The version of the first packets.
    pub version: Version,
    /// Whether the server may answer in another version, so that [`Session::set_version`] may be
    /// called.
    pub version_may_change: bool,
    /// The server's name.
    pub server_name: &'a str,
    /// The client's transport parameters, encoded.
    pub parameters: &'a [u8],
    /// Whether to send early data if a resumable session allows it.
    pub early_data: bool,
}

/// Starts handshakes for clients.
pub trait ClientCrypto: Provider {
    /// Starts a handshake.
    ///
    /// # Errors
    /// [`StartError`] if the name is invalid or the configuration does not allow QUIC.
    fn start(self: Arc<Self>, start: &ClientStart<'_>) -> Result<Box<dyn Session>, StartError>;
}

/// Starts handshakes for servers.
pub trait ServerCrypto: Provider {
    /// Starts the answer to a handshake that a client started in this version. `answer` is called
    /// once the client's first message is complete.
    ///
    /// # Errors
    /// [`StartError`] if the configuration does not allow QUIC.
    fn start(
        self: Arc<Self>,
        version: Version,
        answer: Answerer,
    ) -> Result<Box<dyn Session>, StartError>;

    /// Returns the names in a client's first handshake message, without its header; `None` if it is
    /// malformed, or where handshakes have no names.
    fn names_in(&self, _hello: &[u8]) -> Option<ClientNames> {
        None
    }
}

/// The names that a client asks for, in the clear.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientNames {
    /// The server's name (SNI, RFC 6066, section 3).
    pub server_name: Option<String>,
    /// The application protocols (ALPN, RFC 7301), in order of preference.
    pub application_protocols: Vec<Vec<u8>>,
}

/// Why a handshake cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The server's name is neither a DNS name nor an IP address.
    #[error("`{0}` is neither a DNS name nor an IP address")]
    InvalidServerName(String),
    /// The TLS configuration cannot be used with QUIC.
    #[error("the TLS configuration cannot be used for QUIC: {0}")]
    Configuration(String),
}
