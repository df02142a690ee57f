//! Which of the sorted values are the ends of the interval of a quantile.

/// Above this number of values the binomial distribution is taken as normal.
const MOST_EXACT: u64 = 10_000;

/// The part of the intervals that miss at each end.
const MISSED: f64 = 0.025;

/// Returns the ranks, counted from 1, of the two sorted values between which the quantile of a `part` lies
/// with 95 %; `None` for an end for which there are too few values.
///
/// How many of `count` values are below the quantile is binomially distributed. `part` is between 0 and 1.
pub(crate) fn ranks(count: u64, part: f64) -> (Option<u64>, Option<u64>) {
    let (first, last) = if count > MOST_EXACT {
        let mean = count as f64 * part;
        let half = 1.959_964 * (mean * (1.0 - part)).sqrt();
        // The next ranks outwards.
        let last = (mean + half).ceil() as u64 + 1;
        ((mean - half).floor().max(0.0) as u64, last)
    } else {
        exact(count, part)
    };
    (
        (first > 0).then_some(first),
        (last <= count).then_some(last),
    )
}

/// Sums the probabilities, by their logarithms: those of few values below may be too small for a number.
fn exact(count: u64, part: f64) -> (u64, u64) {
    let odds = (part / (1.0 - part)).ln();
    let mut logarithm = count as f64 * (1.0 - part).ln();
    let mut sum = 0.0;
    let mut first = None;
    for below in 0..=count {
        sum += logarithm.exp();
        if first.is_none() && sum > MISSED {
            first = Some(below);
        }
        if sum >= 1.0 - MISSED {
            return (first.unwrap_or_default(), below + 1);
        }
        logarithm += ((count - below) as f64 / (below + 1) as f64).ln() + odds;
    }
    (first.unwrap_or_default(), count + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_tables() {
        // The table of Hollander and Wolfe for the sign test: the median of 10, 20 and 50 values.
        assert_eq!(ranks(10, 0.5), (Some(2), Some(9)));
        assert_eq!(ranks(20, 0.5), (Some(6), Some(15)));
        assert_eq!(ranks(50, 0.5), (Some(18), Some(33)));
        assert_eq!(ranks(5, 0.5), (None, None));
        assert_eq!(ranks(6, 0.5), (Some(1), Some(6)));
        assert_eq!(ranks(0, 0.5), (None, None));
    }

    #[test]
    fn a_high_quantile_needs_many_values_for_an_upper_end() {
        // 0.99^367 > 0.025 >= 0.99^368
        assert_eq!(ranks(367, 0.99).1, None);
        assert_eq!(ranks(368, 0.99).1, Some(368));
        assert!(ranks(100, 0.99).0.is_some());
    }

    #[test]
    fn both_ways_agree_where_they_meet() {
        for part in [0.5, 0.9, 0.99] {
            let (first, last) = exact(MOST_EXACT + 1, part);
            let (approximate_first, approximate_last) = ranks(MOST_EXACT + 1, part);
            assert!(approximate_first.unwrap().abs_diff(first) <= 1, "{part}");
            assert!(approximate_last.unwrap().abs_diff(last) <= 1, "{part}");
        }
    }
}
