//! Samples for plots, thinned as they arrive, so that memory is bounded.

mod epochs;
mod group;
mod port;
mod transfers;

pub(crate) use epochs::EpochTrace;
pub(crate) use group::{GroupTrace, ThroughputInterval};
pub(crate) use port::PortTrace;
pub(crate) use transfers::TransferTrace;

use indexmap::IndexMap;
use weir_units::{Duration, Time};

use crate::{EpochRecord, FlowRecord, GroupSample, PortSample};

/// The number of columns that divide a run's time: the resolution of a plot on a page.
pub(crate) const COLUMNS: usize = 480;

/// The data that a report plots of one run.
#[derive(Clone, Debug)]
pub struct Traces {
    /// The time that the columns divide.
    pub(crate) span: Duration,
    pub(crate) ports: IndexMap<String, PortTrace>,
    pub(crate) groups: IndexMap<String, GroupTrace>,
    pub(crate) epochs: IndexMap<String, EpochTrace>,
    pub(crate) transfers: IndexMap<String, TransferTrace>,
}

impl Traces {
    /// Returns the traces of a run with this simulated time.
    pub fn new(span: Duration) -> Self {
        Self {
            span: span.max(Duration::from_nanos(1)),
            ports: IndexMap::new(),
            groups: IndexMap::new(),
            epochs: IndexMap::new(),
            transfers: IndexMap::new(),
        }
    }

    /// Adds a sample of a port.
    pub fn port(&mut self, sample: &PortSample<'_>) {
        let column = self.column(sample.time);
        let trace = match self.ports.get_mut(sample.port) {
            Some(trace) => trace,
            None => self.ports.entry(sample.port.to_owned()).or_default(),
        };
        trace.take(column, sample.queue);
    }

    /// Adds a sample of a group. A group's samples must come in order of time.
    pub fn group(&mut self, sample: &GroupSample<'_>) {
        let column = self.column(sample.time);
        let trace = match self.groups.get_mut(sample.group) {
            Some(trace) => trace,
            None => self.groups.entry(sample.group.to_owned()).or_default(),
        };
        trace.take(column, sample.time, sample.counters.delivered);
    }

    /// Adds a request of an epoch.
    pub fn epoch(&mut self, record: &EpochRecord<'_>) {
        let trace = match self.epochs.get_mut(record.group) {
            Some(trace) => trace,
            None => self.epochs.entry(record.group.to_owned()).or_default(),
        };
        trace.take(record);
    }

    /// Adds a flow; one without a size has no completion time.
    pub fn flow(&mut self, record: &FlowRecord<'_>) {
        if record.size.is_none() {
            return;
        }
        let trace = match self.transfers.get_mut(record.group) {
            Some(trace) => trace,
            None => self.transfers.entry(record.group.to_owned()).or_default(),
        };
        trace.take(record);
    }

    /// Returns the column of a time; times after the end are in the last column.
    fn column(&self, time: Time) -> usize {
        let at = u128::from(time.as_nanos()) * COLUMNS as u128 / u128::from(self.span.as_nanos());
        usize::try_from(at).unwrap_or(usize::MAX).min(COLUMNS - 1)
    }
}

#[cfg(test)]
mod tests {
    use weir_counters::FlowCounters;
    use weir_units::{ByteSize, Rate};

    use super::group::ThroughputInterval;
    use super::port::ColumnRange;
    use super::*;
    use crate::Drops;

    fn port(nanos: u64, queue: u64) -> PortSample<'static> {
        PortSample {
            time: Time::from_nanos(nanos),
            port: "p",
            queue: ByteSize::from_bytes(queue),
            queue_packets: 0,
            sent: ByteSize::ZERO,
            marks: 0,
            drops: Drops::default(),
        }
    }

    fn group(nanos: u64, delivered: u64) -> GroupSample<'static> {
        GroupSample {
            time: Time::from_nanos(nanos),
            group: "g",
            counters: FlowCounters {
                delivered: ByteSize::from_bytes(delivered),
                ..FlowCounters::ZERO
            },
            goodput: Rate::ZERO,
            window: None,
        }
    }

    #[test]
    fn a_column_keeps_its_extremes_and_its_mean() {
        let mut traces = Traces::new(Duration::from_nanos(4800));
        for sample in [
            port(0, 10),
            port(5, 40),
            port(9, 1),
            port(4799, 7),
            port(9999, 8),
        ] {
            traces.port(&sample);
        }
        let columns: Vec<_> = traces.ports["p"].columns(1).collect();
        let extent = |min, mean, max| ColumnRange { min, mean, max };
        assert_eq!(
            columns,
            [(0, extent(1, 17.0, 40)), (479, extent(7, 7.5, 8))]
        );
        let coarse: Vec<_> = traces.ports["p"].columns(480).collect();
        assert_eq!(coarse, [(0, extent(1, 13.2, 40))]);
    }

    #[test]
    fn goodput_is_computed_between_samples() {
        let mut traces = Traces::new(Duration::from_secs(48));
        // 1000 bytes in each 10 ms, and nothing after 24 s.
        for number in 0..4800_u64 {
            let delivered = number.min(2400) * 1000;
            traces.group(&group(number * 10_000_000, delivered));
        }
        let stretches: Vec<ThroughputInterval> = traces.groups["g"].goodput(1).collect();
        assert_eq!(stretches.len(), COLUMNS);
        let rate = Rate::from_bits_per_second(800_000);
        for stretch in &stretches {
            let is_early = stretch.end <= Time::from_nanos(24_000_000_000);
            let expected = if is_early { rate } else { Rate::ZERO };
            // The column in which it stops is in between.
            let is_edge = stretch.start < Time::from_nanos(24_000_000_000) && !is_early;
            assert!(is_edge || stretch.rate == expected, "{stretch:?}");
        }
    }

    #[test]
    fn few_samples_give_long_intervals() {
        let mut traces = Traces::new(Duration::from_secs(1));
        for number in 1..=100_u64 {
            traces.group(&group(number * 10_000_000, number));
        }
        assert_eq!(traces.groups["g"].goodput(1).count(), 25);
        assert_eq!(traces.groups["g"].goodput(100).count(), 5);
        assert_eq!(Traces::new(Duration::ZERO).span, Duration::from_nanos(1));
    }
}
