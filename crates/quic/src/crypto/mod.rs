//! The door through which keys come.
//!
//! The engine knows packet keys, header keys and a [`Session`] that carries out a handshake; it does
//! not know TLS. `tls` implements the door with rustls, `seeded` with a deterministic stand-in
//! for simulations and tests. A later way to get keys without a handshake is one more `Session`.

mod inbound;
#[cfg(test)]
mod pair;
pub mod seeded;
pub mod tls;

use std::fmt;
use std::sync::Arc;

use crate::{ConnectionId, Level, Side, TransportError, Version};

/// The AEAD of one direction at one level (RFC 9001, section 5.3).
pub trait PacketKey: Send + Sync {
    /// Seals a packet in place: `packet` is header, payload, and room for the tag at its end.
    fn seal(&self, packet_number: u64, header_length: usize, packet: &mut [u8]);

    /// Opens a payload (tag included) in place and gives the length of the plain text, which
    /// stands at the payload's beginning.
    ///
    /// # Errors
    /// [`OpenError`] where the packet is not authentic.
    fn open(
        &self,
        packet_number: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, OpenError>;

    /// The length of the tag in bytes.
    fn tag_length(&self) -> usize;

    /// How many packets may be sealed with this key (RFC 9001, section 6.6).
    fn confidentiality_limit(&self) -> u64;

    /// How many packets may fail to open before the connection must close.
    fn integrity_limit(&self) -> u64;
}

/// A packet that is not authentic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the packet is not authentic")]
pub struct OpenError;

/// Header protection of one direction at one level (RFC 9001, section 5.4).
pub trait HeaderKey: Send + Sync {
    /// Protects the first byte and the packet number of `packet`, whose packet number begins at
    /// `number_offset`. The sample must lie within the packet; the caller pads so that it does.
    fn protect(&self, number_offset: usize, packet: &mut [u8]);

    /// Takes the protection off and gives the packet number's length in bytes; `None` where the
    /// packet is too short to hold the sample.
    fn unprotect(&self, number_offset: usize, packet: &mut [u8]) -> Option<usize>;
}

/// The keys of one direction at one level.
pub struct DirectionKeys {
    /// Header protection.
    pub header: Box<dyn HeaderKey>,
    /// The AEAD.
    pub packet: Box<dyn PacketKey>,
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
    pub local: Box<dyn PacketKey>,
    /// For packets that the peer sends.
    pub remote: Box<dyn PacketKey>,
}

/// Makes the packet keys of the next key phase, one after the other.
pub trait KeyUpdates: Send + Sync {
    /// The next phase's keys.
    fn next_keys(&mut self) -> PacketKeys;
}

/// Keys that became available.
pub enum KeyChange {
    /// Early data may be sent (client) or opened (server).
    ZeroRtt(DirectionKeys),
    /// Handshake packets.
    Handshake(Keys),
    /// Application data, and how to update the keys.
    OneRtt(Keys, Box<dyn KeyUpdates>),
}

/// What a session wants done, in this order. A server's first event is `Version` where it answers
/// in another version than the client's.
///
/// - A client: `Send` the ClientHello; where early data are possible, remembered `PeerParameters`
///   and `ZeroRtt` keys; `Handshake` keys; `EarlyData` where it was offered; `PeerParameters`;
///   `Send` its Finished; `OneRtt` keys; `Complete`.
/// - A server: `PeerParameters`; `ZeroRtt` keys where it accepts early data; `Send` the
///   ServerHello; `Handshake` keys; `Send` the rest of its flight; `OneRtt` keys, with which it may
///   send before it knows the client; then, with the client's Finished, `Send` tickets; `Complete`.
pub enum SessionEvent {
    /// Handshake bytes for the peer, at this level (never [`Level::ZeroRtt`]).
    Send(Level, Vec<u8>),
    /// Keys for the engine.
    Keys(KeyChange),
    /// The peer's transport parameters, encoded. `remembered` ones stem from the session that is
    /// resumed and hold for early data only, until the peer's own arrive.
    PeerParameters {
        /// As they stood in the peer's handshake message.
        encoded: Vec<u8>,
        /// Whether they are those of the session that is resumed.
        remembered: bool,
    },
    /// A client learns whether the server took its early data.
    EarlyData {
        /// Whether it did.
        accepted: bool,
    },
    /// The server goes on in this version, a compatible one (RFC 9368, section 2.3).
    Version(Version),
    /// The handshake is complete (RFC 9001, section 4.1.1).
    Complete,
}

/// What a client's first message says that matters for the answer.
#[derive(Clone, Copy, Debug)]
pub struct ClientOffer<'a> {
    /// The client's transport parameters, encoded.
    pub parameters: &'a [u8],
    /// Whether it sends early data, whose keys belong to the version in which they are sent.
    pub early_data: bool,
}

/// How a server answers a client's first message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAnswer {
    /// The version in which the handshake goes on.
    pub version: Version,
    /// The server's transport parameters, encoded.
    pub parameters: Vec<u8>,
}

/// Decides on the answer to a client's first message, or on the error with which the connection
/// must close.
pub type Answerer =
    Box<dyn FnOnce(&ClientOffer<'_>) -> Result<ServerAnswer, TransportError> + Send + Sync>;

/// What is known of the peer and the session once the handshake is complete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The certificates that the peer presented, its own first, DER-encoded.
    pub peer_certificates: Vec<Vec<u8>>,
    /// The application protocol agreed upon (ALPN).
    pub application_protocol: Option<Vec<u8>>,
    /// The server's name that the client asked for.
    pub server_name: Option<String>,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
}

/// A handshake in progress.
pub trait Session: Send + Sync {
    /// Handshake bytes arrived, in order.
    ///
    /// # Errors
    /// The transport error with which the connection must close (TLS alerts: RFC 9001, 4.8).
    fn read(&mut self, level: Level, data: &[u8]) -> Result<(), TransportError>;

    /// The server answers a client in this version, which is not the one that the client began
    /// with. To be called before anything of the server's is read.
    fn set_version(&mut self, version: Version);

    /// What is to be done next, until `None`.
    fn poll(&mut self) -> Option<SessionEvent>;

    /// What is known of the peer; complete after [`SessionEvent::Complete`].
    fn identity(&self) -> Identity;

    /// Keying material for the application (RFC 8446, section 7.5) into `output`. `false` before the
    /// handshake is complete or where the provider has none.
    fn export(&self, output: &mut [u8], label: &[u8], context: &[u8]) -> bool;
}

/// Keys that need no handshake, the same on every connection.
pub trait Provider: Send + Sync + fmt::Debug {
    /// The keys of Initial packets for the destination connection ID of the client's first one, or
    /// of its first one after a Retry packet (RFC 9001, section 5.2; RFC 9369, section 3.3).
    fn initial_keys(&self, version: Version, client_destination: &ConnectionId, side: Side)
    -> Keys;

    /// The integrity tag of a Retry packet (RFC 9001, section 5.8; RFC 9369, section 3.3.3) over the
    /// packet without its tag.
    fn retry_tag(
        &self,
        version: Version,
        original_destination: &ConnectionId,
        packet: &[u8],
    ) -> [u8; 16];
}

/// A handshake that a client begins.
#[derive(Clone, Copy, Debug)]
pub struct ClientStart<'a> {
    /// In which version.
    pub version: Version,
    /// Whether the server may answer in another version, so that [`Session::set_version`] may be
    /// called.
    pub version_may_change: bool,
    /// The server's name.
    pub server_name: &'a str,
    /// The client's transport parameters, encoded.
    pub parameters: &'a [u8],
    /// Whether to send early data where a session to resume allows it.
    pub early_data: bool,
}

/// What a client needs to begin handshakes.
pub trait ClientCrypto: Provider {
    /// Begins a handshake.
    ///
    /// # Errors
    /// [`StartError`] where the name is invalid or the configuration does not allow QUIC.
    fn start(self: Arc<Self>, start: &ClientStart<'_>) -> Result<Box<dyn Session>, StartError>;
}

/// What a server needs to answer handshakes.
pub trait ServerCrypto: Provider {
    /// Begins to answer a handshake that a client began in this version. `answer` is asked once the
    /// client's first message is whole.
    ///
    /// # Errors
    /// [`StartError`] where the configuration does not allow QUIC.
    fn start(
        self: Arc<Self>,
        version: Version,
        answer: Answerer,
    ) -> Result<Box<dyn Session>, StartError>;
}

/// Why a handshake cannot begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The server's name is neither a DNS name nor an IP address.
    #[error("`{0}` is neither a DNS name nor an IP address")]
    InvalidServerName(String),
    /// The TLS configuration cannot be used with QUIC.
    #[error("the TLS configuration cannot be used for QUIC: {0}")]
    Configuration(String),
}
