//! Counters that only grow, and their rates over time.

use weir_units::Time;

use super::COLUMNS;

/// The minimum number of samples for a rate; with fewer, which may be close together, it is mostly
/// noise.
const SAMPLES_PER_STRETCH: u64 = 4;

/// The last sample of `N` counters in each column.
#[derive(Clone, Debug)]
pub(crate) struct CounterTrace<const N: usize>(Vec<Option<Last<N>>>);

#[derive(Clone, Copy, Debug)]
struct Last<const N: usize> {
    time: Time,
    counts: [u64; N],
    samples: u64,
}

/// An interval of time, and how much each counter grew per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rates<const N: usize> {
    pub(crate) start: Time,
    pub(crate) end: Time,
    pub(crate) per_second: [f64; N],
}

impl<const N: usize> Default for CounterTrace<N> {
    fn default() -> Self {
        Self(vec![None; COLUMNS])
    }
}

impl<const N: usize> CounterTrace<N> {
    pub(super) fn take(&mut self, column: usize, time: Time, counts: [u64; N]) {
        if let Some(last) = self.0.get_mut(column) {
            let samples = last.map_or(0, |last| last.samples) + 1;
            *last = Some(Last {
                time,
                counts,
                samples,
            });
        }
    }

    /// Returns the rates from the start of the run to the last sample, in intervals of `per_step`
    /// columns or more.
    pub(crate) fn rates(&self, per_step: usize) -> impl Iterator<Item = Rates<N>> {
        let mut from = (Time::ZERO, [0; N]);
        let mut samples = 0;
        self.0.chunks(per_step.max(1)).filter_map(move |columns| {
            let in_step = || columns.iter().flatten();
            let last = in_step().next_back()?;
            samples += in_step().map(|last| last.samples).sum::<u64>();
            let (start, before) = from;
            if samples < SAMPLES_PER_STRETCH || last.time <= start {
                return None;
            }
            samples = 0;
            from = (last.time, last.counts);
            let span = last.time.since(start).as_secs_f64();
            let grown = |index: usize| last.counts[index].saturating_sub(before[index]) as f64;
            Some(Rates {
                start,
                end: last.time,
                per_second: std::array::from_fn(|index| grown(index) / span),
            })
        })
    }
}

impl<const N: usize> Rates<N> {
    /// Returns the middle of the interval in seconds.
    pub(crate) fn middle(&self) -> f64 {
        let seconds = |time: Time| time.since(Time::ZERO).as_secs_f64();
        (seconds(self.start) + seconds(self.end)) / 2.0
    }
}
