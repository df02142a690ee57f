//! A group's goodput over time.

use weir_units::{ByteSize, Rate, Time};

use super::COLUMNS;

/// The minimum number of samples for a rate; with fewer, which may be close together, it is mostly
/// noise.
const SAMPLES_PER_STRETCH: u64 = 4;

/// The last sample of each column.
#[derive(Clone, Debug)]
pub(crate) struct GroupTrace(Vec<Option<Last>>);

#[derive(Clone, Copy, Debug)]
struct Last {
    time: Time,
    delivered: ByteSize,
    samples: u64,
}

/// An interval of time and its goodput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThroughputInterval {
    pub(crate) start: Time,
    pub(crate) end: Time,
    pub(crate) rate: Rate,
}

impl Default for GroupTrace {
    fn default() -> Self {
        Self(vec![None; COLUMNS])
    }
}

impl GroupTrace {
    pub(super) fn take(&mut self, column: usize, time: Time, delivered: ByteSize) {
        if let Some(last) = self.0.get_mut(column) {
            let samples = last.map_or(0, |last| last.samples) + 1;
            *last = Some(Last {
                time,
                delivered,
                samples,
            });
        }
    }

    /// Returns the goodput from the start of the run to the last sample, in intervals of `per_step`
    /// columns or more.
    pub(crate) fn goodput(&self, per_step: usize) -> impl Iterator<Item = ThroughputInterval> {
        let mut from = (Time::ZERO, ByteSize::ZERO);
        let mut samples = 0;
        self.0.chunks(per_step.max(1)).filter_map(move |columns| {
            let in_step = || columns.iter().flatten();
            let last = in_step().next_back()?;
            samples += in_step().map(|last| last.samples).sum::<u64>();
            let (start, delivered) = from;
            if samples < SAMPLES_PER_STRETCH || last.time <= start {
                return None;
            }
            samples = 0;
            from = (last.time, last.delivered);
            Some(ThroughputInterval {
                start,
                end: last.time,
                rate: Rate::from_size_over(last.delivered - delivered, last.time.since(start)),
            })
        })
    }
}
