//! Sequence numbers: 32 bits that wrap around (RFC 9293, section 3.4).

use std::ops::{Add, Sub};

/// A sequence number. Two can be compared while they are less than 2^31 apart: this is no total
/// order, so there is no `Ord`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sequence(u32);

impl Sequence {
    /// Creates it from the header's field.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the header's field.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Returns whether this one comes before `other`.
    pub const fn precedes(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// Returns how far this one is ahead of `other`; negative if it is behind.
    pub const fn distance_from(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }
}

impl Add<u32> for Sequence {
    type Output = Self;
    fn add(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

impl Sub<u32> for Sequence {
    type Output = Self;
    fn sub(self, bytes: u32) -> Self {
        Self(self.0.wrapping_sub(bytes))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Sequence;

    proptest! {
        #[test]
        fn order_holds_across_the_wrap(start: u32, ahead in 1..=i32::MAX as u32) {
            let (start, end) = (Sequence::new(start), Sequence::new(start) + ahead);
            prop_assert!(start.precedes(end) && !end.precedes(start) && !start.precedes(start));
            prop_assert_eq!(end.distance_from(start), ahead as i32);
            prop_assert_eq!(start.distance_from(end), -(ahead as i32));
            prop_assert_eq!(end - ahead, start);
        }
    }
}
