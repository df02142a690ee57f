//! The delivery rate, and the number of own packets in the queue.

use weir_units::Duration;

/// Minimum number of packets over which deliveries are averaged.
const FEWEST: f64 = 8.0;
/// Packets that may be queued beyond one minimum RTT's worth. With less than one packet in flight
/// per round trip, a sender cannot distinguish a queued packet from one in transit.
const SPARE: f64 = 1.0;

/// An exponentially weighted average of the delivery rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeliveryAverage {
    packets: f64,
    seconds: f64,
    /// Averaging time in minimum RTTs.
    average: f64,
}

impl DeliveryAverage {
    pub(super) fn new(average: f64) -> Self {
        Self {
            packets: 0.0,
            seconds: 0.0,
            average,
        }
    }

    /// Sets the averaging time.
    pub(super) fn set_average(&mut self, average: f64) {
        self.average = average;
    }

    pub(super) fn add(&mut self, packets: f64, elapsed: Duration, min_rtt: Duration) {
        let elapsed = elapsed.as_secs_f64();
        let least = self.rate().map_or(0.0, |rate| FEWEST / rate);
        let kept = (-elapsed / (self.average * min_rtt.as_secs_f64()).max(least)).exp();
        self.packets = self.packets * kept + packets;
        self.seconds = self.seconds * kept + elapsed;
    }

    /// Returns the rate in packets per second, once there are deliveries.
    pub(super) fn rate(&self) -> Option<f64> {
        (self.seconds > 0.0 && self.packets > 0.0).then(|| self.packets / self.seconds)
    }

    /// Returns the excess of the packets in flight: those beyond one minimum RTT's worth in transit
    /// and one `period`'s worth in the queue.
    pub(super) fn excess(&self, in_flight: f64, min_rtt: Duration, period: Duration) -> f64 {
        let rate = self.rate().unwrap_or(0.0);
        let (travelling, queued) = (rate * min_rtt.as_secs_f64(), rate * period.as_secs_f64());
        (in_flight - (travelling + queued) - SPARE).max(0.0)
    }

    /// Converts to another packet size; `scale` is the old packet size in new packets.
    pub(super) fn resize(&mut self, scale: f64) {
        self.packets *= scale;
    }
}
