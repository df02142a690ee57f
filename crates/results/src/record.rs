//! The records that a run writes row by row.

use weir_counters::FlowCounters;
use weir_units::{ByteSize, Duration, Rate, Time};

use crate::Drops;

/// The state of one flow at the end of the run: a row of `flows.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRecord<'a> {
    /// Its group's name.
    pub group: &'a str,
    /// Its number within the group, from 0.
    pub index: u64,
    /// The sending host's name.
    pub source: &'a str,
    /// The receiving host's name.
    pub destination: &'a str,
    /// The time it started.
    pub start: Time,
    /// The time at which all of its data had arrived; `None` for an endless flow, or one cut off by
    /// the end of the run.
    pub end: Option<Time>,
    /// The size of its data; `None` for an endless flow.
    pub size: Option<ByteSize>,
    /// The time that its data would take on the empty network; `None` for an endless flow, and where it is not
    /// computed.
    pub ideal: Option<Duration>,
    /// Its counters over the whole run, warm-up included, both ends together.
    pub counters: FlowCounters,
    /// Its delivered bytes per time after the warm-up; for a flow that ended, from start to end.
    pub goodput: Rate,
    /// The smoothed round-trip time at the end, if any was sampled.
    pub smoothed_rtt: Option<Duration>,
    /// The minimum round-trip time, if any was sampled.
    pub min_rtt: Option<Duration>,
}

/// One request of a flow with synchronized requests: a row of `epochs.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochRecord<'a> {
    /// Its group's name.
    pub group: &'a str,
    /// The flow's number within the group, from 0.
    pub index: u64,
    /// The epoch's number, from 0.
    pub epoch: u64,
    /// The start of the epoch.
    pub start: Time,
    /// The duration of the request, until the last byte of the response; `None` for an abandoned
    /// request.
    pub completion: Option<Duration>,
    /// The number of connections used: one, unless an application time-out made it open another.
    pub attempts: u64,
}

/// A port's sample at one time: a row of `samples.parquet`. The counters start at zero at the start
/// of the run and include the warm-up, so the difference of two rows is the activity between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSample<'a> {
    /// The time of the sample.
    pub time: Time,
    /// The port's name.
    pub port: &'a str,
    /// The queue's length in IP bytes.
    pub queue: ByteSize,
    /// The queue's length in packets.
    pub queue_packets: u64,
    /// IP bytes sent.
    pub sent: ByteSize,
    /// Packets marked by the queue.
    pub marks: u64,
    /// Packets dropped.
    pub drops: Drops,
}

/// A group's sample at one time: a row of `samples.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSample<'a> {
    /// The time of the sample.
    pub time: Time,
    /// The group's name.
    pub group: &'a str,
    /// The sum of its flows' counters since the start of the run, warm-up included.
    pub counters: FlowCounters,
    /// The delivered bytes per time since the group's previous sample.
    pub goodput: Rate,
    /// The mean congestion window of the open flows; `None` if no flow is open, or if they have no
    /// window.
    pub window: Option<ByteSize>,
}

/// The state of one open flow at one time. No table has it: the page of a run draws it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSample<'a> {
    /// The time of the sample.
    pub time: Time,
    /// Its group's name.
    pub group: &'a str,
    /// Its number within the group, from 0.
    pub index: u64,
    /// The name of its sender.
    pub source: &'a str,
    /// The name of its receiver.
    pub destination: &'a str,
    /// The counters since its start.
    pub counters: FlowCounters,
    /// Its congestion window; `None` if it has none.
    pub window: Option<ByteSize>,
    /// The smoothed round-trip time; `None` without a sample of it.
    pub smoothed_rtt: Option<Duration>,
}
