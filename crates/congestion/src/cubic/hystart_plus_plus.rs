//! HyStart++, RFC 9406: leaves slow start when the RTT rises, before losses occur.

use weir_units::Duration;

use super::slow_start::SlowStartAction;
use crate::AckSample;

/// RFC 9406 section 4.3: samples of a round before its minimum counts (`N_RTT_SAMPLE`).
const RTT_SAMPLES: u32 = 8;
/// RFC 9406 section 4.3: `MIN_RTT_DIVISOR`.
const RTT_DIVISOR: u64 = 8;
/// RFC 9406 section 4.3: `CSS_GROWTH_DIVISOR`.
const GROWTH_DIVISOR: u64 = 4;
/// RFC 9406 section 4.3: `CSS_ROUNDS`.
const CAUTIOUS_ROUNDS: u32 = 5;

#[derive(Clone, Debug)]
pub(super) struct HyStartPlusPlus {
    min_threshold: Duration,
    max_threshold: Duration,
    /// The smallest RTT of the last round and of this one; `MAX` before a sample.
    last_round: Duration,
    this_round: Duration,
    samples: u32,
    cautious: Option<ConservativeSlowStart>,
}

/// Conservative slow start (RFC 9406 section 4.2).
#[derive(Clone, Copy, Debug)]
struct ConservativeSlowStart {
    baseline: Duration,
    rounds: u32,
}

impl HyStartPlusPlus {
    pub(super) fn new(min_threshold: Duration, max_threshold: Duration) -> Self {
        Self {
            min_threshold,
            max_threshold,
            last_round: Duration::MAX,
            this_round: Duration::MAX,
            samples: 0,
            cautious: None,
        }
    }

    pub(super) fn is_cautious(&self) -> bool {
        self.cautious.is_some()
    }

    /// Starts a new slow start without any round known.
    pub(super) fn reset(&mut self) {
        *self = Self::new(self.min_threshold, self.max_threshold);
    }

    pub(super) fn on_ack(&mut self, ack: &AckSample) -> SlowStartAction {
        if let Some(rtt) = ack.rtt {
            self.this_round = self.this_round.min(rtt);
            self.samples += 1;
        }
        self.update_phase();
        let advice = match self.cautious {
            Some(cautious) if cautious.rounds >= CAUTIOUS_ROUNDS => SlowStartAction::Leave,
            Some(_) => SlowStartAction::Grow(ack.acked / GROWTH_DIVISOR),
            None => SlowStartAction::Grow(ack.acked),
        };
        if ack.round_ended {
            self.start_round();
        }
        advice
    }

    /// Enters or leaves conservative slow start.
    fn update_phase(&mut self) {
        if self.samples < RTT_SAMPLES {
            return;
        }
        match self.cautious {
            Some(cautious) if self.this_round < cautious.baseline => self.cautious = None,
            None if self.last_round != Duration::MAX => {
                let threshold =
                    (self.last_round / RTT_DIVISOR).clamp(self.min_threshold, self.max_threshold);
                if self.this_round >= self.last_round + threshold {
                    self.cautious = Some(ConservativeSlowStart {
                        baseline: self.this_round,
                        rounds: 0,
                    });
                }
            }
            _ => {}
        }
    }

    fn start_round(&mut self) {
        self.last_round = self.this_round;
        self.this_round = Duration::MAX;
        self.samples = 0;
        if let Some(cautious) = &mut self.cautious {
            cautious.rounds += 1;
        }
    }
}
