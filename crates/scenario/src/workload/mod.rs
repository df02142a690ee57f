//! What a group's flows have to carry, and when.

mod distribution;
mod read;

use serde::{Deserialize, Serialize};
use weir_scenario_derive::{Keys, Word};
use weir_units::{ByteSize, Duration, Rate};

use crate::Topology;
use crate::schema::Accepts;

pub use distribution::Distribution;
pub(crate) use read::MOST_EPOCHS;

/// What the flows of a group carry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Keys)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[keys(title = "[groups.NAME.workload]", context = &Topology, check = table.check(fields))]
pub enum Workload {
    /// Each flow always has data to send. Short: `workload = "bulk"`.
    Bulk,
    /// Each flow sends packets at a constant rate. With TCP the application writes at that rate.
    Cbr {
        /// Each flow's rate of IP bytes, headers included.
        rate: Rate,
        /// The IP length of each packet, or of what TCP is given at a time with its headers.
        #[key(
            accepts = Accepts::Size(ByteSize::from_bytes(64), ByteSize::from_bytes(65_535)),
            absent = "the smallest MTU of all links",
            by = read::packet(fields, context)
        )]
        packet: ByteSize,
        /// Whether packets leave at equal distances or as a Poisson process.
        #[key(default = "regular")]
        arrivals: Arrivals,
    },
    /// Each flow sends an amount, from its start on, and closes. With `rounds` it does so again and
    /// again, each time as a flow of its own.
    Transfer {
        /// How much each flow sends.
        #[key(accepts = Accepts::SIZE)]
        size: ByteSize,
        /// How often.
        #[key(accepts = Accepts::Count(1, 1_000_000), default = 1)]
        #[serde(default = "once", skip_serializing_if = "is_once")]
        rounds: u32,
        /// How long after the beginning of one round the next one begins, whether that one is over or
        /// not; each flow starts within the group's `start_within` from then.
        #[key(accepts = Accepts::POSITIVE_SPAN, absent = "there is one round")]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interval: Option<Duration>,
    },
    /// Each host of `to` asks all hosts of `from` at once, waits until all have responded, and asks
    /// again. Connections stay open. Each receiver's first request leaves at `start`, or at a random
    /// time within `start_within`.
    Incast {
        /// What each flow responds with.
        #[key(accepts = Accepts::SIZE)]
        response: ByteSize,
        /// How often each receiver asks.
        #[key(accepts = Accepts::Count(1, 1_000_000), default = 1)]
        rounds: u32,
        /// How long a receiver waits after the last response before it asks again.
        #[key(accepts = Accepts::SPAN, default = "0s")]
        pause: Duration,
        /// Each sender begins to respond at a random time within this span.
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
        /// How long the sender waits after each response.
        #[key(accepts = Accepts::SPAN, default = "0s")]
        pause: Duration,
        /// How many requests each flow makes.
        #[key(
            accepts = Accepts::Count(1, 1_000_000_000),
            absent = "as many as there is time for"
        )]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        requests: Option<u32>,
        /// Whether all requests of a flow take one connection, or each one of its own, whose handshake
        /// then belongs to the time that the request takes.
        #[key(default = "kept")]
        connection: ConnectionUse,
    },
    /// Requests in step: one request of each flow of every group with this workload makes an epoch,
    /// and the next one begins when all are answered. The first one begins when all these flows have
    /// started, and the run ends with the last one. Epochs are counted from 0; faults may begin and end
    /// with them. Connections stay open.
    Epochs {
        /// The size of a request.
        #[key(accepts = Accepts::SIZE)]
        request: ByteSize,
        /// The size of a response.
        #[key(accepts = Accepts::SIZE)]
        response: ByteSize,
        /// How many epochs; the same in all groups that have any.
        #[key(accepts = Accepts::Count(1, MOST_EPOCHS as u64))]
        count: u32,
    },
    /// Flows of random sizes arrive as a Poisson process, each a connection of its own between a pair
    /// of the group's hosts, drawn evenly. `flows` has no meaning here.
    Poisson {
        /// The mean time between two arrivals in the whole group.
        #[key(keys = read::ArrivalKeys, by = read::mean_interval(fields, context))]
        mean_interval: Duration,
        /// The sizes of the flows.
        #[key(accepts = distribution::ACCEPTS, read = Distribution::read(at))]
        distribution: Distribution,
    },
}

fn once() -> u32 {
    1
}

fn is_once(rounds: &u32) -> bool {
    *rounds == 1
}

/// How packets of a constant rate are spread over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// At equal distances.
    Regular,
    /// As a Poisson process with the rate as its mean.
    Poisson,
}

/// What carries a flow's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum ConnectionUse {
    /// One connection for all of them.
    Kept,
    /// One for each, whose handshake belongs to the time that the request takes.
    Fresh,
}

impl Workload {
    /// Whether it consists of pieces of which one can say how long each took.
    pub fn has_completions(&self) -> bool {
        !matches!(self, Self::Bulk | Self::Cbr { .. })
    }

    /// How many epochs it has, if that is what it consists of.
    pub fn epochs(&self) -> Option<u32> {
        match self {
            Self::Epochs { count, .. } => Some(*count),
            _ => None,
        }
    }
}
