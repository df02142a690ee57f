//! The frames of RFC 9000, section 19, and of two extensions: DATAGRAM (RFC 9221) and those of
//! draft-ietf-quic-ack-frequency-14. What they say, reading and writing them.
//!
//! [`Frames`] reads a packet's payload; [`mod@write`] has a function for each frame to write.

mod read;
#[cfg(test)]
mod tests;
mod types;
pub mod write;

pub use read::Frames;
pub(crate) use read::MAX_STREAM_COUNT;

use crate::{Code, ConnectionId, Direction, StreamId};

/// A frame as read from a packet; data stay where they are in the packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// PADDING, any number of them in a row.
    Padding,
    /// PING.
    Ping,
    /// ACK.
    Ack(Ack<'a>),
    /// RESET_STREAM.
    ResetStream(ResetStream),
    /// STOP_SENDING.
    StopSending {
        /// The stream.
        id: StreamId,
        /// The application's reason.
        code: u64,
    },
    /// CRYPTO.
    Crypto {
        /// Where the data belong in the level's handshake stream, in bytes.
        offset: u64,
        /// Handshake data.
        data: &'a [u8],
    },
    /// NEW_TOKEN.
    NewToken(&'a [u8]),
    /// STREAM.
    Stream(Stream<'a>),
    /// MAX_DATA: the connection's new limit in bytes.
    MaxData(u64),
    /// MAX_STREAM_DATA.
    MaxStreamData {
        /// The stream.
        id: StreamId,
        /// Its new limit in bytes.
        limit: u64,
    },
    /// MAX_STREAMS.
    MaxStreams {
        /// Which kind of stream.
        direction: Direction,
        /// How many may be opened in all.
        limit: u64,
    },
    /// DATA_BLOCKED: the limit at which the peer stands.
    DataBlocked(u64),
    /// STREAM_DATA_BLOCKED.
    StreamDataBlocked {
        /// The stream.
        id: StreamId,
        /// The limit at which the peer stands.
        limit: u64,
    },
    /// STREAMS_BLOCKED.
    StreamsBlocked {
        /// Which kind of stream.
        direction: Direction,
        /// The limit at which the peer stands.
        limit: u64,
    },
    /// NEW_CONNECTION_ID.
    NewConnectionId(NewConnectionId),
    /// RETIRE_CONNECTION_ID: the sequence number.
    RetireConnectionId(u64),
    /// PATH_CHALLENGE.
    PathChallenge([u8; 8]),
    /// PATH_RESPONSE.
    PathResponse([u8; 8]),
    /// CONNECTION_CLOSE.
    Close(Close<'a>),
    /// HANDSHAKE_DONE.
    HandshakeDone,
    /// DATAGRAM (RFC 9221, section 4): what one message holds.
    Datagram(&'a [u8]),
    /// ACK_FREQUENCY.
    AckFrequency(AckFrequency),
    /// IMMEDIATE_ACK (draft-ietf-quic-ack-frequency-14, section 5).
    ImmediateAck,
}

/// An ACK frame (RFC 9000, section 19.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack<'a> {
    /// The largest packet number acknowledged.
    pub largest: u64,
    /// The ACK delay as it stands in the frame, before the peer's exponent is applied.
    pub delay: u64,
    /// The ranges as they stand in the frame, already checked: see [`Ack::ranges`].
    pub(crate) encoded_ranges: &'a [u8],
    /// The length of the first range, less one.
    pub(crate) first_range: u64,
    /// Counts of ECN marks, if the frame has them.
    pub ecn: Option<EcnCounts>,
}

/// How many packets of each ECN codepoint the sender of an ACK has received in this space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnCounts {
    /// Packets with ECT(0).
    pub ect0: u64,
    /// Packets with ECT(1).
    pub ect1: u64,
    /// Packets with CE.
    pub ce: u64,
}

/// A STREAM frame (RFC 9000, section 19.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream<'a> {
    /// The stream.
    pub id: StreamId,
    /// Where the data belong in the stream, in bytes.
    pub offset: u64,
    /// Whether these are the stream's last data.
    pub fin: bool,
    /// The data.
    pub data: &'a [u8],
}

/// An ACK_FREQUENCY frame (draft-ietf-quic-ack-frequency-14, section 4): when its sender wants to
/// have its packets acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrequency {
    /// Tells newer requests from older ones.
    pub sequence: u64,
    /// This many ack-eliciting packets need no acknowledgment yet; one more does.
    pub threshold: u64,
    /// What `max_ack_delay` is to be, in microseconds, as it stands in the frame.
    pub max_ack_delay: u64,
    /// How far packets must be out of order to be acknowledged at once; zero for never.
    pub reordering_threshold: u64,
}

/// A RESET_STREAM frame (RFC 9000, section 19.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetStream {
    /// The stream.
    pub id: StreamId,
    /// The application's reason.
    pub code: u64,
    /// The stream's final size in bytes.
    pub final_size: u64,
}

/// A NEW_CONNECTION_ID frame (RFC 9000, section 19.15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewConnectionId {
    /// The ID's sequence number.
    pub sequence: u64,
    /// IDs with smaller sequence numbers are to be retired.
    pub retire_prior_to: u64,
    /// The ID.
    pub id: ConnectionId,
    /// The stateless reset token that belongs to it.
    pub reset_token: [u8; 16],
}

/// A CONNECTION_CLOSE frame (RFC 9000, section 19.19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close<'a> {
    /// By the transport (type 0x1c).
    Transport {
        /// Why.
        code: Code,
        /// The type of the frame at fault, zero where none was.
        frame_type: u64,
        /// Why, in words that need not be UTF-8.
        reason: &'a [u8],
    },
    /// By the application (type 0x1d).
    Application {
        /// The application's code.
        code: u64,
        /// Why, in words that need not be UTF-8.
        reason: &'a [u8],
    },
}
