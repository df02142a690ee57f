//! Proportional Rate Reduction (RFC 9937): the bytes in flight fall to the new window evenly over a
//! round trip, clocked by deliveries. It applies in fast recovery and, as in Linux (state CWR), after a
//! reaction to ECE: a window that falls at once would leave a sender silent for a part of the round
//! trip, and after a burst with losses no SACK would reveal them.

use super::recovery::Cause;
use super::{Acknowledgment, Detection, Sender};
use crate::scoreboard::AckSummary;

/// The state of one reduction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RateReduction {
    /// Bytes that have arrived since its start.
    delivered: u64,
    /// Bytes sent since its start.
    out: u64,
    /// Bytes in flight at its start.
    flight: u64,
    /// Bytes that may be in flight now.
    pub(super) window: u64,
    /// A reaction to ECE ends when this offset has been acknowledged; a fast recovery ends by itself: [`u64::MAX`].
    until: u64,
}

impl RateReduction {
    pub(super) fn on_sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// Processes an acknowledgment of `delivered` bytes (RFC 9937, section 7). `target` is the new
    /// cwnd. `safe`: the acknowledgment made progress without new losses.
    fn update(&mut self, delivered: u64, in_flight: u64, target: u64, mss: u64, safe: bool) {
        self.delivered += delivered;
        let allowance = if in_flight > target {
            share_of(self.delivered, target, self.flight.max(1)).saturating_sub(self.out)
        } else {
            let mut allowance = self.delivered.saturating_sub(self.out).max(delivered);
            if safe {
                allowance += mss;
            }
            allowance.min(target - in_flight)
        };
        self.window = in_flight.saturating_add(allowance);
    }
}

/// Returns `part` times `total` divided by `whole`, rounded up.
#[inline]
fn share_of(part: u64, total: u64, whole: u64) -> u64 {
    // Divisions of 128 bits take a loop.
    if let Some(product) = part.checked_mul(total) {
        return product.div_ceil(whole);
    }
    let share = (u128::from(part) * u128::from(total)).div_ceil(u128::from(whole));
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// The reduction in progress, if there is one.
#[derive(Clone, Debug)]
pub(super) struct Reduction {
    /// The window that it permits now; [`NO_REDUCTION`] without one.
    window: u64,
    last: RateReduction,
}

/// Larger than any window.
const NO_REDUCTION: u64 = u64::MAX;

impl Default for Reduction {
    fn default() -> Self {
        Self {
            window: NO_REDUCTION,
            last: RateReduction::default(),
        }
    }
}

impl Reduction {
    #[inline]
    pub(super) fn is_active(&self) -> bool {
        self.window != NO_REDUCTION
    }

    /// Returns the window in force, which is that of the controller or of a reduction.
    #[inline]
    pub(super) fn window_or(&self, cwnd: u64) -> u64 {
        if self.is_active() { self.window } else { cwnd }
    }

    #[inline]
    pub(super) fn get_mut(&mut self) -> Option<&mut RateReduction> {
        self.is_active().then_some(&mut self.last)
    }

    fn begin(&mut self, reduction: RateReduction) {
        self.window = reduction.window;
        self.last = reduction;
    }

    #[inline]
    pub(super) fn end(&mut self) {
        self.window = NO_REDUCTION;
    }
}

impl Sender {
    /// Starts the reduction with recovery, or continues that of a reaction to ECE.
    pub(super) fn begin_reduction(&mut self, cause: Cause, prior_flight: u64) {
        if cause != Cause::Acks || !self.reduces_proportionally() {
            self.reduction.end();
            return;
        }
        let begun = self.new_reduction(prior_flight);
        match self.reduction.get_mut() {
            Some(reduction) => reduction.until = u64::MAX,
            None => self.reduction.begin(begun),
        }
    }

    /// Starts the reduction after the controller has lowered the window because of ECE.
    pub(super) fn begin_reaction_to_ece(&mut self, prior_flight: u64) {
        if self.loss_state.recovery.is_none()
            && !self.reduction.is_active()
            && self.reduces_proportionally()
        {
            let mut begun = self.new_reduction(prior_flight);
            begun.until = self.nxt;
            self.reduction.begin(begun);
        }
    }

    /// Whether reductions are spread: not where the controller sets a pacing rate.
    fn reduces_proportionally(&self) -> bool {
        self.config.proportional_rate_reduction && !self.pacer.follows_controller()
    }

    fn new_reduction(&self, prior_flight: u64) -> RateReduction {
        RateReduction {
            delivered: 0,
            out: 0,
            flight: prior_flight,
            window: self.scoreboard.in_flight(),
            until: u64::MAX,
        }
    }

    /// Returns the bytes that an acknowledgment delivered. Without SACK, a duplicate ACK counts as
    /// one segment, and a partial ACK as the rest of its bytes (RFC 9937, section 6).
    pub(super) fn delivered_for_reduction(
        &self,
        ack: &Acknowledgment<'_>,
        summary: &AckSummary,
        advanced: bool,
    ) -> u64 {
        if self.detection != Detection::DuplicateAcks {
            summary.delivered
        } else if advanced {
            summary.delivered.min(self.mss)
        } else if ack.repeats {
            self.mss
        } else {
            0
        }
    }

    /// Updates the window of the reduction after an acknowledgment. `safe`: it advanced `una` and
    /// revealed no further loss (RFC 9937, section 7: SafeACK).
    pub(super) fn reduce(&mut self, delivered: u64, safe: bool) {
        let (in_flight, target, mss) = (self.effective_flight(), self.cwnd, self.mss);
        let Some(reduction) = self.reduction.get_mut() else {
            return;
        };
        if delivered > 0 {
            reduction.update(delivered, in_flight, target, mss, safe);
        }
        let is_over = self.una >= reduction.until;
        let window = reduction.window;
        self.reduction.window = if is_over {
            NO_REDUCTION
        } else {
            window.min(NO_REDUCTION - 1)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    /// Returns the segments sent per acknowledgment, for 20 segments in flight of which one is lost
    /// and a new window of `target` segments. There are 19 acknowledgments.
    fn sent_per_ack(target: u64) -> Vec<u64> {
        let (mut in_flight, mut sent) = (19 * MSS, Vec::new());
        let mut reduction = RateReduction {
            delivered: 0,
            out: 0,
            flight: 20 * MSS,
            window: in_flight,
            until: u64::MAX,
        };
        for _ in 0..19 {
            in_flight -= MSS;
            reduction.update(MSS, in_flight, target * MSS, MSS, false);
            let count = (reduction.window - in_flight) / MSS;
            sent.push(count);
            reduction.on_sent(count * MSS);
            in_flight += count * MSS;
        }
        sent
    }

    #[test]
    fn one_segment_is_sent_for_every_second_acknowledgment() {
        let sent = sent_per_ack(10);
        assert!(sent.iter().all(|&count| count <= 1));
        // 10 are sent while 19 are delivered; the last acknowledgments hold the bytes in flight at
        // the target.
        assert_eq!(sent.iter().sum::<u64>(), 10);
        assert!(sent.windows(2).all(|pair| pair[0] + pair[1] <= 2));
    }

    #[test]
    fn a_flight_below_the_target_grows_by_delivered_bytes() {
        let mut reduction = RateReduction {
            delivered: 0,
            out: 0,
            flight: 20 * MSS,
            window: 0,
            until: u64::MAX,
        };
        // Many losses: 3 are in flight, the target is 10.
        reduction.update(MSS, 3 * MSS, 10 * MSS, MSS, false);
        assert_eq!(reduction.window, 4 * MSS);
        reduction.update(MSS, 3 * MSS, 10 * MSS, MSS, true);
        assert_eq!(reduction.window, 6 * MSS);
        reduction.update(20 * MSS, 9 * MSS, 10 * MSS, MSS, true);
        assert_eq!(reduction.window, 10 * MSS);
    }
}
