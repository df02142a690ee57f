//! What controlled flows did in the last seconds, for comparison with other hosts.

use std::hash::{BuildHasher as _, RandomState};

use weir_canary::{ConnectionRecord, ConnectionState, GroupStatistics, RuleId, Snapshot};
use weir_policy::Group;
use weir_tcon::FlowReport;
use weir_units::{Duration, Time};

/// The longest span of which figures can be asked for.
const LONGEST_SPAN: Duration = Duration::from_secs(600);

/// The statistics of flows that have opened under the policy in force. Flows that opened before keep the policy
/// before, and are left out.
#[derive(Debug)]
pub(crate) struct FlowMeasurement {
    all: GroupStatistics,
    /// When the policy was put in force.
    since: Time,
    numbers: RandomState,
}

impl FlowMeasurement {
    /// Begins with a policy that is put in force now.
    pub(crate) fn new(now: Time) -> Self {
        Self {
            all: GroupStatistics::new(LONGEST_SPAN),
            since: now,
            numbers: RandomState::new(),
        }
    }

    /// Takes in what flows have done so far, which go on.
    pub(crate) fn note_open(&mut self, now: Time, reports: impl Iterator<Item = FlowReport>) {
        for report in reports {
            self.note(now, &report, ConnectionState::Open);
        }
        self.all.forget_old(now);
    }

    /// Takes in what a flow has done, which ends now.
    pub(crate) fn note_completed(&mut self, now: Time, report: &FlowReport) {
        self.note(now, report, ConnectionState::Completed);
    }

    /// Returns what flows did in the last span.
    pub(crate) fn snapshot(&self, now: Time, span: Duration) -> Snapshot {
        self.all.snapshot_of_last(now, span)
    }

    fn note(&mut self, now: Time, report: &FlowReport, state: ConnectionState) {
        if report.age <= now.since(self.since) {
            let connection = self.numbers.hash_one(report.flow);
            self.all.record(now, &record(report, connection, state));
        }
    }
}

/// Returns the record of a flow. Data that was sent again is retransmitted, by the sender or here; the rest is
/// what the receiver has, in segments of the largest size.
fn record(report: &FlowReport, connection: u64, state: ConnectionState) -> ConnectionRecord {
    let counters = &report.counters;
    let segments = |bytes: u64| bytes.div_ceil(report.segment_size.bytes().max(1));
    let retransmitted = segments((counters.sent_again + counters.masked).bytes());
    ConnectionRecord {
        rule: RuleId(0),
        group: Group::Treated,
        connection,
        segments_sent: segments(counters.delivered.bytes()) + retransmitted,
        segments_retransmitted: retransmitted,
        rtt_smoothed: (!report.rtt.is_zero()).then_some(report.rtt),
        rtt_min: report.rtt_min,
        delivery_rate: report.measured_rate,
        duration: report.age,
        delivered: counters.delivered,
        state,
    }
}
