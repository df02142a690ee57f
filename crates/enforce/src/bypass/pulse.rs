//! The beat of the thread that forwards frames, and its pauses.

use rustix::time::{ClockId, clock_gettime};
use weir_units::{Duration, Time};

/// The longest time between two beats of a thread that forwards.
pub const INTERVAL: Duration = Duration::from_millis(10);

/// The age of a beat from which on the bypass forwards: `STALE_NS` of `bpf/bypass.bpf.c`.
pub const STALE: Duration = Duration::from_millis(100);

/// The beats after which the process forwards again: `BEATS` of `bpf/bypass.bpf.c`.
pub const BEATS: u64 = 10;

/// The pause after which frames that waited in the process are dropped: their senders' TCP has sent them
/// again by then (Linux's shortest retransmission time-out).
pub const LATE: Duration = Duration::from_millis(200);

/// The beat of the thread that forwards frames.
#[derive(Debug)]
pub(crate) struct Pulse {
    last: Time,
}

/// The time without a beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// As usual.
    None,
    /// The bypass may forward meanwhile. What waits has not been sent by anyone.
    Short,
    /// What waits has been sent again by its senders.
    Long,
}

impl Pulse {
    pub(crate) fn new(now: Time) -> Self {
        Self { last: now }
    }

    pub(crate) fn pause(&self, now: Time) -> Pause {
        match now.since(self.last.min(now)) {
            pause if pause >= LATE => Pause::Long,
            pause if pause >= STALE => Pause::Short,
            _ => Pause::None,
        }
    }

    /// Returns the time until the next beat.
    pub(crate) fn until_next(&self, now: Time) -> Duration {
        let due = self.last + INTERVAL;
        due.since(now.min(due))
    }

    /// Returns whether to beat now, and counts on it.
    pub(crate) fn take_beat(&mut self, now: Time) -> bool {
        let is_due = self.until_next(now) == Duration::ZERO;
        if is_due {
            self.last = now;
        }
        is_due
    }
}

/// Returns the time of the clock that the programs use.
pub(crate) fn monotonic() -> Time {
    let now = std::time::Duration::try_from(clock_gettime(ClockId::Monotonic));
    Time::ZERO + Duration::from(now.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beats_are_an_interval_apart_and_pauses_are_told_by_their_length() {
        let at = |millis: u64| Time::from_nanos(millis * 1_000_000);
        let mut pulse = Pulse::new(at(1000));
        assert_eq!(pulse.until_next(at(1000)), INTERVAL);
        assert!(!pulse.take_beat(at(1009)));
        assert!(pulse.take_beat(at(1010)));
        assert_eq!(pulse.until_next(at(1013)), Duration::from_millis(7));
        // The clock of another CPU may be behind.
        assert_eq!(pulse.pause(at(1005)), Pause::None);
        assert_eq!(pulse.pause(at(1109)), Pause::None);
        assert_eq!(pulse.pause(at(1110)), Pause::Short);
        assert_eq!(pulse.pause(at(1209)), Pause::Short);
        assert_eq!(pulse.pause(at(1210)), Pause::Long);
        // The pause ends with the beat after it.
        assert!(pulse.take_beat(at(5000)));
        assert_eq!(pulse.pause(at(5001)), Pause::None);
    }
}
