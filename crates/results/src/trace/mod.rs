//! Samples for plots, thinned as they arrive, so that memory is bounded.

mod counter;
mod epochs;
mod gauge;
mod transfers;

pub(crate) use counter::{CounterTrace, Rates};
pub(crate) use epochs::EpochTrace;
pub(crate) use gauge::GaugeTrace;
pub(crate) use transfers::TransferTrace;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use indexmap::IndexMap;
use weir_units::{Duration, Time};

use crate::{EpochRecord, FlowRecord, FlowSample, GroupSample, PortSample};

/// The number of columns that divide a run's time: the resolution of a plot on a page.
pub(crate) const COLUMNS: usize = 480;

/// A port over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct PortTrace {
    /// The queue's length in bytes.
    pub(crate) queue: GaugeTrace,
    /// Packets marked, and packets dropped for whatever reason.
    pub(crate) marks_and_drops: CounterTrace<2>,
}

/// A group over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupTrace {
    /// Bytes delivered.
    pub(crate) delivered: CounterTrace<1>,
    /// The mean congestion window of the open flows, in bytes.
    pub(crate) window: GaugeTrace,
}

/// A flow over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowTrace {
    /// Bytes delivered.
    pub(crate) delivered: CounterTrace<1>,
    /// The congestion window in bytes.
    pub(crate) window: GaugeTrace,
    /// The smoothed round-trip time in nanoseconds.
    pub(crate) rtt: GaugeTrace,
    /// The last sample's time and bytes.
    last: (Time, u64),
}

/// The data that a report plots of one run.
#[derive(Clone, Debug)]
pub struct Traces {
    /// The time that the columns divide.
    pub(crate) span: Duration,
    pub(crate) ports: IndexMap<String, PortTrace>,
    pub(crate) groups: IndexMap<String, GroupTrace>,
    pub(crate) epochs: IndexMap<String, EpochTrace>,
    pub(crate) transfers: IndexMap<String, TransferTrace>,
    /// The flows of each group that were sampled, by their index.
    pub(crate) flows: IndexMap<String, BTreeMap<u64, FlowTrace>>,
}

impl FlowTrace {
    /// Returns the mean goodput until the last sample, in bits per second.
    pub(crate) fn mean_goodput(&self) -> f64 {
        let (time, delivered) = self.last;
        let span = time.since(Time::ZERO).as_secs_f64();
        if span > 0.0 {
            8.0 * delivered as f64 / span
        } else {
            0.0
        }
    }
}

impl Traces {
    /// The most flows that are plotted one by one.
    pub(crate) const SAMPLED_FLOWS: usize = 64;

    /// Returns the traces of a run with this simulated time.
    pub fn new(span: Duration) -> Self {
        Self {
            span: span.max(Duration::from_nanos(1)),
            ports: IndexMap::new(),
            groups: IndexMap::new(),
            epochs: IndexMap::new(),
            transfers: IndexMap::new(),
            flows: IndexMap::new(),
        }
    }

    /// Adds a sample of a port. A port's samples must come in order of time.
    pub fn port(&mut self, sample: &PortSample<'_>) {
        let column = self.column(sample.time);
        let trace = match self.ports.get_mut(sample.port) {
            Some(trace) => trace,
            None => self.ports.entry(sample.port.to_owned()).or_default(),
        };
        trace.queue.take(column, sample.queue.bytes());
        let drops = sample
            .drops
            .by_reason()
            .iter()
            .map(|(_, count)| count)
            .sum();
        let counts = [sample.marks, drops];
        trace.marks_and_drops.take(column, sample.time, counts);
    }

    /// Adds a sample of a group. A group's samples must come in order of time.
    pub fn group(&mut self, sample: &GroupSample<'_>) {
        let column = self.column(sample.time);
        let trace = match self.groups.get_mut(sample.group) {
            Some(trace) => trace,
            None => self.groups.entry(sample.group.to_owned()).or_default(),
        };
        let delivered = sample.counters.delivered.bytes();
        trace.delivered.take(column, sample.time, [delivered]);
        if let Some(window) = sample.window {
            trace.window.take(column, window.bytes());
        }
    }

    /// Adds a request of an epoch.
    pub fn epoch(&mut self, record: &EpochRecord<'_>) {
        let trace = match self.epochs.get_mut(record.group) {
            Some(trace) => trace,
            None => self.epochs.entry(record.group.to_owned()).or_default(),
        };
        trace.take(record);
    }

    /// Adds a sample of a flow, of which the first [`SAMPLED_FLOWS`](Self::SAMPLED_FLOWS) are kept. A flow's
    /// samples must come in order of time.
    pub(crate) fn flow_sample(&mut self, sample: &FlowSample<'_>) {
        let column = self.column(sample.time);
        let known: usize = self.flows.values().map(BTreeMap::len).sum();
        let group = match self.flows.get_mut(sample.group) {
            Some(group) => group,
            None if known >= Self::SAMPLED_FLOWS => return,
            None => self.flows.entry(sample.group.to_owned()).or_default(),
        };
        let trace = match group.entry(sample.index) {
            Entry::Occupied(trace) => trace.into_mut(),
            Entry::Vacant(_) if known >= Self::SAMPLED_FLOWS => return,
            Entry::Vacant(place) => place.insert(FlowTrace::default()),
        };
        let delivered = sample.counters.delivered.bytes();
        trace.last = (sample.time, delivered);
        trace.delivered.take(column, sample.time, [delivered]);
        if let Some(window) = sample.window {
            trace.window.take(column, window.bytes());
        }
        if let Some(rtt) = sample.smoothed_rtt {
            trace.rtt.take(column, rtt.as_nanos());
        }
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

    use super::gauge::ColumnRange;
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
        let columns: Vec<_> = traces.ports["p"].queue.columns(1).collect();
        let extent = |min, mean, max| ColumnRange { min, mean, max };
        assert_eq!(
            columns,
            [(0, extent(1, 17.0, 40)), (479, extent(7, 7.5, 8))]
        );
        let coarse: Vec<_> = traces.ports["p"].queue.columns(480).collect();
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
        let stretches: Vec<Rates<1>> = traces.groups["g"].delivered.rates(1).collect();
        assert_eq!(stretches.len(), COLUMNS);
        for stretch in &stretches {
            let is_early = stretch.end <= Time::from_nanos(24_000_000_000);
            let expected = if is_early { 100_000.0 } else { 0.0 };
            // The column in which it stops is in between.
            let is_edge = stretch.start < Time::from_nanos(24_000_000_000) && !is_early;
            let is_expected = (stretch.per_second[0] - expected).abs() < 1e-3;
            assert!(is_edge || is_expected, "{stretch:?}");
        }
    }

    #[test]
    fn marks_and_drops_are_rates_and_windows_have_extremes() {
        let mut traces = Traces::new(Duration::from_secs(1));
        for number in 1..=1000_u64 {
            traces.port(&PortSample {
                marks: 2 * number,
                drops: Drops {
                    tail: number,
                    buffer: number,
                    ..Drops::default()
                },
                ..port(number * 1_000_000, 0)
            });
            traces.group(&GroupSample {
                window: (number > 500).then(|| ByteSize::from_bytes(number)),
                ..group(number * 1_000_000, 0)
            });
        }
        for rates in traces.ports["p"].marks_and_drops.rates(4) {
            let [marks, drops] = rates.per_second;
            assert!((marks - 2000.0).abs() < 1.0 && (drops - 2000.0).abs() < 1.0);
        }
        let windows: Vec<_> = traces.groups["g"].window.columns(240).collect();
        let half = |min, mean, max| ColumnRange { min, mean, max };
        assert_eq!(windows, [(1, half(501, 750.5, 1000))]);
    }

    #[test]
    fn the_first_flows_are_kept() {
        let mut traces = Traces::new(Duration::from_secs(1));
        for number in 1..=100_u64 {
            for (group, index) in [("a", 0), ("b", number)] {
                traces.flow_sample(&FlowSample {
                    time: Time::from_nanos(number * 10_000_000),
                    group,
                    index,
                    source: "s",
                    destination: "d",
                    counters: FlowCounters {
                        delivered: ByteSize::from_bytes(number * 1_000),
                        ..FlowCounters::ZERO
                    },
                    window: Some(ByteSize::from_bytes(number)),
                    smoothed_rtt: None,
                });
            }
        }
        assert_eq!((traces.flows["a"].len(), traces.flows["b"].len()), (1, 63));
        let flow = &traces.flows["a"][&0];
        assert_eq!(flow.mean_goodput(), 800_000.0);
        assert_eq!(flow.window.columns(1).count(), 100);
        assert_eq!(flow.rtt.columns(1).count(), 0);
    }

    #[test]
    fn few_samples_give_long_intervals() {
        let mut traces = Traces::new(Duration::from_secs(1));
        for number in 1..=100_u64 {
            traces.group(&group(number * 10_000_000, number));
        }
        assert_eq!(traces.groups["g"].delivered.rates(1).count(), 25);
        assert_eq!(traces.groups["g"].delivered.rates(100).count(), 5);
        assert_eq!(Traces::new(Duration::ZERO).span, Duration::from_nanos(1));
    }
}
