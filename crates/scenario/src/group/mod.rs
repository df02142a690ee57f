//! Groups: flows that are alike, and that results report together.

mod check;

use serde::Serialize;
use weir_scenario_derive::{Keys, Word};
use weir_units::{Duration, Time};

use crate::schema::Accepts;
use crate::topology::{Builder, Node, SwitchIndex};
use crate::transport::{Transport, TransportKeys};
use crate::{HostIndex, PortIndex, Routes, Topology, Workload};

pub(crate) use check::{check_epochs, check_flows};

const HOSTS: Accepts = Accepts::Other(
    "the name of a host or of several hosts, a pattern such as \"web*\", or a list of them",
);

/// Flows that are alike.
#[derive(Clone, Debug, PartialEq, Keys)]
#[keys(
    title = "[groups.NAME]",
    doc = "Flows that are alike. Results report each group under its name.",
    context = &Builder<'_>
)]
pub struct Group {
    /// Its name, under which results report it.
    #[key(is = Ok(fields.at.name().to_owned()))]
    pub name: String,
    /// The hosts that send; with `request-response`, those that ask.
    #[key(accepts = HOSTS, read = context.names.hosts(at))]
    pub from: Vec<HostIndex>,
    /// The hosts that receive; with `request-response`, those that respond.
    #[key(accepts = HOSTS, read = context.names.hosts(at))]
    pub to: Vec<HostIndex>,
    /// Whether each host of `from` sends to each of `to` except itself, or the first to the first, the
    /// second to the second and so on.
    #[key(default = "all")]
    pub pairing: Pairing,
    /// How many flows each pair of hosts has: with one receiver, the flows per sender.
    #[key(accepts = Accepts::Count(1, u32::MAX as u64), default = 1)]
    pub flows: u32,
    /// What carries the data.
    #[key(keys = TransportKeys, by = Transport::read(fields, &context.topology))]
    pub transport: Transport,
    /// The switch by which flows leave their hosts, where these have several links: DCQUIC's first
    /// path, the only one of others until `failover`.
    #[key(
        accepts = Accepts::Other("the name of a switch"),
        absent = "the first link of the file for DCQUIC; others are spread over the nearest",
        read = context.names.switch(at)
    )]
    pub via: Option<SwitchIndex>,
    /// After how long without an answer a client opens a new connection, over the next of its host's
    /// links, and makes its request again; with `tcp` and `tls`, and the workloads `request-response`
    /// and `epochs`.
    #[key(accepts = Accepts::POSITIVE_SPAN, absent = "never")]
    pub failover: Option<Duration>,
    /// How long a transfer may take from its start on; with the workloads `transfer` and `poisson`. It
    /// is told to the congestion control `d2tcp` and to the controller of `[sed]`, and transfers that
    /// miss it are counted.
    #[key(accepts = Accepts::POSITIVE_SPAN, absent = "none")]
    pub deadline: Option<Duration>,
    /// What the flows carry.
    #[key(
        accepts = Accepts::Other("\"bulk\", or a table with `kind`"),
        read = Workload::read(at, &context.topology)
    )]
    pub workload: Workload,
    /// When the flows start at the earliest.
    #[key(accepts = Accepts::SPAN, default = "0s")]
    pub start: Time,
    /// Each flow starts at a random time within this span from `start`; not with `poisson`.
    #[key(accepts = Accepts::SPAN, default = "0s")]
    pub start_within: Duration,
    /// When the flows stop, whatever they have left to send.
    #[key(accepts = Accepts::POSITIVE_SPAN, absent = "at the end of the simulation")]
    pub stop: Option<Time>,
}

/// Which senders send to which receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum Pairing {
    /// Each to each, itself excepted.
    All,
    /// The first to the first, the second to the second …
    OneToOne,
}

impl Group {
    /// The pairs of hosts that exchange data.
    pub fn pairs(&self) -> impl Iterator<Item = (HostIndex, HostIndex)> {
        let all = self.pairing == Pairing::All;
        let each = self.from.iter().enumerate().flat_map(move |(index, from)| {
            let to = if all {
                &self.to[..]
            } else {
                self.to.get(index..=index).unwrap_or_default()
            };
            to.iter().map(move |to| (*from, *to))
        });
        each.filter(|(from, to)| from != to)
    }

    /// The ports by which a flow between these hosts can leave `from`, in the order in which they are
    /// tried: the first is the one that it takes as long as it works. `number` tells flows apart that
    /// are spread over several.
    pub fn ways(
        &self,
        topology: &Topology,
        routes: &Routes,
        (from, to): (HostIndex, HostIndex),
        number: u64,
    ) -> Vec<PortIndex> {
        let mut ways = routes.all_from_host(from, to);
        if ways.is_empty() {
            return ways;
        }
        let leads_there =
            |port: &PortIndex| self.via.map(Node::Switch) == Some(topology.port(*port).to);
        let first = match ways.iter().position(leads_there) {
            Some(first) => first,
            None if matches!(self.transport, Transport::Quic { .. }) => 0,
            None => {
                let nearest = routes.from_host(from, to);
                let chosen = nearest.get(number as usize % nearest.len().max(1));
                (ways.iter().position(|port| Some(port) == chosen)).unwrap_or(0)
            }
        };
        ways.rotate_left(first);
        ways
    }

    /// How many flows there are from the start; with random arrivals none.
    pub fn flow_count(&self) -> u64 {
        match self.workload {
            Workload::Poisson { .. } => 0,
            _ => self.pair_bound().saturating_mul(u64::from(self.flows)),
        }
    }

    /// The number of pairs, those of a host with itself included.
    fn pair_bound(&self) -> u64 {
        match self.pairing {
            Pairing::All => self.from.len() as u64 * self.to.len() as u64,
            Pairing::OneToOne => self.from.len() as u64,
        }
    }
}
