//! A token bucket that spreads packets over the RTT (RFC 9002, section 7.7).
//!
//! The bucket holds at least one GSO batch, since small batches cost CPU time and latency. It also
//! holds at least the bytes of one timer granularity at the rate, because a timer may be that late.
//! A wait shorter than the granularity is not worth a timer: the sender continues and the bucket
//! goes into debt. Over any time span the sender thus sends at most
//! `rate × span + capacity + rate × granularity`.

use weir_congestion::Controller;
use weir_units::{ByteSize, Duration, Rate, Time};

/// The kernel takes at most this many bytes in one GSO batch.
const GSO_BATCH: u64 = 64 * 1024;
/// An initial window may always be sent at once (RFC 9002, section 7.2).
const BURST_PACKETS: u64 = 10;
/// One byte in the bucket's unit: bits times nanoseconds per second. In this unit a rate times a
/// time is exact.
const BYTE: i128 = 8_000_000_000;

/// The pacer.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    granularity: Duration,
    /// [`Rate::MAX`] for no pacing.
    rate: Rate,
    /// What the rate was computed from, if it is not the controller's own.
    basis: Option<RateBasis>,
    /// In bytes.
    capacity: u64,
    /// The longest wait that the sender may skip and make up for later.
    slack: Duration,
    /// The tokens, in units of `1 / BYTE` bytes; negative if the bucket is in debt.
    tokens: i128,
    refilled_at: Time,
}

/// What the rate of a sender with a window depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RateBasis {
    window: ByteSize,
    srtt: Duration,
    /// The size of a full packet.
    packet: u64,
    is_slow_start: bool,
}

impl RateBasis {
    fn is_below_a_packet(&self) -> bool {
        self.window.bytes() < self.packet
    }

    fn rate(&self) -> Rate {
        let once = Rate::from_size_over(self.window, self.srtt);
        if self.is_below_a_packet() {
            once
        } else if self.is_slow_start {
            once.mul_f64(2.0)
        } else {
            once.mul_f64(1.25)
        }
    }
}

impl Pacer {
    /// Creates a pacer that does not limit until it has a rate. `packet` is the size of a full
    /// packet in bytes.
    pub(crate) fn new(granularity: Duration, packet: u64) -> Self {
        let capacity = smallest_burst(packet);
        Self {
            granularity,
            rate: Rate::MAX,
            basis: None,
            capacity,
            slack: granularity,
            tokens: i128::from(capacity) * BYTE,
            refilled_at: Time::ZERO,
        }
    }

    /// Follows the controller. The rate is the controller's own, or else slightly more than one
    /// `window` (which may be capped) per RTT, so that the window and not the pacer is the limit:
    /// 1.25 times, and twice in slow start, where the window doubles. Before the first sample,
    /// without `srtt`, only the window limits the sender.
    pub(crate) fn update(
        &mut self,
        now: Time,
        controller: &dyn Controller,
        window: ByteSize,
        srtt: Option<Duration>,
        packet: u64,
    ) {
        let below_a_packet = window.bytes() < packet;
        let own = controller.pacing_rate();
        let basis = match srtt {
            Some(srtt) if own.is_none() && window < ByteSize::MAX => Some(RateBasis {
                window,
                srtt,
                packet,
                is_slow_start: controller.snapshot().phase == "slow-start",
            }),
            _ => None,
        };
        // ACKs of a receiver's ACKs change nothing.
        if basis.is_some() && basis == self.basis {
            return;
        }
        self.basis = basis;
        let windowed = basis.map_or(Rate::MAX, |basis| basis.rate());
        self.set_rate(now, own.unwrap_or(windowed), below_a_packet, packet);
    }

    /// Sets the rate. `below_a_packet`: the window is smaller than a packet, so packets leave one
    /// by one and never in bursts.
    fn set_rate(&mut self, now: Time, rate: Rate, below_a_packet: bool, packet: u64) {
        self.refill(now);
        self.rate = rate;
        (self.capacity, self.slack) = if below_a_packet {
            (packet, Duration::ZERO)
        } else {
            (
                smallest_burst(packet).max(rate.size_in(self.granularity).bytes()),
                self.granularity,
            )
        };
        self.tokens = self.tokens.min(self.full());
    }

    /// Returns when `batch` bytes may leave as one burst; `None` for now.
    pub(crate) fn delay(&mut self, now: Time, batch: u64) -> Option<Time> {
        if self.rate == Rate::MAX {
            return None;
        }
        self.refill(now);
        let needed = i128::from(batch.min(self.capacity)) * BYTE;
        let missing = u128::try_from(needed - self.tokens).ok()?;
        if missing == 0 {
            return None;
        }
        if self.rate.is_zero() {
            return Some(Time::MAX);
        }
        let nanos = missing.div_ceil(u128::from(self.rate.bits_per_second()));
        let wait = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        (wait > self.slack).then(|| now + wait)
    }

    /// Records a sent packet of `size` bytes.
    pub(crate) fn on_sent(&mut self, now: Time, size: u64) {
        self.refill(now);
        if self.rate != Rate::MAX {
            self.tokens -= i128::from(size) * BYTE;
        }
    }

    fn refill(&mut self, now: Time) {
        // The packets of a batch leave at the same time.
        if now <= self.refilled_at {
            return;
        }
        let elapsed = i128::from(now.since(self.refilled_at).as_nanos());
        let earned = i128::from(self.rate.bits_per_second()).saturating_mul(elapsed);
        self.tokens = self.tokens.saturating_add(earned).min(self.full());
        self.refilled_at = now;
    }

    fn full(&self) -> i128 {
        i128::from(self.capacity) * BYTE
    }
}

fn smallest_burst(packet: u64) -> u64 {
    GSO_BATCH.max(packet.saturating_mul(BURST_PACKETS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GRANULARITY: Duration = Duration::from_micros(50);
    const PACKET: u64 = 1_452;

    fn pacer(rate: Rate) -> Pacer {
        let mut pacer = Pacer::new(GRANULARITY, PACKET);
        pacer.set_rate(Time::ZERO, rate, false, PACKET);
        pacer
    }

    #[test]
    fn a_full_batch_is_sent_and_the_next_waits_for_tokens() {
        let mut pacer = pacer(Rate::from_gbps(1));
        assert_eq!(pacer.delay(Time::ZERO, GSO_BATCH), None);
        pacer.on_sent(Time::ZERO, GSO_BATCH);
        let next = Time::from_nanos(GSO_BATCH * 8);
        assert_eq!(pacer.delay(Time::ZERO, GSO_BATCH), Some(next));
        assert_eq!(pacer.delay(next, GSO_BATCH), None);
    }

    #[test]
    fn a_delay_below_the_granularity_is_skipped_and_carried_over() {
        let mut pacer = pacer(Rate::from_gbps(1));
        pacer.on_sent(Time::ZERO, GSO_BATCH);
        // 6,250 bytes are 50 µs at 1 Gbit/s.
        assert_eq!(pacer.delay(Time::ZERO, 6_250), None);
        assert_eq!(
            pacer.delay(Time::ZERO, 6_251),
            Some(Time::from_nanos(50_008))
        );
        pacer.on_sent(Time::ZERO, 6_250);
        assert_eq!(
            pacer.delay(Time::ZERO, PACKET),
            Some(Time::from_nanos(50_000 + PACKET * 8))
        );
    }

    #[test]
    fn a_window_below_a_packet_releases_single_packets() {
        let mut pacer = Pacer::new(GRANULARITY, PACKET);
        pacer.set_rate(
            Time::ZERO,
            Rate::from_bits_per_second(8_000_000),
            true,
            PACKET,
        );
        assert_eq!(pacer.delay(Time::ZERO, PACKET), None);
        pacer.on_sent(Time::ZERO, PACKET);
        let next = Time::from_nanos(PACKET * 1_000);
        assert_eq!(pacer.delay(Time::ZERO, PACKET), Some(next));
        assert_eq!(pacer.delay(next, PACKET), None);
    }

    #[test]
    fn nothing_is_delayed_without_a_rate() {
        let mut pacer = Pacer::new(GRANULARITY, PACKET);
        pacer.on_sent(Time::ZERO, 1 << 40);
        assert_eq!(pacer.delay(Time::ZERO, 1 << 40), None);
    }

    proptest! {
        /// In any time window the sender sends at most what the rate, the bucket and the slack
        /// allow.
        #[test]
        fn no_interval_exceeds_rate_plus_burst(
            rate in 1_000_000u64..400_000_000_000,
            steps in prop::collection::vec((0u64..200_000, 1u64..100_000), 1..200),
        ) {
            let rate = Rate::from_bits_per_second(rate);
            let mut pacer = pacer(rate);
            let mut now = Time::ZERO;
            let mut sent: Vec<(Time, u64)> = Vec::new();
            for (pause, batch) in steps {
                now += Duration::from_nanos(pause);
                let batch = batch.min(pacer.capacity);
                if let Some(until) = pacer.delay(now, batch) {
                    prop_assert!(until.since(now) > GRANULARITY);
                    now = until;
                    prop_assert_eq!(pacer.delay(now, batch), None);
                }
                pacer.on_sent(now, batch);
                sent.push((now, batch));
            }
            let allowance = pacer.capacity + rate.size_in(GRANULARITY).bytes() + 1;
            for first in 0..sent.len() {
                let mut total = 0;
                for &(at, size) in &sent[first..] {
                    total += size;
                    let span = at.since(sent[first].0);
                    prop_assert!(total <= rate.size_in(span).bytes() + 1 + allowance);
                }
            }
        }

        /// Frequent calls lose no fraction of a byte.
        #[test]
        fn slow_rates_accrue_tokens_across_frequent_polls(rate in 1_000u64..1_000_000, asks in 1u64..500) {
            let rate = Rate::from_bits_per_second(rate);
            let mut pacer = pacer(rate);
            pacer.on_sent(Time::ZERO, GSO_BATCH);
            let until = pacer.delay(Time::ZERO, PACKET).unwrap();
            for ask in 0..asks {
                let at = Time::from_nanos(until.as_nanos() / asks * ask);
                pacer.delay(at, PACKET);
            }
            prop_assert_eq!(pacer.delay(until, PACKET), None);
        }
    }
}
