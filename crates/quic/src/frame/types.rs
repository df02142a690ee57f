//! The type numbers of frames and the rules that depend on them (RFC 9000, table 3; RFC 9221,
//! section 4; draft-ietf-quic-ack-frequency-14, section 11.2), and ours.

use super::{Close, Frame};
use crate::{Direction, Level};

pub(super) const PADDING: u64 = 0x00;
pub(super) const PING: u64 = 0x01;
pub(super) const ACK: u64 = 0x02;
pub(super) const ACK_ECN: u64 = 0x03;
pub(super) const RESET_STREAM: u64 = 0x04;
pub(super) const STOP_SENDING: u64 = 0x05;
pub(super) const CRYPTO: u64 = 0x06;
pub(super) const NEW_TOKEN: u64 = 0x07;
/// The first of the eight STREAM types; combined with the three `STREAM_…` bits for the others.
pub(super) const STREAM: u64 = 0x08;
pub(super) const STREAM_LAST: u64 = STREAM | STREAM_OFFSET | STREAM_LENGTH | STREAM_FIN;
pub(super) const STREAM_OFFSET: u64 = 0x04;
pub(super) const STREAM_LENGTH: u64 = 0x02;
pub(super) const STREAM_FIN: u64 = 0x01;
pub(super) const MAX_DATA: u64 = 0x10;
pub(super) const MAX_STREAM_DATA: u64 = 0x11;
pub(super) const MAX_STREAMS_BIDI: u64 = 0x12;
pub(super) const MAX_STREAMS_UNI: u64 = 0x13;
pub(super) const DATA_BLOCKED: u64 = 0x14;
pub(super) const STREAM_DATA_BLOCKED: u64 = 0x15;
pub(super) const STREAMS_BLOCKED_BIDI: u64 = 0x16;
pub(super) const STREAMS_BLOCKED_UNI: u64 = 0x17;
pub(super) const NEW_CONNECTION_ID: u64 = 0x18;
pub(super) const RETIRE_CONNECTION_ID: u64 = 0x19;
pub(super) const PATH_CHALLENGE: u64 = 0x1a;
pub(super) const PATH_RESPONSE: u64 = 0x1b;
pub(super) const CLOSE_TRANSPORT: u64 = 0x1c;
pub(super) const CLOSE_APPLICATION: u64 = 0x1d;
pub(super) const HANDSHAKE_DONE: u64 = 0x1e;
pub(super) const IMMEDIATE_ACK: u64 = 0x1f;
/// A DATAGRAM that takes the rest of its packet.
pub(super) const DATAGRAM: u64 = 0x30;
pub(super) const DATAGRAM_WITH_LENGTH: u64 = 0x31;
pub(super) const ACK_FREQUENCY: u64 = 0xaf;
pub(super) const PATH_SECRET: u64 = 0x1745_4952;
pub(super) const PATH_KEY: u64 = 0x1745_4953;
pub(super) const PATH_KEY_ANSWER: u64 = 0x1745_4954;
pub(super) const GO_AWAY: u64 = 0x1745_4955;

/// Returns the type of a STREAM frame with these fields.
pub(super) const fn stream(offset: bool, length: bool, fin: bool) -> u64 {
    STREAM
        | if offset { STREAM_OFFSET } else { 0 }
        | if length { STREAM_LENGTH } else { 0 }
        | if fin { STREAM_FIN } else { 0 }
}

/// Returns the type of a MAX_STREAMS frame for streams of that direction.
pub(super) const fn max_streams(direction: Direction) -> u64 {
    match direction {
        Direction::Bidirectional => MAX_STREAMS_BIDI,
        Direction::Unidirectional => MAX_STREAMS_UNI,
    }
}

/// Returns the type of a STREAMS_BLOCKED frame for streams of that direction.
pub(super) const fn streams_blocked(direction: Direction) -> u64 {
    match direction {
        Direction::Bidirectional => STREAMS_BLOCKED_BIDI,
        Direction::Unidirectional => STREAMS_BLOCKED_UNI,
    }
}

impl Frame<'_> {
    /// Returns the frame's type number, as in an error's
    /// [`frame_type`](crate::TransportError::frame_type). For STREAM and DATAGRAM frames it is the
    /// type that [`Frame::write`] uses; the original encoding of a received frame is not kept.
    pub const fn frame_type(&self) -> u64 {
        match self {
            Self::Padding => PADDING,
            Self::Ping => PING,
            Self::Ack(ack) if ack.ecn.is_some() => ACK_ECN,
            Self::Ack(_) => ACK,
            Self::ResetStream(_) => RESET_STREAM,
            Self::StopSending { .. } => STOP_SENDING,
            Self::Crypto { .. } => CRYPTO,
            Self::NewToken(_) => NEW_TOKEN,
            Self::Stream(frame) => stream(frame.offset > 0, true, frame.fin),
            Self::MaxData(_) => MAX_DATA,
            Self::MaxStreamData { .. } => MAX_STREAM_DATA,
            Self::MaxStreams { direction, .. } => max_streams(*direction),
            Self::DataBlocked(_) => DATA_BLOCKED,
            Self::StreamDataBlocked { .. } => STREAM_DATA_BLOCKED,
            Self::StreamsBlocked { direction, .. } => streams_blocked(*direction),
            Self::NewConnectionId(_) => NEW_CONNECTION_ID,
            Self::RetireConnectionId(_) => RETIRE_CONNECTION_ID,
            Self::PathChallenge(_) => PATH_CHALLENGE,
            Self::PathResponse(_) => PATH_RESPONSE,
            Self::Close(Close::Transport { .. }) => CLOSE_TRANSPORT,
            Self::Close(Close::Application { .. }) => CLOSE_APPLICATION,
            Self::HandshakeDone => HANDSHAKE_DONE,
            Self::Datagram(_) => DATAGRAM_WITH_LENGTH,
            Self::AckFrequency(_) => ACK_FREQUENCY,
            Self::ImmediateAck => IMMEDIATE_ACK,
            Self::PathSecret(_) => PATH_SECRET,
            Self::PathKey(_) => PATH_KEY,
            Self::PathKeyAnswer { .. } => PATH_KEY_ANSWER,
            Self::GoAway(_) => GO_AWAY,
        }
    }

    /// Whether the frame only probes a path (RFC 9000, section 9.1): a packet with only such frames
    /// does not move a connection.
    pub const fn is_probing(&self) -> bool {
        matches!(
            self,
            Self::PathChallenge(_)
                | Self::PathResponse(_)
                | Self::NewConnectionId(_)
                | Self::Padding
        )
    }

    /// Whether a packet with this frame elicits an ACK (RFC 9002, section 2).
    pub const fn ack_eliciting(&self) -> bool {
        !matches!(self, Self::Padding | Self::Ack(_) | Self::Close(_))
    }

    /// Whether the frame is allowed in a packet of that level (RFC 9000, section 12.5); otherwise
    /// it is a PROTOCOL_VIOLATION. RETIRE_CONNECTION_ID is refused in 0-RTT packets: no client has
    /// an ID to retire there. So are the frames of the ACK-frequency extension: support for it is
    /// not remembered.
    pub const fn allowed_in(&self, level: Level) -> bool {
        match self {
            Self::Padding | Self::Ping | Self::Close(Close::Transport { .. }) => true,
            Self::Ack(_) | Self::Crypto { .. } => !matches!(level, Level::ZeroRtt),
            Self::NewToken(_)
            | Self::PathResponse(_)
            | Self::HandshakeDone
            | Self::RetireConnectionId(_)
            | Self::AckFrequency(_)
            | Self::ImmediateAck
            | Self::PathSecret(_)
            | Self::PathKey(_)
            | Self::PathKeyAnswer { .. }
            | Self::GoAway(_) => matches!(level, Level::OneRtt),
            Self::ResetStream(_)
            | Self::StopSending { .. }
            | Self::Stream(_)
            | Self::MaxData(_)
            | Self::MaxStreamData { .. }
            | Self::MaxStreams { .. }
            | Self::DataBlocked(_)
            | Self::StreamDataBlocked { .. }
            | Self::StreamsBlocked { .. }
            | Self::NewConnectionId(_)
            | Self::PathChallenge(_)
            | Self::Datagram(_)
            | Self::Close(Close::Application { .. }) => {
                matches!(level, Level::ZeroRtt | Level::OneRtt)
            }
        }
    }
}
