//! Sides, stream IDs, path IDs and connection IDs.

use std::fmt;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// It sent the first packet.
    Client,
    /// It answered.
    Server,
}

impl Side {
    /// Returns the peer's side.
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// Whether this is the client.
    pub const fn is_client(self) -> bool {
        matches!(self, Self::Client)
    }
}

/// The direction of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Data flows both ways.
    Bidirectional,
    /// Data flows only from the side that opened the stream.
    Unidirectional,
}

/// A stream ID (RFC 9000, section 2.1): the lowest bit is the initiator, the next one the
/// direction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(u64);

impl StreamId {
    /// Returns the `index`-th stream that `initiator` opens in that direction, counted from zero.
    pub const fn new(initiator: Side, direction: Direction, index: u64) -> Self {
        Self(index << 2 | (direction as u64) << 1 | initiator as u64)
    }

    /// Creates a stream ID from its wire value.
    pub const fn from_wire(id: u64) -> Self {
        Self(id)
    }

    /// Returns the wire value.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// Returns the side that opens the stream.
    pub const fn initiator(self) -> Side {
        if self.0 & 0b01 == 0 {
            Side::Client
        } else {
            Side::Server
        }
    }

    /// Returns the direction.
    pub const fn direction(self) -> Direction {
        if self.0 & 0b10 == 0 {
            Direction::Bidirectional
        } else {
            Direction::Unidirectional
        }
    }

    /// Returns the stream's index among those of its kind, from zero.
    pub const fn index(self) -> u64 {
        self.0 >> 2
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let initiator = match self.initiator() {
            Side::Client => "client",
            Side::Server => "server",
        };
        let direction = match self.direction() {
            Direction::Bidirectional => "bidirectional",
            Direction::Unidirectional => "unidirectional",
        };
        write!(f, "{initiator} {direction} stream {}", self.index())
    }
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamId({}: {self})", self.0)
    }
}

/// The ID of a path of a connection; never reused for another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub(crate) u32);

impl PathId {
    /// The path of the handshake.
    pub const FIRST: Self = Self(0);

    /// Creates the ID with this number.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number of the ID.
    pub const fn as_u32(self) -> u32 {
        self.0
    }
}

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "path {}", self.0)
    }
}

/// A connection ID (RFC 9000, section 5.1): up to 20 bytes that route a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    length: u8,
    bytes: [u8; Self::MAX_LENGTH],
}

impl ConnectionId {
    /// The longest connection ID in QUIC v1.
    pub const MAX_LENGTH: usize = 20;
    /// The empty connection ID.
    pub const EMPTY: Self = Self {
        length: 0,
        bytes: [0; Self::MAX_LENGTH],
    };

    /// Creates a connection ID from these bytes; `None` if there are more than 20.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut id = Self::EMPTY;
        id.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        id.length = bytes.len() as u8;
        Some(id)
    }

    /// Returns its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Returns its bytes, and zeros up to the longest ID.
    pub(crate) fn padded(&self) -> &[u8; Self::MAX_LENGTH] {
        &self.bytes
    }

    /// Returns its length in bytes.
    pub fn len(&self) -> usize {
        usize::from(self.length)
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes()
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConnectionId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_ids_follow_rfc_9000_table_1() {
        use Direction::{Bidirectional, Unidirectional};
        let cases = [
            (Side::Client, Bidirectional, 0),
            (Side::Server, Bidirectional, 1),
            (Side::Client, Unidirectional, 2),
            (Side::Server, Unidirectional, 3),
        ];
        for (initiator, direction, low_bits) in cases {
            let id = StreamId::new(initiator, direction, 7);
            assert_eq!(id.as_u64(), 7 << 2 | low_bits);
            assert_eq!(
                (id.initiator(), id.direction(), id.index()),
                (initiator, direction, 7)
            );
        }
    }

    #[test]
    fn connection_ids_hold_at_most_twenty_bytes() {
        assert_eq!(ConnectionId::new(&[7; 20]).unwrap().as_bytes(), [7; 20]);
        assert_eq!(ConnectionId::new(&[7; 21]), None);
        assert_eq!(ConnectionId::new(&[0xab, 1]).unwrap().to_string(), "ab01");
    }
}
