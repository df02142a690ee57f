//! Path validation: challenges and their responses (RFC 9000, section 8.2).

use smallvec::SmallVec;
use weir_units::{Duration, Time};

/// The most challenges of one attempt; the interval between them doubles.
const MAX_CHALLENGES: usize = 8;

/// The result of a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValidationStatus {
    /// The attempt continues.
    Open,
    /// No challenge was answered in time.
    Failed,
}

/// The validation of one path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Validation {
    /// The challenges of the newest attempt, with the time of sending. A response after the end of
    /// the attempt still counts: the path has become slower.
    challenges: SmallVec<[(Time, [u8; 8]); MAX_CHALLENGES]>,
    running: Option<ValidationRun>,
    /// A challenge is to be sent as soon as the amplification limit allows.
    pub(crate) due: bool,
}

#[derive(Clone, Copy, Debug)]
struct ValidationRun {
    /// When the next challenge becomes due.
    next: Time,
    interval: Duration,
    /// When the attempt fails.
    until: Time,
}

impl Validation {
    /// Starts an attempt: challenges from `now` on, the second one after `interval`. A response to
    /// any of them must arrive by `until`.
    pub(crate) fn begin(&mut self, now: Time, interval: Duration, until: Time) {
        self.challenges.clear();
        self.due = true;
        self.running = Some(ValidationRun {
            next: now + interval,
            interval: interval * 2,
            until,
        });
    }

    /// Ends the attempt without a result.
    pub(crate) fn stop(&mut self) {
        self.challenges.clear();
        self.due = false;
        self.running = None;
    }

    /// Whether an attempt is running.
    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Records a sent challenge with these unpredictable bytes.
    pub(crate) fn on_sent(&mut self, now: Time, data: [u8; 8]) {
        self.challenges.push((now, data));
        self.due = false;
    }

    /// Returns the number of challenges sent in this attempt.
    pub(crate) fn challenges_sent(&self) -> usize {
        self.challenges.len()
    }

    /// Handles a response; returns the RTT if it matches a challenge of the newest attempt.
    pub(crate) fn on_response(&mut self, now: Time, data: [u8; 8]) -> Option<Duration> {
        let (sent, _) = self
            .challenges
            .iter()
            .find(|(_, challenge)| *challenge == data)?;
        let rtt = now.since(*sent);
        self.stop();
        Some(rtt)
    }

    /// Returns the time of the next timer.
    pub(crate) fn timeout(&self) -> Option<Time> {
        let running = self.running?;
        Some(running.next.min(running.until))
    }

    /// Handles the timers due at `now`: another challenge, or the end of the attempt.
    pub(crate) fn handle_timeout(&mut self, now: Time) -> ValidationStatus {
        let Some(running) = &mut self.running else {
            return ValidationStatus::Open;
        };
        if running.until <= now {
            self.due = false;
            self.running = None;
            return ValidationStatus::Failed;
        }
        if running.next <= now {
            running.next = now + running.interval;
            running.interval = running.interval * 2;
            self.due = self.challenges.len() < MAX_CHALLENGES;
        }
        ValidationStatus::Open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(micros: u64) -> Time {
        Time::from_nanos(micros * 1000)
    }

    fn started_validation() -> Validation {
        let mut validation = Validation::default();
        validation.begin(at(0), Duration::from_micros(10), at(100));
        validation
    }

    #[test]
    fn a_response_to_any_challenge_validates_once() {
        let mut validation = started_validation();
        assert!(validation.due);
        validation.on_sent(at(0), [1; 8]);
        assert!(!validation.due);
        assert_eq!(validation.timeout(), Some(at(10)));
        validation.handle_timeout(at(10));
        assert!(validation.due);
        validation.on_sent(at(10), [2; 8]);
        assert_eq!(validation.on_response(at(15), [3; 8]), None);
        let rtt = validation.on_response(at(15), [1; 8]);
        assert_eq!(rtt, Some(Duration::from_micros(15)));
        assert!(!validation.is_running());
        assert_eq!(validation.on_response(at(16), [2; 8]), None);
    }

    #[test]
    fn challenges_back_off_exponentially_until_failure() {
        let mut validation = started_validation();
        validation.on_sent(at(0), [0; 8]);
        let mut sent = vec![at(0)];
        while let Some(next) = validation.timeout() {
            if validation.handle_timeout(next) == ValidationStatus::Failed {
                sent.push(next);
                break;
            }
            assert!(validation.due);
            validation.on_sent(next, [sent.len() as u8; 8]);
            sent.push(next);
        }
        assert_eq!(sent, [at(0), at(10), at(30), at(70), at(100)]);
        assert_eq!(validation.timeout(), None);
        // Late, but valid.
        let rtt = validation.on_response(at(101), [0; 8]);
        assert_eq!(rtt, Some(Duration::from_micros(101)));
        assert_eq!(validation.on_response(at(102), [1; 8]), None);
    }
}
