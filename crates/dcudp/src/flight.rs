//! The packets under way and the round trips of a sender that receives ACKs all the time.
//!
//! An ACK is cumulative: while a packet is missing it does not say which later ones have arrived. But
//! it counts all packets that have arrived, each once, and a congestion control with a window needs just
//! their number. Without it, a sender would wait for a lost packet although nothing is under way any more.

use weir_units::{Duration, Time};

/// The shortest silence that counts as a loss of everything under way.
const SHORTEST_SILENCE: Duration = Duration::from_millis(20);

/// What a sender knows about its packets under way.
#[derive(Debug)]
pub(crate) struct Flight {
    /// Packets received, less those that the cumulative number covers. Below zero for as long as the
    /// cumulative number is newer than the counter.
    beyond: i64,
    /// Packets that count as gone although they are known neither to be received nor to be lost: the peer
    /// was silent.
    given_up: u64,
    /// The first packet whose acknowledgment ends the round trip.
    round_end: u64,
    /// When the peer was last heard, or the first packet under way was sent.
    heard_at: Time,
    /// When the last packet was sent.
    sent_at: Option<Time>,
}

impl Flight {
    pub(crate) fn new(first: u64) -> Self {
        Self {
            beyond: 0,
            given_up: 0,
            round_end: first,
            heard_at: Time::ZERO,
            sent_at: None,
        }
    }

    /// Records a sent packet. `is_first`: nothing else is under way. Returns whether it ends a pause
    /// that is longer than `limit`.
    pub(crate) fn on_sent(&mut self, now: Time, is_first: bool, limit: Duration) -> bool {
        let last = self.sent_at.replace(now);
        if is_first {
            self.heard_at = now;
        }
        let limit = limit.max(SHORTEST_SILENCE);
        is_first && last.is_some_and(|last| now.since(last) > limit)
    }

    /// Records that the cumulative number has advanced.
    pub(crate) fn on_progress(&mut self, packets: u64) {
        self.beyond = self.beyond.saturating_sub_unsigned(packets);
    }

    /// Records an ACK that counts so many packets more than the last one. Some of them may have been given
    /// up.
    pub(crate) fn on_received(&mut self, now: Time, packets: u32) {
        self.heard_at = now;
        self.beyond = self.beyond.saturating_add(packets.into());
        self.given_up = self.given_up.saturating_sub(packets.into());
    }

    /// Records that so many packets are newly reported lost.
    pub(crate) fn on_lost(&mut self, packets: u64) {
        self.given_up = self.given_up.saturating_sub(packets);
    }

    fn received(&self) -> u64 {
        u64::try_from(self.beyond).unwrap_or(0)
    }

    /// Returns how many packets are no longer under way, of the `candidates` from the first missing one on.
    pub(crate) fn arrived(&self, candidates: u64) -> u64 {
        (self.received() + self.given_up).min(candidates)
    }

    /// Returns whether an acknowledgment of everything before `base` ends the round trip. The next one
    /// ends with the acknowledgment of `next`.
    pub(crate) fn ends_round(&mut self, base: u64, next: u64) -> bool {
        let ends = base > self.round_end;
        if ends {
            self.round_end = next;
        }
        ends
    }

    /// Returns whether the peer has been silent for so long that everything under way counts as gone.
    pub(crate) fn is_silent(&self, now: Time, limit: Duration) -> bool {
        now.since(self.heard_at) >= limit.max(SHORTEST_SILENCE)
    }

    /// Takes `candidates` packets for gone, arrived or lost.
    pub(crate) fn give_up(&mut self, now: Time, candidates: u64) {
        self.heard_at = now;
        self.given_up = candidates.saturating_sub(self.received());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn packets_beyond_a_gap_are_counted_until_it_is_filled() {
        let mut flight = Flight::new(100);
        flight.on_progress(5);
        flight.on_received(at(0), 5);
        assert_eq!(flight.arrived(20), 0);
        // 105 is lost; 106 to 109 arrive.
        flight.on_received(at(1), 4);
        assert_eq!((flight.arrived(20), flight.arrived(3)), (4, 3));
        flight.on_progress(5);
        flight.on_received(at(3), 1);
        assert_eq!(flight.arrived(20), 0);
    }

    #[test]
    fn a_cumulative_number_may_be_newer_than_the_counter() {
        let mut flight = Flight::new(0);
        flight.on_progress(7);
        assert_eq!(flight.arrived(20), 0);
        flight.on_received(at(1), 9);
        assert_eq!(flight.arrived(20), 2);
    }

    #[test]
    fn packets_given_up_may_arrive_or_be_lost() {
        let mut flight = Flight::new(0);
        flight.on_received(at(1), 2);
        flight.give_up(at(100), 6);
        assert_eq!(flight.arrived(6), 6);
        // What is lost is sent again, and is under way then.
        flight.on_lost(1);
        assert_eq!(flight.arrived(6), 5);
        flight.on_received(at(101), 3);
        assert_eq!(flight.arrived(6), 5);
        flight.on_progress(6);
        flight.on_received(at(102), 1);
        assert_eq!(flight.arrived(6), 0);
    }

    #[test]
    fn a_round_trip_ends_with_a_packet_sent_in_it() {
        let mut flight = Flight::new(0);
        let ends = [(1, 10), (5, 12), (10, 14), (11, 20), (21, 30)];
        let ends = ends.map(|(base, next)| flight.ends_round(base, next));
        assert_eq!(ends, [true, false, false, true, true]);
    }

    #[test]
    fn silence_and_pauses_are_measured_from_the_first_packet_under_way() {
        let mut flight = Flight::new(0);
        let limit = Duration::from_millis(50);
        assert!(!flight.on_sent(at(1_000), true, limit));
        assert!(!flight.is_silent(at(1_049), limit) && flight.is_silent(at(1_050), limit));
        assert!(!flight.on_sent(at(1_040), false, limit));
        assert!(!flight.on_sent(at(1_090), true, limit));
        assert!(flight.on_sent(at(1_200), true, limit));
        flight.give_up(at(1_300), 3);
        assert!(!flight.is_silent(at(1_340), limit));
    }
}
