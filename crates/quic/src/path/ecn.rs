//! Whether a path carries ECN (RFC 9000, section 13.4.2 and appendix A.4).
//!
//! The first packets are sent with ECT(0). The first acknowledgment whose counts agree with what was
//! sent makes the path capable; one that contradicts it ends the use of ECN on this path, and so
//! does the loss of all of the first packets. What agrees is decided by
//! [`EcnFeedback`](crate::recovery::EcnFeedback), which keeps the counts.

use weir_wire::Ecn;

/// How many packets are sent with ECT(0) before it is known whether that is wise.
const TEST_PACKETS: u32 = 10;
/// After how many probe time-outs in a row a path is suspected to drop ECT(0). With the backoff
/// these are the three probe time-outs' time of appendix A.4.
const TEST_PROBE_TIMEOUTS: u32 = 2;

/// What is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EcnPhase {
    /// ECN is not wanted.
    Off,
    /// The first packets are sent with ECT(0).
    Testing,
    /// They have been sent; none is acknowledged.
    Unknown,
    /// The path carries ECN.
    Capable,
    /// The path or the peer does not.
    Failed,
}

/// A path's ECN state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EcnState {
    /// What is known.
    pub(crate) phase: EcnPhase,
    /// Packets sent with ECT(0) before the path was found to be capable.
    tested: u32,
    /// Those of them that have been lost.
    lost: u32,
}

impl EcnState {
    /// A new path's.
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

    /// What to send the next packets with.
    pub(crate) fn codepoint(&self) -> Ecn {
        match self.phase {
            EcnPhase::Testing | EcnPhase::Capable => Ecn::Ect0,
            EcnPhase::Off | EcnPhase::Unknown | EcnPhase::Failed => Ecn::NotEct,
        }
    }

    /// Whether the peer's counts mean anything.
    pub(crate) fn is_in_use(&self) -> bool {
        !matches!(self.phase, EcnPhase::Off | EcnPhase::Failed)
    }

    /// A packet was sent with that codepoint.
    pub(crate) fn on_sent(&mut self, ecn: Ecn) {
        if !ecn.is_capable() || !self.is_on_trial() {
            return;
        }
        self.tested = self.tested.saturating_add(1);
        if self.tested >= TEST_PACKETS {
            self.phase = EcnPhase::Unknown;
        }
    }

    /// A packet that was sent with that codepoint is lost.
    pub(crate) fn on_lost(&mut self, ecn: Ecn) {
        if !ecn.is_capable() || !self.is_on_trial() {
            return;
        }
        self.lost = self.lost.saturating_add(1);
        if self.phase == EcnPhase::Unknown && self.lost >= self.tested {
            self.phase = EcnPhase::Failed;
        }
    }

    /// Nothing is heard from the peer; this is the `count`-th probe time-out in a row.
    pub(crate) fn on_probe_timeout(&mut self, count: u32) {
        if self.phase == EcnPhase::Testing && count >= TEST_PROBE_TIMEOUTS {
            self.phase = EcnPhase::Unknown;
        }
    }

    /// The peer's counts agree with what was sent.
    pub(crate) fn on_valid(&mut self) {
        if self.is_on_trial() {
            self.phase = EcnPhase::Capable;
        }
    }

    /// They do not.
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
    fn ten_packets_are_sent_on_trial() {
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
    fn a_path_that_drops_all_of_them_has_failed() {
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
    fn silence_ends_the_trial() {
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
    fn an_option_turns_it_off() {
        let mut state = EcnState::new(false);
        state.on_failure();
        state.on_valid();
        assert_eq!(
            (state.phase, state.codepoint()),
            (EcnPhase::Off, Ecn::NotEct)
        );
    }
}
