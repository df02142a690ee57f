//! Packet number spaces and encryption levels (RFC 9000, section 12.3; RFC 9001, section 2.1).

/// A packet number space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// Initial packets.
    Initial = 0,
    /// Handshake packets.
    Handshake = 1,
    /// 0-RTT and 1-RTT packets.
    Data = 2,
}

impl Space {
    /// All three, in the order in which a connection passes through them.
    pub const ALL: [Self; 3] = [Self::Initial, Self::Handshake, Self::Data];
}

/// An encryption level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Keys that anyone can derive from the client's first connection ID.
    Initial,
    /// Early data from the client, under keys of an earlier session.
    ZeroRtt,
    /// Handshake keys.
    Handshake,
    /// Application data.
    OneRtt,
}

impl Level {
    /// Returns the packet number space of packets of this level.
    #[inline]
    pub const fn space(self) -> Space {
        // In the order of the levels. A match would be compiled as a jump.
        const SPACES: [Space; 4] = [Space::Initial, Space::Data, Space::Handshake, Space::Data];
        SPACES[self as usize]
    }
}
