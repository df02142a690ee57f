//! What an agent tells the director.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use weir_counters::FlowCounters;
use weir_units::{ByteSize, Duration, Time};

use super::{HostChange, Role};

/// What an agent tells the director.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum AgentEvent {
    /// The agent takes orders.
    Ready {
        /// The fingerprint of the certificate that this host's servers show.
        fingerprint: String,
    },
    /// A server takes connections.
    Listening {
        /// Its flow.
        flow: u64,
        /// Where, in the order of [`FlowOrder::local`](super::FlowOrder::local).
        addresses: Vec<SocketAddr>,
    },
    /// How flows stand.
    Sample(HostSample),
    /// A request of an epoch has been answered, or given up.
    EpochDone {
        /// The client's flow.
        flow: u64,
        /// The epoch.
        number: u64,
        /// When the client asked first.
        asked: Time,
        /// How long the answer took from then on, with all repetitions; `None` where the request
        /// failed for good.
        took: Option<Duration>,
        /// On how many connections the request was made.
        attempts: u64,
    },
    /// Something happened to a path of a DCQUIC client's connection.
    Path {
        /// The flow.
        flow: u64,
        /// When.
        at: Time,
        /// Whether data go over another path now.
        moved: bool,
        /// What, in words.
        news: String,
    },
    /// A flow's part in this host is over; of a `poisson` flow's, one of its arrivals, or all.
    Finished(Box<FlowOutcome>),
    /// What [`HostCommand::Host`](super::HostCommand::Host) asked for is done.
    Changed {
        /// What.
        change: HostChange,
        /// Why it is not done, where it is not.
        error: Option<String>,
    },
    /// All is over; nothing more is said.
    Stopped {
        /// The CPU time of the process since it began.
        cpu: Duration,
    },
}

/// How the flows of a host stand at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSample {
    /// The moment.
    pub at: Time,
    /// The CPU time of the process since it began.
    pub cpu: Duration,
    /// The flows that are open.
    pub flows: Vec<FlowSample>,
}

/// How a flow stands at one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowSample {
    /// The flow.
    pub flow: u64,
    /// What it has counted since its start.
    #[serde(flatten)]
    pub counters: FlowCounters,
    /// The congestion window, where there is one.
    pub window: Option<ByteSize>,
}

/// What became of a flow at one end. The flow as a whole is the sum of both ends' counters; only the
/// end that waits for data completes anything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowOutcome {
    /// The flow.
    pub flow: u64,
    /// With `poisson`, which of its arrivals; `None` for the flow as a whole, whose counters are those
    /// of all its arrivals, and whose completions are told with these.
    pub arrival: Option<u64>,
    /// Which end; `None` where nothing was started.
    pub role: Option<Role>,
    /// When it started.
    pub started: Option<Time>,
    /// When all that it had to carry had arrived, as this end knows.
    pub ended: Option<Time>,
    /// What it had to carry, where that has an end.
    pub size: Option<ByteSize>,
    /// What it has counted.
    #[serde(flatten)]
    pub counters: FlowCounters,
    /// Transfers, requests or rounds that were completed.
    pub completions: Vec<Completion>,
    /// Requests that were given up because their connection failed. One that was under way when the
    /// flow was stopped is none of them.
    pub requests_failed: u64,
    /// Requests that were repeated on another connection.
    pub requests_repeated: u64,
    /// Connections that were opened or taken.
    pub connections: u64,
    /// How often a DCQUIC connection moved to another path.
    pub moves: u64,
    /// Datagrams sent (client) or received (server) over UDP.
    pub datagrams: u64,
    /// The smoothed round-trip time at the end, where there was a sample.
    pub smoothed_rtt: Option<Duration>,
    /// The shortest round-trip time, where there was a sample.
    pub min_rtt: Option<Duration>,
    /// The congestion control that was in use, by its own name.
    pub congestion: Option<String>,
    /// Why the flow ended before its time.
    pub failure: Option<FlowFailure>,
}

/// Something that was asked for has arrived in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// When.
    pub at: Time,
    /// How long after it was asked for, or after the flow's start.
    pub took: Duration,
}

/// Why a flow ended before its time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "failure", rename_all = "kebab-case")]
pub enum FlowFailure {
    /// Nobody listens there.
    #[error("{peer} refuses connections")]
    Refused {
        /// Where.
        peer: SocketAddr,
    },
    /// Nobody answers there.
    #[error("{peer} does not answer")]
    NoAnswer {
        /// Where.
        peer: SocketAddr,
    },
    /// The connection broke.
    #[error("the connection was lost while {doing}: {cause}")]
    Lost {
        /// During what.
        doing: String,
        /// Why.
        cause: String,
    },
    /// The peer says something that it should not.
    #[error("the peer breaks the protocol of the lab: {problem}")]
    Protocol {
        /// What.
        problem: String,
    },
    /// This host cannot do what the order says.
    #[error("the order cannot be carried out: {problem}")]
    Order {
        /// Why.
        problem: String,
    },
}
