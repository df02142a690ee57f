//! ProbeBW's gain cycle (section 4.3.4 of the draft).

use rand_core::Rng;
use weir_units::Time;

use super::{Bbr, BbrState, PROBE_CWND_GAIN};
use crate::AckSample;

/// One phase above the bandwidth to probe for more, one below it to drain the resulting queue, six
/// at it.
const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

impl Bbr {
    /// Enters the cycle at a random phase other than the draining one.
    pub(super) fn enter_probe_bw(&mut self, now: Time) {
        self.state = BbrState::ProbeBw;
        self.cwnd_gain = PROBE_CWND_GAIN;
        self.cycle_index = GAINS.len() - 1 - self.random.next_u32() as usize % 7;
        self.advance_cycle_phase(now);
    }

    fn advance_cycle_phase(&mut self, now: Time) {
        self.cycle_start = now;
        self.cycle_index = (self.cycle_index + 1) % GAINS.len();
        self.pacing_gain = GAINS[self.cycle_index];
    }

    pub(super) fn check_cycle_phase(&mut self, ack: &AckSample) {
        if self.state == BbrState::ProbeBw && self.is_next_phase(ack) {
            self.advance_cycle_phase(ack.now);
        }
    }

    /// A phase lasts one propagation delay. Probing continues until it has filled the pipe or
    /// caused loss; draining ends once the queue is empty.
    fn is_next_phase(&self, ack: &AckSample) -> bool {
        let full_length = ack.now.since(self.cycle_start) > self.min_rtt;
        if self.pacing_gain > 1.0 {
            let filled = ack.prior_in_flight >= self.target_in_flight(self.pacing_gain);
            return full_length && (self.recovery.has_losses() || filled);
        }
        if self.pacing_gain < 1.0 {
            return full_length || ack.prior_in_flight <= self.target_in_flight(1.0);
        }
        full_length
    }
}
