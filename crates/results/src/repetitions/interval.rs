//! Means of repetitions with 95 % confidence intervals (Student 1908, Welch 1947).

use serde::Serialize;

/// The 97.5 % quantiles of Student's t distribution, for 1 to 30 degrees of freedom.
const QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
/// The quantile for many degrees of freedom: that of the normal distribution.
const NORMAL_QUANTILE: f64 = 1.960;

/// The mean of a value over repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MeanInterval {
    /// The number of repetitions.
    pub count: usize,
    /// The mean.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval of the mean; `None` for one repetition.
    pub half_width: Option<f64>,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// The sample variance; zero for one repetition.
    #[serde(skip)]
    variance: f64,
}

impl MeanInterval {
    /// Returns the mean of these values; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let count = values.len();
        let (min, max) = (
            values.iter().copied().reduce(f64::min)?,
            values.iter().copied().reduce(f64::max)?,
        );
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let freedom = count - 1;
        let variance = if freedom == 0 {
            0.0
        } else {
            squares / freedom as f64
        };
        let half_width =
            (freedom > 0).then(|| quantile(freedom as f64) * (variance / count as f64).sqrt());
        Some(Self {
            count,
            mean,
            half_width,
            min,
            max,
            variance,
        })
    }

    /// Returns the 95 % confidence interval of the difference of the means, `other` less this one: Welch's.
    /// A side with one repetition is taken to vary as the other one. `None` if both have one.
    pub fn difference(&self, other: &Self) -> Option<(f64, f64)> {
        let (one, two) = (self.count as f64, other.count as f64);
        let (error, freedom) = match (self.count, other.count) {
            (1, 1) => return None,
            (1, _) => ((other.variance * (1.0 + 1.0 / two)).sqrt(), two - 1.0),
            (_, 1) => ((self.variance * (1.0 + 1.0 / one)).sqrt(), one - 1.0),
            _ => {
                let (first, second) = (self.variance / one, other.variance / two);
                let sum = first + second;
                let spread = first.powi(2) / (one - 1.0) + second.powi(2) / (two - 1.0);
                let freedom = if spread > 0.0 {
                    sum.powi(2) / spread
                } else {
                    one + two - 2.0
                };
                (sum.sqrt(), freedom)
            }
        };
        let (difference, half) = (other.mean - self.mean, quantile(freedom) * error);
        Some((difference - half, difference + half))
    }
}

/// Returns the 97.5 % quantile of Student's t distribution, for the next lower whole degrees of freedom.
fn quantile(freedom: f64) -> f64 {
    let index = (freedom.floor().max(1.0) as usize) - 1;
    QUANTILES.get(index).copied().unwrap_or(NORMAL_QUANTILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_students() {
        let five = MeanInterval::of(&[9.0, 10.0, 11.0, 10.0, 10.0]).unwrap();
        assert_eq!(
            (five.count, five.mean, five.min, five.max),
            (5, 10.0, 9.0, 11.0)
        );
        // The standard error is sqrt(0.5 / 5).
        assert!((five.half_width.unwrap() - 2.776 * 0.1_f64.sqrt()).abs() < 1e-9);
        let one = MeanInterval::of(&[3.0]).unwrap();
        assert_eq!((one.mean, one.half_width), (3.0, None));
        assert_eq!(MeanInterval::of(&[]), None);
    }

    #[test]
    fn a_difference_is_welchs() {
        let one = MeanInterval::of(&[9.0, 10.0, 11.0]).unwrap();
        let other = MeanInterval::of(&[19.0, 20.0, 21.0]).unwrap();
        let (low, high) = one.difference(&other).unwrap();
        // Equal variances: 4 degrees of freedom, an error of sqrt(2 / 3).
        let half = 2.776 * (2.0_f64 / 3.0).sqrt();
        assert!((low - (10.0 - half)).abs() < 1e-9 && (high - (10.0 + half)).abs() < 1e-9);
        let single = MeanInterval::of(&[20.0]).unwrap();
        let (low, high) = one.difference(&single).unwrap();
        assert!(low < 10.0 && high > 10.0 && high - low > 2.0 * half);
        assert_eq!(single.difference(&single), None);
        let same = MeanInterval::of(&[4.0, 4.0]).unwrap();
        assert_eq!(same.difference(&same), Some((0.0, 0.0)));
    }
}
