//! Pacing of data packets: one every `Interval_data`.

use weir_units::{ByteSize, Duration, Rate, Time};

/// The most bytes per system call. No packet waits for a batch longer than these take.
const BATCH: u64 = 64 * 1024;

/// Spaces packets. A late caller catches up by at most the slack. Late wake-ups therefore do not
/// reduce the rate, and a pause is not followed by a burst.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacer {
    next: Time,
    slack: Duration,
    quantum: Duration,
    /// Cached interval and batch delay of the last packet. Most packets equal the one before, and a
    /// division per packet would cost as much as sending it.
    spacing: Spacing,
    /// Whether there was nothing to send when the next packet was permitted.
    idle: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Spacing {
    size: ByteSize,
    rate: Rate,
    interval: Duration,
    wait: Duration,
}

impl Pacer {
    pub(crate) fn new(slack: Duration, quantum: Duration) -> Self {
        Self {
            next: Time::ZERO,
            slack: slack.max(quantum),
            quantum,
            spacing: Spacing::default(),
            idle: true,
        }
    }

    /// Returns the next send time, delayed to form a batch.
    pub(crate) fn next_batch(&self) -> Time {
        self.next + self.spacing.wait
    }

    pub(crate) fn allows(&self, now: Time) -> bool {
        self.next <= now
    }

    /// Records that nothing is waiting: this time is not caught up.
    pub(crate) fn on_idle(&mut self) {
        self.idle = true;
    }

    /// Records a packet sent at `now`. The next one follows after the transmission time of `size`
    /// at `rate`.
    pub(crate) fn on_sent(&mut self, now: Time, size: ByteSize, rate: Rate) {
        let earliest = if self.idle { now } else { now - self.slack };
        self.idle = false;
        self.next = self.next.max(earliest) + self.interval(size, rate);
    }

    fn interval(&mut self, size: ByteSize, rate: Rate) -> Duration {
        if (size, rate) != (self.spacing.size, self.spacing.rate) {
            let batch = rate.time_for(ByteSize::from_bytes(BATCH));
            self.spacing = Spacing {
                size,
                rate,
                interval: rate.time_for(size),
                wait: self.quantum.min(batch),
            };
        }
        self.spacing.interval
    }

    /// Rescales the remaining wait after a change of the rate.
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
    fn a_late_sender_catches_up_within_the_slack() {
        let mut pacer = Pacer::new(Duration::from_micros(50), Duration::ZERO);
        pacer.on_sent(micros(100), SIZE, RATE);
        assert_eq!(pacer.next_batch(), micros(110));
        let mut sent = 0;
        while pacer.allows(micros(1000)) {
            pacer.on_sent(micros(1000), SIZE, RATE);
            sent += 1;
        }
        assert_eq!(sent, 6);
    }

    #[test]
    fn an_idle_period_earns_no_credit() {
        let mut pacer = Pacer::new(Duration::from_micros(50), Duration::ZERO);
        pacer.on_sent(micros(100), SIZE, RATE);
        pacer.on_idle();
        pacer.on_sent(micros(500), SIZE, RATE);
        assert_eq!(pacer.next_batch(), micros(510));
        pacer.on_rate(micros(502), RATE, Rate::from_mbps(500));
        assert_eq!(pacer.next_batch(), micros(518));
    }

    #[test]
    fn a_batch_waits_at_most_the_quantum_or_its_send_time() {
        let quantum = Duration::from_micros(70);
        let mut pacer = Pacer::new(Duration::ZERO, quantum);
        pacer.on_sent(micros(100), SIZE, RATE);
        assert_eq!(pacer.next_batch(), micros(180));
        let mut sent = 0;
        while pacer.allows(micros(180)) {
            pacer.on_sent(micros(180), SIZE, RATE);
            sent += 1;
        }
        assert_eq!(sent, 8);
        pacer.on_sent(micros(190), SIZE, Rate::from_gbps(100));
        let batch = Duration::from_nanos(5243);
        assert_eq!(
            pacer.next_batch(),
            micros(190) + Duration::from_nanos(100) + batch
        );
    }
}
