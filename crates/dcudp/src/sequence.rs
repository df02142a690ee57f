//! Numbers that wrap on the wire and do not inside.
//!
//! The engine counts packets and messages with 64 bits. A number on the wire is the low bits of such
//! a count; [`SequenceNumber::expand`] finds the count again, as the one nearest to what is expected.

/// Where the engine's counts begin, above the wire's numbers: far enough from zero for whatever lies
/// half a cycle before the first one.
const ORIGIN: u64 = 1 << 32;

/// A sequence number of a data or control packet: 31 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SequenceNumber(u32);

impl SequenceNumber {
    /// How many there are.
    pub const CYCLE: u64 = 1 << 31;

    /// The number of which `value` holds the low 31 bits; the highest bit is ignored.
    pub const fn new(value: u32) -> Self {
        Self(value & 0x7fff_ffff)
    }

    /// Its 31 bits.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The number that the wire shows for a count.
    pub const fn of(count: u64) -> Self {
        Self::new(count as u32)
    }

    /// The count nearest to `near` that the wire shows as this number.
    pub const fn expand(self, near: u64) -> u64 {
        expand(self.0, near, Self::CYCLE)
    }

    /// The count with which a connection begins whose first number is this one.
    pub const fn first_count(self) -> u64 {
        ORIGIN + self.0 as u64
    }

    /// How far this number lies ahead of `earlier`, in 0 to 2³¹ − 1.
    pub const fn ahead_of(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0) & 0x7fff_ffff
    }
}

/// A message number: 26 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MessageNumber(u32);

impl MessageNumber {
    /// How many there are.
    pub const CYCLE: u64 = 1 << 26;
    /// The count of a connection's first message, whose number is zero.
    pub(crate) const FIRST_COUNT: u64 = ORIGIN;

    /// The number of which `value` holds the low 26 bits; higher bits are ignored.
    pub const fn new(value: u32) -> Self {
        Self(value & 0x03ff_ffff)
    }

    /// Its 26 bits.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The number that the wire shows for a count.
    pub const fn of(count: u64) -> Self {
        Self::new(count as u32)
    }

    /// The count nearest to `near` that the wire shows as this number.
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
        fn counts_come_back_within_half_a_cycle(
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
    fn wraps() {
        let last = SequenceNumber::new(u32::MAX);
        assert_eq!(last.value(), 0x7fff_ffff);
        let next = last.first_count() + 1;
        assert_eq!(SequenceNumber::of(next).value(), 0);
        assert_eq!(SequenceNumber::of(next).ahead_of(last), 1);
        assert_eq!(last.expand(next), next - 1);
    }
}
