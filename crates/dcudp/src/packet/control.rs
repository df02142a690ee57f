//! The contents of control packets.

use weir_units::Duration;

use super::{ControlKind, DecodeError, Handshake, LossRanges, take_sequence, take_u32};
use crate::SequenceNumber;

/// The contents of a keep-alive packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Every data packet before this one has been received.
    pub expected: SequenceNumber,
    /// Room for data packets from there on.
    pub window: u32,
    /// The next data packet of this end; all before it have been sent.
    pub next: SequenceNumber,
    /// Whether this end requests a keep-alive packet in return.
    pub request: bool,
    /// The request that this packet answers.
    pub answers: Option<SequenceNumber>,
}

/// The contents of an ACK packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Every data packet before this one has been received.
    pub expected: SequenceNumber,
    /// Room for data packets from there on.
    pub window: u32,
    /// The receiver's smoothed RTT, in nanoseconds up to 4.29 s.
    pub rtt: Duration,
    /// Data packets received since the connection started, duplicates included, modulo 2³².
    pub received: u32,
    /// Of these, the packets with a CE mark, modulo 2³².
    pub marked: u32,
}

/// The reason of a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShutdownReason {
    /// 0: all data of this packet's sender has been acknowledged.
    Finished,
    /// 1: the application aborted with this code.
    Aborted(u32),
    /// 2: the peer violated the protocol.
    Protocol,
    /// 3: no answer or no progress for too long.
    TimedOut,
}

/// The contents of a shutdown packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shutdown {
    /// The reason.
    pub reason: ShutdownReason,
    /// Every data packet before this one has been received.
    pub expected: SequenceNumber,
    /// Whether it answers a shutdown packet and needs no answer itself.
    pub is_answer: bool,
}

/// The contents of a control packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "a value that lives on the stack while one packet is handled"
)]
pub enum Control<'a> {
    /// Opens a connection.
    Handshake(Handshake),
    /// Keeps the connection alive and reports progress.
    KeepAlive(KeepAlive),
    /// Acknowledges data.
    Ack(Ack),
    /// Reports missing data packets.
    Nak(LossRanges<'a>),
    /// Reports the sender's mode change, given by the OBS bit.
    ObsChange,
    /// Ends the connection.
    Shutdown(Shutdown),
    /// Answers the ACK with the same number.
    Ack2,
}

const REQUEST: u32 = 1;
const ANSWER: u32 = 2;
const SHUTDOWN_ANSWER: u32 = 1 << 16;

impl<'a> Control<'a> {
    /// Returns the packet type.
    pub const fn kind(&self) -> ControlKind {
        match self {
            Self::Handshake(_) => ControlKind::Handshake,
            Self::KeepAlive(_) => ControlKind::KeepAlive,
            Self::Ack(_) => ControlKind::Ack,
            Self::Nak(_) => ControlKind::Nak,
            Self::ObsChange => ControlKind::ObsChange,
            Self::Shutdown(_) => ControlKind::Shutdown,
            Self::Ack2 => ControlKind::Ack2,
        }
    }

    /// Decodes the contents of a packet of this type.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes are anything else.
    pub fn decode(kind: ControlKind, bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut rest = bytes;
        let control = match kind {
            ControlKind::Handshake => Self::Handshake(Handshake::decode(&mut rest)?),
            ControlKind::KeepAlive => Self::KeepAlive(KeepAlive::decode(&mut rest)?),
            ControlKind::Ack => Self::Ack(Ack::decode(&mut rest)?),
            ControlKind::Nak => return LossRanges::decode(bytes).map(Self::Nak),
            ControlKind::ObsChange => Self::ObsChange,
            ControlKind::Shutdown => Self::Shutdown(Shutdown::decode(&mut rest)?),
            ControlKind::Ack2 => Self::Ack2,
        };
        if rest.is_empty() {
            Ok(control)
        } else {
            Err(DecodeError::Trailing)
        }
    }

    /// Appends the contents to `buffer`.
    pub fn encode(&self, buffer: &mut Vec<u8>) {
        match self {
            Self::Handshake(handshake) => handshake.encode(buffer),
            Self::KeepAlive(keep_alive) => keep_alive.encode(buffer),
            Self::Ack(ack) => ack.encode(buffer),
            Self::Nak(ranges) => buffer.extend_from_slice(ranges.as_bytes()),
            Self::Shutdown(shutdown) => shutdown.encode(buffer),
            Self::ObsChange | Self::Ack2 => {}
        }
    }
}

impl KeepAlive {
    fn decode(rest: &mut &[u8]) -> Result<Self, DecodeError> {
        let expected = take_sequence(rest)?;
        let window = take_u32(rest)?;
        let next = take_sequence(rest)?;
        let flags = take_u32(rest)?;
        let answered = take_sequence(rest)?;
        if flags & !(REQUEST | ANSWER) != 0 {
            return Err(DecodeError::Reserved);
        }
        let is_answer = flags & ANSWER != 0;
        if !is_answer && answered.value() != 0 {
            return Err(DecodeError::InvalidField("answers"));
        }
        Ok(Self {
            expected,
            window,
            next,
            request: flags & REQUEST != 0,
            answers: is_answer.then_some(answered),
        })
    }

    fn encode(&self, buffer: &mut Vec<u8>) {
        let request = if self.request { REQUEST } else { 0 };
        let answer = if self.answers.is_some() { ANSWER } else { 0 };
        let answered = self.answers.unwrap_or_default();
        for word in [
            self.expected.value(),
            self.window,
            self.next.value(),
            request | answer,
            answered.value(),
        ] {
            buffer.extend_from_slice(&word.to_be_bytes());
        }
    }
}

impl Ack {
    fn decode(rest: &mut &[u8]) -> Result<Self, DecodeError> {
        Ok(Self {
            expected: take_sequence(rest)?,
            window: take_u32(rest)?,
            rtt: Duration::from_nanos(take_u32(rest)?.into()),
            received: take_u32(rest)?,
            marked: take_u32(rest)?,
        })
    }

    fn encode(&self, buffer: &mut Vec<u8>) {
        let rtt = u32::try_from(self.rtt.as_nanos()).unwrap_or(u32::MAX);
        for word in [
            self.expected.value(),
            self.window,
            rtt,
            self.received,
            self.marked,
        ] {
            buffer.extend_from_slice(&word.to_be_bytes());
        }
    }
}

impl Shutdown {
    fn decode(rest: &mut &[u8]) -> Result<Self, DecodeError> {
        let reason = take_u32(rest)?;
        let code = take_u32(rest)?;
        let expected = take_sequence(rest)?;
        let is_answer = reason & SHUTDOWN_ANSWER != 0;
        let reason = match (reason & !SHUTDOWN_ANSWER, code) {
            (0, 0) => ShutdownReason::Finished,
            (1, code) => ShutdownReason::Aborted(code),
            (2, 0) => ShutdownReason::Protocol,
            (3, 0) => ShutdownReason::TimedOut,
            _ => return Err(DecodeError::InvalidField("reason")),
        };
        Ok(Self {
            reason,
            expected,
            is_answer,
        })
    }

    fn encode(&self, buffer: &mut Vec<u8>) {
        let (reason, code) = match self.reason {
            ShutdownReason::Finished => (0, 0),
            ShutdownReason::Aborted(code) => (1, code),
            ShutdownReason::Protocol => (2, 0),
            ShutdownReason::TimedOut => (3, 0),
        };
        let answer = if self.is_answer { SHUTDOWN_ANSWER } else { 0 };
        for word in [reason | answer, code, self.expected.value()] {
            buffer.extend_from_slice(&word.to_be_bytes());
        }
    }
}
