//! The time stamp clock (RFC 7323, section 5.4).

use weir_units::{Duration, Time};
use weir_wire::tcp::Timestamps;

/// Ticks of a host, and what is known of the peer's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    tick: Duration,
    /// The present tick: its number, and when it began. Divisions are dear.
    number: u64,
    began: Time,
    /// The peer's value that is echoed (TS.Recent).
    recent: u32,
}

impl Clock {
    pub(super) fn new(tick: Duration) -> Self {
        Self {
            tick,
            number: 0,
            began: Time::ZERO,
            recent: 0,
        }
    }

    /// The length of a tick.
    pub(super) fn tick(&self) -> Duration {
        self.tick
    }

    fn advance(&mut self, now: Time) {
        if now.since(self.began) >= self.tick {
            self.number = now.since(Time::ZERO) / self.tick;
            self.began = Time::ZERO + self.tick * self.number;
        }
    }

    /// What stands in a segment that leaves now.
    #[inline]
    pub(super) fn stamp(&mut self, now: Time) -> Timestamps {
        self.advance(now);
        Timestamps {
            // The field wraps around. Zero would mean that there is nothing to echo.
            value: (self.number as u32).wrapping_add(1),
            echo: self.recent,
        }
    }

    /// When the segment was sent that an echo answers, as exactly as the clock ticks: the tick's
    /// end, so that it never seems earlier than it was.
    #[inline]
    pub(super) fn sent_at(&mut self, now: Time, echo: u32) -> Option<Time> {
        self.advance(now);
        let ago = (self.number as u32).wrapping_add(1).wrapping_sub(echo);
        // Half of the space lies in the future.
        if echo == 0 || ago > u32::MAX / 2 {
            return None;
        }
        let number = self.number.checked_sub(u64::from(ago))?;
        Some(Time::ZERO + self.tick * number.saturating_add(1))
    }

    /// Whether a segment is older than what has been received (PAWS, RFC 7323, section 5.3).
    #[inline]
    pub(super) fn is_old(&self, value: u32) -> bool {
        self.recent != 0 && (value.wrapping_sub(self.recent) as i32) < 0
    }

    /// The segment that is answered next carried this value.
    #[inline]
    pub(super) fn take(&mut self, value: u32) {
        self.recent = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn echoes_tell_when_to_within_a_tick() {
        let mut clock = Clock::new(Duration::from_millis(1));
        let at = |micros| Time::ZERO + Duration::from_micros(micros);
        let value = clock.stamp(at(5_300)).value;
        assert_eq!(clock.sent_at(at(5_300), value), Some(at(6_000)));
        assert_eq!(clock.sent_at(at(9_900), value), Some(at(6_000)));
        assert_eq!(clock.sent_at(at(9_900), 0), None);
        // From the future, and from before the clock began.
        assert_eq!(clock.sent_at(at(9_900), value + 1_000), None);
        assert_eq!(clock.sent_at(at(9_900), value.wrapping_sub(1_000)), None);
    }

    #[test]
    fn older_values_are_known() {
        let mut clock = Clock::new(Duration::from_millis(1));
        assert!(!clock.is_old(7));
        clock.take(u32::MAX);
        assert!(clock.is_old(u32::MAX - 1) && !clock.is_old(u32::MAX) && !clock.is_old(3));
    }
}
