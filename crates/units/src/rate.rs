//! Data rates, in bits per second.

use crate::amount::impl_amount;
use crate::text::{Quantity, Unit, impl_text};
use crate::{ByteSize, Duration};

const NANOS_PER_SECOND: u128 = 1_000_000_000;

const RATE: Quantity = Quantity {
    name: "a rate",
    accepted: "bps, kbps, Mbps, Gbps, Tbps (bits; also bit/s, kbit/s, …)",
    units: &[
        Unit::decimal(1, &["bps", "bit/s"]),
        Unit::decimal(1_000, &["kbps", "kbit/s", "Kbps"]),
        Unit::decimal(1_000_000, &["Mbps", "Mbit/s"]),
        Unit::decimal(1_000_000_000, &["Gbps", "Gbit/s"]),
        Unit::decimal(1_000_000_000_000, &["Tbps", "Tbit/s"]),
    ],
};

/// A data rate in bits per second. Formatted in the largest of bps, kbps, Mbps, Gbps and Tbps that
/// it fills, with decimals where needed: `12.5Gbps`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// The largest rate: "unbounded".
    pub const MAX: Self = Self(u64::MAX);

    /// Creates a rate of `bits` bits per second.
    pub const fn from_bits_per_second(bits: u64) -> Self {
        Self(bits)
    }

    /// Creates a rate of `megabits` times 10⁶ bits per second.
    pub const fn from_mbps(megabits: u64) -> Self {
        Self(megabits.saturating_mul(1_000_000))
    }

    /// Creates a rate of `gigabits` times 10⁹ bits per second.
    pub const fn from_gbps(gigabits: u64) -> Self {
        Self(gigabits.saturating_mul(1_000_000_000))
    }

    /// Returns the rate that transfers `size` in `span`, rounded down; unbounded for a zero span.
    pub fn from_size_over(size: ByteSize, span: Duration) -> Self {
        if span.is_zero() {
            return Self::MAX;
        }
        // Up to two gigabytes: a division of 128 bits takes several times as long.
        if let Some(bits) = size.bytes().checked_mul(8 * NANOS_PER_SECOND as u64) {
            return Self(bits / span.as_nanos());
        }
        let bits = u128::from(size.bytes()) * 8 * NANOS_PER_SECOND / u128::from(span.as_nanos());
        Self(u64::try_from(bits).unwrap_or(u64::MAX))
    }

    /// Returns the average rate of `size` over `span`, rounded down; zero where no time has passed.
    pub fn average(size: ByteSize, span: Duration) -> Self {
        if span.is_zero() {
            Self::ZERO
        } else {
            Self::from_size_over(size, span)
        }
    }

    /// Returns the rate in bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Returns the time for `size` at this rate, rounded up to a nanosecond; [`Duration::MAX`] at
    /// rate zero.
    pub fn time_for(self, size: ByteSize) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let nanos = (u128::from(size.bytes()) * 8 * NANOS_PER_SECOND).div_ceil(u128::from(self.0));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns the amount transferred at this rate in `span`, rounded down.
    pub fn size_in(self, span: Duration) -> ByteSize {
        if let Some(bits) = self.0.checked_mul(span.as_nanos()) {
            return ByteSize::from_bytes(bits / (8 * NANOS_PER_SECOND as u64));
        }
        let bytes = u128::from(self.0) * u128::from(span.as_nanos()) / (8 * NANOS_PER_SECOND);
        ByteSize::from_bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// Returns whether `size` can be transferred in `span`: as [`Self::size_in`], without a
    /// division.
    pub fn moves(self, size: ByteSize, span: Duration) -> bool {
        let wanted = u128::from(size.bytes()) * (8 * NANOS_PER_SECOND);
        wanted <= u128::from(self.0) * u128::from(span.as_nanos())
    }

    /// Returns `self` times a factor, rounded down; zero for a factor that is negative or not a
    /// number.
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor) as u64)
    }
}

impl_text!(Rate, RATE);
impl_amount!(Rate);
