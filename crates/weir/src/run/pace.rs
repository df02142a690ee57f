//! Chooses the simulated time between two checks of the clock.

use std::time::Duration as StdDuration;

use weir_units::Duration;

/// The target interval of checks: ten a second, for a smooth progress bar and for Ctrl-C.
const BEST: StdDuration = StdDuration::from_millis(100);

/// Slices of simulated time that take about the same wall time.
#[derive(Debug)]
pub(super) struct Pace {
    slice: Duration,
    longest: Duration,
}

impl Pace {
    /// Returns the pace of a run of this length.
    pub(super) fn new(span: Duration) -> Self {
        // The slice is bounded even if little happens at first: what follows may take long.
        let longest = (span / 200).max(Duration::from_nanos(1));
        Self {
            slice: Duration::from_micros(100).min(longest),
            longest,
        }
    }

    /// Returns the next slice.
    pub(super) fn slice(&self) -> Duration {
        self.slice
    }

    /// Adapts the slice to the wall time that the last one took.
    pub(super) fn took(&mut self, wall: StdDuration) {
        let factor = BEST.as_secs_f64() / wall.as_secs_f64().max(1e-9);
        let next = self.slice.mul_f64(factor.clamp(0.01, 2.0));
        self.slice = next.clamp(Duration::from_nanos(1), self.longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_converge_to_a_tenth_of_a_second() {
        let mut pace = Pace::new(Duration::from_secs(1000));
        // Simulate at a hundredth of real time.
        for _ in 0..30 {
            pace.took(StdDuration::from_nanos(pace.slice().as_nanos() * 100));
        }
        assert_eq!(pace.slice(), Duration::from_millis(1));
        // Suddenly ten times slower.
        pace.took(StdDuration::from_secs(1));
        assert_eq!(pace.slice(), Duration::from_micros(100));
    }

    #[test]
    fn slice_lengths_are_bounded() {
        let mut idle = Pace::new(Duration::from_secs(2));
        for _ in 0..100 {
            idle.took(StdDuration::ZERO);
        }
        assert_eq!(idle.slice(), Duration::from_millis(10));
        let mut slow = Pace::new(Duration::from_secs(2));
        for _ in 0..100 {
            slow.took(StdDuration::from_secs(3600));
        }
        assert_eq!(slow.slice(), Duration::from_nanos(1));
        assert_eq!(Pace::new(Duration::ZERO).slice(), Duration::from_nanos(1));
    }
}
