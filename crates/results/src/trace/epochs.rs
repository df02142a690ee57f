//! Completion times of a group's epochs.

use std::collections::BTreeMap;

use weir_units::Duration;

use super::COLUMNS;
use crate::EpochRecord;

/// The completion time of each epoch of a group: that of its slowest request. Memory is bounded by
/// the number of epochs, at 16 bytes each.
#[derive(Clone, Debug, Default)]
pub(crate) struct EpochTrace(BTreeMap<u64, Duration>);

/// The epochs of one column of a plot, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EpochColumn {
    /// The first epoch.
    pub(crate) first: u64,
    pub(crate) min: f64,
    pub(crate) mean: f64,
    pub(crate) max: f64,
}

impl EpochTrace {
    pub(super) fn take(&mut self, record: &EpochRecord<'_>) {
        if let Some(took) = record.completion {
            let slowest = self.0.entry(record.epoch).or_default();
            *slowest = took.max(*slowest);
        }
    }

    /// Returns the number of the last epoch, plus one.
    pub(crate) fn end(&self) -> u64 {
        self.0.last_key_value().map_or(0, |(last, _)| last + 1)
    }

    /// Returns the epochs in order, grouped so that there are no more columns than a plot has.
    pub(crate) fn columns(&self, per_step: usize) -> impl Iterator<Item = EpochColumn> {
        let columns = (COLUMNS / per_step.max(1)).max(1) as u64;
        let width = self.end().div_ceil(columns).max(1);
        let mut found: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for (epoch, took) in &self.0 {
            found
                .entry(epoch / width)
                .or_default()
                .push(took.as_secs_f64());
        }
        found.into_iter().map(move |(column, times)| EpochColumn {
            first: column * width,
            min: times.iter().copied().fold(f64::INFINITY, f64::min),
            mean: times.iter().sum::<f64>() / times.len() as f64,
            max: times.iter().copied().fold(0.0, f64::max),
        })
    }
}
