//! How much to simulate between two looks at the clock.

use std::time::Duration as StdDuration;

use weir_units::Duration;

/// What lies between two looks at best: ten a second, for a bar that moves, and for Ctrl-C.
const BEST: StdDuration = StdDuration::from_millis(100);

/// Slices of simulated time that take about equally long.
#[derive(Debug)]
pub(super) struct Pace {
    slice: Duration,
    longest: Duration,
}

impl Pace {
    /// For a run of this length.
    pub(super) fn new(span: Duration) -> Self {
        // However little happens at first: what comes then may take a while.
        let longest = (span / 200).max(Duration::from_nanos(1));
        Self {
            slice: Duration::from_micros(100).min(longest),
            longest,
        }
    }

    /// How much to simulate next.
    pub(super) fn slice(&self) -> Duration {
        self.slice
    }

    /// How long that took.
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
    fn slices_come_to_take_a_tenth_of_a_second() {
        let mut pace = Pace::new(Duration::from_secs(1000));
        // At a hundredth of real time.
        for _ in 0..30 {
            pace.took(StdDuration::from_nanos(pace.slice().as_nanos() * 100));
        }
        assert_eq!(pace.slice(), Duration::from_millis(1));
        // Suddenly ten times slower.
        pace.took(StdDuration::from_secs(1));
        assert_eq!(pace.slice(), Duration::from_micros(100));
    }

    #[test]
    fn a_run_has_slices_whatever_they_take() {
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
