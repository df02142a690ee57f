//! The flows of a scenario, and the orders for the hosts at their ends.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use weir_network::{Random, RngStream, Seeds};
use weir_scenario::{ArrivalProcess, Group, HostIndex, Node, Scenario, Workload};
use weir_units::{ByteSize, Rate, Time};

use crate::control::{FlowOrder, LiveTransport, LoadFactors, Role};
use crate::plan::{AddressPair, Plan};

/// A flow between two hosts. Its index among all flows is its ID in orders and events.
#[derive(Clone, Debug)]
pub(super) struct LiveFlow {
    /// The index of its group.
    pub(super) group: usize,
    /// Its number within the group.
    pub(super) index: u64,
    /// The host that opens it.
    pub(super) from: HostIndex,
    /// The host that accepts it.
    pub(super) to: HostIndex,
    /// When it starts.
    pub(super) start: Time,
    /// When the second and later transfers start, in rounds.
    later_starts: Vec<Time>,
    ends: AddressPair,
    /// The rates of both ends' egress links.
    rates: (Rate, Rate),
    companions: u32,
    load: LoadFactors,
    seed: u64,
}

/// Returns all flows of a scenario. They start at the same times as in the simulation with the same seed.
pub(super) fn flows(scenario: &Scenario, plan: &Plan) -> Vec<LiveFlow> {
    let routes = scenario.topology.routes();
    let seeds = Seeds::new(scenario.seed);
    let mut flows: Vec<LiveFlow> = Vec::new();
    for (position, group) in scenario.groups.iter().enumerate() {
        let mut random = Random::new(seeds.of(RngStream::Workload, position));
        let companions = ConcurrentFlows::of(group);
        let load = load_factors(scenario, position);
        let arrives_at_random = matches!(group.workload, Workload::Poisson { .. });
        let per_pair = if arrives_at_random { 1 } else { group.flows };
        let each = group
            .pairs()
            .flat_map(|pair| (0..per_pair).map(move |_| pair));
        for (index, pair) in (0..).zip(each) {
            let later = if arrives_at_random {
                weir_units::Duration::ZERO
            } else {
                random.span_up_to(group.start_within)
            };
            // Lower stream numbers belong to the groups.
            let drawer = scenario.groups.len() + flows.len();
            let seed = seeds.of(RngStream::Workload, drawer);
            flows.push(LiveFlow {
                group: position,
                index,
                from: pair.0,
                to: pair.1,
                start: group.start + later,
                later_starts: later_starts(group, seed),
                ends: plan.ends(&scenario.topology, &routes, group, pair, index),
                rates: (rate_of(scenario, pair.0), rate_of(scenario, pair.1)),
                companions: companions.of_pair(pair),
                load: LoadFactors(load.clone()),
                seed,
            });
        }
    }
    flows
}

/// Returns the load of a group from each change of it on.
fn load_factors(scenario: &Scenario, group: usize) -> Vec<(Time, f64)> {
    let mut factors = scenario.load_factors(group);
    factors.dedup_by(|later, earlier| later.1 == earlier.1);
    factors.split_off(1)
}

/// Returns when the second and later rounds of a group's transfers start on one of its flows.
fn later_starts(group: &Group, seed: u64) -> Vec<Time> {
    let Workload::Transfer {
        rounds,
        interval: Some(interval),
        ..
    } = group.workload
    else {
        return Vec::new();
    };
    let mut random = Random::new(seed);
    let rounds = 1..u64::from(rounds);
    let begins = rounds.map(|round| group.start + interval * round);
    begins
        .map(|begin| begin + random.span_up_to(group.start_within))
        .collect()
}

/// The number of related flows, this one included ([`FlowOrder::related_flows`]).
enum ConcurrentFlows {
    One,
    /// The flows that end at the same host.
    AtHost(BTreeMap<HostIndex, u32>),
    /// The flows that begin at the same host.
    FromHost(BTreeMap<HostIndex, u32>),
    /// All flows of the group.
    All(u32),
}

impl ConcurrentFlows {
    fn of(group: &Group) -> Self {
        match group.workload {
            Workload::Incast { .. } => {
                let mut counts = BTreeMap::new();
                for (_, to) in group.pairs() {
                    *counts.entry(to).or_default() += group.flows;
                }
                Self::AtHost(counts)
            }
            Workload::Poisson {
                per: ArrivalProcess::Host,
                ..
            } => {
                let mut counts = BTreeMap::new();
                for (from, _) in group.pairs() {
                    *counts.entry(from).or_default() += 1;
                }
                Self::FromHost(counts)
            }
            Workload::Poisson { .. } => {
                Self::All(u32::try_from(group.pairs().count()).unwrap_or(u32::MAX))
            }
            _ => Self::One,
        }
    }

    fn of_pair(&self, (from, to): (HostIndex, HostIndex)) -> u32 {
        match self {
            Self::One => 1,
            Self::AtHost(counts) => counts.get(&to).copied().unwrap_or(1),
            Self::FromHost(counts) => counts.get(&from).copied().unwrap_or(1),
            Self::All(count) => *count,
        }
    }
}

impl LiveFlow {
    /// Returns the host at this end.
    pub(super) fn host(&self, role: Role) -> HostIndex {
        match role {
            Role::Client => self.from,
            Role::Server => self.to,
        }
    }

    /// Returns the order for the host that accepts the flow.
    pub(super) fn server(
        &self,
        number: usize,
        group: &Group,
        transport: &LiveTransport,
    ) -> FlowOrder {
        FlowOrder {
            flow: number as u64,
            group: group.name.clone(),
            role: Role::Server,
            transport: transport.on_link(self.rates.1),
            workload: group.workload.clone(),
            write_size: write_size(group),
            local: any_port(&self.ends.to),
            peer: Vec::new(),
            related_flows: self.companions,
            start: self.start,
            later_starts: self.later_starts.clone(),
            stop: group.stop,
            failover: group.failover,
            server_fingerprint: None,
            load: self.load.clone(),
            seed: self.seed,
        }
    }

    /// Returns the order for the host that opens the flow, to the server that listens at `peer`.
    pub(super) fn client(
        &self,
        number: usize,
        group: &Group,
        transport: &LiveTransport,
        peer: Vec<SocketAddr>,
        pin: String,
    ) -> FlowOrder {
        FlowOrder {
            role: Role::Client,
            transport: transport.on_link(self.rates.0),
            local: any_port(&self.ends.from),
            peer,
            server_fingerprint: Some(pin),
            ..self.server(number, group, transport)
        }
    }
}

/// Returns the data of each write at a constant rate.
fn write_size(group: &Group) -> ByteSize {
    match group.workload {
        Workload::Cbr { packet, .. } => group.transport.data_of(packet),
        _ => ByteSize::ZERO,
    }
}

/// Returns the rate of a host's first link.
fn rate_of(scenario: &Scenario, host: HostIndex) -> Rate {
    let topology = &scenario.topology;
    let first = topology.ports_of(Node::Host(host)).next();
    first.map_or(Rate::ZERO, |port| topology.port(port).rate)
}

fn any_port(addresses: &[IpAddr]) -> Vec<SocketAddr> {
    let addresses = addresses.iter();
    addresses
        .map(|address| SocketAddr::new(*address, 0))
        .collect()
}
