//! A warning that repeats itself, such as that of an agent without a controller.

use std::time::{Duration, Instant};

/// Lets a warning be logged at once when its text changes; the same text again after a second, two, four
/// and so on. The repetitions between are counted.
#[derive(Debug)]
pub struct RepeatedWarning {
    text: String,
    next: Instant,
    pause: Duration,
    left_out: u64,
}

const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(600);

impl RepeatedWarning {
    /// Creates one whose first warning is logged at once.
    pub fn new(now: Instant) -> Self {
        Self {
            text: String::new(),
            next: now,
            pause: SHORTEST,
            left_out: 0,
        }
    }

    /// Returns whether the warning is to be logged now, with the number of repetitions left out since it
    /// last was.
    pub fn take(&mut self, now: Instant, text: &str) -> Option<u64> {
        if self.text != text {
            text.clone_into(&mut self.text);
            self.pause = SHORTEST;
        } else if now < self.next {
            self.left_out += 1;
            return None;
        } else {
            self.pause = (self.pause * 2).min(LONGEST);
        }
        self.next = now + self.pause;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_warning_backs_off_until_it_changes() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut warning = RepeatedWarning::new(begin);
        let times: Vec<_> = (0..3600)
            .filter(|second| warning.take(at(*second), "gone").is_some())
            .collect();
        assert_eq!(times[..6], [0, 1, 3, 7, 15, 31]);
        assert_eq!(times.last(), Some(&3423));
        assert_eq!(warning.take(at(3600), "refused"), Some(176));
        assert_eq!(warning.take(at(3600), "refused"), None);
        assert_eq!(warning.take(at(3601), "refused"), Some(1));
    }
}
