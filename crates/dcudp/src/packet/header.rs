//! The 16-byte header of every packet.

use super::{ControlKind, DecodeError, take_u32};
use crate::{MessageNumber, SequenceNumber};

/// The length of every packet's header in bytes.
pub const HEADER_LENGTH: usize = 16;

const CONTROL: u32 = 1 << 31;
const POSITION_SHIFT: u32 = 30;
const IN_ORDER: u32 = 1 << 29;
/// OBS, CWR and ECE in this order, from the highest bit down.
const DATA_MARKS_SHIFT: u32 = 26;
const CONTROL_MARKS_SHIFT: u32 = 13;
const CONTROL_RESERVED: u32 = 0x1fff;

/// The id of a connection at the receiving end; zero in a client's first packets, before it knows
/// the server's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SocketId(pub u32);

impl SocketId {
    /// No connection yet.
    pub const NONE: Self = Self(0);
}

/// Send time in microseconds since the sender's connection started, modulo 2³². Informational: the
/// protocol does not use it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Timestamp(pub u32);

/// The three bits that DCUDP adds to UDT (section III-B).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HeaderFlags {
    /// OBS: Congestion Mode. In data packets, ACK2 and OBS-change it is the sender's mode; in ACK,
    /// NAK and keep-alive packets the mode that the receiver requests.
    pub obs: bool,
    /// CWR: the sender has reduced its rate on the last echo.
    pub cwr: bool,
    /// ECE: a data packet arrived with a CE mark.
    pub ece: bool,
}

impl HeaderFlags {
    fn bits(self) -> u32 {
        u32::from(self.obs) << 2 | u32::from(self.cwr) << 1 | u32::from(self.ece)
    }

    fn from_bits(bits: u32) -> Self {
        Self {
            obs: bits & 4 != 0,
            cwr: bits & 2 != 0,
            ece: bits & 1 != 0,
        }
    }
}

/// The position of a data packet in its message. All packets of a stream are
/// [`MessagePosition::Only`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessagePosition {
    /// Neither first nor last. Without a payload: the end of all data.
    Middle,
    /// The last of several packets.
    Last,
    /// The first of several packets.
    First,
    /// The only packet of its message.
    Only,
}

impl MessagePosition {
    /// Returns the position of a packet from whether it is the first and the last one.
    pub const fn new(first: bool, last: bool) -> Self {
        match (first, last) {
            (true, true) => Self::Only,
            (true, false) => Self::First,
            (false, true) => Self::Last,
            (false, false) => Self::Middle,
        }
    }

    /// Returns whether a message starts here.
    pub const fn is_first(self) -> bool {
        matches!(self, Self::First | Self::Only)
    }

    /// Returns whether a message ends here.
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
    /// The sequence number.
    pub sequence: SequenceNumber,
    /// The position in its message.
    pub position: MessagePosition,
    /// Whether the message is delivered in order.
    pub in_order: bool,
    /// OBS, CWR, ECE.
    pub flags: HeaderFlags,
    /// The message number; zero on streams.
    pub message: MessageNumber,
    /// The send time.
    pub timestamp: Timestamp,
    /// The destination socket id.
    pub destination: SocketId,
}

impl DataHeader {
    /// Appends the header to `buffer`.
    pub fn encode(&self, buffer: &mut Vec<u8>) {
        buffer.extend_from_slice(&self.to_bytes());
    }

    /// Returns the header in wire format.
    pub fn to_bytes(&self) -> [u8; HEADER_LENGTH] {
        let order = if self.in_order { IN_ORDER } else { 0 };
        let message = self.position.bits() << POSITION_SHIFT
            | order
            | self.flags.bits() << DATA_MARKS_SHIFT
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
    /// The packet type.
    pub kind: ControlKind,
    /// OBS, CWR, ECE.
    pub flags: HeaderFlags,
    /// The packet number, counted separately from data; an ACK2 has the number of its ACK.
    pub number: SequenceNumber,
    /// The send time.
    pub timestamp: Timestamp,
    /// The destination socket id.
    pub destination: SocketId,
}

impl ControlHeader {
    /// Appends the header to `buffer`.
    pub fn encode(&self, buffer: &mut Vec<u8>) {
        let first =
            CONTROL | u32::from(self.kind.code()) << 16 | self.flags.bits() << CONTROL_MARKS_SHIFT;
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
    /// Decodes a header. Returns it with the following bytes.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes do not start with a valid header.
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
                flags: HeaderFlags::from_bits(second >> DATA_MARKS_SHIFT),
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
            flags: HeaderFlags::from_bits(first >> CONTROL_MARKS_SHIFT),
            number: SequenceNumber::new(second),
            timestamp,
            destination,
        };
        Ok((Self::Control(header), rest))
    }

    /// Returns the destination socket id.
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
