//! A ring of the bytes in flight at each send time, for packets that are lost later.
//!
//! In the draft each packet stores this state, but a transport only reports the send time of lost
//! packets. The ring keeps snapshots a sixteenth of the RTT apart, four round trips deep.

use weir_units::{ByteSize, Duration, Time};

use crate::PacketSent;

const SLOTS: usize = 64;
const PER_ROUND_TRIP: u64 = 16;

/// The path state when a packet was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PacketState {
    pub(super) sent: Time,
    pub(super) in_flight: ByteSize,
    /// Total bytes lost on the path until then.
    pub(super) lost: ByteSize,
}

#[derive(Clone, Debug)]
pub(super) struct PacketStates {
    slots: [PacketState; SLOTS],
    newest: usize,
    filled: usize,
}

impl Default for PacketStates {
    fn default() -> Self {
        Self {
            slots: [PacketState::default(); SLOTS],
            newest: 0,
            filled: 0,
        }
    }
}

impl PacketStates {
    pub(super) fn on_sent(&mut self, sent: &PacketSent, lost: ByteSize, min_rtt: Duration) {
        let spacing = if min_rtt == Duration::MAX {
            Duration::ZERO
        } else {
            min_rtt / PER_ROUND_TRIP
        };
        let newest = &self.slots[self.newest];
        if self.filled > 0 && sent.now.since(newest.sent) < spacing {
            return;
        }
        self.newest = (self.newest + 1) % SLOTS;
        self.filled = (self.filled + 1).min(SLOTS);
        self.slots[self.newest] = PacketState {
            sent: sent.now,
            in_flight: sent.in_flight,
            lost,
        };
    }

    /// Returns the newest snapshot not newer than `sent`, or else the oldest.
    pub(super) fn at(&self, sent: Time) -> Option<PacketState> {
        let newest_first =
            (0..self.filled).map(|age| self.slots[(self.newest + SLOTS - age) % SLOTS]);
        let mut oldest = None;
        for flight in newest_first {
            oldest = Some(flight);
            if flight.sent <= sent {
                break;
            }
        }
        oldest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{micros, packets};

    #[test]
    fn the_state_at_a_packets_send_time_is_found() {
        let mut flights = PacketStates::default();
        assert!(flights.at(micros(5)).is_none());
        for index in 0..1_000 {
            let sent = PacketSent {
                now: micros(index),
                size: packets(1),
                in_flight: packets(index),
            };
            flights.on_sent(&sent, packets(index / 10), Duration::from_micros(160));
        }
        // A snapshot each 10 us, the last 64 of them.
        assert_eq!(flights.at(micros(555)).unwrap().in_flight, packets(550));
        assert_eq!(flights.at(micros(555)).unwrap().lost, packets(55));
        assert_eq!(flights.at(micros(2_000)).unwrap().sent, micros(990));
        assert_eq!(flights.at(micros(3)).unwrap().sent, micros(360));
    }
}
