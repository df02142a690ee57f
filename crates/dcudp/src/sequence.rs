//! Sequence numbers that wrap on the wire but not internally.
//!
//! The engine counts packets and messages with 64 bits. A number on the wire is the low bits of
//! such a count. [`SequenceNumber::expand`] restores the count, as the one nearest to the expected
//! value.

/// The origin of the engine's counts: far enough from zero for values half a cycle before the first
/// count.
const ORIGIN: u64 = 1 << 32;

/// A sequence number of a data or control packet: 31 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SequenceNumber(u32);

impl SequenceNumber {
    /// The size of the number space.
    pub const CYCLE: u64 = 1 << 31;

    /// Creates a number from the low 31 bits of `value`; the highest bit is ignored.
    pub const fn new(value: u32) -> Self {
        Self(value & 0x7fff_ffff)
    }

    /// Returns the 31 bits.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// Returns the wire number of a count.
    pub const fn of(count: u64) -> Self {
        Self::new(count as u32)
    }

    /// Returns the count nearest to `near` with this wire number.
    pub const fn expand(self, near: u64) -> u64 {
        expand(self.0, near, Self::CYCLE)
    }

    /// Returns the first count of a connection whose first number is this one.
    pub const fn first_count(self) -> u64 {
        ORIGIN + self.0 as u64
    }

    /// Returns the distance from `earlier` to this number, in 0 to 2³¹ − 1.
    pub const fn ahead_of(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0) & 0x7fff_ffff
    }
}

/// A message number: 26 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MessageNumber(u32);

impl MessageNumber {
    /// The size of the number space.
    pub const CYCLE: u64 = 1 << 26;
    /// The count of a connection's first message, whose number is zero.
    pub(crate) const FIRST_COUNT: u64 = ORIGIN;

    /// Creates a number from the low 26 bits of `value`; higher bits are ignored.
    pub const fn new(value: u32) -> Self {
        Self(value & 0x03ff_ffff)
    }

    /// Returns the 26 bits.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// Returns the wire number of a count.
    pub const fn of(count: u64) -> Self {
        Self::new(count as u32)
    }

    /// Returns the count nearest to `near` with this wire number.
    pub const fn expand(self, near: u64) -> u64 {
        expand(self.0, near, Self::CYCLE)
    }
}

const fn expand(value: u32, near: u64, cycle: u64) -> u64 {
    let ahead = (value as u64).wrapping_sub(near) & (cycle - 1);
    if ahead < cycle / 2 {
        near.saturating_add(ahead)
    } else {
        near.saturating_sub(cycle - ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_expand_correctly_within_half_a_cycle(
            near in ORIGIN..1 << 40,
            distance in -(1_i64 << 30)..1 << 30,
        ) {
            let count = near.saturating_add_signed(distance);
            prop_assert_eq!(SequenceNumber::of(count).expand(near), count);
            let close = near.saturating_add_signed(distance >> 5);
            prop_assert_eq!(MessageNumber::of(close).expand(near), close);
        }
    }

    #[test]
    fn sequence_numbers_wrap() {
        let last = SequenceNumber::new(u32::MAX);
        assert_eq!(last.value(), 0x7fff_ffff);
        let next = last.first_count() + 1;
        assert_eq!(SequenceNumber::of(next).value(), 0);
        assert_eq!(SequenceNumber::of(next).ahead_of(last), 1);
        assert_eq!(last.expand(next), next - 1);
    }
}
