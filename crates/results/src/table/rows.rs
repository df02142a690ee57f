//! The columns of the tables.

use weir_counters::FlowCounters;
use weir_units::{ByteSize, Duration, Rate, Time};

use super::Row;
use super::column::Cell;
use crate::summary::slowdown;
use crate::{Drops, EpochRecord, FlowRecord, GroupSample, PortSample, Ratio};

impl Row for FlowRecord<'_> {
    const BLANK: Self = Self {
        group: "",
        index: 0,
        source: "",
        destination: "",
        start: Time::ZERO,
        end: None,
        size: None,
        ideal: None,
        counters: FlowCounters::ZERO,
        goodput: Rate::ZERO,
        smoothed_rtt: None,
        min_rtt: None,
    };

    fn cells(&self) -> impl Iterator<Item = (&'static str, Cell<'_>)> {
        let completion = self.end.map(|end| end.since(self.start));
        let slowdown = completion
            .zip(self.ideal)
            .and_then(|(took, ideal)| slowdown(took, ideal));
        let counters = self
            .counters
            .columns()
            .map(|(name, value)| (name, count(value)));
        // Place the goodput next to the bytes from which it is computed.
        let [delivered, others @ ..] = counters;
        let flow = [
            ("group", Cell::Text(Some(self.group))),
            ("index", count(self.index)),
            ("source", Cell::Text(Some(self.source))),
            ("destination", Cell::Text(Some(self.destination))),
            ("start_s", time(self.start)),
            ("end_s", Cell::Number(self.end.map(since_start))),
            ("completion_s", span(completion)),
            ("ideal_s", span(self.ideal)),
            ("slowdown", Cell::Number(slowdown.map(Ratio::value))),
            ("size_bytes", size(self.size)),
            delivered,
            ("goodput_bps", count(self.goodput.bits_per_second())),
        ];
        let round_trips = [
            ("srtt_s", span(self.smoothed_rtt)),
            ("min_rtt_s", span(self.min_rtt)),
        ];
        flow.into_iter().chain(others).chain(round_trips)
    }
}

impl Row for EpochRecord<'_> {
    const BLANK: Self = Self {
        group: "",
        index: 0,
        epoch: 0,
        start: Time::ZERO,
        completion: None,
        attempts: 0,
    };

    fn cells(&self) -> impl Iterator<Item = (&'static str, Cell<'_>)> {
        [
            ("group", Cell::Text(Some(self.group))),
            ("index", count(self.index)),
            ("epoch", count(self.epoch)),
            ("start_s", time(self.start)),
            ("completion_s", span(self.completion)),
            ("attempts", count(self.attempts)),
        ]
        .into_iter()
    }
}

/// A row of `samples.parquet`, of a port or of a group; the columns of the other kind are empty.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sample<'a> {
    /// Of a port.
    Port(PortSample<'a>),
    /// Of a group of flows.
    Group(GroupSample<'a>),
}

impl Row for Sample<'_> {
    const BLANK: Self = Self::Group(GroupSample {
        time: Time::ZERO,
        group: "",
        counters: FlowCounters::ZERO,
        goodput: Rate::ZERO,
        window: None,
    });

    fn cells(&self) -> impl Iterator<Item = (&'static str, Cell<'_>)> {
        let (port, group) = match self {
            Self::Port(port) => (Some(port), None),
            Self::Group(group) => (None, Some(group)),
        };
        let at = port.map(|port| port.time).or(group.map(|group| group.time));
        let of_port = |value: fn(&PortSample<'_>) -> u64| Cell::Count(port.map(|port| value(port)));
        let of_group =
            |value: fn(&GroupSample<'_>) -> u64| Cell::Count(group.map(|group| value(group)));
        [
            ("time_s", Cell::Number(at.map(since_start))),
            ("port", Cell::Text(port.map(|port| port.port))),
            ("group", Cell::Text(group.map(|group| group.group))),
            ("queue_bytes", of_port(|port| port.queue.bytes())),
            ("queue_packets", of_port(|port| port.queue_packets)),
            ("sent_bytes", of_port(|port| port.sent.bytes())),
            ("marks", of_port(|port| port.marks)),
            ("drops_red", of_port(|port| port.drops.red)),
            ("drops_tail", of_port(|port| port.drops.tail)),
            ("drops_buffer", of_port(|port| port.drops.buffer)),
            ("drops_other", of_port(|port| other(&port.drops))),
            (
                "delivered_bytes",
                of_group(|group| group.counters.delivered.bytes()),
            ),
            (
                "goodput_bps",
                of_group(|group| group.goodput.bits_per_second()),
            ),
            ("retransmits", of_group(|group| group.counters.retransmits)),
            ("timeouts", of_group(|group| group.counters.timeouts)),
            ("window_bytes", size(group.and_then(|group| group.window))),
        ]
        .into_iter()
    }
}

/// Returns the number of drops that no queue decided on arrival.
fn other(drops: &Drops) -> u64 {
    let by_queue = [drops.red, drops.tail, drops.buffer];
    let by_queue = by_queue.into_iter().fold(0, u64::saturating_add);
    drops.total().saturating_sub(by_queue)
}

fn count(count: u64) -> Cell<'static> {
    Cell::Count(Some(count))
}

fn size(size: Option<ByteSize>) -> Cell<'static> {
    Cell::Count(size.map(ByteSize::bytes))
}

fn time(time: Time) -> Cell<'static> {
    Cell::Number(Some(since_start(time)))
}

fn since_start(time: Time) -> f64 {
    seconds(time.since(Time::ZERO))
}

fn span(span: Option<Duration>) -> Cell<'static> {
    Cell::Number(span.map(seconds))
}

fn seconds(span: Duration) -> f64 {
    span.as_nanos() as f64 / 1e9
}
