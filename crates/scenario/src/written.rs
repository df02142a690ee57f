//! A scenario as a file in the general form: what `weir check` prints and results embed.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use weir_congestion::AlgorithmSpec;
use weir_units::{ByteSize, Duration, Rate, Time};

use crate::transport::{DcudpOptions, QuicOptions, TcpOptions, TlsOptions, Transport, UdpOptions};
use crate::{
    Fault, FaultKind, Group, HostIndex, LiveOptions, Pairing, PortIndex, Queue, Scenario,
    SedOptions, SharedLimit, Switch, TconRule, Topology, When, Workload,
};

impl Serialize for Scenario {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        File::of(self).serialize(serializer)
    }
}

#[derive(Serialize)]
struct File<'s> {
    title: &'s str,
    source: &'s str,
    seed: u64,
    duration: Duration,
    warm_up: Duration,
    hosts: Named<'s, Empty>,
    switches: Named<'s, WrittenSwitch<'s>>,
    links: Vec<Link<'s>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    routes: Vec<WrittenRoute<'s>>,
    groups: Named<'s, WrittenGroup<'s>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faults: Vec<WrittenFault<'s>>,
    measurements: WrittenMeasurements<'s>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sed: Option<SedOptions>,
    live: LiveOptions,
}

/// A table whose keys are names, in order.
struct Named<'s, T>(Vec<(&'s str, T)>);

impl<T: Serialize> Serialize for Named<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// A table without keys.
type Empty = BTreeMap<(), ()>;

#[derive(Serialize)]
struct WrittenSwitch<'s> {
    #[serde(skip_serializing_if = "Option::is_none")]
    shared_buffer: Option<WrittenBuffer>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tcon: Vec<WrittenRule<'s>>,
}

#[derive(Serialize)]
struct WrittenRule<'s> {
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<Vec<&'s str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<Vec<&'s str>>,
    pass: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    ecn: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    buffer: Option<ByteSize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    congestion: Option<&'s AlgorithmSpec>,
}

#[derive(Serialize)]
struct WrittenBuffer {
    size: ByteSize,
    #[serde(skip_serializing_if = "Option::is_none")]
    alpha: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_port: Option<ByteSize>,
}

#[derive(Serialize)]
struct Link<'s> {
    from: &'s str,
    to: &'s str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'s str>,
    rate: Rate,
    delay: Duration,
    mtu: ByteSize,
    framing: ByteSize,
    #[serde(skip_serializing_if = "is_unlimited")]
    queue: Queue,
    #[serde(skip_serializing_if = "is_unlimited")]
    reverse_queue: Queue,
}

#[derive(Serialize)]
struct WrittenRoute<'s> {
    switch: &'s str,
    to: Vec<&'s str>,
    via: Vec<&'s str>,
}

#[derive(Serialize)]
struct WrittenGroup<'s> {
    from: Vec<&'s str>,
    to: Vec<&'s str>,
    pairing: Pairing,
    #[serde(skip_serializing_if = "Option::is_none")]
    flows: Option<u32>,
    transport: &'static str,
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
    congestion: Option<&'s AlgorithmSpec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp: Option<&'s TcpOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls: Option<TlsOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quic: Option<&'s QuicOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dcudp: Option<&'s DcudpOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    udp: Option<UdpOptions>,
    workload: &'s Workload,
}

#[derive(Serialize)]
struct WrittenFault<'s> {
    ports: Vec<&'s str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_epoch: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until_epoch: Option<u32>,
    #[serde(flatten)]
    kind: FaultKind,
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

impl<'s> File<'s> {
    fn of(scenario: &'s Scenario) -> Self {
        let topology = &scenario.topology;
        let hosts = topology.hosts.iter();
        let switches = topology.switches.iter();
        let groups = scenario.groups.iter();
        let measurements = &scenario.measurements;
        Self {
            title: &scenario.title,
            source: &scenario.source,
            seed: scenario.seed,
            duration: scenario.duration,
            warm_up: scenario.warm_up,
            hosts: Named(hosts.map(|host| (&host.name[..], Empty::new())).collect()),
            switches: Named(
                switches
                    .map(|switch| (&switch.name[..], WrittenSwitch::of(switch, topology)))
                    .collect(),
            ),
            links: links(topology),
            routes: routes(topology),
            groups: Named(
                groups
                    .map(|group| (&group.name[..], WrittenGroup::of(group, topology)))
                    .collect(),
            ),
            faults: (scenario.faults.iter())
                .map(|fault| WrittenFault::of(fault, topology))
                .collect(),
            measurements: WrittenMeasurements {
                sample_interval: measurements.sample_interval,
                ports: ports(&measurements.ports, topology),
                snap_length: measurements.snap_length,
                reduction: measurements.reduction.map(|reduction| WrittenReduction {
                    of: &scenario.groups[reduction.of].name,
                    against: &scenario.groups[reduction.against].name,
                }),
            },
            sed: scenario.sed,
            live: scenario.live,
        }
    }
}

/// What a link has without saying so.
fn is_unlimited(queue: &Queue) -> bool {
    *queue == Queue::UNLIMITED
}

fn links(topology: &Topology) -> Vec<Link<'_>> {
    let pairs = topology.ports.chunks_exact(2);
    pairs
        .map(|pair| {
            let (there, back) = (&pair[0], &pair[1]);
            let (from, to) = (topology.name(there.from), topology.name(there.to));
            Link {
                from,
                to,
                name: Some(&there.name[..]).filter(|name| **name != format!("{from}->{to}")),
                rate: there.rate,
                delay: there.delay,
                mtu: there.mtu,
                framing: there.framing,
                queue: there.queue,
                reverse_queue: back.queue,
            }
        })
        .collect()
}

fn routes(topology: &Topology) -> Vec<WrittenRoute<'_>> {
    let written = topology.chosen_routes.iter().map(|route| WrittenRoute {
        switch: &topology.switch(route.switch).name,
        to: hosts(&route.to, topology),
        via: (route.via.iter())
            .map(|port| topology.name(topology.port(*port).to))
            .collect(),
    });
    written.collect()
}

fn hosts<'s>(hosts: &[HostIndex], topology: &'s Topology) -> Vec<&'s str> {
    let names = hosts.iter().map(|host| &topology.host(*host).name[..]);
    names.collect()
}

fn ports<'s>(ports: &[PortIndex], topology: &'s Topology) -> Vec<&'s str> {
    let names = ports.iter().map(|port| &topology.port(*port).name[..]);
    names.collect()
}

impl<'s> WrittenSwitch<'s> {
    fn of(switch: &'s Switch, topology: &'s Topology) -> Self {
        Self {
            shared_buffer: switch.shared_buffer.map(|buffer| WrittenBuffer {
                size: buffer.size,
                alpha: match buffer.limit {
                    SharedLimit::Dynamic { alpha } => Some(alpha),
                    SharedLimit::Static(_) => None,
                },
                per_port: match buffer.limit {
                    SharedLimit::Static(limit) => Some(limit),
                    SharedLimit::Dynamic { .. } => None,
                },
            }),
            tcon: (switch.tcon.iter())
                .map(|rule| WrittenRule::of(rule, topology))
                .collect(),
        }
    }
}

impl<'s> WrittenRule<'s> {
    fn of(rule: &'s TconRule, topology: &'s Topology) -> Self {
        let named = |named: &[HostIndex]| (!named.is_empty()).then(|| hosts(named, topology));
        let control = rule.control.as_ref();
        Self {
            from: named(&rule.from),
            to: named(&rule.to),
            congestion: control.map(|control| &control.congestion),
            pass: control.is_none(),
            ecn: control.and_then(|control| control.ecn),
            buffer: control.map(|control| control.buffer),
        }
    }
}

impl<'s> WrittenGroup<'s> {
    fn of(group: &'s Group, topology: &'s Topology) -> Self {
        let mut written = Self {
            from: hosts(&group.from, topology),
            to: hosts(&group.to, topology),
            pairing: group.pairing,
            flows: Some(group.flows),
            transport: "udp",
            via: group.via.map(|switch| &topology.switch(switch).name[..]),
            start: group.start,
            start_within: group.start_within,
            stop: group.stop,
            failover: group.failover,
            deadline: group.deadline,
            congestion: None,
            tcp: None,
            tls: None,
            quic: None,
            dcudp: None,
            udp: None,
            workload: &group.workload,
        };
        if matches!(group.workload, Workload::Poisson { .. }) {
            written.flows = None;
        }
        match &group.transport {
            Transport::Tcp {
                options,
                congestion,
            } => {
                written.transport = "tcp";
                (written.tcp, written.congestion) = (Some(options), Some(congestion));
            }
            Transport::Tls {
                options,
                congestion,
                tls,
            } => {
                written.transport = "tls";
                (written.tcp, written.congestion) = (Some(options), Some(congestion));
                written.tls = Some(*tls);
            }
            Transport::Quic {
                options,
                congestion,
            } => {
                written.transport = "quic";
                (written.quic, written.congestion) = (Some(options), Some(congestion));
            }
            Transport::Dcudp {
                options,
                congestion,
            } => {
                written.transport = "dcudp";
                (written.dcudp, written.congestion) = (Some(options), Some(congestion));
            }
            Transport::Udp { ecn } => written.udp = Some(UdpOptions { ecn: *ecn }),
        }
        written
    }
}

impl<'s> WrittenFault<'s> {
    fn of(fault: &'s Fault, topology: &'s Topology) -> Self {
        let (at, until, at_epoch, until_epoch) = match fault.when {
            When::Time { at, until } => (Some(at), until, None, None),
            When::Epochs { at, until } => (None, None, Some(at), until),
        };
        Self {
            ports: ports(&fault.ports, topology),
            at,
            until,
            at_epoch,
            until_epoch,
            kind: fault.kind,
        }
    }
}
