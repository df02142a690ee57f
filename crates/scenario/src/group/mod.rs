//! Groups of equal flows, which results report together.

mod arrivals;
mod check;
mod load;
mod stands_for;

use serde::Serialize;
use weir_scenario_derive::{Keys, Word};
use weir_units::{Duration, Time};

use crate::schema::Accepts;
use crate::topology::{Builder, Node, SwitchIndex};
use crate::transport::{Transport, TransportKeys};
use crate::workload::WorkloadContext;
use crate::{HostIndex, PortIndex, Routes, Topology, Workload};

pub use arrivals::ArrivalPairs;
pub(crate) use check::{check_epochs, check_flows};
pub use load::OfferedLoad;
pub(crate) use stands_for::Fit;
pub use stands_for::StandsFor;

const HOSTS: Accepts = Accepts::Other(
    "the name of a host or of several hosts, a pattern such as \"web*\", or a list of them",
);

/// A group of equal flows.
#[derive(Clone, Debug, PartialEq, Keys)]
#[keys(
    title = "[groups.NAME]",
    doc = "Flows that are alike. Results report each group under its name.",
    context = &Builder<'_>
)]
pub struct Group {
    /// The name under which results report the group.
    #[key(is = Ok(fields.at.name().to_owned()))]
    pub name: String,
    /// The sending hosts; with `request-response`, the clients.
    #[key(accepts = HOSTS, read = context.names.hosts(at))]
    pub from: Vec<HostIndex>,
    /// The receiving hosts; with `request-response`, the servers.
    #[key(accepts = HOSTS, read = context.names.hosts(at))]
    pub to: Vec<HostIndex>,
    /// Whether each host of `from` sends to each host of `to` except itself, or the first to the
    /// first, the second to the second and so on.
    #[key(default = "all")]
    pub pairing: Pairing,
    /// The number of flows of each pair of hosts: with one receiver, the flows per sender.
    #[key(accepts = Accepts::Count(1, u32::MAX as u64), default = 1)]
    pub flows: u32,
    /// The transport of the flows.
    #[key(keys = TransportKeys, by = Transport::read(fields, &context.topology))]
    pub transport: Transport,
    /// The switch by which flows leave their hosts, if these have several links. For DCQUIC it is
    /// the first path; other transports use it alone until `failover`.
    #[key(
        accepts = Accepts::Other("the name of a switch"),
        absent = "the first link of the file for DCQUIC; others are spread over the nearest",
        read = context.names.switch(at)
    )]
    pub via: Option<SwitchIndex>,
    /// The time without an answer after which a client opens a new connection over its host's next
    /// link and repeats the request; with `tcp` and `tls`, and the workloads `request-response` and
    /// `epochs`.
    #[key(accepts = Accepts::POSITIVE_SPAN, absent = "never")]
    pub failover: Option<Duration>,
    /// The time that a transfer may take from its start; with the workloads `transfer`, `poisson` and
    /// `trace`. The congestion control `d2tcp` and the controller of `[sed]` receive it, and
    /// transfers that miss it are counted.
    #[key(accepts = Accepts::POSITIVE_SPAN, absent = "none")]
    pub deadline: Option<Duration>,
    /// The data that the flows carry.
    #[key(
        accepts = Accepts::Other("\"bulk\", or a table with `kind`"),
        read = Workload::read(at, WorkloadContext {
            topology: &context.topology,
            from: from.as_deref().ok(),
            to: to.as_deref().ok(),
        })
    )]
    pub workload: Workload,
    /// The load from which the mean time between random arrivals was computed.
    #[key(is = Ok(None))]
    pub load: Option<OfferedLoad>,
    /// The real connections that the group models, for a policy.
    #[key(
        accepts = Accepts::TABLE,
        absent = "a policy leaves the group alone",
        by = StandsFor::read_in(fields)
    )]
    pub stands_for: Option<StandsFor>,
    /// The earliest start of the flows.
    #[key(accepts = Accepts::SPAN, default = "0s")]
    pub start: Time,
    /// Each flow starts at a random time within this span from `start`; not with `poisson` or `trace`.
    #[key(accepts = Accepts::SPAN, default = "0s")]
    pub start_within: Duration,
    /// The time at which the flows stop, even if they have data left to send.
    #[key(accepts = Accepts::POSITIVE_SPAN, absent = "at the end of the simulation")]
    pub stop: Option<Time>,
}

/// Which senders send to which receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum Pairing {
    /// Each sender to each receiver, except itself.
    All,
    /// The first to the first, the second to the second and so on.
    OneToOne,
}

impl Group {
    /// Returns the pairs of hosts that exchange data.
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

    /// Returns the ports by which a flow between these hosts can leave `from`, in order of
    /// preference: the flow uses the first one as long as it works. `number` is the flow's number,
    /// by which flows are spread over several ports.
    pub fn egress_ports(
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

    /// Returns the number of flows at the start; zero if flows arrive later.
    pub fn flow_count(&self) -> u64 {
        match self.workload {
            Workload::Poisson { .. } | Workload::Trace { .. } => 0,
            _ => self.pair_bound().saturating_mul(u64::from(self.flows)),
        }
    }

    /// Returns the number of pairs, including those of a host with itself.
    fn pair_bound(&self) -> u64 {
        match self.pairing {
            Pairing::All => self.from.len() as u64 * self.to.len() as u64,
            Pairing::OneToOne => self.from.len() as u64,
        }
    }
}
