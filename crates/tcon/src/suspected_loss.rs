//! Whether a loss that was declared of a flow turns out spurious: its segments were only reordered.

use weir_congestion::SpuriousLoss;
use weir_units::{ByteSize, Duration, Time};
use weir_wire::tcp::Sequence;

use crate::progress_report::ProgressReport;

/// The bytes that were declared lost since the controller last reduced its window, and the evidence about them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SuspectedLoss {
    /// When the first of them were declared lost.
    since: Time,
    bytes: ByteSize,
    newest_sent: Time,
    /// All of them are before this number.
    upto: Sequence,
    retransmitted_before: ByteSize,
    duplicated_before: ByteSize,
    /// When all holes were filled.
    filled_at: Option<Time>,
}

/// What became of a suspected loss.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verdict {
    /// There may be more evidence.
    Open,
    Spurious(SpuriousLoss),
    Confirmed,
}

/// What a flow had retransmitted, and had arrived twice, before the receiver reported a hole.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Repeated {
    pub(crate) retransmitted: ByteSize,
    pub(crate) duplicated: ByteSize,
}

impl SuspectedLoss {
    /// Begins with these bytes, of which the newest were sent at `newest_sent`.
    pub(crate) fn new(
        bytes: u64,
        newest_sent: Time,
        report: &ProgressReport,
        before: Repeated,
    ) -> Self {
        let bytes = ByteSize::from_bytes(bytes);
        Self {
            since: report.now,
            bytes,
            newest_sent,
            upto: end_of(report),
            retransmitted_before: before.retransmitted,
            duplicated_before: before.duplicated,
            filled_at: None,
        }
    }

    /// Adds bytes that were declared lost later. Returns whether they were sent before the first ones were, so
    /// that the controller reduced its window for all of them once.
    pub(crate) fn extend(
        &mut self,
        bytes: u64,
        newest_sent: Time,
        report: &ProgressReport,
    ) -> bool {
        if newest_sent > self.since {
            return false;
        }
        self.bytes += ByteSize::from_bytes(bytes);
        self.newest_sent = self.newest_sent.max(newest_sent);
        self.upto = end_of(report);
        self.filled_at = None;
        true
    }

    /// Judges by a report. The loss is spurious if all holes are filled and the receiver has got twice whatever
    /// was retransmitted (RFC 3708), which may be nothing. It tells of the last of it within an `rtt`.
    pub(crate) fn judge(&mut self, report: &ProgressReport, rtt: Duration) -> Verdict {
        if report.una.precedes(self.upto) {
            return Verdict::Open;
        }
        let filled_at = *self.filled_at.get_or_insert(report.now);
        let retransmitted = report.retransmitted - self.retransmitted_before;
        let duplicated = report.duplicated - self.duplicated_before;
        if duplicated >= retransmitted {
            Verdict::Spurious(SpuriousLoss {
                now: report.now,
                bytes: self.bytes,
                newest_sent: self.newest_sent,
            })
        } else if report.now.since(filled_at) > rtt {
            Verdict::Confirmed
        } else {
            Verdict::Open
        }
    }
}

/// Returns the number at which the data ends that the receiver reports.
fn end_of(report: &ProgressReport) -> Sequence {
    if report.sacked.is_zero() || report.sack_end.precedes(report.una) {
        report.una
    } else {
        report.sack_end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed_flow::{FlowStart, ObservedFlow};
    use crate::progress_report::PLACES;

    const START: FlowStart = FlowStart {
        first: Sequence::new(1),
        segment_size: 1000,
        is_marked: false,
        rtt: Some(Duration::from_millis(1)),
    };
    /// What the sender has sent: the initial window.
    const SENT: u64 = 10_000;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn bytes(count: u64) -> ByteSize {
        ByteSize::from_bytes(count)
    }

    /// Segments 3 to 6 have arrived, the first two have not.
    fn hole() -> ProgressReport {
        ProgressReport {
            now: at(2),
            delivered: bytes(4000),
            marked: ByteSize::ZERO,
            retransmitted: ByteSize::ZERO,
            timeouts: 0,
            sent_at: at(1),
            delivery_points: [None; PLACES],
            una: START.first,
            nxt: START.first + SENT as u32,
            sacked: bytes(4000),
            sack_end: START.first + 6000,
            duplicates: 0,
            prior_in_flight: bytes(SENT),
            new_acks: 1,
            first_ack_at: at(2),
            limited_until: ByteSize::ZERO,
            app_limited_acks: 0,
            echo_acks: 0,
            skipped: bytes(2000),
            skipped_at: at(1),
            duplicated: ByteSize::ZERO,
        }
    }

    /// All has arrived, of which so many bytes were sent again, and so many came twice.
    fn filled(millis: u64, retransmitted: u64, duplicated: u64) -> ProgressReport {
        ProgressReport {
            now: at(millis),
            delivered: bytes(SENT),
            una: START.first + SENT as u32,
            sacked: ByteSize::ZERO,
            sack_end: START.first + SENT as u32,
            retransmitted: bytes(retransmitted),
            duplicated: bytes(duplicated),
            ..hole()
        }
    }

    /// Returns the window after each of these reports; the first is the one before any.
    fn windows(reports: &[ProgressReport]) -> Vec<u64> {
        let mut flow = ObservedFlow::new(&"newreno".parse().unwrap(), &START, 1);
        let mut windows = vec![flow.window().bytes()];
        for report in reports {
            flow.on_report(report);
            windows.push(flow.window().bytes());
        }
        windows
    }

    #[test]
    fn a_loss_is_revoked_if_its_retransmission_has_arrived_twice() {
        let windows = windows(&[hole(), filled(3, 2000, 0), filled(4, 2000, 2000)]);
        assert!(windows[1] < SENT && windows[2] < SENT, "{windows:?}");
        assert!(windows[3] >= SENT, "{windows:?}");
    }

    #[test]
    fn a_loss_is_revoked_if_its_hole_was_filled_without_a_retransmission() {
        let windows = windows(&[hole(), filled(3, 0, 0)]);
        assert!(windows[1] < SENT && windows[2] >= SENT, "{windows:?}");
    }

    #[test]
    fn a_loss_holds_if_a_part_of_its_retransmission_was_needed() {
        let reports = [hole(), filled(3, 2000, 1000), filled(5, 2000, 1000)];
        let windows = windows(&reports);
        assert!(
            windows[1..].iter().all(|window| *window < SENT),
            "{windows:?}"
        );
    }

    #[test]
    fn duplicates_that_come_later_than_a_round_trip_say_nothing() {
        let reports = [
            hole(),
            filled(3, 2000, 0),
            filled(5, 2000, 0),
            filled(6, 2000, 2000),
        ];
        let windows = windows(&reports);
        assert!(
            windows[1..].iter().all(|window| *window < SENT),
            "{windows:?}"
        );
    }

    #[test]
    fn a_loss_that_was_repaired_between_two_reports_counts() {
        assert!(windows(&[filled(2, 2000, 0)])[1] < SENT);
    }

    #[test]
    fn reordering_between_two_reports_is_no_loss() {
        assert!(windows(&[filled(2, 0, 0)])[1] >= SENT);
        assert!(windows(&[filled(2, 2000, 2000)])[1] >= SENT);
    }
}
