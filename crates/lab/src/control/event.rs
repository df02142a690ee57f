//! The events that an agent sends to the director.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use weir_counters::FlowCounters;
use weir_units::{ByteSize, Duration, Time};

use super::{HostChange, Role};

/// An event that an agent sends to the director.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum AgentEvent {
    /// The agent is ready for orders.
    Ready {
        /// The certificate fingerprint of this host's servers.
        fingerprint: String,
    },
    /// A server accepts connections.
    Listening {
        /// Its flow.
        flow: u64,
        /// Its addresses, in the order of [`FlowOrder::local`](super::FlowOrder::local).
        addresses: Vec<SocketAddr>,
    },
    /// The counters of the host's flows.
    Sample(HostSample),
    /// A request of an epoch was answered or has failed.
    EpochDone {
        /// The client's flow.
        flow: u64,
        /// The epoch.
        number: u64,
        /// When the client sent it first.
        asked: Time,
        /// The time from then to the response, repetitions included; `None` if the request failed for good.
        took: Option<Duration>,
        /// The number of connections on which it was sent.
        attempts: u64,
    },
    /// Something happened to a path of a DCQUIC client's connection.
    Path {
        /// The flow.
        flow: u64,
        /// When.
        at: Time,
        /// Whether data use another path now.
        moved: bool,
        /// A description of the event.
        description: String,
    },
    /// A flow's end at this host has finished; for a `poisson` flow, one arrival or the whole flow.
    Finished(Box<FlowOutcome>),
    /// A [`HostCommand::Host`](super::HostCommand::Host) was carried out or failed.
    Changed {
        /// The change.
        change: HostChange,
        /// The error, if it failed.
        error: Option<String>,
    },
    /// The agent has stopped; no event follows.
    Stopped {
        /// The CPU time of the process since it began.
        cpu: Duration,
    },
}

/// The counters of a host's flows at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSample {
    /// The time.
    pub at: Time,
    /// The CPU time of the process since it began.
    pub cpu: Duration,
    /// The open flows.
    pub flows: Vec<FlowSample>,
}

/// The counters of a flow at one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowSample {
    /// The flow.
    pub flow: u64,
    /// The counters since its start.
    #[serde(flatten)]
    pub counters: FlowCounters,
    /// The congestion window, if there is one.
    pub window: Option<ByteSize>,
    /// The smoothed round-trip time, if there was a sample.
    pub smoothed_rtt: Option<Duration>,
}

/// The outcome of a flow at one end. The whole flow is the sum of both ends' counters; only the
/// end that waits for data records completions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowOutcome {
    /// The flow.
    pub flow: u64,
    /// With `poisson`, the number of the arrival; `None` for the whole flow, whose counters include all
    /// arrivals, and whose completions are reported with the arrivals.
    pub arrival: Option<u64>,
    /// The end; `None` if nothing was started.
    pub role: Option<Role>,
    /// When it started.
    pub started: Option<Time>,
    /// When all of its data had arrived, as far as this end can know.
    pub ended: Option<Time>,
    /// The size of its data, if finite.
    pub size: Option<ByteSize>,
    /// The counters.
    #[serde(flatten)]
    pub counters: FlowCounters,
    /// Transfers, requests or rounds that were completed.
    pub completions: Vec<Completion>,
    /// Requests that failed because their connection failed. A request in progress when the flow was
    /// stopped is not counted.
    pub requests_failed: u64,
    /// Requests that were repeated on another connection.
    pub requests_repeated: u64,
    /// Connections opened or accepted.
    pub connections: u64,
    /// Of these, connections that began without a handshake.
    pub connections_without_handshake: u64,
    /// How often a DCQUIC connection moved to another path.
    pub moves: u64,
    /// Datagrams sent (client) or received (server) over UDP.
    pub datagrams: u64,
    /// The smoothed round-trip time at the end, if there was a sample.
    pub smoothed_rtt: Option<Duration>,
    /// The minimum round-trip time, if there was a sample.
    pub min_rtt: Option<Duration>,
    /// The name of the congestion control in use.
    pub congestion: Option<String>,
    /// Why the flow ended early.
    pub failure: Option<FlowFailure>,
}

/// The completion of a transfer, request or round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// When.
    pub at: Time,
    /// The time since the request, or since the flow's start.
    pub took: Duration,
}

/// Why a flow ended early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "failure", rename_all = "kebab-case")]
pub enum FlowFailure {
    /// The peer refuses connections.
    #[error("{peer} refuses connections")]
    Refused {
        /// The peer's address.
        peer: SocketAddr,
    },
    /// The peer does not answer.
    #[error("{peer} does not answer")]
    NoAnswer {
        /// The peer's address.
        peer: SocketAddr,
    },
    /// The connection broke.
    #[error("the connection was lost while {doing}: {cause}")]
    Lost {
        /// The operation in progress.
        doing: String,
        /// Why.
        cause: String,
    },
    /// The peer violates the lab's protocol.
    #[error("the peer breaks the protocol of the lab: {problem}")]
    Protocol {
        /// The violation.
        problem: String,
    },
    /// This host cannot carry out the order.
    #[error("the order cannot be carried out: {problem}")]
    Order {
        /// Why.
        problem: String,
    },
}
