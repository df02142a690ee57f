//! The frames of sent packets whose fate matters.

use smallvec::SmallVec;
use weir_units::Time;

use crate::observe::LostPacket;
use crate::{Direction, Space, StreamId};

/// A frame in a sent packet, with the action on its ACK or loss. Frames whose loss needs no action
/// (PADDING, PATH_RESPONSE, CONNECTION_CLOSE, DATAGRAM, IMMEDIATE_ACK) are not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SentFrame {
    /// An ACK up to `largest`: once acknowledged, older ranges need not be repeated.
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
    /// The limit of streams that the peer may open.
    MaxStreams { direction: Direction },
    /// A connection ID that we issued.
    NewConnectionId { sequence: u64 },
    /// A connection ID of the peer's that we retired.
    RetireConnectionId { sequence: u64 },
    /// A token for the client's next connection.
    NewToken,
    /// The offer of a path secret.
    PathSecret,
    /// The key of a renewal of a path secret.
    PathKey,
    /// The number of streams that are served.
    GoAway,
    /// The handshake is confirmed.
    HandshakeDone,
    /// A request for the peer's ACK frequency.
    AckFrequency { sequence: u64 },
}

/// The frames of one packet; most packets have one, or one and an ACK.
pub(crate) type SentFrames = SmallVec<[SentFrame; 2]>;

/// A receiver of the fate of sent frames.
///
/// A frame is reported acknowledged at most once. Except for the copies in probes
/// ([`Recovery::oldest_unacked_frames`](super::Recovery::oldest_unacked_frames)) it is reported
/// lost at most once. A frame reported lost may be reported acknowledged later, if the loss was
/// spurious. A frame reported acknowledged is never reported lost.
pub(crate) trait FrameSink {
    /// Handles an acknowledged frame.
    fn acked(&mut self, space: Space, frame: &SentFrame);
    /// Handles a lost frame: it is sent again if it still matters.
    fn lost(&mut self, space: Space, frame: &SentFrame);
    /// Handles a lost packet; [`FrameSink::lost`] reports its frames.
    fn packet_lost(&mut self, _now: Time, _lost: &LostPacket) {}
}
