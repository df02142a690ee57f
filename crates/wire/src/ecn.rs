//! The two ECN bits of the IP header (RFC 3168, section 5).

/// The ECN codepoint of an IP packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: a congested queue drops the packet.
    #[default]
    NotEct = 0b00,
    /// ECN-capable transport, ECT(1).
    Ect1 = 0b01,
    /// ECN-capable transport, ECT(0), which Weir's transports use.
    Ect0 = 0b10,
    /// Congestion experienced: a queue on the path was congested.
    Ce = 0b11,
}

impl Ecn {
    /// Returns the codepoint in the low two bits of a Traffic Class or TOS octet.
    pub const fn from_bits(octet: u8) -> Self {
        match octet & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Returns the codepoint as the low two bits of the octet.
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// Returns whether a queue may mark this packet instead of dropping it (already marked
    /// included).
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

#[cfg(test)]
mod tests {
    use super::Ecn;

    #[test]
    fn bits_round_trip_and_ignore_dscp() {
        for bits in 0..4u8 {
            assert_eq!(Ecn::from_bits(bits).bits(), bits);
            assert_eq!(Ecn::from_bits(0b1011_1000 | bits).bits(), bits);
        }
        assert!(!Ecn::NotEct.is_capable() && Ecn::Ce.is_capable());
    }
}
