//! A counter of round trips. A round trip ends when a packet is acknowledged that was sent after
//! the previous one ended (draft-ietf-ccwg-bbr section 5.5.1, by send time).

use weir_units::Time;

use crate::AckSample;

#[derive(Clone, Debug, Default)]
pub(crate) struct RoundTripCounter {
    /// An acknowledged packet sent from this time on ends the round trip.
    start: Time,
    /// Number of round trips that have ended.
    pub(crate) count: u64,
    /// Whether the last acknowledgment ended a round trip.
    pub(crate) is_start: bool,
}

impl RoundTripCounter {
    /// Records an acknowledgment.
    pub(crate) fn on_ack(&mut self, ack: &AckSample) {
        self.is_start = ack.newest_sent >= self.start;
        if self.is_start {
            self.restart(ack.now);
            self.count += 1;
        }
    }

    /// Restarts the current round trip at `now`.
    pub(crate) fn restart(&mut self, now: Time) {
        self.start = now;
    }
}
