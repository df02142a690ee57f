//! Writes a scenario as a file in the general form, which `weir check` prints and results embed.
//! This module has the parts that a file expresses differently: names instead of indices.

use std::collections::BTreeMap;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use weir_congestion::{AlgorithmSpec, Value};
use weir_units::{ByteSize, Duration, Time};

use crate::topology::Link;
use crate::transport::Protocol;
use crate::{
    ArrivalProcess, Change, ChangedSettings, Distribution, Fault, FaultKind, FaultPeriod, Group,
    HostIndex, LoadBalancing, Pairing, PortIndex, QueueChange, Route, Scenario, SharedBuffer,
    SharedBufferChange, StandsFor, Switch, TconRule, Topology, Transport, Workload, WorkloadChange,
};

impl Serialize for Scenario {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let topology = &self.topology;
        let hosts = topology.hosts.iter().map(|host| (&host.name, Empty::new()));
        let switches = (topology.switches.iter())
            .map(|switch| (&switch.name, WrittenSwitch::of(switch, topology)));
        let routes =
            (topology.explicit_routes.iter()).map(|route| WrittenRoute::of(route, topology));
        let groups =
            (self.groups.iter()).map(|group| (&group.name, WrittenGroup::of(group, topology)));
        let faults = self
            .faults
            .iter()
            .map(|fault| WrittenFault::of(fault, topology));

        let mut file = serializer.serialize_map(None)?;
        file.serialize_entry("title", &self.title)?;
        file.serialize_entry("source", &self.source)?;
        file.serialize_entry("seed", &self.seed)?;
        file.serialize_entry("duration", &self.duration)?;
        file.serialize_entry("warm_up", &self.warm_up)?;
        file.serialize_entry("host_jitter", &self.host_jitter)?;
        file.serialize_entry("hosts", &Named(hosts.collect()))?;
        file.serialize_entry("switches", &Named(switches.collect()))?;
        file.serialize_entry("links", &Link::all(topology))?;
        if !topology.explicit_routes.is_empty() {
            file.serialize_entry("routes", &routes.collect::<Vec<_>>())?;
        }
        file.serialize_entry("groups", &Named(groups.collect()))?;
        if !self.faults.is_empty() {
            file.serialize_entry("faults", &faults.collect::<Vec<_>>())?;
        }
        if !self.changes.is_empty() {
            let changes = self.changes.iter();
            let changes = changes.map(|change| WrittenChange::of(change, self));
            file.serialize_entry("changes", &changes.collect::<Vec<_>>())?;
        }
        file.serialize_entry("measurements", &WrittenMeasurements::of(self))?;
        if let Some(sed) = &self.sed {
            file.serialize_entry("sed", sed)?;
        }
        file.serialize_entry("live", &self.live)?;
        file.end()
    }
}

/// A table whose keys are names, in order.
struct Named<'s, T>(Vec<(&'s String, T)>);

impl<T: Serialize> Serialize for Named<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// A table without keys.
type Empty = BTreeMap<(), ()>;

fn hosts<'s>(hosts: &[HostIndex], topology: &'s Topology) -> Vec<&'s str> {
    let names = hosts.iter().map(|host| &topology.host(*host).name[..]);
    names.collect()
}

fn ports<'s>(ports: &[PortIndex], topology: &'s Topology) -> Vec<&'s str> {
    let names = ports.iter().map(|port| &topology.port(*port).name[..]);
    names.collect()
}

#[derive(Serialize)]
struct WrittenSwitch<'s> {
    #[serde(skip_serializing_if = "Option::is_none")]
    load_balancing: Option<LoadBalancing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flowlet_gap: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shared_buffer: Option<SharedBuffer>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tcon: Vec<WrittenRule<'s>>,
}

impl<'s> WrittenSwitch<'s> {
    fn of(switch: &'s Switch, topology: &'s Topology) -> Self {
        let rules = switch.tcon.iter();
        Self {
            load_balancing: Some(switch.load_balancing)
                .filter(|by| *by != LoadBalancing::default()),
            flowlet_gap: switch.flowlet_gap,
            shared_buffer: switch.shared_buffer,
            tcon: rules.map(|rule| WrittenRule::of(rule, topology)).collect(),
        }
    }
}

#[derive(Serialize)]
struct WrittenRule<'s> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    from: Vec<&'s str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    to: Vec<&'s str>,
    pass: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    ecn: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    buffer: Option<ByteSize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    congestion: Option<&'s AlgorithmSpec>,
}

impl<'s> WrittenRule<'s> {
    fn of(rule: &'s TconRule, topology: &'s Topology) -> Self {
        let control = rule.control.as_ref();
        Self {
            from: hosts(&rule.from, topology),
            to: hosts(&rule.to, topology),
            pass: control.is_none(),
            ecn: control.and_then(|control| control.ecn),
            buffer: control.map(|control| control.buffer),
            congestion: control.map(|control| &control.congestion),
        }
    }
}

#[derive(Serialize)]
struct WrittenRoute<'s> {
    switch: &'s str,
    to: Vec<&'s str>,
    via: Vec<&'s str>,
}

impl<'s> WrittenRoute<'s> {
    fn of(route: &'s Route, topology: &'s Topology) -> Self {
        let ends = route.via.iter().map(|port| topology.port(*port).to);
        let mut via: Vec<_> = ends.map(|end| topology.name(end)).collect();
        // Parallel links have one next hop.
        via.dedup();
        Self {
            switch: &topology.switch(route.switch).name,
            to: hosts(&route.to, topology),
            via,
        }
    }
}

#[derive(Serialize)]
struct WrittenGroup<'s> {
    from: Vec<&'s str>,
    to: Vec<&'s str>,
    pairing: Pairing,
    #[serde(skip_serializing_if = "Option::is_none")]
    flows: Option<u32>,
    transport: Protocol,
    #[serde(skip_serializing_if = "Option::is_none")]
    via: Option<&'s str>,
    start: Time,
    start_within: Duration,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failover: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stands_for: Option<&'s StandsFor>,
    #[serde(flatten)]
    options: &'s Transport,
    workload: WrittenWorkload<'s>,
}

/// A workload, with the load that decides how often flows arrive in place of the mean interval.
#[derive(Serialize)]
#[serde(untagged)]
enum WrittenWorkload<'s> {
    ByLoad {
        kind: &'static str,
        load: f64,
        of: &'s str,
        #[serde(skip_serializing_if = "Option::is_none")]
        per: Option<ArrivalProcess>,
        #[serde(skip_serializing_if = "Option::is_none")]
        fan_in: Option<u32>,
        distribution: &'s Distribution,
    },
    Other(&'s Workload),
}

impl<'s> WrittenWorkload<'s> {
    fn of(group: &'s Group) -> Self {
        match (&group.workload, &group.load) {
            (
                Workload::Poisson {
                    per,
                    fan_in,
                    distribution,
                    ..
                },
                Some(load),
            ) => Self::ByLoad {
                kind: "poisson",
                load: load.load,
                of: &load.of.name,
                per: Some(*per).filter(|per| *per != ArrivalProcess::default()),
                fan_in: Some(*fan_in).filter(|count| *count > 1),
                distribution,
            },
            (workload, _) => Self::Other(workload),
        }
    }
}

impl<'s> WrittenGroup<'s> {
    fn of(group: &'s Group, topology: &'s Topology) -> Self {
        let arrive = matches!(
            group.workload,
            Workload::Poisson { .. } | Workload::Trace { .. }
        );
        Self {
            from: hosts(&group.from, topology),
            to: hosts(&group.to, topology),
            pairing: group.pairing,
            flows: (!arrive).then_some(group.flows),
            transport: group.transport.protocol(),
            via: group.via.map(|switch| &topology.switch(switch).name[..]),
            start: group.start,
            start_within: group.start_within,
            stop: group.stop,
            failover: group.failover,
            deadline: group.deadline,
            stands_for: group.stands_for.as_ref(),
            options: &group.transport,
            workload: WrittenWorkload::of(group),
        }
    }
}

#[derive(Serialize)]
struct WrittenFault<'s> {
    ports: Vec<&'s str>,
    #[serde(flatten)]
    when: FaultPeriod,
    #[serde(flatten)]
    kind: FaultKind,
}

impl<'s> WrittenFault<'s> {
    fn of(fault: &Fault, topology: &'s Topology) -> Self {
        Self {
            ports: ports(&fault.ports, topology),
            when: fault.when,
            kind: fault.kind,
        }
    }
}

/// A change: which ports, switches or groups, and their new values.
#[derive(Serialize)]
struct WrittenChange<'s> {
    at: Time,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ports: Vec<&'s str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    switches: Vec<&'s str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<&'s str>,
    set: WrittenSettings<'s>,
}

#[derive(Default, Serialize)]
struct WrittenSettings<'s> {
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<&'s QueueChange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shared_buffer: Option<&'s SharedBufferChange>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    congestion: BTreeMap<&'s str, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workload: Option<&'s WorkloadChange>,
}

impl<'s> WrittenChange<'s> {
    fn of(change: &'s Change, scenario: &'s Scenario) -> Self {
        let mut written = Self {
            at: change.at,
            ports: Vec::new(),
            switches: Vec::new(),
            groups: Vec::new(),
            set: WrittenSettings::default(),
        };
        let topology = &scenario.topology;
        match &change.set {
            ChangedSettings::Queues { ports: at, queue } => {
                written.ports = ports(at, topology);
                written.set.queue = Some(queue);
            }
            ChangedSettings::SharedBuffers { switches, buffer } => {
                let names = switches.iter();
                let names = names.map(|switch| &topology.switch(*switch).name[..]);
                written.switches = names.collect();
                written.set.shared_buffer = Some(buffer);
            }
            ChangedSettings::Groups {
                groups,
                congestion,
                workload,
            } => {
                let names = groups.iter();
                let names = names.map(|group| &scenario.groups[*group].name[..]);
                written.groups = names.collect();
                written.set.congestion = congestion.iter().copied().collect();
                written.set.workload = Some(workload).filter(|workload| !workload.is_empty());
            }
        }
        written
    }
}

#[derive(Serialize)]
struct WrittenMeasurements<'s> {
    sample_interval: Duration,
    ports: Vec<&'s str>,
    snap_length: ByteSize,
    #[serde(skip_serializing_if = "Option::is_none")]
    reduction: Option<WrittenReduction<'s>>,
}

#[derive(Serialize)]
struct WrittenReduction<'s> {
    of: &'s str,
    against: &'s str,
}

impl<'s> WrittenMeasurements<'s> {
    fn of(scenario: &'s Scenario) -> Self {
        let measurements = &scenario.measurements;
        let name = |group: usize| &scenario.groups[group].name[..];
        Self {
            sample_interval: measurements.sample_interval,
            ports: ports(&measurements.ports, &scenario.topology),
            snap_length: measurements.snap_length,
            reduction: measurements.reduction.map(|reduction| WrittenReduction {
                of: name(reduction.of),
                against: name(reduction.against),
            }),
        }
    }
}
