//! Transport parameters (RFC 9000, section 18): the limits and capabilities that each side
//! announces in the handshake.
//!
//! They are those of RFC 9000, RFC 9221 (`max_datagram_frame_size`), RFC 9287 (`grease_quic_bit`)
//! and draft-ietf-quic-ack-frequency-14 (`min_ack_delay`), and one of ours: `fine_max_ack_delay`,
//! the largest ACK delay in microseconds, with the private ID 0x1d7f576569720001 (it contains
//! "Weir"); those that follow it belong to known peers (`docs/known-peers.md`), to
//! GOAWAY, and to receive buffers (`receive_burst`). Other peers ignore it and use `max_ack_delay`, in milliseconds. The ACK delays
//! themselves need no extension: with an `ack_delay_exponent` of 0 they are in microseconds.

mod read;
#[cfg(test)]
mod tests;
mod write;

use std::net::{SocketAddrV4, SocketAddrV6};

use smallvec::SmallVec;
use weir_units::Duration;

use crate::known_peers::{Abandonment, CredentialId};
use crate::{ConnectionId, Side};

/// The IDs of RFC 9000, section 18.2, of the extensions, and ours.
mod id {
    pub(super) const ORIGINAL_DESTINATION_CONNECTION_ID: u64 = 0x00;
    pub(super) const MAX_IDLE_TIMEOUT: u64 = 0x01;
    pub(super) const STATELESS_RESET_TOKEN: u64 = 0x02;
    pub(super) const MAX_UDP_PAYLOAD_SIZE: u64 = 0x03;
    pub(super) const INITIAL_MAX_DATA: u64 = 0x04;
    pub(super) const INITIAL_MAX_STREAM_DATA_BIDI_LOCAL: u64 = 0x05;
    pub(super) const INITIAL_MAX_STREAM_DATA_BIDI_REMOTE: u64 = 0x06;
    pub(super) const INITIAL_MAX_STREAM_DATA_UNI: u64 = 0x07;
    pub(super) const INITIAL_MAX_STREAMS_BIDI: u64 = 0x08;
    pub(super) const INITIAL_MAX_STREAMS_UNI: u64 = 0x09;
    pub(super) const ACK_DELAY_EXPONENT: u64 = 0x0a;
    pub(super) const MAX_ACK_DELAY: u64 = 0x0b;
    pub(super) const DISABLE_ACTIVE_MIGRATION: u64 = 0x0c;
    pub(super) const PREFERRED_ADDRESS: u64 = 0x0d;
    pub(super) const ACTIVE_CONNECTION_ID_LIMIT: u64 = 0x0e;
    pub(super) const INITIAL_SOURCE_CONNECTION_ID: u64 = 0x0f;
    pub(super) const RETRY_SOURCE_CONNECTION_ID: u64 = 0x10;
    /// RFC 9368, section 3.
    pub(super) const VERSION_INFORMATION: u64 = 0x11;
    pub(super) const MAX_DATAGRAM_FRAME_SIZE: u64 = 0x20;
    pub(super) const GREASE_QUIC_BIT: u64 = 0x2ab2;
    pub(super) const MIN_ACK_DELAY: u64 = 0xff04_de1b;
    pub(super) const FINE_MAX_ACK_DELAY: u64 = 0x1d7f_5765_6972_0001;
    pub(super) const KNOWN_PEERS: u64 = 0x1d7f_5765_6972_0002;
    pub(super) const ABANDONED_KEY: u64 = 0x1d7f_5765_6972_0003;
    pub(super) const ABANDONED_ANSWER: u64 = 0x1d7f_5765_6972_0004;
    pub(super) const GO_AWAY: u64 = 0x1d7f_5765_6972_0005;
    pub(super) const RECEIVE_BURST: u64 = 0x1d7f_5765_6972_0006;

    /// Whether only a server may send this parameter.
    pub(super) const fn is_server_only(id: u64) -> bool {
        matches!(
            id,
            ORIGINAL_DESTINATION_CONNECTION_ID
                | STATELESS_RESET_TOKEN
                | PREFERRED_ADDRESS
                | RETRY_SOURCE_CONNECTION_ID
                | ABANDONED_ANSWER
        )
    }
}

/// RFC 9000, section 18.2: `max_ack_delay` is less than 2^14 milliseconds.
const MAX_ACK_DELAY_MILLIS: u64 = (1 << 14) - 1;

/// The transport parameters of one side. The default contains the values of absent parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportParameters {
    /// The destination connection ID of the client's first Initial packet. Server only.
    pub original_destination_connection_id: Option<ConnectionId>,
    /// The idle time after which the connection ends silently; zero for never. Milliseconds on the
    /// wire, rounded up.
    pub max_idle_timeout: Duration,
    /// Authenticates a stateless reset from the server. Server only.
    pub stateless_reset_token: Option<[u8; 16]>,
    /// The largest UDP payload in bytes that this side accepts; at least 1200.
    pub max_udp_payload_size: u64,
    /// The initial limit of bytes from the peer on the connection.
    pub initial_max_data: u64,
    /// The initial limit of bytes from the peer on a bidirectional stream that this side opens.
    pub initial_max_stream_data_bidi_local: u64,
    /// The initial limit of bytes from the peer on a bidirectional stream that the peer opens.
    pub initial_max_stream_data_bidi_remote: u64,
    /// The initial limit of bytes from the peer on a unidirectional stream.
    pub initial_max_stream_data_uni: u64,
    /// The initial limit of bidirectional streams that the peer may open; at most 2^60.
    pub initial_max_streams_bidi: u64,
    /// The initial limit of unidirectional streams that the peer may open; at most 2^60.
    pub initial_max_streams_uni: u64,
    /// The unit of this side's ACK delays is 2^this microseconds; at most 20.
    pub ack_delay_exponent: u8,
    /// The largest ACK delay of this side, for every peer: at most 16,383 milliseconds, rounded up
    /// to whole ones on the wire. See also [`ack_delay_bound`](Self::ack_delay_bound).
    pub max_ack_delay: Duration,
    /// Whether the peer must not migrate to another address of its own.
    pub disable_active_migration: bool,
    /// An address to move to after the handshake. Server only.
    pub preferred_address: Option<PreferredAddress>,
    /// The number of the peer's connection IDs that this side stores; at least 2.
    pub active_connection_id_limit: u64,
    /// The source connection ID of this side's first Initial packet.
    pub initial_source_connection_id: Option<ConnectionId>,
    /// The source connection ID of the Retry packet, if there was one. Server only.
    pub retry_source_connection_id: Option<ConnectionId>,
    /// The version of the connection and those that this side supports (RFC 9368).
    pub version_information: Option<VersionInformation>,
    /// The largest DATAGRAM frame in bytes that this side accepts (RFC 9221); zero for none at all.
    pub max_datagram_frame_size: u64,
    /// Whether this side accepts packets whose fixed bit is zero (RFC 9287).
    pub grease_quic_bit: bool,
    /// The smallest ACK delay that this side supports, if it accepts ACK_FREQUENCY and
    /// IMMEDIATE_ACK frames: at most `max_ack_delay`, rounded up to whole microseconds on the wire
    /// (draft-ietf-quic-ack-frequency-14, section 3).
    pub min_ack_delay: Option<Duration>,
    /// The exact largest ACK delay of this side: at most 16,383 milliseconds, rounded up to whole
    /// microseconds on the wire. Only Weir peers send and interpret it.
    pub fine_max_ack_delay: Option<Duration>,
    /// Whether this side accepts GOAWAY frames.
    pub go_away: bool,
    /// How many bytes of UDP payload the receive buffer of this side's sockets takes while nothing is
    /// read from it. Only Weir peers send and interpret it.
    pub receive_burst: Option<u64>,
    /// Whether this side takes part in known peers.
    pub known_peers: bool,
    /// The credential and the key ID of a connection that this client has abandoned.
    pub abandoned_key: Option<(CredentialId, u64)>,
    /// The server's answer to it, and for how long it has known every secret that it had stored.
    pub abandoned_answer: Option<(Abandonment, Duration)>,
}

impl Default for TransportParameters {
    fn default() -> Self {
        Self {
            original_destination_connection_id: None,
            max_idle_timeout: Duration::ZERO,
            stateless_reset_token: None,
            max_udp_payload_size: 65_527,
            initial_max_data: 0,
            initial_max_stream_data_bidi_local: 0,
            initial_max_stream_data_bidi_remote: 0,
            initial_max_stream_data_uni: 0,
            initial_max_streams_bidi: 0,
            initial_max_streams_uni: 0,
            ack_delay_exponent: 3,
            max_ack_delay: Duration::from_millis(25),
            disable_active_migration: false,
            preferred_address: None,
            active_connection_id_limit: 2,
            initial_source_connection_id: None,
            retry_source_connection_id: None,
            version_information: None,
            max_datagram_frame_size: 0,
            grease_quic_bit: false,
            min_ack_delay: None,
            fine_max_ack_delay: None,
            go_away: false,
            receive_burst: None,
            known_peers: false,
            abandoned_key: None,
            abandoned_answer: None,
        }
    }
}

impl TransportParameters {
    /// Returns these without the parameters that belong to one connection only.
    pub(crate) fn without_connection(&self) -> Self {
        Self {
            original_destination_connection_id: None,
            initial_source_connection_id: None,
            retry_source_connection_id: None,
            stateless_reset_token: None,
            preferred_address: None,
            version_information: None,
            abandoned_key: None,
            abandoned_answer: None,
            ..self.clone()
        }
    }

    /// Returns these in the encoding that both sides remember of a known peer.
    pub(crate) fn to_remembered(&self, sender: Side) -> Box<[u8]> {
        let mut encoded = Vec::with_capacity(96);
        self.without_connection().encode(sender, &mut encoded, None);
        encoded.into()
    }

    /// Adds the parameters of one connection, which `remembered` ones lack.
    pub(crate) fn with_connection(self, of_connection: &Self) -> Self {
        Self {
            stateless_reset_token: of_connection.stateless_reset_token,
            ..self
        }
    }

    /// Whether Weir sent these.
    pub fn is_weir(&self) -> bool {
        self.fine_max_ack_delay.is_some()
    }

    /// Returns the largest ACK delay of the side that sent these while its timers are exact, as
    /// exactly as announced.
    pub fn ack_delay_bound(&self) -> Duration {
        self.fine_max_ack_delay.unwrap_or(self.max_ack_delay)
    }

    /// Returns its largest ACK delay at any time. `max_ack_delay` is this one, in whole milliseconds,
    /// and so up to one above the exact one where timers are always exact.
    pub fn longest_ack_delay(&self) -> Duration {
        let exact = self.ack_delay_bound();
        if self.max_ack_delay < exact + Duration::from_millis(1) {
            exact
        } else {
            self.max_ack_delay
        }
    }
}

/// The versions of a side (RFC 9368, section 3). They reveal tampering with the negotiation, whose
/// packets anyone can forge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionInformation {
    /// The version of the connection, as this side sees it.
    pub chosen: u32,
    /// The versions that this side accepts. A client's are those that are compatible with its first
    /// flight, the preferred one first, including `chosen`.
    pub available: SmallVec<[u32; 4]>,
}

/// An address that a server prefers (RFC 9000, section 9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreferredAddress {
    /// Its IPv4 address, if any.
    pub ipv4: Option<SocketAddrV4>,
    /// Its IPv6 address, if any; flow information and scope are not transmitted.
    pub ipv6: Option<SocketAddrV6>,
    /// The connection ID with sequence number 1, not empty.
    pub connection_id: ConnectionId,
    /// The stateless reset token of that ID.
    pub reset_token: [u8; 16],
}
