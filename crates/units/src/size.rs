//! Amounts of data, in bytes.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

use crate::text::{Quantity, Unit, Written, impl_text};

const SIZE: Quantity = Quantity {
    name: "a size",
    accepted: "B, KB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024)",
    units: &[
        Unit {
            scale: 1,
            spellings: &["B"],
            written: Written::Decimal,
        },
        Unit {
            scale: 1_000,
            spellings: &["KB", "kB"],
            written: Written::Decimal,
        },
        Unit {
            scale: 1_000_000,
            spellings: &["MB"],
            written: Written::Decimal,
        },
        Unit {
            scale: 1_000_000_000,
            spellings: &["GB"],
            written: Written::Decimal,
        },
        Unit {
            scale: 1_000_000_000_000,
            spellings: &["TB"],
            written: Written::Decimal,
        },
        Unit {
            scale: 1 << 10,
            spellings: &["KiB"],
            written: Written::WholeUnlessLonger,
        },
        Unit {
            scale: 1 << 20,
            spellings: &["MiB"],
            written: Written::WholeUnlessLonger,
        },
        Unit {
            scale: 1 << 30,
            spellings: &["GiB"],
            written: Written::WholeUnlessLonger,
        },
        Unit {
            scale: 1 << 40,
            spellings: &["TiB"],
            written: Written::WholeUnlessLonger,
        },
    ],
};

/// An amount of data in bytes. Written in the largest of B, KB, MB, GB and TB that it fills, with
/// decimals where needed (`1.8MB`), or in KiB, MiB, GiB or TiB where it is a whole number of them
/// and that is not longer (`64KiB`, but `128KB`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

impl ByteSize {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// The largest amount: "unbounded".
    pub const MAX: Self = Self(u64::MAX);

    /// `bytes` bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// `kib` times 1024 bytes.
    pub const fn from_kib(kib: u64) -> Self {
        Self(kib.saturating_mul(1024))
    }

    /// `mib` times 1024² bytes.
    pub const fn from_mib(mib: u64) -> Self {
        Self(mib.saturating_mul(1024 * 1024))
    }

    /// In bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// In bytes as a length in memory; `usize::MAX` where it does not fit.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// Whether this is nothing.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self + other`, or `None` past the largest amount.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(bytes) => Some(Self(bytes)),
            None => None,
        }
    }

    /// `self - other`, or `None` below nothing.
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(bytes) => Some(Self(bytes)),
            None => None,
        }
    }

    /// `self` times `factor`, or `None` past the largest amount.
    pub const fn checked_mul(self, factor: u64) -> Option<Self> {
        match self.0.checked_mul(factor) {
            Some(bytes) => Some(Self(bytes)),
            None => None,
        }
    }

    /// `self` times a factor, rounded down; nothing for a factor that is negative or not a number.
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor) as u64)
    }
}

impl_text!(ByteSize, SIZE);

impl Add for ByteSize {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for ByteSize {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for ByteSize {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for ByteSize {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Mul<u64> for ByteSize {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for ByteSize {
    type Output = Self;
    /// Rounds down; [`ByteSize::MAX`] for a zero divisor.
    fn div(self, divisor: u64) -> Self {
        Self(self.0.checked_div(divisor).unwrap_or(u64::MAX))
    }
}

impl Div for ByteSize {
    type Output = u64;
    /// How often `other` fits, rounded down; `u64::MAX` for nothing.
    fn div(self, other: Self) -> u64 {
        self.0.checked_div(other.0).unwrap_or(u64::MAX)
    }
}

impl Sum for ByteSize {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::ZERO, Add::add)
    }
}
