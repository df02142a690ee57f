//! ECN validation of a path (RFC 9000, section 13.4.2 and appendix A.4).
//!
//! The first packets are sent with ECT(0). The first ACK whose counts match the sent packets makes
//! the path capable. An ACK that contradicts them ends the use of ECN on this path, and so does the
//! loss of all of the first packets. [`EcnFeedback`](crate::recovery::EcnFeedback) keeps and checks
//! the counts.

use weir_wire::Ecn;

/// The number of packets sent with ECT(0) before validation succeeds.
const TEST_PACKETS: u32 = 10;
/// The consecutive PTOs after which a path is suspected to drop ECT(0). With the backoff they take
/// the three PTOs' time of appendix A.4.
const TEST_PROBE_TIMEOUTS: u32 = 2;

/// The state of validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EcnPhase {
    /// ECN is switched off.
    Off,
    /// The first packets are sent with ECT(0).
    Testing,
    /// The test packets have been sent; none is acknowledged.
    Unknown,
    /// The path carries ECN.
    Capable,
    /// The path or the peer does not support ECN.
    Failed,
}

/// A path's ECN state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EcnState {
    /// The state of validation.
    pub(crate) phase: EcnPhase,
    /// Packets sent with ECT(0) before validation succeeded.
    tested: u32,
    /// Lost packets among them.
    lost: u32,
}

impl EcnState {
    /// Creates the state of a new path.
    pub(crate) fn new(wanted: bool) -> Self {
        Self {
            phase: if wanted {
                EcnPhase::Testing
            } else {
                EcnPhase::Off
            },
            tested: 0,
            lost: 0,
        }
    }

    /// Returns the codepoint for the next packets.
    pub(crate) fn codepoint(&self) -> Ecn {
        match self.phase {
            EcnPhase::Testing | EcnPhase::Capable => Ecn::Ect0,
            EcnPhase::Off | EcnPhase::Unknown | EcnPhase::Failed => Ecn::NotEct,
        }
    }

    /// Whether the peer's counts are evaluated.
    pub(crate) fn is_in_use(&self) -> bool {
        !matches!(self.phase, EcnPhase::Off | EcnPhase::Failed)
    }

    /// Records a packet sent with that codepoint.
    pub(crate) fn on_sent(&mut self, ecn: Ecn) {
        if !ecn.is_capable() || !self.is_on_trial() {
            return;
        }
        self.tested = self.tested.saturating_add(1);
        if self.tested >= TEST_PACKETS {
            self.phase = EcnPhase::Unknown;
        }
    }

    /// Records the loss of a packet sent with that codepoint.
    pub(crate) fn on_lost(&mut self, ecn: Ecn) {
        if !ecn.is_capable() || !self.is_on_trial() {
            return;
        }
        self.lost = self.lost.saturating_add(1);
        if self.phase == EcnPhase::Unknown && self.lost >= self.tested {
            self.phase = EcnPhase::Failed;
        }
    }

    /// Handles the `count`-th consecutive PTO.
    pub(crate) fn on_probe_timeout(&mut self, count: u32) {
        if self.phase == EcnPhase::Testing && count >= TEST_PROBE_TIMEOUTS {
            self.phase = EcnPhase::Unknown;
        }
    }

    /// Records that the peer's counts match the sent packets.
    pub(crate) fn on_valid(&mut self) {
        if self.is_on_trial() {
            self.phase = EcnPhase::Capable;
        }
    }

    /// Records that they do not match.
    pub(crate) fn on_failure(&mut self) {
        if self.is_in_use() {
            self.phase = EcnPhase::Failed;
        }
    }

    fn is_on_trial(&self) -> bool {
        matches!(self.phase, EcnPhase::Testing | EcnPhase::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_ect_packets_are_sent_for_validation() {
        let mut state = EcnState::new(true);
        for _ in 0..10 {
            assert_eq!(state.codepoint(), Ecn::Ect0);
            state.on_sent(Ecn::Ect0);
        }
        assert_eq!(state.codepoint(), Ecn::NotEct);
        state.on_valid();
        assert_eq!(state.codepoint(), Ecn::Ect0);
    }

    #[test]
    fn validation_fails_if_all_ect_packets_are_lost() {
        let mut state = EcnState::new(true);
        (0..10).for_each(|_| state.on_sent(Ecn::Ect0));
        (0..9).for_each(|_| state.on_lost(Ecn::Ect0));
        state.on_lost(Ecn::NotEct);
        assert_eq!(state.phase, EcnPhase::Unknown);
        state.on_lost(Ecn::Ect0);
        assert_eq!(state.phase, EcnPhase::Failed);
        state.on_valid();
        assert_eq!(state.phase, EcnPhase::Failed);
    }

    #[test]
    fn probe_timeouts_end_ect_marking() {
        let mut state = EcnState::new(true);
        state.on_sent(Ecn::Ect0);
        state.on_probe_timeout(1);
        assert_eq!(state.codepoint(), Ecn::Ect0);
        state.on_probe_timeout(2);
        assert_eq!(state.codepoint(), Ecn::NotEct);
        state.on_lost(Ecn::Ect0);
        assert_eq!(state.phase, EcnPhase::Failed);
    }

    #[test]
    fn ecn_can_be_disabled() {
        let mut state = EcnState::new(false);
        state.on_failure();
        state.on_valid();
        assert_eq!(
            (state.phase, state.codepoint()),
            (EcnPhase::Off, Ecn::NotEct)
        );
    }
}
