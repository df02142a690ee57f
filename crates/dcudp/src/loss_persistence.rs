//! Losses that go on: congestion in a network that does not mark.

use weir_units::{Duration, Time};

/// Losses must go on for this many round trips. A burst that overflows a queue once, or a damaged
/// packet, is over within one.
const ROUND_TRIPS: u64 = 2;

/// The losses that a receiver has noticed without a pause.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LossPersistence {
    /// The first and the last gap of a series without a pause of a round trip.
    series: Option<(Time, Time)>,
}

impl LossPersistence {
    /// Records a gap. Returns whether losses have gone on for two round trips.
    pub(crate) fn on_gap(&mut self, now: Time, rtt: Duration) -> bool {
        let began = match self.series {
            Some((began, last)) if now.since(last) <= rtt => began,
            _ => now,
        };
        self.series = Some((began, now));
        now.since(began) >= rtt * ROUND_TRIPS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(gaps: &[u64]) -> Vec<bool> {
        let mut losses = LossPersistence::default();
        let at = |micros: &u64| Time::ZERO + Duration::from_micros(*micros);
        let rtt = Duration::from_micros(100);
        gaps.iter().map(|gap| losses.on_gap(at(gap), rtt)).collect()
    }

    #[test]
    fn only_losses_that_go_on_for_two_round_trips_are_congestion() {
        assert_eq!(verdicts(&[0, 1, 2, 99, 199]), [false; 5]);
        assert_eq!(verdicts(&[0, 100, 200, 201]), [false, false, true, true]);
    }

    #[test]
    fn a_round_trip_without_a_loss_begins_a_new_series() {
        let expected = [false, false, false, false, false, true];
        assert_eq!(verdicts(&[0, 90, 191, 290, 390, 391]), expected);
    }
}
