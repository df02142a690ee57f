//! Round trips counted by packets: one ends when a packet is acknowledged that was sent after the
//! previous one ended (draft-ietf-ccwg-bbr section 5.5.1, told by send time).

use weir_units::Time;

use crate::AckSample;

#[derive(Clone, Debug, Default)]
pub(crate) struct RoundTripCounter {
    /// What was sent from here on ends the round trip.
    start: Time,
    /// How many round trips have ended.
    pub(crate) count: u64,
    /// Whether the last acknowledgment ended a round trip.
    pub(crate) is_start: bool,
}

impl RoundTripCounter {
    /// Notes an acknowledgment.
    pub(crate) fn on_ack(&mut self, ack: &AckSample) {
        self.is_start = ack.newest_sent >= self.start;
        if self.is_start {
            self.restart(ack.now);
            self.count += 1;
        }
    }

    /// The present round trip starts at `now` instead.
    pub(crate) fn restart(&mut self, now: Time) {
        self.start = now;
    }
}
