//! Groups: flows that are alike, and that results report together.

use serde::Serialize;
use weir_units::{Duration, Time};

use crate::congestion;
use crate::document::{At, Fields, Reported};
use crate::error::ProblemKind;
use crate::schema::{Accepts, Key, Literal, Section};
use crate::topology::{Names, Node, SwitchIndex, check_name};
use crate::transport::Transport;
use crate::{HostIndex, PortIndex, Routes, Topology, Workload};

/// Flows that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name, under which results report it.
    pub name: String,
    /// The hosts that send; with requests, those that ask.
    pub from: Vec<HostIndex>,
    /// The hosts that receive; with requests, those that respond.
    pub to: Vec<HostIndex>,
    /// Which of them exchange data.
    pub pairing: Pairing,
    /// The switch by which flows leave their hosts, of several: see [`Self::ways`]. Without, packets
    /// of different flows take different ones.
    pub via: Option<SwitchIndex>,
    /// How many flows each pair of hosts has.
    pub flows: u32,
    /// What carries the data.
    pub transport: Transport,
    /// The data.
    pub workload: Workload,
    /// When flows start at the earliest.
    pub start: Time,
    /// Each flow starts at a random time within this span from `start`.
    pub start_within: Duration,
    /// When flows stop, whatever they have left to send; without, at the end of the simulation.
    pub stop: Option<Time>,
    /// After how long without an answer a client makes its request again, by a new connection over
    /// the next of its host's links; `None` for never.
    pub failover: Option<Duration>,
    /// How long a transfer may take from its start on; `None` where it does not matter.
    pub deadline: Option<Duration>,
}

/// Which senders send to which receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pairing {
    /// Each to each, itself excepted.
    All,
    /// The first to the first, the second to the second …
    OneToOne,
}

/// The most flows that a scenario may have at once.
const MOST_FLOWS: u64 = 100_000;
/// The most flows that may arrive at random during a simulation, on average.
const MOST_ARRIVALS: u64 = 10_000_000;
/// The most pairs of hosts that one group may connect.
const MOST_PAIRS: u64 = 1_000_000;

pub(crate) static GROUP: Section = Section {
    title: "[groups.NAME]",
    doc: "Flows that are alike. Results report each group under its name.",
    keys: &[
        Key::required(
            "from",
            Accepts::Other(
                "the name of a host or of several hosts, a pattern such as \"web*\", or a list of them",
            ),
            "the hosts that send; with `request-response`, those that ask",
        ),
        Key::required(
            "to",
            Accepts::Other(
                "the name of a host or of several hosts, a pattern such as \"web*\", or a list of them",
            ),
            "the hosts that receive; with `request-response`, those that respond",
        ),
        Key::default(
            "pairing",
            Accepts::Word(&["all", "one-to-one"]),
            Literal::Text("all"),
            "whether each host of `from` sends to each of `to` except itself, or the first to the \
             first, the second to the second and so on",
        ),
        Key::default(
            "flows",
            Accepts::Count(1, u32::MAX as u64),
            Literal::Integer(1),
            "how many flows each pair of hosts has: with one receiver, the flows per sender",
        ),
        Key::default(
            "transport",
            Accepts::Word(&["tcp", "tls", "quic", "dcudp", "udp"]),
            Literal::Text("tcp"),
            "what carries the data: TCP, TLS 1.3 over TCP, DCQUIC, DCUDP, or plain datagrams; `udp` \
             takes the workload `cbr`",
        ),
        Key::optional(
            "tcp",
            Accepts::Other("a table"),
            "Linux's values",
            "how TCP is set up, with `tcp` and `tls`",
        ),
        Key::optional(
            "tls",
            Accepts::Other("a table"),
            "its defaults",
            "how TLS is set up",
        ),
        Key::optional(
            "quic",
            Accepts::Other("a table"),
            "its defaults",
            "how DCQUIC is set up",
        ),
        Key::optional(
            "dcudp",
            Accepts::Other("a table"),
            "its defaults",
            "how DCUDP is set up",
        ),
        Key::optional(
            "udp",
            Accepts::Other("a table"),
            "Not-ECT datagrams",
            "how UDP is set up",
        ),
        Key::optional(
            "congestion",
            congestion::ACCEPTS,
            "`\"cubic\"`, as in Linux; with DCUDP the paper's, its `capacity` the slowest link's rate",
            "TCP's, DCQUIC's or DCUDP's congestion control and its parameters: see docs/algorithms.md",
        ),
        Key::optional(
            "via",
            Accepts::Other("the name of a switch"),
            "the first link of the file for DCQUIC; others are spread over the nearest",
            "the switch by which flows leave their hosts, where these have several links: DCQUIC's \
             first path, the only one of others until `failover`",
        ),
        Key::optional(
            "failover",
            Accepts::POSITIVE_SPAN,
            "never",
            "after how long without an answer a client opens a new connection, over the next of its \
             host's links, and makes its request again; with `tcp` and `tls`, and the workloads \
             `request-response` and `epochs`",
        ),
        Key::optional(
            "deadline",
            Accepts::POSITIVE_SPAN,
            "none",
            "how long a transfer may take from its start on; with the workloads `transfer` and `poisson`. \
             It is told to the congestion control `d2tcp` and to the controller of `[sed]`, and transfers \
             that miss it are counted",
        ),
        Key::required(
            "workload",
            Accepts::Other("\"bulk\", or a table with `kind`"),
            "what the flows carry",
        ),
        Key::default(
            "start",
            Accepts::SPAN,
            Literal::Text("0s"),
            "when the flows start at the earliest",
        ),
        Key::default(
            "start_within",
            Accepts::SPAN,
            Literal::Text("0s"),
            "each flow starts at a random time within this span from `start`; not with `poisson`",
        ),
        Key::optional(
            "stop",
            Accepts::POSITIVE_SPAN,
            "at the end of the simulation",
            "when the flows stop, whatever they have left to send",
        ),
    ],
};

impl Group {
    /// The pairs of hosts that exchange data.
    pub fn pairs(&self) -> impl Iterator<Item = (HostIndex, HostIndex)> {
        let all = self.pairing == Pairing::All;
        let each = self.from.iter().enumerate().flat_map(move |(index, from)| {
            let to = match all {
                true => &self.to[..],
                false => self.to.get(index..=index).unwrap_or_default(),
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

    pub(crate) fn read(
        name: &str,
        at: At<'_>,
        names: &Names,
        topology: &Topology,
    ) -> Result<Self, Reported> {
        check_name(&at, name)?;
        let fields = Fields::open(at, &GROUP)?;
        let from = fields.needed("from").and_then(|at| names.hosts(&at));
        let to = fields.needed("to").and_then(|at| names.hosts(&at));
        let (pairing, flows) = (fields.get::<String>("pairing"), fields.get("flows"));
        let via = fields.at("via").map(|at| names.switch(&at)).transpose();
        let transport = Transport::read(&fields, topology);
        let workload = fields
            .needed("workload")
            .and_then(|at| Workload::read(&at, topology));
        let (start, within) = (fields.get("start"), fields.get("start_within"));
        let (stop, failover) = (fields.optional("stop"), fields.optional("failover"));
        let deadline = fields.optional("deadline");
        let group = Self {
            name: name.to_owned(),
            from: from?,
            to: to?,
            pairing: match pairing?.as_str() {
                "one-to-one" => Pairing::OneToOne,
                _ => Pairing::All,
            },
            via: via?,
            flows: flows?,
            transport: transport?,
            workload: workload?,
            start: start?,
            start_within: within?,
            stop: stop?,
            failover: failover?,
            deadline: deadline?,
        };
        group.check(&fields)?;
        group.check_via(&fields, topology)?;
        group.check_failover(&fields)?;
        group.check_deadline(&fields)?;
        Ok(group)
    }

    fn check(&self, fields: &Fields<'_>) -> Result<(), Reported> {
        if matches!(self.transport, Transport::Udp { .. })
            && !matches!(self.workload, Workload::Cbr { .. })
        {
            return Err(fields.blame("workload").conflict(
                "UDP has no acknowledgments to drive this workload",
                "set the workload `cbr`, or `transport = \"tcp\"`",
            ));
        }
        if self.pairing == Pairing::OneToOne && self.from.len() != self.to.len() {
            return Err(fields.blame("pairing").conflict(
                format!(
                    "{} senders and {} receivers cannot be paired one to one",
                    self.from.len(),
                    self.to.len()
                ),
                "name as many of both, or set `pairing = \"all\"`",
            ));
        }
        if self.pairs().next().is_none() {
            return Err(fields.blame("to").conflict(
                "no sender has a receiver other than itself",
                "name other hosts in `from` or `to`",
            ));
        }
        if fields.has("flows") && matches!(self.workload, Workload::Poisson { .. }) {
            return Err(fields.blame("flows").conflict(
                "flows arrive at random with the workload `poisson`",
                "remove `flows`; `mean_interval` or `load` says how many there are",
            ));
        }
        if matches!(self.workload, Workload::Poisson { .. }) && !self.start_within.is_zero() {
            return Err(fields.blame("start_within").conflict(
                "flows arrive at random from `start` on with the workload `poisson`",
                "remove `start_within`",
            ));
        }
        if self.stop.is_some() && self.workload.epochs().is_some() {
            return Err(fields.blame("stop").conflict(
                "epochs go on until the last one is complete",
                "remove `stop`, or set a smaller `count`",
            ));
        }
        let begins = self.start + self.start_within;
        match self.stop {
            Some(stop) if stop <= begins => Err(fields.blame("stop").conflict(
                format!("flows stop at {stop} but may start as late as {begins}"),
                "set `stop` after `start` and `start_within`",
            )),
            _ => self.check_counts(fields),
        }
    }

    /// Whether all hosts that send are at the switch by which they should.
    fn check_via(&self, fields: &Fields<'_>, topology: &Topology) -> Result<(), Reported> {
        let Some(switch) = self.via else {
            return Ok(());
        };
        let is_there = |host: &&HostIndex| {
            let mut ports = topology.ports_of(Node::Host(**host));
            ports.any(|port| topology.port(port).to == Node::Switch(switch))
        };
        match self.from.iter().find(|host| !is_there(host)) {
            None => Ok(()),
            Some(host) => Err(fields.blame("via").conflict(
                format!(
                    "the host `{}` has no link to `{}`",
                    topology.host(*host).name,
                    topology.switch(switch).name
                ),
                "name a switch to which all hosts of `from` are linked",
            )),
        }
    }

    fn check_failover(&self, fields: &Fields<'_>) -> Result<(), Reported> {
        if self.failover.is_none() {
            return Ok(());
        }
        if !matches!(
            self.transport,
            Transport::Tcp { .. } | Transport::Tls { .. }
        ) {
            return Err(fields.blame("failover").conflict(
                "this transport does not open another connection",
                "remove `failover`, or set `transport = \"tcp\"` or `\"tls\"`",
            ));
        }
        match self.workload {
            Workload::RequestResponse { .. } | Workload::Epochs { .. } => Ok(()),
            _ => Err(fields.blame("failover").conflict(
                "only a request can be made again",
                "remove `failover`, or set the workload `request-response` or `epochs`",
            )),
        }
    }

    fn check_deadline(&self, fields: &Fields<'_>) -> Result<(), Reported> {
        match (self.deadline, &self.workload) {
            (None, _) | (_, Workload::Transfer { .. } | Workload::Poisson { .. }) => Ok(()),
            _ => Err(fields.blame("deadline").conflict(
                "only a flow that ends by itself has a deadline",
                "remove `deadline`, or set the workload `transfer` or `poisson`",
            )),
        }
    }

    /// The number of flows alone; all groups together are counted by [`check_flows`].
    fn check_counts(&self, fields: &Fields<'_>) -> Result<(), Reported> {
        if self.pair_bound() > MOST_PAIRS {
            return Err(fields.blame("to").problem(ProblemKind::TooMany {
                what: "pairs of hosts",
                count: self.pair_bound(),
                limit: MOST_PAIRS,
                reason: "the route of each is checked",
            }));
        }
        if self.flow_count() > MOST_FLOWS {
            return Err(too_many_flows(&fields.blame("flows"), self.flow_count()));
        }
        Ok(())
    }

    /// Reports what does not fit a simulation of `duration` over `routes`.
    pub(crate) fn check_against(
        &self,
        at: &At<'_>,
        topology: &Topology,
        routes: &Routes,
        duration: Duration,
    ) -> Result<(), Reported> {
        let Some(table) = at.node.as_table() else {
            return Ok(());
        };
        let blame = |key: &str| match table.get(key) {
            Some(node) => at.child(key, node),
            None => at.clone(),
        };
        let end = Time::ZERO + duration;
        if self.start + self.start_within >= end {
            return Err(blame("start").conflict(
                format!(
                    "flows may start as late as {}, and the simulation ends at {end}",
                    self.start + self.start_within
                ),
                "set `start` and `start_within` to less, or a longer `duration`",
            ));
        }
        if let Workload::Poisson { mean_interval, .. } = self.workload {
            let until = self.stop.unwrap_or(end).min(end);
            let arrivals = until.since(self.start) / mean_interval;
            if arrivals > MOST_ARRIVALS {
                return Err(blame("workload").problem(ProblemKind::TooMany {
                    what: "arrivals of flows",
                    count: arrivals,
                    limit: MOST_ARRIVALS,
                    reason: "results have a row for each",
                }));
            }
        }
        let one_way = |from: HostIndex, to: HostIndex| match routes.reaches(from, to) {
            true => Ok(()),
            false => Err(blame("to").problem(ProblemKind::Unreachable {
                from: topology.host(from).name.clone(),
                to: topology.host(to).name.clone(),
            })),
        };
        // One unreachable pair says enough.
        self.pairs()
            .try_for_each(|(from, to)| one_way(from, to).and_then(|()| one_way(to, from)))
    }
}

/// Reports groups whose epochs cannot be in step, and more requests than results have room for.
pub(crate) fn check_epochs(at: &At<'_>, groups: &[Group]) -> Result<(), Reported> {
    let mut in_step = groups
        .iter()
        .filter_map(|group| Some((group, group.workload.epochs()?)));
    let Some((first, count)) = in_step.next() else {
        return Ok(());
    };
    let mut flows = first.flow_count();
    for (group, other) in in_step {
        if other != count {
            return Err(at.conflict(
                format!(
                    "`{}` has {count} epochs and `{}` {other}",
                    first.name, group.name
                ),
                "set the same `count` in all groups with the workload `epochs`",
            ));
        }
        flows = flows.saturating_add(group.flow_count());
    }
    let requests = flows.saturating_mul(u64::from(count));
    match requests > MOST_ARRIVALS {
        false => Ok(()),
        true => Err(at.problem(ProblemKind::TooMany {
            what: "requests in epochs",
            count: requests,
            limit: MOST_ARRIVALS,
            reason: "results have a row for each",
        })),
    }
}

/// Reports more flows than can be simulated in all groups together.
pub(crate) fn check_flows(at: &At<'_>, groups: &[Group]) -> Result<(), Reported> {
    let counts = groups.iter().map(Group::flow_count);
    match counts.fold(0, u64::saturating_add) {
        count if count > MOST_FLOWS => Err(too_many_flows(at, count)),
        _ => Ok(()),
    }
}

fn too_many_flows(at: &At<'_>, count: u64) -> Reported {
    at.problem(ProblemKind::TooMany {
        what: "flows",
        count,
        limit: MOST_FLOWS,
        reason: "each keeps a few kilobytes of state at both ends",
    })
}
