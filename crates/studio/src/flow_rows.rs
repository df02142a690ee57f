//! Flows as rows of the page's table.

use serde::Serialize;
use weir_results::{FlowRecord, FlowSample};
use weir_units::{ByteSize, Duration, Rate, Time};

/// A flow: seconds, bytes, bits per second.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FlowRow {
    name: String,
    source: String,
    destination: String,
    /// None where it is not known.
    started: Option<f64>,
    delivered: u64,
    pub(crate) goodput: u64,
    window: Option<u64>,
    rtt: Option<f64>,
    marks: u64,
    retransmitted: u64,
    timeouts: u64,
}

impl FlowRow {
    pub(crate) fn of(record: &FlowRecord<'_>, window: Option<ByteSize>) -> Self {
        Self {
            name: format!("{}/{}", record.group, record.index),
            source: record.source.to_owned(),
            destination: record.destination.to_owned(),
            started: Some(record.start.since(Time::ZERO).as_secs_f64()),
            delivered: record.counters.delivered.bytes(),
            goodput: record.goodput.bits_per_second(),
            window: window.map(ByteSize::bytes),
            rtt: record.smoothed_rtt.map(Duration::as_secs_f64),
            marks: record.counters.marks,
            retransmitted: record.counters.retransmitted.bytes(),
            timeouts: record.counters.timeouts,
        }
    }

    /// Makes the row of a flow that was sampled, with its goodput so far.
    pub(crate) fn of_sample(sample: &FlowSample<'_>, goodput: Rate) -> Self {
        Self {
            name: format!("{}/{}", sample.group, sample.index),
            source: sample.source.to_owned(),
            destination: sample.destination.to_owned(),
            started: None,
            delivered: sample.counters.delivered.bytes(),
            goodput: goodput.bits_per_second(),
            window: sample.window.map(ByteSize::bytes),
            rtt: sample.smoothed_rtt.map(Duration::as_secs_f64),
            marks: sample.counters.marks,
            retransmitted: sample.counters.retransmitted.bytes(),
            timeouts: sample.counters.timeouts,
        }
    }

    /// Whether its name, or that of one of its hosts, contains this text.
    pub(crate) fn matches(&self, search: &str) -> bool {
        let mut names = [&self.name, &self.source, &self.destination].into_iter();
        search.is_empty() || names.any(|name| name.contains(search))
    }
}
