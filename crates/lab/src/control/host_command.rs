//! The commands that the director sends to an agent.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use weir_congestion::AlgorithmSpec;
use weir_scenario::{DcudpOptions, QuicOptions, TlsOptions, Transport, UdpEcn, Workload};
use weir_traffic::tcp::TcpSettings;
use weir_units::{ByteSize, Duration, Rate, Time};

use super::LoadFactors;
use crate::tcp_options::socket_settings;

/// A command that the director sends to an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case")]
pub enum HostCommand {
    /// Starts this host's end of a flow.
    Start(Box<FlowOrder>),
    /// Sets the epoch of the run: clients start at their times relative to it.
    Begin {
        /// The epoch in nanoseconds of `CLOCK_MONOTONIC`; it may be in the future.
        epoch: u64,
        /// The interval of [`AgentEvent::Sample`](super::AgentEvent::Sample); without it, only on request.
        interval: Option<Duration>,
    },
    /// Requests one [`AgentEvent::Sample`](super::AgentEvent::Sample).
    Sample,
    /// Every client of an epochs workload sends one request.
    Epoch {
        /// Its number, from 0.
        number: u64,
    },
    /// Changes the host itself; the agent's caller carries it out.
    Host(HostChange),
    /// Stops all flows, which report their outcomes.
    Stop,
}

/// A change to a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum HostChange {
    /// An interface goes down.
    InterfaceDown {
        /// Its name.
        interface: String,
    },
    /// An interface comes up again.
    InterfaceUp {
        /// Its name.
        interface: String,
    },
    /// An interface gets another address. New connections use it; existing connections are not
    /// notified.
    Address {
        /// Its name.
        interface: String,
        /// The address that is removed.
        was: IpAddr,
        /// The address that is added.
        is: IpAddr,
    },
}

/// One end of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowOrder {
    /// The flow's ID, the same at both ends and in all events.
    pub flow: u64,
    /// The name of its group.
    pub group: String,
    /// The end to start.
    pub role: Role,
    /// The transport.
    pub transport: LiveTransport,
    /// The workload. Data flow from the client to the server. With requests the client sends the
    /// requests, with `incast` the server.
    pub workload: Workload,
    /// The data of each write with the workload `cbr` over a stream.
    #[serde(default)]
    pub write_size: ByteSize,
    /// Addresses of this host, the preferred one first. A client's port 0 is any port. A server listens
    /// at all of them; port 0 is any port there too, reported by [`AgentEvent::Listening`](super::AgentEvent::Listening).
    pub local: Vec<SocketAddr>,
    /// Addresses of the server, the preferred one first; empty for a server.
    pub peer: Vec<SocketAddr>,
    /// The number of flows of an `incast` group that end at this host (the receiver waits for all), or
    /// the number of pairs that share the arrivals of a `poisson` process; 1 otherwise.
    pub related_flows: u32,
    /// When a client starts.
    pub start: Time,
    /// When a client starts the second and later transfers in rounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub later_starts: Vec<Time>,
    /// When a client stops, even with data left to send; without it, at [`HostCommand::Stop`].
    pub stop: Option<Time>,
    /// After this time without a response a client opens a connection from its next address to the
    /// server's next one, and repeats the request (TCP and TLS).
    pub failover: Option<Duration>,
    /// The fingerprint of the server's certificate, from [`AgentEvent::Ready`](super::AgentEvent::Ready) of its host; clients
    /// of TLS and QUIC accept no other.
    pub server_fingerprint: Option<String>,
    /// The load of a `poisson` or `cbr` flow, if it changes.
    #[serde(default, skip_serializing_if = "LoadFactors::is_constant")]
    pub load: LoadFactors,
    /// The seed of the flow's random choices.
    pub seed: u64,
}

/// An end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Opens connections: a host of the group's `from`.
    Client,
    /// Accepts connections: a host of the group's `to`.
    Server,
}

/// The transport of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "transport", rename_all = "kebab-case")]
pub enum LiveTransport {
    /// The kernel's TCP.
    Tcp(TcpSettings),
    /// TLS 1.3 over the kernel's TCP.
    Tls {
        /// TCP.
        tcp: TcpSettings,
        /// TLS.
        tls: TlsOptions,
    },
    /// UDP datagrams.
    Udp {
        /// Their ECN codepoint.
        ecn: UdpEcn,
    },
    /// DCQUIC.
    Quic {
        /// The connection options.
        options: QuicOptions,
        /// The congestion control.
        congestion: AlgorithmSpec,
    },
    /// DCUDP.
    Dcudp {
        /// The connection options.
        options: DcudpOptions,
        /// The congestion control.
        congestion: AlgorithmSpec,
    },
}

impl LiveTransport {
    /// Returns the real-time transport of a group. `tcp_options` lists the TCP options that the kernel
    /// does not support.
    pub fn of(transport: &Transport) -> Self {
        match transport {
            Transport::Tcp {
                options,
                congestion,
            } => Self::Tcp(socket_settings(options, congestion)),
            Transport::Tls {
                options,
                congestion,
                tls,
            } => Self::Tls {
                tcp: socket_settings(options, congestion),
                tls: *tls,
            },
            Transport::Quic {
                options,
                congestion,
            } => Self::Quic {
                options: options.clone(),
                congestion: congestion.clone(),
            },
            Transport::Dcudp {
                options,
                congestion,
            } => Self::Dcudp {
                options: options.clone(),
                congestion: congestion.clone(),
            },
            Transport::Udp { options } => Self::Udp { ecn: options.ecn },
        }
    }
}

impl LiveTransport {
    /// Returns the transport for a host whose link has this rate. DCUDP sends at it, unless the scenario
    /// sets another.
    pub(crate) fn on_link(&self, rate: Rate) -> Self {
        let mut transport = self.clone();
        if let Self::Dcudp { options, .. } = &mut transport {
            options.rate.get_or_insert(rate);
        }
        transport
    }
}
