//! Completion times of a group's transfers.

use weir_units::{Duration, Time};

use crate::FlowRecord;

/// The transfers of a group: 16 bytes each.
#[derive(Clone, Debug, Default)]
pub(crate) struct TransferTrace {
    /// When each complete transfer ended, and how long it took.
    complete: Vec<(Time, Duration)>,
    unfinished: u64,
}

impl TransferTrace {
    pub(super) fn take(&mut self, flow: &FlowRecord<'_>) {
        match flow.end {
            Some(end) => self.complete.push((end, end.since(flow.start))),
            None => self.unfinished += 1,
        }
    }

    /// Returns the completion times of transfers that ended at `from` or later, ascending, and the number of
    /// unfinished ones.
    pub(crate) fn since(&self, from: Time) -> (Vec<Duration>, u64) {
        let measured = self.complete.iter().filter(|(end, _)| *end >= from);
        let mut times: Vec<Duration> = measured.map(|(_, took)| *took).collect();
        times.sort_unstable();
        (times, self.unfinished)
    }
}
