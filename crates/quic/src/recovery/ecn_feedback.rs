//! Validates the peer's ECN counts and computes the CE-marked bytes.
//!
//! QUIC reports a total per space. No mark is lost with an ACK frame, and none is counted twice
//! when frames are reordered or repeated: only the excess over the largest total seen is new. The
//! total counts packets. Each new CE mark is assigned to one newly acknowledged ECT packet, at the
//! mean size of these packets. This is exact to the byte if the packets of a frame have equal size,
//! and apportioned by size otherwise. Marks for which a frame acknowledges too few packets wait for
//! the next one.

use crate::frame::EcnCounts;
use crate::path::EcnState;

/// Fractional bits of apportioned sizes.
const FRACTION_BITS: u32 = 16;

/// The ECT(0) packets that an ACK frame newly acknowledges.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EctAcked {
    /// The number of packets.
    pub(super) packets: u64,
    /// The packets among them that were sent on the path in use.
    pub(super) on_path: u64,
    /// Their bytes.
    pub(super) bytes: u64,
}

/// The ECN counts of one space.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EcnFeedback {
    /// The largest counts that the peer has reported.
    reported: EcnCounts,
    /// Packets sent with ECT(0).
    sent: u64,
    /// Counted packets that no ACK has acknowledged yet: ACK frames may omit ranges.
    unmatched: u64,
    /// CE marks not yet assigned to a packet.
    due: u64,
    /// Marked bytes not yet reported to the controller, in units of 2⁻¹⁶ bytes.
    unreported_bytes: u64,
}

impl EcnFeedback {
    /// Records a packet sent with ECT(0).
    pub(super) fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// Handles an ACK frame with these counts; returns the number of new CE marks. `in_order`: the
    /// frame acknowledges a larger number than any before. Only then do counts that contradict the
    /// sent packets prove anything (RFC 9000, section 13.4.2.1).
    pub(super) fn on_ack(
        &mut self,
        counts: Option<EcnCounts>,
        in_order: bool,
        acked: EctAcked,
        path: &mut EcnState,
    ) -> u64 {
        let marks = match self.count(counts, in_order, acked) {
            Ok(marks) => marks,
            Err(ImpossibleCounts) if in_order => {
                path.on_failure();
                return 0;
            }
            Err(ImpossibleCounts) => return 0,
        };
        if !path.is_in_use() {
            (self.due, self.unreported_bytes) = (0, 0);
            return 0;
        }
        if in_order && acked.on_path > 0 && counts.is_some() {
            path.on_valid();
        }
        self.due += marks;
        let named = self.due.min(acked.packets);
        if named > 0 {
            self.due -= named;
            let bytes = (u128::from(named) * u128::from(acked.bytes)) << FRACTION_BITS;
            let bytes = bytes / u128::from(acked.packets);
            self.unreported_bytes = self.unreported_bytes.saturating_add(bytes as u64);
        }
        marks
    }

    /// Returns the CE-marked bytes to report to the controller together with `acked` acknowledged
    /// ones; the excess is reported the next time.
    pub(super) fn take_bytes(&mut self, acked: u64) -> u64 {
        let told = (self.unreported_bytes >> FRACTION_BITS).min(acked);
        self.unreported_bytes -= told << FRACTION_BITS;
        told
    }

    /// Applies new counts if they are possible. Returns the number of new CE marks.
    fn count(
        &mut self,
        counts: Option<EcnCounts>,
        in_order: bool,
        acked: EctAcked,
    ) -> Result<u64, ImpossibleCounts> {
        let Some(counts) = counts else {
            // Counts must come with the ACK of an ECT packet.
            return match acked.packets {
                0 => Ok(0),
                _ => Err(ImpossibleCounts),
            };
        };
        // Nothing is sent with ECT(1) or CE, so all counted packets were sent with ECT(0).
        let possible = counts.ect1 == 0 && counts.ect0.saturating_add(counts.ce) <= self.sent;
        let decreased = counts.ect0 < self.reported.ect0 || counts.ce < self.reported.ce;
        if !possible || (in_order && decreased) {
            return Err(ImpossibleCounts);
        }
        let marks = counts.ce.saturating_sub(self.reported.ce);
        self.unmatched += marks + counts.ect0.saturating_sub(self.reported.ect0);
        self.reported.ect0 = self.reported.ect0.max(counts.ect0);
        self.reported.ce = self.reported.ce.max(counts.ce);
        match self.unmatched.checked_sub(acked.packets) {
            Some(rest) => self.unmatched = rest,
            // ECT(0) was cleared on the path, or this late frame acknowledges packets that a newer
            // frame already counted.
            None => {
                self.unmatched = 0;
                if in_order {
                    return Err(ImpossibleCounts);
                }
            }
        }
        Ok(marks)
    }
}

/// Counts that contradict the sent packets.
struct ImpossibleCounts;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::EcnPhase;

    const SIZE: u64 = 1_200;

    fn acked(packets: u64) -> EctAcked {
        EctAcked {
            packets,
            on_path: packets,
            bytes: packets * SIZE,
        }
    }

    fn counts(ect0: u64, ce: u64) -> Option<EcnCounts> {
        Some(EcnCounts { ect0, ect1: 0, ce })
    }

    fn after(sent: u64) -> (EcnFeedback, EcnState) {
        let mut feedback = EcnFeedback::default();
        (0..sent).for_each(|_| feedback.on_sent());
        (feedback, EcnState::new(true))
    }

    #[test]
    fn agreeing_counts_validate_the_path() {
        let (mut feedback, mut path) = after(10);
        assert_eq!(feedback.on_ack(counts(3, 1), true, acked(4), &mut path), 1);
        assert_eq!(path.phase, EcnPhase::Capable);
        assert_eq!(feedback.take_bytes(4 * SIZE), SIZE);
        assert_eq!(feedback.take_bytes(4 * SIZE), 0);
    }

    #[test]
    fn missing_counts_fail_the_path() {
        let (mut feedback, mut path) = after(10);
        feedback.on_ack(None, true, acked(0), &mut path);
        assert_eq!(path.phase, EcnPhase::Testing);
        feedback.on_ack(None, true, acked(1), &mut path);
        assert_eq!(path.phase, EcnPhase::Failed);
    }

    #[test]
    fn bleached_packets_fail_the_path() {
        let (mut feedback, mut path) = after(10);
        feedback.on_ack(counts(2, 0), true, acked(2), &mut path);
        feedback.on_ack(counts(3, 0), true, acked(2), &mut path);
        assert_eq!(path.phase, EcnPhase::Failed);
    }

    #[test]
    fn remarked_packets_fail_the_path() {
        let remarked = EcnCounts {
            ect0: 1,
            ect1: 1,
            ce: 0,
        };
        let (mut feedback, mut path) = after(10);
        feedback.on_ack(Some(remarked), true, acked(2), &mut path);
        assert_eq!(path.phase, EcnPhase::Failed);

        let (mut feedback, mut path) = after(10);
        feedback.on_ack(counts(8, 3), true, acked(8), &mut path);
        assert_eq!(path.phase, EcnPhase::Failed);
    }

    #[test]
    fn decreasing_counts_fail_the_path() {
        let (mut feedback, mut path) = after(10);
        feedback.on_ack(counts(4, 2), true, acked(5), &mut path);
        feedback.on_ack(counts(6, 1), true, acked(1), &mut path);
        assert_eq!(path.phase, EcnPhase::Failed);
    }

    #[test]
    fn a_reordered_ack_neither_fails_validation_nor_double_counts() {
        let (mut feedback, mut path) = after(10);
        assert_eq!(feedback.on_ack(counts(6, 2), true, acked(7), &mut path), 2);
        assert_eq!(feedback.on_ack(counts(3, 1), false, acked(1), &mut path), 0);
        assert_eq!(feedback.on_ack(None, false, acked(0), &mut path), 0);
        assert_eq!(
            feedback.on_ack(counts(u64::MAX, 9), false, acked(0), &mut path),
            0
        );
        assert_eq!(path.phase, EcnPhase::Capable);
        assert_eq!(feedback.on_ack(counts(6, 4), true, acked(2), &mut path), 2);
        assert_eq!(feedback.take_bytes(u64::MAX), 4 * SIZE);
    }

    #[test]
    fn excess_marks_wait_for_acknowledged_packets() {
        let (mut feedback, mut path) = after(10);
        feedback.on_ack(counts(0, 3), true, acked(1), &mut path);
        assert_eq!(feedback.take_bytes(SIZE), SIZE);
        feedback.on_ack(counts(1, 3), true, acked(3), &mut path);
        assert_eq!(feedback.take_bytes(3 * SIZE), 2 * SIZE);
    }

    #[test]
    fn marked_bytes_of_unequal_packets_are_apportioned_exactly() {
        let (mut feedback, mut path) = after(100);
        let mut told = 0;
        for round in 1..=30 {
            let acked = EctAcked {
                packets: 3,
                on_path: 3,
                bytes: 1_000,
            };
            feedback.on_ack(counts(2 * round, round), true, acked, &mut path);
            told += feedback.take_bytes(1_000);
        }
        assert!((9_999..=10_000).contains(&told), "{told}");
    }

    #[test]
    fn marked_bytes_never_exceed_the_acknowledged_ones() {
        let (mut feedback, mut path) = after(10);
        feedback.on_ack(counts(0, 2), true, acked(2), &mut path);
        assert_eq!(feedback.take_bytes(SIZE), SIZE);
        assert_eq!(feedback.take_bytes(SIZE), SIZE);
        assert_eq!(feedback.take_bytes(SIZE), 0);
    }

    #[test]
    fn a_failed_path_reports_no_marks() {
        let (mut feedback, mut path) = after(10);
        path.on_failure();
        assert_eq!(feedback.on_ack(counts(1, 1), true, acked(2), &mut path), 0);
        assert_eq!(feedback.take_bytes(u64::MAX), 0);
    }
}
