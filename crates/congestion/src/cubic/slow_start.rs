//! Slow start and the ways to leave it before losses occur.

use weir_units::ByteSize;

use super::hystart::{HyStart, Limits};
use super::hystart_plus_plus::HyStartPlusPlus;
use super::parameters::{
    HYSTART, HYSTART_ACK_DELTA, HYSTART_LOW_WINDOW, HYSTART_MAX, HYSTART_MIN, HYSTART_PLUS_PLUS,
};
use crate::{AckSample, AlgorithmSpec, Context};

/// The action of slow start on an acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlowStartAction {
    /// Grow by this many bytes.
    Grow(ByteSize),
    /// Enter congestion avoidance.
    Leave,
}

/// What ends slow start besides losses and marks.
#[derive(Clone, Debug)]
pub(super) enum SlowStartExit {
    Nothing,
    HyStart(HyStart),
    HyStartPlusPlus(HyStartPlusPlus),
}

impl SlowStartExit {
    pub(super) fn new(spec: &AlgorithmSpec, context: &Context) -> Self {
        let (min_threshold, max_threshold) = (spec.get(&HYSTART_MIN), spec.get(&HYSTART_MAX));
        let max_threshold = max_threshold.max(min_threshold);
        if !spec.get(&HYSTART) {
            return Self::Nothing;
        }
        if spec.get(&HYSTART_PLUS_PLUS) {
            return Self::HyStartPlusPlus(HyStartPlusPlus::new(min_threshold, max_threshold));
        }
        Self::HyStart(HyStart::new(Limits {
            min_threshold,
            max_threshold,
            low_window: spec.get(&HYSTART_LOW_WINDOW),
            ack_delta: spec.get(&HYSTART_ACK_DELTA),
            is_paced: context.is_paced,
        }))
    }

    /// Handles an acknowledgment in slow start, at a window of `cwnd`.
    pub(super) fn on_ack(
        &mut self,
        ack: &AckSample,
        cwnd: ByteSize,
        packet: ByteSize,
    ) -> SlowStartAction {
        match self {
            Self::Nothing => SlowStartAction::Grow(ack.acked),
            Self::HyStart(hystart) => {
                if hystart.ends_slow_start(ack, cwnd, packet) {
                    SlowStartAction::Leave
                } else {
                    SlowStartAction::Grow(ack.acked)
                }
            }
            Self::HyStartPlusPlus(hystart) => hystart.on_ack(ack),
        }
    }

    /// Returns whether the window grows slowly already.
    pub(super) fn is_cautious(&self) -> bool {
        matches!(self, Self::HyStartPlusPlus(hystart) if hystart.is_cautious())
    }

    /// Starts anew after a time-out.
    pub(super) fn on_timeout(&mut self) {
        match self {
            Self::Nothing => {}
            Self::HyStart(hystart) => hystart.reset(),
            Self::HyStartPlusPlus(hystart) => hystart.reset(),
        }
    }

    /// Handles a restart after an idle period. Linux's HyStart goes on with what it knows.
    pub(super) fn on_idle_restart(&mut self) {
        if let Self::HyStartPlusPlus(hystart) = self {
            hystart.reset();
        }
    }
}
