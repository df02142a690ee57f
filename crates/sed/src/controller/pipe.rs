//! What has to be in flight so that a link stays busy, by measurement.
//!
//! Equation 3 has C · RTT for a constant RTT. Hosts and switches that wait for a processor do not have one:
//! for some milliseconds nothing arrives, and a queue that is shorter than that runs empty.

use weir_units::{ByteSize, Duration, Rate, Time};

use crate::message::QueueState;
use crate::recent_max::RecentMax;

/// The weight of a new sample in the mean.
const GAIN: f64 = 0.125;

/// The largest sample is that of one to two such periods.
const PERIOD: Duration = Duration::from_millis(100);

/// The packets on the way outside of a port's queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MeasuredPipe {
    mean: Option<f64>,
    largest: RecentMax<f64>,
}

impl MeasuredPipe {
    /// Takes a switch's report of the queue of a link with this rate.
    pub(super) fn update(&mut self, now: Time, queue: &QueueState, packet: ByteSize, rate: Rate) {
        let packets = |bytes: u64| bytes as f64 / packet.bytes().max(1) as f64;
        let idle = packets(rate.size_in(queue.idle).bytes());
        let outside = packets(queue.in_flight.saturating_sub(queue.backlog));
        let sample = match (idle >= 1.0, queue.is_window_limited) {
            (false, _) => outside,
            // All that was in flight was on the way, and this much more would have kept the link busy.
            (true, true) => packets(queue.in_flight) + idle,
            // The flows do not fill the link.
            (true, false) => return,
        };
        let mean = self.mean.unwrap_or(sample);
        self.mean = Some(mean + GAIN * (sample - mean));
        self.largest.update(now, PERIOD, sample);
    }

    /// Returns Twin in packets, if anything is measured: with the mean the queue is as long as the
    /// threshold, and with the largest no shorter than where congestion ends.
    pub(super) fn total(&self, threshold: u32, recovery: u32) -> Option<u32> {
        let usual = threshold.saturating_add(self.mean? as u32);
        let least = recovery.saturating_add(self.largest.get() as u32);
        Some(usual.max(least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: ByteSize = ByteSize::from_bytes(1500);
    const THRESHOLD: u32 = 30;
    const RECOVERY: u32 = 15;

    /// Reports every millisecond of a link of 120 Mbit/s, ten packets long each.
    #[derive(Default)]
    struct Reports {
        now: Time,
        pipe: MeasuredPipe,
    }

    impl Reports {
        /// Takes as many reports: what is in flight, and of that in the queue, in packets, and how long the
        /// link was idle.
        fn take(&mut self, count: u32, in_flight: u64, backlog: u64, idle_micros: u64) {
            for _ in 0..count {
                self.now += Duration::from_millis(1);
                let state = QueueState {
                    port: 0,
                    backlog: backlog * PACKET.bytes(),
                    idle: Duration::from_micros(idle_micros),
                    in_flight: in_flight * PACKET.bytes(),
                    is_window_limited: true,
                };
                let rate = Rate::from_mbps(120);
                self.pipe.update(self.now, &state, PACKET, rate);
            }
        }

        fn total(&self) -> Option<u32> {
            self.pipe.total(THRESHOLD, RECOVERY)
        }
    }

    #[test]
    fn with_a_constant_round_trip_the_queue_is_as_long_as_the_threshold() {
        let mut reports = Reports::default();
        assert_eq!(reports.total(), None);
        reports.take(5, 34, 30, 0);
        assert_eq!(reports.total(), Some(THRESHOLD + 4));
    }

    #[test]
    fn a_pause_makes_twin_longer_by_what_would_have_kept_the_link_busy() {
        let mut reports = Reports::default();
        reports.take(50, 34, 30, 0);
        // Nothing has arrived for 5 ms.
        reports.take(1, 34, 0, 4_000);
        let longer = RECOVERY + 34 + 40;
        assert_eq!(reports.total(), Some(longer));
        reports.take(95, longer.into(), 85, 0);
        assert_eq!(reports.total(), Some(longer));
        // No further one follows.
        reports.take(110, longer.into(), 85, 0);
        assert_eq!(reports.total(), Some(THRESHOLD + 4));
    }

    #[test]
    fn a_link_that_no_flow_waits_for_needs_no_longer_queue() {
        let mut reports = Reports::default();
        reports.take(50, 34, 30, 0);
        let state = QueueState {
            port: 0,
            backlog: 0,
            idle: Duration::from_millis(50),
            in_flight: 1500,
            is_window_limited: false,
        };
        reports
            .pipe
            .update(reports.now, &state, PACKET, Rate::from_mbps(120));
        assert_eq!(reports.total(), Some(THRESHOLD + 4));
    }
}
