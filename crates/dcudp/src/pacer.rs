//! When data packets leave: one every `Interval_data`.

use weir_units::{ByteSize, Duration, Rate, Time};

/// Spaces packets. A caller who comes late makes up for at most the slack, so that late wake-ups cost
/// no rate and a pause is not followed by a burst.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacer {
    next: Time,
    slack: Duration,
    /// Whether there was nothing to send when the next packet could have left.
    idle: bool,
}

impl Pacer {
    pub(crate) const fn new(slack: Duration) -> Self {
        Self {
            next: Time::ZERO,
            slack,
            idle: true,
        }
    }

    /// When the next packet may leave.
    pub(crate) fn next(&self) -> Time {
        self.next
    }

    pub(crate) fn allows(&self, now: Time) -> bool {
        self.next <= now
    }

    /// Nothing is waiting: time that passes now is not made up for.
    pub(crate) fn on_idle(&mut self) {
        self.idle = true;
    }

    /// A packet leaves at `now`; the next one as much later as `size` takes at `rate`.
    pub(crate) fn on_sent(&mut self, now: Time, size: ByteSize, rate: Rate) {
        let earliest = if self.idle { now } else { now - self.slack };
        self.idle = false;
        self.next = self.next.max(earliest) + rate.time_for(size);
    }

    /// The rate has changed: the wait that is left was worked out at another one.
    pub(crate) fn on_rate(&mut self, now: Time, before: Rate, after: Rate) {
        let left = self.next.since(now);
        if left.is_zero() || after.is_zero() {
            return;
        }
        let ratio = before.bits_per_second() as f64 / after.bits_per_second() as f64;
        self.next = now + left.mul_f64(ratio);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: ByteSize = ByteSize::from_bytes(1250);
    /// 10 us per packet.
    const RATE: Rate = Rate::from_gbps(1);

    fn micros(micros: u64) -> Time {
        Time::ZERO + Duration::from_micros(micros)
    }

    #[test]
    fn late_callers_catch_up_within_the_slack() {
        let mut pacer = Pacer::new(Duration::from_micros(50));
        pacer.on_sent(micros(100), SIZE, RATE);
        assert_eq!(pacer.next(), micros(110));
        let mut sent = 0;
        while pacer.allows(micros(1000)) {
            pacer.on_sent(micros(1000), SIZE, RATE);
            sent += 1;
        }
        assert_eq!(sent, 6);
    }

    #[test]
    fn a_pause_is_no_credit() {
        let mut pacer = Pacer::new(Duration::from_micros(50));
        pacer.on_sent(micros(100), SIZE, RATE);
        pacer.on_idle();
        pacer.on_sent(micros(500), SIZE, RATE);
        assert_eq!(pacer.next(), micros(510));
        pacer.on_rate(micros(502), RATE, Rate::from_mbps(500));
        assert_eq!(pacer.next(), micros(518));
    }
}
