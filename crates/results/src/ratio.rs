//! Dimensionless numbers.

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};
use weir_units::Rate;

/// A finite number without a unit: a share, a utilization, an index. JSON cannot express non-finite
/// numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize)]
pub struct Ratio(f64);

impl Ratio {
    /// Zero.
    pub const ZERO: Self = Self(0.0);
    /// One.
    pub const ONE: Self = Self(1.0);

    /// Returns the ratio for a finite number; `None` for any other.
    pub const fn new(value: f64) -> Option<Self> {
        if value.is_finite() {
            Some(Self(value))
        } else {
            None
        }
    }

    /// Returns `part` divided by `whole`; zero if `whole` is zero.
    pub fn of(part: u64, whole: u64) -> Self {
        if whole == 0 {
            return Self::ZERO;
        }
        Self(part as f64 / whole as f64)
    }

    /// Returns the number.
    pub const fn value(self) -> f64 {
        self.0
    }

    /// Computes Jain's fairness index (Jain, Chiu and Hawe 1984, equation 1): 1 if all rates are
    /// equal, `1/n` if one of `n` flows has all. `None` without rates, or if all are zero.
    pub fn fairness(rates: impl IntoIterator<Item = Rate>) -> Option<Self> {
        let (mut count, mut sum, mut squares) = (0_u64, 0.0, 0.0);
        for rate in rates {
            let rate = rate.bits_per_second() as f64;
            count += 1;
            sum += rate;
            squares += rate * rate;
        }
        // Without rates, or with zeros only, this is 0/0, which `new` rejects.
        Self::new(sum * sum / (count as f64 * squares))
    }
}

impl<'de> Deserialize<'de> for Ratio {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        Self::new(value).ok_or_else(|| de::Error::custom("a number that is not finite"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_finite_ratios_are_accepted() {
        assert_eq!(Ratio::new(f64::NAN), None);
        assert_eq!(Ratio::new(f64::INFINITY), None);
        assert_eq!(Ratio::new(0.5).map(Ratio::value), Some(0.5));
        assert_eq!(Ratio::of(3, 4).value(), 0.75);
        assert_eq!(Ratio::of(3, 0), Ratio::ZERO);
    }

    #[test]
    fn fairness_lies_between_one_of_n_and_one() {
        let fairness = |rates: &[u64]| {
            let rates = rates.iter().map(|&rate| Rate::from_mbps(rate));
            Ratio::fairness(rates).map(Ratio::value)
        };
        assert_eq!(fairness(&[5, 5, 5, 5]), Some(1.0));
        assert_eq!(fairness(&[5, 0, 0, 0]), Some(0.25));
        // (1+2+3)² / (3 · (1+4+9))
        assert_eq!(fairness(&[1, 2, 3]), Some(36.0 / 42.0));
        assert_eq!(fairness(&[]), None);
        assert_eq!(fairness(&[0, 0]), None);
        assert!(Ratio::fairness([Rate::MAX; 3]).is_some());
    }
}
