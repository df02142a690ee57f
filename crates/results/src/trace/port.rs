//! A queue's length over time.

use weir_units::ByteSize;

use super::COLUMNS;

/// The samples of a port's queue by column.
#[derive(Clone, Debug)]
pub(crate) struct PortTrace(Vec<Samples>);

#[derive(Clone, Copy, Debug, Default)]
struct Samples {
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// The samples of one column, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ColumnRange {
    pub(crate) min: u64,
    pub(crate) mean: f64,
    pub(crate) max: u64,
}

impl Default for PortTrace {
    fn default() -> Self {
        Self(vec![Samples::default(); COLUMNS])
    }
}

impl PortTrace {
    pub(super) fn take(&mut self, column: usize, queue: ByteSize) {
        let queue = queue.bytes();
        if let Some(samples) = self.0.get_mut(column) {
            *samples = samples.with(Samples {
                count: 1,
                sum: queue.into(),
                min: queue,
                max: queue,
            });
        }
    }

    /// Returns the columns with samples, `per_step` of them combined: number and range.
    pub(crate) fn columns(&self, per_step: usize) -> impl Iterator<Item = (usize, ColumnRange)> {
        let steps = self.0.chunks(per_step.max(1)).enumerate();
        steps.filter_map(|(step, columns)| {
            let samples = columns.iter().copied().reduce(Samples::with)?;
            let extent = ColumnRange {
                min: samples.min,
                mean: samples.sum as f64 / samples.count as f64,
                max: samples.max,
            };
            (samples.count > 0).then_some((step, extent))
        })
    }
}

impl Samples {
    fn with(self, other: Self) -> Self {
        match (self.count, other.count) {
            (0, _) => other,
            (_, 0) => self,
            _ => Self {
                count: self.count + other.count,
                sum: self.sum + other.sum,
                min: self.min.min(other.min),
                max: self.max.max(other.max),
            },
        }
    }
}
