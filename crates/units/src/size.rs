//! Amounts of data, in bytes.

use crate::amount::{impl_amount, impl_ratio};
use crate::text::{Quantity, Unit, impl_text};

const SIZE: Quantity = Quantity {
    name: "a size",
    accepted: "B, KB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024)",
    units: &[
        Unit::decimal(1, &["B"]),
        Unit::decimal(1_000, &["KB", "kB"]),
        Unit::decimal(1_000_000, &["MB"]),
        Unit::decimal(1_000_000_000, &["GB"]),
        Unit::decimal(1_000_000_000_000, &["TB"]),
        Unit::whole_unless_longer(1 << 10, &["KiB"]),
        Unit::whole_unless_longer(1 << 20, &["MiB"]),
        Unit::whole_unless_longer(1 << 30, &["GiB"]),
        Unit::whole_unless_longer(1 << 40, &["TiB"]),
    ],
};

/// An amount of data in bytes. Formatted in the largest of B, KB, MB, GB and TB that it fills, with
/// decimals where needed (`1.8MB`), or in KiB, MiB, GiB or TiB where it is a whole number of them
/// and that is not longer (`64KiB`, but `128KB`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

impl ByteSize {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// The largest amount: "unbounded".
    pub const MAX: Self = Self(u64::MAX);

    /// Creates a size of `bytes` bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Creates a size of `kib` times 1024 bytes.
    pub const fn from_kib(kib: u64) -> Self {
        Self(kib.saturating_mul(1024))
    }

    /// Creates a size of `mib` times 1024² bytes.
    pub const fn from_mib(mib: u64) -> Self {
        Self(mib.saturating_mul(1024 * 1024))
    }

    /// Returns the size in bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// Returns the size as a length in memory; `usize::MAX` where it does not fit.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// Returns `self` times a factor, rounded down; zero for a factor that is negative or not a
    /// number.
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor) as u64)
    }
}

impl_text!(ByteSize, SIZE);
impl_amount!(ByteSize);
impl_ratio!(ByteSize);
