//! The control bits of a TCP header.

use std::ops::{BitOr, BitOrAssign};

/// A set of control bits (RFC 9293, section 3.1), as in the 14th byte of the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(1);
    /// Synchronizes sequence numbers.
    pub const SYN: Self = Self(1 << 1);
    /// Resets the connection.
    pub const RST: Self = Self(1 << 2);
    /// Asks the receiver to pass its data to the application.
    pub const PSH: Self = Self(1 << 3);
    /// The acknowledgment field is valid.
    pub const ACK: Self = Self(1 << 4);
    /// The urgent pointer is valid.
    pub const URG: Self = Self(1 << 5);
    /// ECN echo (RFC 3168, section 6.1; DCTCP: RFC 8257, section 3.2).
    pub const ECE: Self = Self(1 << 6);
    /// Congestion window reduced (RFC 3168, section 6.1).
    pub const CWR: Self = Self(1 << 7);
    /// The flags of a SYN that offers ECN (RFC 3168, section 6.1.1).
    pub const ECE_AND_CWR: Self = Self(1 << 6 | 1 << 7);

    /// Returns the empty set.
    pub const fn empty() -> Self {
        Self(0)
    }

    /// Creates the set from the header's byte.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// Returns the header's byte.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns whether all bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns whether any bit of `other` is set.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns these flags without the bits of `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

#[cfg(test)]
mod tests {
    use super::Flags;

    #[test]
    fn flags_are_sets() {
        let mut flags = Flags::SYN | Flags::ACK;
        assert!(flags.contains(Flags::SYN) && !flags.contains(Flags::SYN | Flags::ECE));
        assert!(flags.intersects(Flags::SYN | Flags::ECE) && !flags.intersects(Flags::FIN));
        flags |= Flags::CWR;
        assert_eq!(flags.bits(), 0b1001_0010);
        assert_eq!(flags.without(Flags::SYN), Flags::from_bits(0b1001_0000));
        assert_eq!(Flags::empty(), Flags::default());
    }
}
