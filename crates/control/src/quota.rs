//! A rate limit for log lines that peers can cause.

use std::time::{Duration, Instant};

/// Allows this many lines a second; the others are counted and reported with the next line.
#[derive(Debug)]
pub(crate) struct LogQuota {
    second: Instant,
    used: u32,
    left_out: u64,
}

/// Lines per second.
const LINES: u32 = 5;

impl LogQuota {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            second: now,
            used: 0,
            left_out: 0,
        }
    }

    /// Returns whether a line may be logged now, with the number of lines suppressed since the last
    /// one.
    pub(crate) fn take(&mut self, now: Instant) -> Option<u64> {
        if now.duration_since(self.second) >= Duration::from_secs(1) {
            self.second = now;
            self.used = 0;
        }
        if self.used == LINES {
            self.left_out += 1;
            return None;
        }
        self.used += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_flood_is_limited_to_five_lines_a_second_and_a_count() {
        let begin = Instant::now();
        let mut quota = LogQuota::new(begin);
        let taken = (0..1000).filter_map(|_| quota.take(begin)).count();
        assert_eq!(taken, 5);
        assert_eq!(quota.take(begin + Duration::from_secs(1)), Some(995));
        assert_eq!(quota.take(begin + Duration::from_secs(1)), Some(0));
    }
}
