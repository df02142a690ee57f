//! What the director tells an agent.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use weir_congestion::AlgorithmSpec;
use weir_scenario::{DcudpOptions, QuicOptions, TlsOptions, Transport, UdpEcn, Workload};
use weir_traffic::tcp::TcpSettings;
use weir_units::{Duration, Rate, Time};

use crate::tcp_options::socket_settings;

/// What the director tells an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case")]
pub enum HostCommand {
    /// Begins a flow's part in this host.
    Start(Box<FlowOrder>),
    /// Sets the epoch: clients start at their times from here on.
    Begin {
        /// The epoch in nanoseconds of `CLOCK_MONOTONIC`; it may be in the future.
        epoch: u64,
        /// How often [`AgentEvent::Sample`](super::AgentEvent::Sample) is sent; without, only when asked for.
        interval: Option<Duration>,
    },
    /// Asks for one [`AgentEvent::Sample`](super::AgentEvent::Sample).
    Sample,
    /// Every client of an epochs workload makes one request.
    Epoch {
        /// Its number, from 0.
        number: u64,
    },
    /// Something is to happen to the host itself; whoever runs the agent does it.
    Host(HostChange),
    /// All flows end and report.
    Stop,
}

/// What happens to a host.
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
    /// An interface gets another address. Connections that begin later begin there; those that
    /// there are are not told.
    Address {
        /// Its name.
        interface: String,
        /// The address that it loses.
        was: IpAddr,
        /// The address that it gets.
        is: IpAddr,
    },
}

/// One end of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowOrder {
    /// The flow's number, the same at both ends and in all events.
    pub flow: u64,
    /// The name of its group.
    pub group: String,
    /// Which end.
    pub role: Role,
    /// What carries the data.
    pub transport: LiveTransport,
    /// The data, which flow from the client to the server; with requests the client asks, with
    /// `incast` the server.
    pub workload: Workload,
    /// Addresses of this host, the preferred one first. A client's port is 0 for any. A server listens
    /// at all of them; 0 there is any port too, and [`AgentEvent::Listening`](super::AgentEvent::Listening) says which.
    pub local: Vec<SocketAddr>,
    /// Addresses of the server, the preferred one first; empty for a server.
    pub peer: Vec<SocketAddr>,
    /// How many flows of an `incast` group end at this host (the receiver waits for all of them),
    /// or over how many pairs the arrivals of a `poisson` group are spread; 1 otherwise.
    pub companions: u32,
    /// When a client starts.
    pub start: Time,
    /// When a client starts the second and later ones of transfers in rounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub later_starts: Vec<Time>,
    /// When a client stops, whatever it has left to send; without, at [`HostCommand::Stop`].
    pub stop: Option<Time>,
    /// After so long without an answer a client opens a connection from its next address to the
    /// server's next one, and repeats the request (TCP and TLS).
    pub failover: Option<Duration>,
    /// The server's certificate as [`AgentEvent::Ready`](super::AgentEvent::Ready) of its host told it; clients of TLS and QUIC
    /// believe no other.
    pub pin: Option<String>,
    /// Where the flow's random choices begin.
    pub seed: u64,
}

/// An end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Opens connections: a host of the group's `from`.
    Client,
    /// Takes them: a host of the group's `to`.
    Server,
}

/// What carries a flow's data.
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
        /// How connections are set up.
        options: QuicOptions,
        /// Their congestion control.
        congestion: AlgorithmSpec,
    },
    /// DCUDP.
    Dcudp {
        /// How connections are set up.
        options: DcudpOptions,
        /// Their congestion control.
        congestion: AlgorithmSpec,
    },
}

impl LiveTransport {
    /// What carries a group's data in real time. Which of its TCP options the kernel does not take,
    /// `tcp_options` tells.
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
    /// The same on a host whose link has this rate: DCUDP sends at it, where the scenario says no
    /// other.
    pub(crate) fn on_link(&self, rate: Rate) -> Self {
        let mut transport = self.clone();
        if let Self::Dcudp { options, .. } = &mut transport {
            options.rate.get_or_insert(rate);
        }
        transport
    }
}
