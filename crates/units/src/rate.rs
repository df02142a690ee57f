//! Data rates, in bits per second.

use crate::{ByteSize, Duration};

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// A data rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// Nothing moves.
    pub const ZERO: Self = Self(0);
    /// The largest rate: "unbounded".
    pub const MAX: Self = Self(u64::MAX);

    /// `bits` bits per second.
    pub const fn from_bits_per_second(bits: u64) -> Self {
        Self(bits)
    }

    /// `gigabits` times 10⁹ bits per second.
    pub const fn from_gbps(gigabits: u64) -> Self {
        Self(gigabits.saturating_mul(1_000_000_000))
    }

    /// The rate that moves `size` in `span`, rounded down; unbounded for no time at all.
    pub fn from_size_over(size: ByteSize, span: Duration) -> Self {
        if span.is_zero() {
            return Self::MAX;
        }
        let bits = u128::from(size.bytes()) * 8 * NANOS_PER_SECOND / u128::from(span.as_nanos());
        Self(u64::try_from(bits).unwrap_or(u64::MAX))
    }

    /// In bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Whether nothing moves.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// How long `size` takes at this rate, rounded up to a nanosecond; [`Duration::MAX`] at rate zero.
    pub fn time_for(self, size: ByteSize) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let nanos = (u128::from(size.bytes()) * 8 * NANOS_PER_SECOND).div_ceil(u128::from(self.0));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How much this rate moves in `span`, rounded down.
    pub fn size_in(self, span: Duration) -> ByteSize {
        let bytes = u128::from(self.0) * u128::from(span.as_nanos()) / (8 * NANOS_PER_SECOND);
        ByteSize::from_bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// `self` times a factor, rounded down; zero for a factor that is negative or not a number.
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor) as u64)
    }
}
