//! What a sent packet carried, as far as its fate matters.

use smallvec::SmallVec;
use weir_units::Time;

use crate::observe::LostPacket;
use crate::{Direction, Space, StreamId};

/// A frame in a packet that was sent: what to do when the packet is acknowledged or lost.
/// Frames whose loss needs no action (PADDING, PATH_RESPONSE, CONNECTION_CLOSE, DATAGRAM,
/// IMMEDIATE_ACK) leave no trace.
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
    /// A token for the client's next connection.
    NewToken,
    /// The handshake is confirmed.
    HandshakeDone,
    /// What we ask of the peer's acknowledgments.
    AckFrequency { sequence: u64 },
}

/// The frames of one packet; most packets have one, or one and an ACK.
pub(crate) type SentFrames = SmallVec<[SentFrame; 2]>;

/// Who wants to know what became of frames.
///
/// A frame is reported acknowledged at most once and, but for the copies that probes make of it
/// ([`Recovery::oldest_unacked_frames`](super::Recovery::oldest_unacked_frames)), lost at most once.
/// One that was reported lost may be reported acknowledged later, where the loss was spurious; one
/// that was reported acknowledged is never reported lost.
pub(crate) trait FrameSink {
    /// The peer has it.
    fn acked(&mut self, space: Space, frame: &SentFrame);
    /// It has to be sent again, as far as it still matters.
    fn lost(&mut self, space: Space, frame: &SentFrame);
    /// A packet is declared lost; what it carried is reported by [`FrameSink::lost`].
    fn packet_lost(&mut self, _now: Time, _lost: &LostPacket) {}
}
