//! What repetitions tell about a difference.

use serde::Serialize;

use crate::{MeanInterval, Ratio};

/// The certainty of a pair of means.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PairStatistics {
    /// Half the width of A's 95 % confidence interval; `None` for one repetition.
    pub first_half_width: Option<f64>,
    /// The same of B.
    pub second_half_width: Option<f64>,
    /// The 95 % confidence interval of the difference from A to B, relative to A; `None` where A is zero.
    pub difference_interval: Option<[Ratio; 2]>,
    /// What follows.
    pub verdict: Verdict,
}

/// Whether two means are the same for practical purposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole confidence interval of the difference lies within the tolerance.
    Agree,
    /// None of it does.
    Differ,
    /// The interval is too wide: more repetitions may tell.
    CannotTell,
}

impl PairStatistics {
    pub(super) fn of(one: &MeanInterval, other: &MeanInterval, tolerance: Ratio) -> Self {
        let interval = one.difference(other);
        let relative = interval.and_then(|(low, high)| {
            let scale = one.mean.abs();
            Some([Ratio::new(low / scale)?, Ratio::new(high / scale)?])
        });
        let verdict = match (interval, relative) {
            (_, Some([low, high])) => {
                let (low, high, most) = (low.value(), high.value(), tolerance.value());
                if -most <= low && high <= most {
                    Verdict::Agree
                } else if low > most || high < -most {
                    Verdict::Differ
                } else {
                    Verdict::CannotTell
                }
            }
            // A is zero.
            (Some((0.0, 0.0)), None) => Verdict::Agree,
            (Some((low, high)), None) if low > 0.0 || high < 0.0 => Verdict::Differ,
            _ => Verdict::CannotTell,
        };
        Self {
            first_half_width: one.half_width,
            second_half_width: other.half_width,
            difference_interval: relative,
            verdict,
        }
    }
}

impl Verdict {
    /// Returns it in words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Agree => "agree",
            Self::Differ => "differ",
            Self::CannotTell => "cannot tell",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(first: &[f64], second: &[f64]) -> Verdict {
        let [one, other] = [first, second].map(|values| MeanInterval::of(values).unwrap());
        PairStatistics::of(&one, &other, Ratio::new(0.1).unwrap()).verdict
    }

    #[test]
    fn the_interval_of_the_difference_decides() {
        assert_eq!(
            verdict(&[100.0, 101.0, 99.0], &[103.0, 104.0, 102.0]),
            Verdict::Agree
        );
        assert_eq!(
            verdict(&[100.0, 101.0, 99.0], &[130.0, 131.0, 129.0]),
            Verdict::Differ
        );
        assert_eq!(verdict(&[100.0, 101.0, 99.0], &[70.0]), Verdict::Differ);
        assert_eq!(
            verdict(&[100.0, 150.0, 50.0], &[103.0, 104.0, 102.0]),
            Verdict::CannotTell
        );
        assert_eq!(verdict(&[0.0, 0.0], &[0.0, 0.0]), Verdict::Agree);
        assert_eq!(verdict(&[0.0, 0.0], &[5.0, 5.1]), Verdict::Differ);
        assert_eq!(verdict(&[0.0, 0.0], &[0.0, 1.0]), Verdict::CannotTell);
    }
}
