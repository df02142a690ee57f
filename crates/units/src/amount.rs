//! Arithmetic shared by sizes, rates and spans: it saturates.

/// Implements the arithmetic of an amount for a newtype over `u64`: sums and differences of its own
/// kind, multiples and parts by numbers. Operators saturate; a zero divisor returns the largest
/// amount.
macro_rules! impl_amount {
    ($type:ident) => {
        impl $type {
            /// Returns whether this is zero.
            pub const fn is_zero(self) -> bool {
                self.0 == 0
            }

            /// Returns `self + other`, or `None` past the largest one.
            pub const fn checked_add(self, other: Self) -> Option<Self> {
                match self.0.checked_add(other.0) {
                    Some(sum) => Some(Self(sum)),
                    None => None,
                }
            }

            /// Returns `self - other`, or `None` below zero.
            pub const fn checked_sub(self, other: Self) -> Option<Self> {
                match self.0.checked_sub(other.0) {
                    Some(difference) => Some(Self(difference)),
                    None => None,
                }
            }

            /// Returns `self` times `factor`, or `None` past the largest one.
            pub const fn checked_mul(self, factor: u64) -> Option<Self> {
                match self.0.checked_mul(factor) {
                    Some(product) => Some(Self(product)),
                    None => None,
                }
            }
        }

        impl std::ops::Add for $type {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }

        impl std::ops::AddAssign for $type {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl std::ops::Sub for $type {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }

        impl std::ops::SubAssign for $type {
            fn sub_assign(&mut self, other: Self) {
                *self = *self - other;
            }
        }

        impl std::ops::Mul<u64> for $type {
            type Output = Self;
            fn mul(self, factor: u64) -> Self {
                Self(self.0.saturating_mul(factor))
            }
        }

        impl std::ops::Div<u64> for $type {
            type Output = Self;
            /// Rounds down; the largest one for a zero divisor.
            fn div(self, divisor: u64) -> Self {
                Self(self.0.checked_div(divisor).unwrap_or(u64::MAX))
            }
        }

        impl std::iter::Sum for $type {
            fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
                amounts.fold(Self::ZERO, std::ops::Add::add)
            }
        }
    };
}

/// Implements the ratio of two amounts of a type.
macro_rules! impl_ratio {
    ($type:ident) => {
        impl std::ops::Div for $type {
            type Output = u64;
            /// Returns how often `other` fits, rounded down; `u64::MAX` for zero.
            fn div(self, other: Self) -> u64 {
                self.0.checked_div(other.0).unwrap_or(u64::MAX)
            }
        }
    };
}

pub(crate) use {impl_amount, impl_ratio};
