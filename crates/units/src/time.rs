//! Points in time and spans of it, in nanoseconds.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

use crate::text::{Quantity, Unit, Written, impl_text};

const DURATION: Quantity = Quantity {
    name: "a duration",
    accepted: "ns, us, ms, s, min, h",
    units: &[
        Unit {
            scale: 1,
            spellings: &["ns"],
            written: Written::Decimal,
        },
        // Both code points that look like a micro sign: U+00B5 and the Greek U+03BC.
        Unit {
            scale: 1_000,
            spellings: &["us", "\u{b5}s", "\u{3bc}s"],
            written: Written::Decimal,
        },
        Unit {
            scale: 1_000_000,
            spellings: &["ms"],
            written: Written::Decimal,
        },
        Unit {
            scale: 1_000_000_000,
            spellings: &["s"],
            written: Written::Decimal,
        },
        Unit {
            scale: 60_000_000_000,
            spellings: &["min"],
            written: Written::Whole,
        },
        Unit {
            scale: 3_600_000_000_000,
            spellings: &["h"],
            written: Written::Whole,
        },
    ],
};

/// A point in time: nanoseconds since an epoch that the caller chooses. Written as the span since
/// then, `1.5ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The epoch.
    pub const ZERO: Self = Self(0);
    /// The end of time, some 584 years after the epoch: "never".
    pub const MAX: Self = Self(u64::MAX);

    /// The point `nanos` nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The span since `earlier`; zero where `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// `self + span`, or `None` past the end of time.
    pub const fn checked_add(self, span: Duration) -> Option<Self> {
        match self.0.checked_add(span.0) {
            Some(nanos) => Some(Self(nanos)),
            None => None,
        }
    }

    /// `self - span`, or `None` before the epoch.
    pub const fn checked_sub(self, span: Duration) -> Option<Self> {
        match self.0.checked_sub(span.0) {
            Some(nanos) => Some(Self(nanos)),
            None => None,
        }
    }

    /// The span since `earlier`, or `None` where `earlier` is later.
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

/// A span of time in nanoseconds. Written `50us`: in the largest of ns, us, ms and s that it
/// fills, with decimals where needed, and in min or h where it is a whole number of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span, some 584 years.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A span of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// A span of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// A span of `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// The span nearest to `secs` seconds; zero for what is negative or not a number.
    pub fn from_secs_f64(secs: f64) -> Self {
        Self((secs * 1e9).round() as u64)
    }

    /// In nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// In whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// In whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// In seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Whether this is no time at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self + other`, or `None` past the largest span.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(nanos) => Some(Self(nanos)),
            None => None,
        }
    }

    /// `self - other`, or `None` below no time at all.
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(nanos) => Some(Self(nanos)),
            None => None,
        }
    }

    /// `self` times `factor`, or `None` past the longest span.
    pub const fn checked_mul(self, factor: u64) -> Option<Self> {
        match self.0.checked_mul(factor) {
            Some(nanos) => Some(Self(nanos)),
            None => None,
        }
    }

    /// `self` times a factor, rounded to the nearest; zero for a factor that is negative or not a number.
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor).round() as u64)
    }

    /// The distance between two spans.
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

impl_text!(Duration, DURATION);

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for Duration {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Duration {
    type Output = Self;
    /// Rounds down; [`Duration::MAX`] for a zero divisor.
    fn div(self, divisor: u64) -> Self {
        Self(self.0.checked_div(divisor).unwrap_or(u64::MAX))
    }
}

impl Div for Duration {
    type Output = u64;
    /// How often `other` fits, rounded down; `u64::MAX` for no time at all.
    fn div(self, other: Self) -> u64 {
        self.0.checked_div(other.0).unwrap_or(u64::MAX)
    }
}

impl Sum for Duration {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

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
