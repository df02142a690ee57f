//! The frames of RFC 9000, section 19, and of three extensions: DATAGRAM (RFC 9221), those of
//! draft-ietf-quic-ack-frequency-14, and those of known peers.
//!
//! [`Frames`] reads a packet's payload; [`mod@write`] has a function to write each frame.

mod read;
#[cfg(test)]
mod tests;
mod types;
pub mod write;

pub use read::Frames;
pub(crate) use read::MAX_STREAM_COUNT;

use crate::{Code, ConnectionId, Direction, StreamId};

/// A frame as read from a packet; its data is borrowed from the packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// PADDING, any number of consecutive ones.
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
        /// The application error code.
        code: u64,
    },
    /// CRYPTO.
    Crypto {
        /// The offset of the data in the level's handshake stream, in bytes.
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
        /// The kind of stream.
        direction: Direction,
        /// The most streams that may be opened in total.
        limit: u64,
    },
    /// DATA_BLOCKED: the limit that blocks the peer.
    DataBlocked(u64),
    /// STREAM_DATA_BLOCKED.
    StreamDataBlocked {
        /// The stream.
        id: StreamId,
        /// The limit that blocks the peer.
        limit: u64,
    },
    /// STREAMS_BLOCKED.
    StreamsBlocked {
        /// The kind of stream.
        direction: Direction,
        /// The limit that blocks the peer.
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
    /// DATAGRAM (RFC 9221, section 4): the content of one message.
    Datagram(&'a [u8]),
    /// ACK_FREQUENCY.
    AckFrequency(AckFrequency),
    /// IMMEDIATE_ACK (draft-ietf-quic-ack-frequency-14, section 5).
    ImmediateAck,
    /// PATH_SECRET (`docs/known-peers.md`, section 2.1).
    PathSecret(PathSecret),
    /// PATH_KEY: a client's key for another secret (`docs/known-peers.md`, section 2.3).
    PathKey([u8; 32]),
    /// PATH_KEY_ANSWER: the server's key, and the secret that follows from both.
    PathKeyAnswer {
        /// The server's key.
        key: [u8; 32],
        /// What the server says about the secret.
        secret: PathSecret,
    },
    /// GOAWAY (`docs/dcquic.md`, extensions): the number of bidirectional streams of the receiver that
    /// the sender serves. It executes nothing of later ones.
    GoAway(u64),
}

/// A PATH_SECRET frame: the server remembers the client from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSecret {
    /// How long, in seconds.
    pub lifetime: u64,
    /// With it the server can prove that it has lost the secret.
    pub refusal_token: [u8; 16],
}

/// An ACK frame (RFC 9000, section 19.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack<'a> {
    /// The largest packet number acknowledged.
    pub largest: u64,
    /// The encoded ACK delay, before the peer's exponent is applied.
    pub delay: u64,
    /// The encoded ranges, already checked: see [`Ack::ranges`].
    pub(crate) encoded_ranges: &'a [u8],
    /// The length of the first range, less one.
    pub(crate) first_range: u64,
    /// Counts of ECN marks, if the frame has them.
    pub ecn: Option<EcnCounts>,
}

/// The packets of each ECN codepoint that the sender of an ACK has received in this space.
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
    /// The offset of the data in the stream, in bytes.
    pub offset: u64,
    /// Whether the stream ends with this data.
    pub fin: bool,
    /// The data.
    pub data: &'a [u8],
}

/// An ACK_FREQUENCY frame (draft-ietf-quic-ack-frequency-14, section 4): its sender's request for
/// ACKs of its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrequency {
    /// Orders requests by age.
    pub sequence: u64,
    /// The ack-eliciting packets that need no ACK yet; one more does.
    pub threshold: u64,
    /// The requested `max_ack_delay` in microseconds, as encoded in the frame.
    pub max_ack_delay: u64,
    /// How far packets must be out of order to be acknowledged at once; zero for never.
    pub reordering_threshold: u64,
}

/// A RESET_STREAM frame (RFC 9000, section 19.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetStream {
    /// The stream.
    pub id: StreamId,
    /// The application error code.
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
        /// The error code.
        code: Code,
        /// The type of the frame at fault; zero if there is none.
        frame_type: u64,
        /// The reason, which need not be UTF-8.
        reason: &'a [u8],
    },
    /// By the application (type 0x1d).
    Application {
        /// The application's code.
        code: u64,
        /// The reason, which need not be UTF-8.
        reason: &'a [u8],
    },
}
