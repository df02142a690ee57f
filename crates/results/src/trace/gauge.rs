//! A value that goes up and down: the least, the mean and the greatest of its samples by column.

use super::COLUMNS;

/// The samples of a value by column.
#[derive(Clone, Debug)]
pub(crate) struct GaugeTrace(Vec<Samples>);

#[derive(Clone, Copy, Debug, Default)]
struct Samples {
    count: u64,
    sum: f64,
    min: u64,
    max: u64,
}

/// The samples of one column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ColumnRange {
    pub(crate) min: u64,
    pub(crate) mean: f64,
    pub(crate) max: u64,
}

impl Default for GaugeTrace {
    fn default() -> Self {
        Self(vec![Samples::default(); COLUMNS])
    }
}

impl GaugeTrace {
    pub(super) fn take(&mut self, column: usize, value: u64) {
        if let Some(samples) = self.0.get_mut(column) {
            *samples = samples.with(Samples {
                count: 1,
                sum: value as f64,
                min: value,
                max: value,
            });
        }
    }

    /// Returns the columns with samples, `per_step` of them combined: number and range.
    pub(crate) fn columns(&self, per_step: usize) -> impl Iterator<Item = (usize, ColumnRange)> {
        let steps = self.0.chunks(per_step.max(1)).enumerate();
        steps.filter_map(|(step, columns)| {
            let samples = columns.iter().copied().reduce(Samples::with)?;
            let range = ColumnRange {
                min: samples.min,
                mean: samples.sum / samples.count as f64,
                max: samples.max,
            };
            (samples.count > 0).then_some((step, range))
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
