//! What a group's flows have to carry, and when.

mod distribution;
mod read;

use serde::{Deserialize, Serialize};
use weir_units::{ByteSize, Duration, Rate};

pub use distribution::Distribution;
pub(crate) use read::{MOST_EPOCHS, SECTIONS};

/// What the flows of a group carry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Workload {
    /// Each flow always has data to send.
    Bulk,
    /// Each flow sends packets at a rate.
    Cbr {
        /// The rate of IP bytes, headers included.
        rate: Rate,
        /// The IP length of each packet.
        packet: ByteSize,
        /// How the packets are spread over time.
        arrivals: Arrivals,
    },
    /// Each flow sends an amount and closes.
    Transfer {
        /// How much.
        size: ByteSize,
        /// How often, each time as a flow of its own.
        #[serde(default = "once", skip_serializing_if = "is_once")]
        rounds: u32,
        /// How long after the start of one the next one starts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interval: Option<Duration>,
    },
    /// Each receiver asks all its senders at once, waits for all responses, and asks again.
    Incast {
        /// What each flow responds with.
        response: ByteSize,
        /// How often a receiver asks.
        rounds: u32,
        /// How long it waits after the last response before it asks again.
        pause: Duration,
        /// Each sender begins to respond at a random time within this span from the request.
        spread: Duration,
    },
    /// Each sender sends a request, waits for the response and a pause, and sends the next one.
    RequestResponse {
        /// The size of a request.
        request: ByteSize,
        /// The size of a response.
        response: ByteSize,
        /// How long the sender waits after a response.
        pause: Duration,
        /// How many requests; without a number, until the flow stops.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        requests: Option<u32>,
        /// What carries a request.
        connection: ConnectionUse,
    },
    /// Requests in step: one request of each flow of every group with this workload makes an epoch,
    /// and the next one begins when all are answered. Epochs are counted from 0.
    Epochs {
        /// The size of a request.
        request: ByteSize,
        /// The size of a response.
        response: ByteSize,
        /// How many epochs.
        count: u32,
    },
    /// Flows of random sizes arrive at random times, each a connection of its own between a pair of
    /// hosts of the group, drawn evenly.
    Poisson {
        /// The mean time between two arrivals in the whole group.
        mean_interval: Duration,
        /// How large the flows are.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// At equal distances.
    Regular,
    /// As a Poisson process with the rate as its mean.
    Poisson,
}

/// What carries a flow's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
