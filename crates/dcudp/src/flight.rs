//! The packets under way and the round trips of a sender that receives ACKs all the time.
//!
//! An ACK is cumulative: while a packet is missing it does not say which later ones have arrived. But
//! it counts all data packets received, and a congestion control with a window needs just their
//! number. Without it, a sender would wait for a lost packet although nothing is under way any more.

use weir_units::{Duration, Time};

/// The shortest silence that counts as a loss of everything under way.
const SHORTEST_SILENCE: Duration = Duration::from_millis(20);

/// What a sender knows about its packets under way.
#[derive(Debug)]
pub(crate) struct Flight {
    /// Packets received, less those that the cumulative number covers. Below zero for as long as the
    /// cumulative number is newer than the counter.
    beyond: i64,
    /// How many of these are not known to be received: the peer was silent.
    given_up: i64,
    /// Whether the last ACK counted packets beyond a gap that is not reported yet.
    has_unreported: bool,
    /// The packet after the last one that was reported lost.
    recovery_end: u64,
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
            has_unreported: false,
            recovery_end: first,
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

    /// Records an ACK that counts more packets than the last one.
    pub(crate) fn on_received(&mut self, now: Time, packets: u32) {
        self.heard_at = now;
        self.beyond = self.beyond.saturating_add(packets.into());
    }

    /// Records that so many packets are newly reported lost, `last` and earlier ones.
    pub(crate) fn on_lost(&mut self, last: u64, packets: u64) {
        self.recovery_end = self.recovery_end.max(last + 1);
        self.has_unreported = false;
        let found = self
            .given_up
            .min(i64::try_from(packets).unwrap_or(i64::MAX));
        self.given_up -= found;
        self.beyond -= found;
    }

    /// Corrects the number after an ACK of everything before `base`: without a gap nothing beyond has
    /// arrived. Duplicates and wrong reports of losses are forgotten. The report of a new gap follows
    /// the ACK that counts the packets beyond it, so that the second such ACK decides.
    pub(crate) fn correct(&mut self, base: u64) {
        let is_whole = base >= self.recovery_end;
        if is_whole && (self.has_unreported || self.beyond < 0) {
            (self.beyond, self.given_up) = (0, 0);
        }
        self.has_unreported = is_whole && self.beyond > 0;
    }

    /// Returns how many of the packets beyond the first missing one have arrived, of `candidates`.
    pub(crate) fn arrived(&self, candidates: u64) -> u64 {
        u64::try_from(self.beyond).unwrap_or(0).min(candidates)
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

    /// Takes `candidates` packets for gone, arrived or lost: all that were sent before `next`.
    pub(crate) fn give_up(&mut self, now: Time, candidates: u64, next: u64) {
        self.heard_at = now;
        self.recovery_end = next;
        let gone = i64::try_from(candidates).unwrap_or(i64::MAX);
        self.given_up += (gone - self.beyond).max(0);
        self.beyond = gone;
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
        flight.correct(105);
        assert_eq!(flight.arrived(20), 0);
        // 105 is lost; 106 to 109 arrive, and the report follows the ACK.
        flight.on_received(at(1), 4);
        flight.correct(105);
        flight.on_lost(105, 1);
        assert_eq!((flight.arrived(20), flight.arrived(3)), (4, 3));
        // A duplicate is counted too, and forgotten once the gap is filled.
        flight.on_received(at(2), 1);
        assert_eq!(flight.arrived(20), 5);
        flight.on_progress(5);
        flight.on_received(at(3), 1);
        assert_eq!(flight.arrived(20), 1);
        flight.correct(110);
        assert_eq!(flight.arrived(20), 1);
        flight.correct(110);
        assert_eq!(flight.arrived(20), 0);
    }

    #[test]
    fn a_cumulative_number_may_be_newer_than_the_counter() {
        let mut flight = Flight::new(0);
        flight.on_lost(0, 1);
        flight.on_progress(7);
        assert_eq!(flight.arrived(20), 0);
        flight.on_received(at(1), 9);
        assert_eq!(flight.arrived(20), 2);
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
        flight.give_up(at(1_300), 3, 3);
        assert_eq!(flight.arrived(20), 3);
        // What turns out lost is sent again, and is under way then.
        flight.on_lost(1, 2);
        assert_eq!(flight.arrived(20), 1);
        assert!(!flight.is_silent(at(1_340), limit));
    }
}
