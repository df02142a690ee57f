//! The delivery rate of a flow over more than a burst, as a bound for the samples of single round trips.
//!
//! On a short path a sample covers tens of microseconds. Super-packets, token buckets and batches of
//! acknowledgments move more than the path carries in such a time. A sample over less than [`SPAN`] therefore
//! counts up to [`GROWTH`] times the rate of the last [`SPAN`] in which data was outstanding.

use std::collections::VecDeque;

use weir_units::{ByteSize, Duration, Rate, Time};

/// The time that a bound covers.
const SPAN: Duration = Duration::from_millis(10);

/// The time that the bound of a young flow covers at least; until then there is none, so that it finds the
/// rate of a fast path soon.
const LEAST: Duration = Duration::from_millis(1);

/// The time between two marks.
const STEP: Duration = Duration::from_millis(1);

/// The growth per [`SPAN`] that a sample may report: the gain by which BBR probes for bandwidth.
const GROWTH: f64 = 1.25;

/// The delivered bytes by busy time: the time in which data was outstanding.
#[derive(Clone, Debug, Default)]
pub(crate) struct BusyRate {
    busy: Duration,
    delivered: ByteSize,
    delivered_at: Option<Time>,
    /// Busy times, with the bytes delivered by then, the oldest first.
    marks: VecDeque<(Duration, ByteSize)>,
}

impl BusyRate {
    /// Notes that `size` bytes have been delivered. When they were sent, the flow had been busy since
    /// `busy_since`, the time of a delivery or of the first data after a silence.
    pub(crate) fn on_delivered(&mut self, now: Time, busy_since: Time, size: ByteSize) {
        let from = self.delivered_at.unwrap_or(busy_since).max(busy_since);
        self.busy += now.since(from.min(now));
        if self.marks.is_empty() {
            self.marks.push_back((Duration::ZERO, ByteSize::ZERO));
        }
        self.delivered += size;
        self.delivered_at = Some(now);
        let last = self.marks.back().map_or(Duration::ZERO, |(time, _)| *time);
        if self.busy - last >= STEP {
            self.marks.push_back((self.busy, self.delivered));
        }
        // The first mark stays as long as no later one is old enough to take its place.
        while let Some((time, _)) = self.marks.get(1)
            && self.busy - *time >= SPAN
        {
            self.marks.pop_front();
        }
    }

    /// Returns the rate that a sample over `interval` may report at most, if it is bounded.
    pub(crate) fn bound(&self, interval: Duration) -> Option<Rate> {
        let (time, before) = self.marks.front()?;
        let span = self.busy - *time;
        let rate = Rate::from_size_over(self.delivered - *before, span);
        (interval < SPAN && span >= LEAST).then(|| rate.mul_f64(GROWTH))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(micros: u64) -> Time {
        Time::ZERO + Duration::from_micros(micros)
    }

    const SHORT: Duration = Duration::from_micros(60);
    const SIZE: ByteSize = ByteSize::from_bytes(1_000);

    #[test]
    fn the_bound_is_above_the_rate_of_a_busy_flow_and_follows_it() {
        let mut rate = BusyRate::default();
        assert_eq!(rate.bound(SHORT), None);
        // A packet each 40 us: 200 Mbps.
        for number in 1..=1_000 {
            rate.on_delivered(micros(40 * number), micros(40 * (number - 1)), SIZE);
            if number < 25 {
                assert_eq!(rate.bound(SHORT), None, "after {number} packets");
            }
        }
        assert_eq!(rate.bound(SHORT), Some(Rate::from_mbps(250)));
        assert_eq!(rate.bound(SPAN), None, "long samples are left alone");
        // Silence does not count.
        rate.on_delivered(micros(1_000_040), micros(1_000_000), SIZE);
        assert_eq!(rate.bound(SHORT), Some(Rate::from_mbps(250)));
        // Ten times the rate, for longer than the span.
        for number in 1..=3_000 {
            let now = 1_000_040 + 4 * number;
            rate.on_delivered(micros(now), micros(now - 4), SIZE);
        }
        assert_eq!(rate.bound(SHORT), Some(Rate::from_mbps(2_500)));
    }
}
