//! What is delivered, and how much of what was sent waits in the queue.

use weir_units::Duration;

/// Deliveries are averaged over so many packets at least.
const FEWEST: f64 = 8.0;
/// So many packets may wait beyond a smallest round trip's worth: who has less on the way than a packet per
/// round trip cannot tell one that waits from one that travels.
const SPARE: f64 = 1.0;

/// Deliveries per time, the older ones weighing less.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeliveryAverage {
    packets: f64,
    seconds: f64,
    /// Over how many smallest round-trip times.
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

    pub(super) fn add(&mut self, packets: f64, elapsed: Duration, min_rtt: Duration) {
        let elapsed = elapsed.as_secs_f64();
        let least = self.rate().map_or(0.0, |rate| FEWEST / rate);
        let kept = (-elapsed / (self.average * min_rtt.as_secs_f64()).max(least)).exp();
        self.packets = self.packets * kept + packets;
        self.seconds = self.seconds * kept + elapsed;
    }

    /// Packets per second, once there is something to go by.
    pub(super) fn rate(&self) -> Option<f64> {
        (self.seconds > 0.0 && self.packets > 0.0).then(|| self.packets / self.seconds)
    }

    /// How many of the packets in flight wait in the queue too long: beyond those that travel, and as many
    /// again.
    pub(super) fn excess(&self, in_flight: f64, min_rtt: Duration) -> f64 {
        let travelling = self.rate().unwrap_or(0.0) * min_rtt.as_secs_f64();
        (in_flight - 2.0 * travelling - SPARE).max(0.0)
    }

    /// Packets have another size; `scale` of these are one of those.
    pub(super) fn resize(&mut self, scale: f64) {
        self.packets *= scale;
    }
}
