//! The 16 bytes with which every packet begins.

use super::{ControlKind, DecodeError, take_u32};
use crate::{MessageNumber, SequenceNumber};

/// The length of every packet's header in bytes.
pub const HEADER_LENGTH: usize = 16;

const CONTROL: u32 = 1 << 31;
const POSITION_SHIFT: u32 = 30;
const IN_ORDER: u32 = 1 << 29;
/// OBS, CWR and ECE stand in this order, downwards.
const DATA_MARKS_SHIFT: u32 = 26;
const CONTROL_MARKS_SHIFT: u32 = 13;
const CONTROL_RESERVED: u32 = 0x1fff;

/// Names a connection at the end that receives; zero in a client's first packets, which know none
/// yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SocketId(pub u32);

impl SocketId {
    /// Nobody yet.
    pub const NONE: Self = Self(0);
}

/// When a packet was sent: microseconds since its sender's connection began, modulo 2³². For those
/// who watch; nothing depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Timestamp(pub u32);

/// The three bits that DCUDP adds to UDT (section III-B).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HeaderFlags {
    /// OBS: Congestion Mode. In data packets, ACK2 and OBS-change the sender's mode; in ACK, NAK and
    /// keep-alive packets the one that the receiver wants.
    pub observe: bool,
    /// CWR: the sender has slowed down upon the last echo.
    pub reduced: bool,
    /// ECE: a data packet came with a CE mark.
    pub echo: bool,
}

impl HeaderFlags {
    fn bits(self) -> u32 {
        u32::from(self.observe) << 2 | u32::from(self.reduced) << 1 | u32::from(self.echo)
    }

    fn from_bits(bits: u32) -> Self {
        Self {
            observe: bits & 4 != 0,
            reduced: bits & 2 != 0,
            echo: bits & 1 != 0,
        }
    }
}

/// Which part of a message a data packet carries. A stream's packets are all [`MessagePosition::Only`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessagePosition {
    /// Neither the first nor the last one. Without a payload: the end of all data.
    Middle,
    /// The last one of several.
    Last,
    /// The first one of several.
    First,
    /// The whole message.
    Only,
}

impl MessagePosition {
    /// The position of a packet that is the first or the last one, or both, or neither.
    pub const fn new(first: bool, last: bool) -> Self {
        match (first, last) {
            (true, true) => Self::Only,
            (true, false) => Self::First,
            (false, true) => Self::Last,
            (false, false) => Self::Middle,
        }
    }

    /// Whether a message begins here.
    pub const fn is_first(self) -> bool {
        matches!(self, Self::First | Self::Only)
    }

    /// Whether a message ends here.
    pub const fn is_last(self) -> bool {
        matches!(self, Self::Last | Self::Only)
    }

    const fn bits(self) -> u32 {
        match self {
            Self::Middle => 0b00,
            Self::Last => 0b01,
            Self::First => 0b10,
            Self::Only => 0b11,
        }
    }

    const fn from_bits(bits: u32) -> Self {
        Self::new(bits & 0b10 != 0, bits & 0b01 != 0)
    }
}

/// The header of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataHeader {
    /// Which data packet it is.
    pub sequence: SequenceNumber,
    /// Which part of its message.
    pub position: MessagePosition,
    /// Whether the message waits for those before it.
    pub in_order: bool,
    /// OBS, CWR, ECE.
    pub marks: HeaderFlags,
    /// Which message; zero on streams.
    pub message: MessageNumber,
    /// When it was sent.
    pub timestamp: Timestamp,
    /// Whose it is.
    pub destination: SocketId,
}

impl DataHeader {
    /// Writes the header to the end of `buffer`.
    pub fn encode(&self, buffer: &mut Vec<u8>) {
        buffer.extend_from_slice(&self.to_bytes());
    }

    /// The header as it is on the wire.
    pub fn to_bytes(&self) -> [u8; HEADER_LENGTH] {
        let order = if self.in_order { IN_ORDER } else { 0 };
        let message = self.position.bits() << POSITION_SHIFT
            | order
            | self.marks.bits() << DATA_MARKS_SHIFT
            | self.message.value();
        let words = [
            self.sequence.value(),
            message,
            self.timestamp.0,
            self.destination.0,
        ];
        to_bytes(words)
    }
}

/// The header of a control packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlHeader {
    /// What it says.
    pub kind: ControlKind,
    /// OBS, CWR, ECE.
    pub marks: HeaderFlags,
    /// Which control packet it is, counted apart from data; an ACK2 has the number of its ACK.
    pub number: SequenceNumber,
    /// When it was sent.
    pub timestamp: Timestamp,
    /// Whose it is.
    pub destination: SocketId,
}

impl ControlHeader {
    /// Writes the header to the end of `buffer`.
    pub fn encode(&self, buffer: &mut Vec<u8>) {
        let first =
            CONTROL | u32::from(self.kind.code()) << 16 | self.marks.bits() << CONTROL_MARKS_SHIFT;
        let words = [
            first,
            self.number.value(),
            self.timestamp.0,
            self.destination.0,
        ];
        buffer.extend_from_slice(&to_bytes(words));
    }
}

/// The header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// Of a data packet.
    Data(DataHeader),
    /// Of a control packet.
    Control(ControlHeader),
}

impl Header {
    /// Reads the header; what follows it comes with it.
    ///
    /// # Errors
    /// [`DecodeError`] where the bytes begin with no header.
    pub fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let mut rest = bytes;
        let first = take_u32(&mut rest)?;
        let second = take_u32(&mut rest)?;
        let timestamp = Timestamp(take_u32(&mut rest)?);
        let destination = SocketId(take_u32(&mut rest)?);
        if first & CONTROL == 0 {
            let header = DataHeader {
                sequence: SequenceNumber::new(first),
                position: MessagePosition::from_bits(second >> POSITION_SHIFT),
                in_order: second & IN_ORDER != 0,
                marks: HeaderFlags::from_bits(second >> DATA_MARKS_SHIFT),
                message: MessageNumber::new(second),
                timestamp,
                destination,
            };
            return Ok((Self::Data(header), rest));
        }
        if first & CONTROL_RESERVED != 0 || second & CONTROL != 0 {
            return Err(DecodeError::Reserved);
        }
        let header = ControlHeader {
            kind: ControlKind::from_code((first >> 16 & 0x7fff) as u16)?,
            marks: HeaderFlags::from_bits(first >> CONTROL_MARKS_SHIFT),
            number: SequenceNumber::new(second),
            timestamp,
            destination,
        };
        Ok((Self::Control(header), rest))
    }

    /// Whose packet it is.
    pub const fn destination(&self) -> SocketId {
        match self {
            Self::Data(header) => header.destination,
            Self::Control(header) => header.destination,
        }
    }
}

fn to_bytes(words: [u32; 4]) -> [u8; HEADER_LENGTH] {
    let mut bytes = [0; HEADER_LENGTH];
    for (place, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
        *place = word.to_be_bytes();
    }
    bytes
}
