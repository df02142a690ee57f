//! Points in time and spans of it, in nanoseconds.

use std::ops::{Add, AddAssign, Sub, SubAssign};

use crate::amount::{impl_amount, impl_ratio};
use crate::text::{Quantity, Unit, impl_text};

const DURATION: Quantity = Quantity {
    name: "a duration",
    accepted: "ns, us, ms, s, min, h",
    units: &[
        Unit::decimal(1, &["ns"]),
        // Both code points that look like a micro sign: U+00B5 and the Greek U+03BC.
        Unit::decimal(1_000, &["us", "\u{b5}s", "\u{3bc}s"]),
        Unit::decimal(1_000_000, &["ms"]),
        Unit::decimal(1_000_000_000, &["s"]),
        Unit::whole(60_000_000_000, &["min"]),
        Unit::whole(3_600_000_000_000, &["h"]),
    ],
};

/// A point in time: nanoseconds since an epoch that the caller chooses. Formatted as the span since
/// then, `1.5ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The epoch.
    pub const ZERO: Self = Self(0);
    /// The largest value, some 584 years after the epoch: "never".
    pub const MAX: Self = Self(u64::MAX);

    /// Creates the time `nanos` nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the span since `earlier`; zero where `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// Returns `self + span`, or `None` past [`Self::MAX`].
    pub const fn checked_add(self, span: Duration) -> Option<Self> {
        match self.0.checked_add(span.0) {
            Some(nanos) => Some(Self(nanos)),
            None => None,
        }
    }

    /// Returns `self - span`, or `None` before the epoch.
    pub const fn checked_sub(self, span: Duration) -> Option<Self> {
        match self.0.checked_sub(span.0) {
            Some(nanos) => Some(Self(nanos)),
            None => None,
        }
    }

    /// Returns the span since `earlier`, or `None` where `earlier` is later.
    pub const fn checked_since(self, earlier: Self) -> Option<Duration> {
        match self.0.checked_sub(earlier.0) {
            Some(nanos) => Some(Duration(nanos)),
            None => None,
        }
    }
}

impl_text!(Time, DURATION);

impl Add<Duration> for Time {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub<Duration> for Time {
    type Output = Self;
    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl SubAssign<Duration> for Time {
    fn sub_assign(&mut self, span: Duration) {
        *self = *self - span;
    }
}

impl Sub for Time {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

/// A span of time in nanoseconds. Formatted as `50us`: in the largest of ns, us, ms and s that it
/// fills, with decimals where needed, and in min or h where it is a whole number of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Duration {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// The longest span, some 584 years.
    pub const MAX: Self = Self(u64::MAX);

    /// Creates a span of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Creates a span of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// Creates a span of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Creates a span of `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Creates the span nearest to `secs` seconds; zero for a value that is negative or not a
    /// number.
    pub fn from_secs_f64(secs: f64) -> Self {
        Self((secs * 1e9).round() as u64)
    }

    /// Returns the span in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the span in whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Returns the span in whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Returns the span in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns `self` times a factor, rounded to the nearest; zero for a factor that is negative or
    /// not a number.
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor).round() as u64)
    }

    /// Returns the absolute difference of two spans.
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

impl_text!(Duration, DURATION);
impl_amount!(Duration);
impl_ratio!(Duration);

impl From<std::time::Duration> for Duration {
    /// Saturates at [`Duration::MAX`].
    fn from(span: std::time::Duration) -> Self {
        Self(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Duration> for std::time::Duration {
    fn from(span: Duration) -> Self {
        Self::from_nanos(span.0)
    }
}
