//! Checks a group: that its keys are consistent, and that it fits the network and the run.

use weir_units::{Duration, Time};

use super::{Group, Pairing};
use crate::document::{Cursor, Reported};
use crate::error::ProblemKind;
use crate::schema::Fields;
use crate::topology::{Node, PathFault, Topology};
use crate::transport::Transport;
use crate::{HostIndex, Routes, Workload};

/// The maximum number of concurrent flows of a scenario.
const MOST_FLOWS: u64 = 100_000;
/// The maximum mean number of random flow arrivals during a simulation.
const MOST_ARRIVALS: u64 = 10_000_000;
/// The maximum number of host pairs of one group.
const MOST_PAIRS: u64 = 1_000_000;

impl Group {
    /// Reports conflicts between the group's keys, or with `routes`.
    pub(crate) fn check(
        &self,
        fields: &Fields<'_>,
        topology: &Topology,
        routes: &Routes,
    ) -> Result<(), Reported> {
        self.check_trace(fields)?;
        self.check_parts(fields)?;
        self.check_arrivals(fields, topology)?;
        self.check_packets(fields, topology)?;
        self.check_counts(fields)?;
        self.check_via(fields, topology)?;
        self.check_failover(fields)?;
        self.check_deadline(fields)?;
        self.check_routes(fields, topology, routes)
    }

    /// A datagram is one packet; a write to a stream may be several.
    fn check_packets(&self, fields: &Fields<'_>, topology: &Topology) -> Result<(), Reported> {
        let (Transport::Udp { .. }, Workload::Cbr { packet, .. }) =
            (&self.transport, &self.workload)
        else {
            return Ok(());
        };
        let mtu = topology.smallest_mtu();
        if *packet <= mtu {
            return Ok(());
        }
        Err(fields.error_position("workload").conflict(
            format!("packets of {packet} exceed the smallest MTU, {mtu}"),
            "set a smaller `packet`, or a larger `mtu`",
        ))
    }

    fn check_parts(&self, fields: &Fields<'_>) -> Result<(), Reported> {
        if matches!(self.transport, Transport::Udp { .. })
            && !matches!(self.workload, Workload::Cbr { .. })
        {
            return Err(fields.error_position("workload").conflict(
                "UDP has no acknowledgments to drive this workload",
                "set the workload `cbr`, or `transport = \"tcp\"`",
            ));
        }
        if self.pairing == Pairing::OneToOne && self.from.len() != self.to.len() {
            return Err(fields.error_position("pairing").conflict(
                format!(
                    "{} senders and {} receivers cannot be paired one to one",
                    self.from.len(),
                    self.to.len()
                ),
                "name as many of both, or set `pairing = \"all\"`",
            ));
        }
        if self.pairs().next().is_none() {
            return Err(fields.error_position("to").conflict(
                "no sender has a receiver other than itself",
                "name other hosts in `from` or `to`",
            ));
        }
        if fields.has("flows") && matches!(self.workload, Workload::Poisson { .. }) {
            return Err(fields.error_position("flows").conflict(
                "flows arrive at random with the workload `poisson`",
                "remove `flows`; `mean_interval` or `load` says how many there are",
            ));
        }
        if matches!(self.workload, Workload::Poisson { .. }) && !self.start_within.is_zero() {
            return Err(fields.error_position("start_within").conflict(
                "flows arrive at random from `start` on with the workload `poisson`",
                "remove `start_within`",
            ));
        }
        if self.stop.is_some() && self.workload.epochs().is_some() {
            return Err(fields.error_position("stop").conflict(
                "epochs go on until the last one is complete",
                "remove `stop`, or set a smaller `count`",
            ));
        }
        let begins = self.start + self.start_within;
        match self.stop {
            Some(stop) if stop <= begins => Err(fields.error_position("stop").conflict(
                format!("flows stop at {stop} but may start as late as {begins}"),
                "set `stop` after `start` and `start_within`",
            )),
            _ => Ok(()),
        }
    }

    /// A trace says which flows there are.
    fn check_trace(&self, fields: &Fields<'_>) -> Result<(), Reported> {
        if !matches!(self.workload, Workload::Trace { .. }) {
            return Ok(());
        }
        let mut keys = ["flows", "start_within", "pairing"].into_iter();
        match keys.find(|key| fields.has(key)) {
            Some("pairing") if self.pairing == Pairing::All => Ok(()),
            Some("flows") if self.flows == 1 => Ok(()),
            Some("start_within") if self.start_within.is_zero() => Ok(()),
            None => Ok(()),
            Some(key) => Err(fields.error_position(key).conflict(
                "the workload `trace` says which hosts flows connect, and when",
                format!("remove `{key}`"),
            )),
        }
    }

    /// Checks that all sending hosts are connected to the switch `via`.
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
            Some(host) => Err(fields.error_position("via").conflict(
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
            return Err(fields.error_position("failover").conflict(
                "this transport does not open another connection",
                "remove `failover`, or set `transport = \"tcp\"` or `\"tls\"`",
            ));
        }
        match self.workload {
            Workload::RequestResponse { .. } | Workload::Epochs { .. } => Ok(()),
            _ => Err(fields.error_position("failover").conflict(
                "only a request can be made again",
                "remove `failover`, or set the workload `request-response` or `epochs`",
            )),
        }
    }

    fn check_deadline(&self, fields: &Fields<'_>) -> Result<(), Reported> {
        match (self.deadline, &self.workload) {
            (None, _)
            | (_, Workload::Transfer { .. } | Workload::Poisson { .. } | Workload::Trace { .. }) => {
                Ok(())
            }
            _ => Err(fields.error_position("deadline").conflict(
                "only a flow that ends by itself has a deadline",
                "remove `deadline`, or set the workload `transfer`, `poisson` or `trace`",
            )),
        }
    }

    /// Checks the number of flows of this group; [`check_flows`] counts all groups together.
    fn check_counts(&self, fields: &Fields<'_>) -> Result<(), Reported> {
        if self.pair_bound() > MOST_PAIRS {
            return Err(fields.error_position("to").problem(ProblemKind::TooMany {
                what: "pairs of hosts",
                count: self.pair_bound(),
                limit: MOST_PAIRS,
                reason: "the route of each is checked",
            }));
        }
        if self.flow_count() > MOST_FLOWS {
            return Err(too_many_flows(
                &fields.error_position("flows"),
                self.flow_count(),
            ));
        }
        Ok(())
    }

    /// Reports conflicts with a run of `duration`.
    pub(crate) fn check_times(
        &self,
        fields: &Fields<'_>,
        duration: Duration,
    ) -> Result<(), Reported> {
        let end = Time::ZERO + duration;
        if self.start + self.start_within >= end {
            return Err(fields.error_position("start").conflict(
                format!(
                    "flows may start as late as {}, and the simulation ends at {end}",
                    self.start + self.start_within
                ),
                "set `start` and `start_within` to less, or a longer `duration`",
            ));
        }
        self.check_arrival_count(&fields.error_position("workload"), self.start, end)
    }

    /// Reports more random arrivals from a time until the end than results can have.
    pub(crate) fn check_arrival_count(
        &self,
        at: &Cursor<'_>,
        from: Time,
        end: Time,
    ) -> Result<(), Reported> {
        let Some(interval) = self.mean_arrival_seconds() else {
            return Ok(());
        };
        let until = self.stop.unwrap_or(end).min(end);
        let arrivals = until.since(from).as_secs_f64() / interval;
        let arrivals = (arrivals * f64::from(self.flows_per_arrival())) as u64;
        if arrivals > MOST_ARRIVALS {
            return Err(at.problem(ProblemKind::TooMany {
                what: "arrivals of flows",
                count: arrivals,
                limit: MOST_ARRIVALS,
                reason: "results have a row for each",
            }));
        }
        Ok(())
    }

    fn check_routes(
        &self,
        fields: &Fields<'_>,
        topology: &Topology,
        routes: &Routes,
    ) -> Result<(), Reported> {
        let name = |host: HostIndex| topology.host(host).name.clone();
        let one_way = |from: HostIndex, to: HostIndex| {
            let Err(fault) = routes.check_paths(from, to) else {
                return Ok(());
            };
            let (from, to) = (name(from), name(to));
            let kind = match fault {
                PathFault::DeadEnd => ProblemKind::Unreachable { from, to },
                PathFault::Loop(switches) => {
                    let first = switches.first();
                    let passed = switches.iter().chain(first);
                    let names = passed.map(|switch| &topology.switch(*switch).name[..]);
                    let switches = names.collect::<Vec<_>>().join(" -> ");
                    ProblemKind::RoutingLoop { from, to, switches }
                }
            };
            Err(fields.error_position("to").problem(kind))
        };
        // Report one unreachable pair only.
        self.pairs()
            .try_for_each(|(from, to)| one_way(from, to).and_then(|()| one_way(to, from)))
    }
}

/// Reports groups whose epochs cannot be synchronized, and more requests than the results can hold.
pub(crate) fn check_epochs(at: &Cursor<'_>, groups: &[Group]) -> Result<(), Reported> {
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
    if requests > MOST_ARRIVALS {
        Err(at.problem(ProblemKind::TooMany {
            what: "requests in epochs",
            count: requests,
            limit: MOST_ARRIVALS,
            reason: "results have a row for each",
        }))
    } else {
        Ok(())
    }
}

/// Reports more flows in all groups together than the simulator supports.
pub(crate) fn check_flows(at: &Cursor<'_>, groups: &[Group]) -> Result<(), Reported> {
    let counts = groups.iter().map(Group::flow_count);
    match counts.fold(0, u64::saturating_add) {
        count if count > MOST_FLOWS => Err(too_many_flows(at, count)),
        _ => Ok(()),
    }
}

fn too_many_flows(at: &Cursor<'_>, count: u64) -> Reported {
    at.problem(ProblemKind::TooMany {
        what: "flows",
        count,
        limit: MOST_FLOWS,
        reason: "each keeps a few kilobytes of state at both ends",
    })
}
