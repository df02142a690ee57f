//! What a sent packet carried, as far as its fate matters.

use crate::{Direction, StreamId};

/// What a packet carried; most carry one or two frames.
pub(crate) type SentFrames = smallvec::SmallVec<[SentFrame; 2]>;

/// A frame in a packet that was sent: what to do when the packet is acknowledged or lost.
/// Frames whose loss needs no action (PADDING, PATH_RESPONSE, CONNECTION_CLOSE) leave no trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SentFrame {
    /// An ACK up to `largest`: once acknowledged, older ranges need no repetition.
    Ack { largest: u64 },
    /// Handshake data.
    Crypto { offset: u64, length: u32 },
    /// Stream data.
    Stream {
        id: StreamId,
        offset: u64,
        length: u32,
        fin: bool,
    },
    /// A stream's reset.
    ResetStream { id: StreamId },
    /// A request to stop.
    StopSending { id: StreamId },
    /// The connection's receive limit.
    MaxData,
    /// A stream's receive limit.
    MaxStreamData { id: StreamId },
    /// How many streams the peer may open.
    MaxStreams { direction: Direction },
    /// A connection ID of ours.
    NewConnectionId { sequence: u64 },
    /// A connection ID of the peer's that we use no more.
    RetireConnectionId { sequence: u64 },
    /// An address validation token.
    NewToken,
    /// The handshake is confirmed.
    HandshakeDone,
    /// A probe of the path.
    PathChallenge,
}
