//! The plan of a run.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use weir_net::tls::Identity;
use weir_units::{ByteSize, Duration};

use crate::calls::driver::Phase;
use crate::calls::mix::Workload;
use crate::calls::network::Network;
use crate::calls::placement::Placement;
use crate::calls::specification::TransportSpecification;
use crate::tls::Trust;

/// The plan of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The transports, which alternate.
    pub transports: Vec<TransportSpecification>,
    /// The placements of the processes.
    pub placements: Vec<Placement>,
    /// The location of the servers.
    pub servers: Servers,
    /// The network between client and local servers.
    pub network: Network,
    /// The latencies to measure; may be empty.
    pub latencies: Vec<Latency>,
    /// The downloads to measure.
    pub bulk: Option<BulkPlan>,
    /// The mixes to run in a closed loop.
    pub mixes: Vec<MixPlan>,
    /// The mixes to run at a part of a transport's load, after those.
    pub open_mixes: Vec<OpenMixPlan>,
    /// The baselines of the ratios.
    pub baselines: Vec<String>,
    /// The time limit of each single step.
    pub limit: Duration,
    /// The date for the report.
    pub date: String,
}

/// The location of the servers.
#[derive(Clone, Debug)]
pub enum Servers {
    /// In the plan's network, started by this run, with this certificate.
    Local(Identity),
    /// On another machine, started there.
    Remote {
        /// Address of each transport's server.
        addresses: BTreeMap<String, RemoteServer>,
        /// The certificate to trust.
        trust: Trust,
    },
}

/// One transport's server on another machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteServer {
    /// The server without early data.
    pub full: SocketAddr,
    /// The server with early data, if there is one.
    pub early_data: Option<SocketAddr>,
}

impl RemoteServer {
    /// Returns the servers that [`standing::listen`](crate::calls::standing::listen) binds at an
    /// address: the one with early data has the next port.
    #[must_use]
    pub fn at(full: SocketAddr) -> Self {
        let early_data = full
            .port()
            .checked_add(1)
            .map(|port| SocketAddr::new(full.ip(), port));
        Self { full, early_data }
    }
}

/// A latency to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// The phase to measure.
    pub phase: Phase,
    /// Size of the reply; zero for handshakes.
    pub size: ByteSize,
    /// Measured times per transport, over all rounds.
    pub iterations: u32,
    /// Rounds in which the transports alternate.
    pub rounds: u32,
    /// Iterations at the start of each round that are not measured.
    pub warm_up: u32,
}

/// Returns the latencies of all these phases and sizes, with the default rounds and warm-up. Calls
/// on an open connection are measured `iterations` times, new connections a quarter as often.
#[must_use]
pub fn latencies(phases: &[Phase], sizes: &[ByteSize], iterations: u32) -> Vec<Latency> {
    let mut all = Vec::new();
    for phase in phases {
        let (iterations, warm_up) = match phase {
            Phase::Established => (iterations, 100),
            _ => (iterations.div_ceil(4), 5),
        };
        let sizes = match phase {
            Phase::Handshake => &[ByteSize::ZERO][..],
            _ => sizes,
        };
        all.extend(sizes.iter().map(|size| Latency {
            phase: *phase,
            size: *size,
            iterations,
            rounds: 5,
            warm_up,
        }));
    }
    all
}

/// Downloads to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkPlan {
    /// Bytes per round.
    pub size: ByteSize,
    /// Bytes before on the same connection that are not measured.
    pub warm_up: ByteSize,
    /// Rounds in which the transports alternate.
    pub rounds: u32,
}

/// A mix to run in a closed loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MixPlan {
    /// The mix.
    pub workload: Workload,
    /// Concurrent connections.
    pub connections: u32,
    /// Calls on each connection.
    pub calls: u32,
    /// The time after which a call counts as stalled.
    pub stall: Duration,
}

/// A mix to run in an open loop. All transports have the same arrivals.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenMixPlan {
    /// The mix.
    pub workload: Workload,
    /// Connections.
    pub connections: u32,
    /// Calls in all, over all rounds.
    pub calls: u32,
    /// Rounds in which the transports alternate, with new connections in each.
    pub rounds: u32,
    /// The rate of the calls, relative to the rate that the reference carries in the same mix of the same
    /// plan in a closed loop.
    pub load: f64,
    /// The reference: a transport of the plan.
    pub reference: String,
    /// The seed of the arrivals of the first round; the next rounds have the next seeds.
    pub seed: u64,
    /// The time after which a call counts as stalled.
    pub stall: Duration,
}
