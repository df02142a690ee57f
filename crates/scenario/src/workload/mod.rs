//! Workloads: the data that a group's flows carry, and its times.

mod cdf_file;
mod distribution;
mod known;
mod read;
mod trace;

use serde::{Deserialize, Serialize};
use weir_scenario_derive::{Keys, Word};
use weir_units::{ByteSize, Duration, Rate};

use crate::schema::Accepts;
use crate::{HostIndex, Topology};

pub(crate) use cdf_file::CdfFile;
pub use distribution::Distribution;
pub(crate) use read::{MOST_EPOCHS, WrittenLoad};
use trace::TraceKeys;
pub use trace::{Trace, TraceFlow};

/// The workload of a group's flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Keys)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[keys(title = "[groups.NAME.workload]", context = WorkloadContext<'_>, check = table.check(fields))]
pub enum Workload {
    /// Each flow always has data to send. Short: `workload = "bulk"`.
    Bulk,
    /// Each flow sends packets at a constant rate. With TCP the application writes at that rate.
    Cbr {
        /// The rate of each flow in IP bytes, headers included.
        rate: Rate,
        /// The IP length of each packet. With TCP, of each write: the data and the headers of its
        /// segments, which may be several.
        #[key(
            accepts = Accepts::Size(ByteSize::from_bytes(64), ByteSize::from_bytes(1 << 30)),
            absent = "the smallest MTU of all links",
            by = Ok(fields.optional("packet")?.unwrap_or(context.topology.smallest_mtu()))
        )]
        packet: ByteSize,
        /// Whether packets leave at equal intervals or as a Poisson process.
        #[key(default = "regular")]
        arrivals: Arrivals,
    },
    /// Each flow sends an amount of data from its start, and closes. With `rounds` it repeats this,
    /// each time as a new flow.
    Transfer {
        /// The amount that each flow sends.
        #[key(accepts = Accepts::SIZE)]
        size: ByteSize,
        /// The number of transfers.
        #[key(accepts = Accepts::Count(1, 1_000_000), default = 1)]
        #[serde(default = "once", skip_serializing_if = "is_once")]
        rounds: u32,
        /// The time from the beginning of one round to the beginning of the next, even if the round
        /// is not over; each flow starts within the group's `start_within` from then.
        #[key(accepts = Accepts::POSITIVE_SPAN, absent = "there is one round")]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interval: Option<Duration>,
    },
    /// Each host of `to` sends a request to all hosts of `from` at once, waits until all have
    /// responded, and repeats. Connections stay open. Each receiver's first request leaves at
    /// `start`, or at a random time within `start_within`.
    Incast {
        /// The size of each flow's response.
        #[key(accepts = Accepts::SIZE)]
        response: ByteSize,
        /// The number of requests of each receiver.
        #[key(accepts = Accepts::Count(1, 1_000_000), default = 1)]
        rounds: u32,
        /// The time that a receiver waits after the last response before the next request.
        #[key(accepts = Accepts::SPAN, default = "0s")]
        pause: Duration,
        /// Each sender begins its response at a random time within this span.
        #[key(accepts = Accepts::SPAN, default = "0s")]
        spread: Duration,
    },
    /// Each flow's `from` host sends a request, waits for the response and a pause, and sends the next
    /// request.
    RequestResponse {
        /// The size of a request.
        #[key(accepts = Accepts::SIZE)]
        request: ByteSize,
        /// The size of a response.
        #[key(accepts = Accepts::SIZE)]
        response: ByteSize,
        /// The time that the client waits after each response.
        #[key(accepts = Accepts::SPAN, default = "0s")]
        pause: Duration,
        /// The number of requests of each flow.
        #[key(
            accepts = Accepts::Count(1, 1_000_000_000),
            absent = "as many as there is time for"
        )]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        requests: Option<u32>,
        /// Whether all requests of a flow share one connection, or each one opens its own; the
        /// handshake then counts towards the request's time.
        #[key(default = "kept")]
        connection: ConnectionUse,
    },
    /// Synchronized requests: one request of each flow of every group with this workload makes an
    /// epoch, and the next one begins when all are answered. The first one begins when all these
    /// flows have started, and the run ends with the last one. Epochs are counted from 0; faults
    /// may begin and end with them. Connections stay open.
    Epochs {
        /// The size of a request.
        #[key(accepts = Accepts::SIZE)]
        request: ByteSize,
        /// The size of a response.
        #[key(accepts = Accepts::SIZE)]
        response: ByteSize,
        /// The number of epochs; the same in all groups with this workload.
        #[key(accepts = Accepts::Count(1, MOST_EPOCHS as u64))]
        count: u32,
    },
    /// Flows of random sizes arrive as a Poisson process, each a new connection between a random
    /// pair of the group's hosts, drawn evenly; with `fan_in` several at once, an incast. `flows` has no
    /// meaning here.
    Poisson {
        /// The mean time between two arrivals of a process.
        #[key(keys = read::ArrivalKeys, by = read::mean_interval(fields))]
        mean_interval: Duration,
        /// Whether there is one Poisson process for the group, or one for each host of `from`, which sends
        /// to a random one of its receivers.
        #[key(default = "group")]
        #[serde(default, skip_serializing_if = "is_default")]
        per: ArrivalProcess,
        /// The number of flows of each arrival. Above 1 each arrival is an incast: that many hosts of `from`,
        /// drawn at random, start a flow each to one random host of `to` at the same time.
        #[key(accepts = Accepts::Count(1, 20_000), default = 1)]
        #[serde(default = "once", skip_serializing_if = "is_once")]
        fan_in: u32,
        /// The sizes of the flows.
        #[key(accepts = distribution::ACCEPTS, read = Distribution::read(at))]
        distribution: Distribution,
    },
    /// Flows from a file, each a new connection.
    Trace {
        /// The file and its flows.
        #[key(keys = TraceKeys, by = Trace::read(fields, context))]
        #[serde(flatten)]
        trace: Trace,
    },
}

/// The parts of a scenario that workloads refer to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkloadContext<'s> {
    pub(crate) topology: &'s Topology,
    /// The group's senders; `None` if they have mistakes.
    pub(crate) from: Option<&'s [HostIndex]>,
    /// The group's receivers; `None` if they have mistakes.
    pub(crate) to: Option<&'s [HostIndex]>,
}

fn once() -> u32 {
    1
}

fn is_once(rounds: &u32) -> bool {
    *rounds == 1
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The Poisson processes of random arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum ArrivalProcess {
    /// One for the whole group.
    #[default]
    Group,
    /// One for each sending host.
    Host,
}

/// The arrival process of packets at a constant rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// At equal intervals.
    Regular,
    /// As a Poisson process with the same mean rate.
    Poisson,
}

/// How a flow's requests use connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum ConnectionUse {
    /// One connection for all of them.
    Kept,
    /// One for each request; its handshake counts towards the request's time.
    Fresh,
}

impl Workload {
    /// Returns whether it consists of transfers or requests with completion times.
    pub fn has_completions(&self) -> bool {
        !matches!(self, Self::Bulk | Self::Cbr { .. })
    }

    /// Returns the number of epochs, if it has epochs.
    pub fn epochs(&self) -> Option<u32> {
        match self {
            Self::Epochs { count, .. } => Some(*count),
            _ => None,
        }
    }
}
