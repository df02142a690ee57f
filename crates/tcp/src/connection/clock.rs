//! The timestamp clock (RFC 7323, section 5.4).

use std::num::NonZeroU64;

use weir_units::{Duration, Time};
use weir_wire::tcp::Timestamps;

/// The timestamp clock of this end, and the peer's last timestamp.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimestampClock {
    /// The length of a tick in nanoseconds.
    tick: NonZeroU64,
    /// When the current tick ends. Kept, as divisions are expensive.
    ends: Time,
    /// The value of segments that leave in the current tick. The field wraps around.
    value: u32,
    /// The peer's value that is echoed (TS.Recent).
    recent: u32,
    /// When `recent` was updated.
    taken_at: Time,
}

/// Timestamps that are farther apart than this cannot be compared.
const HALF_OF_THE_SPACE: u64 = 1 << 31;

impl TimestampClock {
    pub(super) fn new(tick: Duration) -> Self {
        Self {
            // The configuration has been checked: no tick is zero.
            tick: NonZeroU64::new(tick.as_nanos()).unwrap_or(NonZeroU64::MIN),
            ends: Time::ZERO,
            value: 0,
            recent: 0,
            taken_at: Time::ZERO,
        }
    }

    /// Returns the length of a tick.
    #[inline]
    pub(super) fn tick(&self) -> Duration {
        Duration::from_nanos(self.tick.get())
    }

    #[inline]
    fn advance(&mut self, now: Time) {
        if now >= self.ends {
            self.begin_tick(now);
        }
    }

    #[cold]
    fn begin_tick(&mut self, now: Time) {
        // Ticks are numbered from one: zero would mean that there is nothing to echo.
        let number = (now.since(Time::ZERO) / self.tick()).saturating_add(1);
        self.ends = Time::ZERO + self.tick() * number;
        self.value = number as u32;
    }

    /// Returns the timestamps of a segment that leaves now.
    #[inline]
    pub(super) fn stamp(&mut self, now: Time) -> Timestamps {
        self.advance(now);
        Timestamps {
            value: self.value,
            echo: self.recent,
        }
    }

    /// Returns the send time of the segment that `echo` acknowledges, to the precision of a tick.
    /// It is the end of the tick, so that it is never earlier than the real send time.
    #[inline]
    pub(super) fn sent_at(&mut self, now: Time, echo: u32) -> Option<Time> {
        self.advance(now);
        let ago = self.value.wrapping_sub(echo);
        // Half of the number space lies in the future.
        if echo == 0 || ago > u32::MAX / 2 {
            return None;
        }
        let number = self.ends.since(Time::ZERO) / self.tick();
        let number = number
            .checked_sub(u64::from(ago))
            .filter(|number| *number > 0)?;
        Some(Time::ZERO + self.tick() * number)
    }

    /// Returns whether a segment is older than the received data (PAWS, RFC 7323, section 5.3).
    /// After a pause in which the clock may have wrapped halfway, no segment is (section 5.5).
    #[inline]
    pub(super) fn is_old(&self, now: Time, value: u32) -> bool {
        self.recent != 0
            && (value.wrapping_sub(self.recent) as i32) < 0
            && now.since(self.taken_at) < self.tick() * HALF_OF_THE_SPACE
    }

    /// Checks the timestamps of the next segment in order, if the option is in use, and stores the value that is
    /// echoed next. `is_answered`: everything before the segment has been acknowledged. Returns false if the segment
    /// is older than the last one, or has no timestamps.
    #[inline(always)]
    pub(super) fn take_in_order(
        clock: &mut Option<Self>,
        now: Time,
        timestamps: Option<Timestamps>,
        is_answered: bool,
    ) -> bool {
        let Some(clock) = clock else {
            return true;
        };
        let Some(Timestamps { value, .. }) = timestamps else {
            return false;
        };
        if clock.is_old(now, value) {
            return false;
        }
        if is_answered {
            clock.take(now, value);
        }
        true
    }

    /// Stores the timestamp that is echoed next.
    #[inline]
    pub(super) fn take(&mut self, now: Time, value: u32) {
        self.recent = value;
        self.taken_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamp_echoes_give_the_send_time_within_a_tick() {
        let mut clock = TimestampClock::new(Duration::from_millis(1));
        let at = |micros| Time::ZERO + Duration::from_micros(micros);
        let value = clock.stamp(at(5_300)).value;
        assert_eq!(clock.sent_at(at(5_300), value), Some(at(6_000)));
        assert_eq!(clock.sent_at(at(9_900), value), Some(at(6_000)));
        assert_eq!(clock.sent_at(at(9_900), 0), None);
        // A timestamp from the future, and one from before the start of the clock.
        assert_eq!(clock.sent_at(at(9_900), value + 1_000), None);
        assert_eq!(clock.sent_at(at(9_900), value.wrapping_sub(1_000)), None);
    }

    #[test]
    fn old_timestamps_are_rejected_until_the_clock_may_have_wrapped() {
        let mut clock = TimestampClock::new(Duration::from_millis(1));
        let now = Time::ZERO + Duration::from_secs(5);
        assert!(!clock.is_old(now, 7));
        clock.take(now, u32::MAX);
        assert!(clock.is_old(now, u32::MAX - 1));
        assert!(!clock.is_old(now, u32::MAX) && !clock.is_old(now, 3));
        let weeks_later = now + Duration::from_secs(25 * 86_400);
        assert!(!clock.is_old(weeks_later, u32::MAX - 1));
    }
}
