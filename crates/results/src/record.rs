//! What is written row by row while a run goes on.

use weir_counters::FlowCounters;
use weir_units::{ByteSize, Duration, Rate, Time};

use crate::Drops;

/// One flow, as it was at the end of the run: a row of `flows.parquet`.
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
    /// When it started.
    pub start: Time,
    /// When all that it had to carry had arrived; `None` for a flow without end, or cut off by the end
    /// of the run.
    pub end: Option<Time>,
    /// What it had to carry; `None` for a flow without end.
    pub size: Option<ByteSize>,
    /// What it counted over the whole run, with the warm-up, both ends together.
    pub counters: FlowCounters,
    /// What arrived per time after the warm-up, or of a flow that ended, from start to end.
    pub goodput: Rate,
    /// The smoothed round-trip time at the end, if there was a sample.
    pub smoothed_rtt: Option<Duration>,
    /// The shortest round-trip time, if there was a sample.
    pub min_rtt: Option<Duration>,
}

/// One request of a flow whose requests are in step: a row of `epochs.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochRecord<'a> {
    /// Its group's name.
    pub group: &'a str,
    /// The flow's number within the group, from 0.
    pub index: u64,
    /// The epoch's number, from 0.
    pub epoch: u64,
    /// When the epoch began.
    pub start: Time,
    /// How long the request took, until the last byte of the response; `None` for one that was given
    /// up.
    pub completion: Option<Duration>,
    /// How many connections it was made on: one, unless a time-out of the application's made it open
    /// another.
    pub attempts: u64,
}

/// A port at one moment: a row of `samples.parquet`. Counters have run since the start of the run and
/// go on through the warm-up, so that any two rows tell what happened between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSample<'a> {
    /// The moment.
    pub time: Time,
    /// The port's name.
    pub port: &'a str,
    /// The queue's length in IP bytes.
    pub queue: ByteSize,
    /// The queue's length in packets.
    pub queue_packets: u64,
    /// IP bytes that have left.
    pub sent: ByteSize,
    /// Packets that the queue has marked.
    pub marks: u64,
    /// Packets that have been dropped.
    pub drops: Drops,
}

/// A group of flows at one moment: a row of `samples.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSample<'a> {
    /// The moment.
    pub time: Time,
    /// The group's name.
    pub group: &'a str,
    /// What its flows have counted together since the start of the run; the end of the warm-up changes
    /// nothing.
    pub counters: FlowCounters,
    /// What arrived since the group's previous sample, per time.
    pub goodput: Rate,
    /// The flows' congestion windows, averaged over those that are open; `None` if none is, or if
    /// they have no window.
    pub window: Option<ByteSize>,
}
