//! An estimate with its interval, and differences of two.

/// A figure of many connections, with its 95 % confidence interval.
///
/// Its unit is that of the figure: a part of 1, seconds, or bits per second. None of these is negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval; infinite where there are too few connections for one.
    pub high: f64,
    /// The number of connections that it is made of.
    pub connections: u64,
}

/// The difference of two figures, with its 95 % confidence interval, in their unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The estimate.
    pub value: f64,
    /// The lower end of the interval; may be infinite.
    pub low: f64,
    /// The upper end of the interval; may be infinite.
    pub high: f64,
}

impl Estimate {
    /// Returns `self - factor * other`, for two independent sets of connections.
    ///
    /// The interval recovers both variances from the two intervals (MOVER: Zou and Donner, "Construction of
    /// confidence limits about effect measures", Statistics in Medicine 27, 2008, equation 3), which need not
    /// be symmetric.
    pub fn minus(&self, factor: f64, other: &Self) -> Difference {
        let value = self.value - factor * other.value;
        let below = (self.value - self.low).hypot(factor * (other.high - other.value));
        let above = (self.high - self.value).hypot(factor * (other.value - other.low));
        Difference {
            value,
            low: value - below,
            high: value + above,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn without_an_upper_end_nothing_is_certainly_more() {
        let known = Estimate {
            value: 3.0,
            low: 2.0,
            high: 4.0,
            connections: 9,
        };
        let unknown = Estimate {
            high: f64::INFINITY,
            ..known
        };
        let difference = known.minus(2.0, &unknown);
        assert_eq!(
            (difference.value, difference.low),
            (-3.0, f64::NEG_INFINITY)
        );
        assert_eq!(difference.high, -3.0 + 5_f64.sqrt());
    }

    proptest! {
        #[test]
        fn the_difference_is_between_the_extremes(
            one in (0.0_f64..1e3, 0.0_f64..1e3, 0.0_f64..1e3),
            other in (0.0_f64..1e3, 0.0_f64..1e3, 0.0_f64..1e3),
            factor in 0.1_f64..10.0,
        ) {
            let estimate = |(low, below, above): (f64, f64, f64)| Estimate {
                value: low + below, low, high: low + below + above, connections: 1,
            };
            let (one, other) = (estimate(one), estimate(other));
            let difference = one.minus(factor, &other);
            prop_assert!(difference.low <= difference.value && difference.value <= difference.high);
            prop_assert!(difference.low >= one.low - factor * other.high - 1e-6);
            prop_assert!(difference.high <= one.high - factor * other.low + 1e-6);
        }
    }
}
