//! `load`: how often flows arrive, by the utilization of links.

use super::Group;
use crate::document::{Cursor, Reported};
use crate::packetization::Packetization;
use crate::schema::Fields;
use crate::topology::{BOTTLENECK, Crossings, LinkClass};
use crate::workload::WrittenLoad;
use crate::{Distribution, Routes, Topology, Trace, Workload};
use weir_units::Time;

/// The load of a class of links from which the mean time between a group's arrivals was computed.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferedLoad {
    /// The mean utilization of the links by the group's data.
    pub load: f64,
    /// The links.
    pub of: LinkClass,
}

impl Group {
    /// Computes the mean time between arrivals from `load` and `of`, if the workload has them.
    pub(crate) fn set_load(
        &mut self,
        fields: &Fields<'_>,
        topology: &Topology,
        routes: &Routes,
    ) -> Result<(), Reported> {
        let Workload::Poisson { distribution, .. } = &self.workload else {
            return Ok(());
        };
        let Some(written) = WrittenLoad::read(&fields.needed("workload")?)? else {
            return Ok(());
        };
        let Some(of) = &written.of else {
            return Err(without_class(&written.at, topology));
        };
        let class = read_class(of, topology)?;
        let crossings = self.crossings(topology, routes);
        let per_flow = self.seconds_per_flow(&class, distribution, topology, &crossings);
        if per_flow <= 0.0 {
            return Err(uncrossed(of, &class, topology, &crossings));
        }
        let per_arrival = per_flow * f64::from(self.flows_per_arrival());
        self.set_mean_arrival_seconds(per_arrival / written.load);
        if let [port] = class.ports[..]
            && topology.port(port).name == class.name
            && crossings.share(port) < 1.0 - 1e-9
        {
            return Err(of.conflict(
                format!(
                    "`{}` is one link, which {:.1} % of the group's flows cross, and `load` is the mean \
                     utilization of a class of links",
                    class.name,
                    100.0 * crossings.share(port)
                ),
                format!(
                    "set `of` to \"hosts\", or to {}; a load of this link alone is `mean_interval = \
                     \"{}\"` in place of `load` and `of`",
                    class_names(topology),
                    self.mean_interval()
                ),
            ));
        }
        self.load = Some(OfferedLoad {
            load: written.load,
            of: class,
        });
        Ok(())
    }

    /// Changes the load from which the mean time between arrivals is computed.
    pub(crate) fn change_load(&mut self, load: f64) {
        let before = self.load.as_ref().map(|offered| offered.load);
        if let (Some(before), Some(mean)) = (before, self.mean_arrival_seconds()) {
            self.set_mean_arrival_seconds(mean * before / load);
        }
        if let Some(offered) = &mut self.load {
            offered.load = load;
        }
    }

    /// Returns the mean time for which a flow occupies a link of the class, averaged over its links.
    fn seconds_per_flow(
        &self,
        class: &LinkClass,
        sizes: &Distribution,
        topology: &Topology,
        crossings: &Crossings,
    ) -> f64 {
        let mtu = topology.smallest_mtu();
        let packetization = Packetization::of(&self.transport, mtu, sizes.mean());
        let (bytes, packets) = packetization.mean(sizes);
        let occupied = class.ports.iter().map(|index| {
            let port = topology.port(*index);
            let on_the_wire = bytes + packets * port.framing.bytes() as f64;
            crossings.share(*index) * on_the_wire * 8.0 / port.rate.bits_per_second() as f64
        });
        occupied.sum::<f64>() / class.ports.len().max(1) as f64
    }

    /// Returns the mean IP bytes and packets per second of a trace, from the group's start until it stops or the run
    /// ends; of flows that start later, nothing.
    fn traced_rates(&self, trace: &Trace, topology: &Topology, end: Time) -> (f64, f64) {
        let end = self.stop.unwrap_or(end).min(end);
        let span = end.since(self.start).as_secs_f64();
        let mtu = topology.smallest_mtu();
        let in_time = trace.flows.iter();
        let in_time = in_time.filter(|flow| self.start + flow.start < end);
        let (mut bytes, mut packets) = (0.0, 0.0);
        for flow in in_time {
            let sent = Packetization::of(&self.transport, mtu, flow.size).packets(flow.size);
            bytes += sent.ip_bytes().bytes() as f64;
            packets += sent.count as f64;
        }
        let span = span.max(f64::MIN_POSITIVE);
        (bytes / span, packets / span)
    }

    /// Returns the mean utilization of a class of links by the group's data, headers and framing included, while the
    /// group is active, if the network carried all of them; `None` if its workload does not say how much it sends.
    /// The run ends at `end`.
    pub fn expected_load(
        &self,
        class: &LinkClass,
        topology: &Topology,
        crossings: &Crossings,
        end: Time,
    ) -> Option<f64> {
        match &self.workload {
            Workload::Poisson { distribution, .. } => {
                let per_flow = self.seconds_per_flow(class, distribution, topology, crossings);
                let per_arrival = per_flow * f64::from(self.flows_per_arrival());
                Some(per_arrival / self.mean_arrival_seconds()?)
            }
            Workload::Cbr { rate, packet, .. } => {
                let packets = Packetization::of(&self.transport, topology.smallest_mtu(), *packet);
                let count = packet.bytes().div_ceil(packets.full().bytes().max(1)) as f64;
                let flows = self.pairs().count() as f64 * f64::from(self.flows);
                let loads = class.ports.iter().map(|index| {
                    let port = topology.port(*index);
                    let framing =
                        count * port.framing.bytes() as f64 / packet.bytes().max(1) as f64;
                    let sent = flows * rate.bits_per_second() as f64 * (1.0 + framing);
                    crossings.share(*index) * sent / port.rate.bits_per_second() as f64
                });
                Some(loads.sum::<f64>() / class.ports.len().max(1) as f64)
            }
            Workload::Trace { trace } => {
                let (bytes, packets) = self.traced_rates(trace, topology, end);
                let loads = class.ports.iter().map(|index| {
                    let port = topology.port(*index);
                    let on_the_wire = bytes + packets * port.framing.bytes() as f64;
                    crossings.share(*index) * on_the_wire * 8.0 / port.rate.bits_per_second() as f64
                });
                Some(loads.sum::<f64>() / class.ports.len().max(1) as f64)
            }
            _ => None,
        }
    }
}

/// Reads the name of a class of links.
fn read_class(of: &Cursor<'_>, topology: &Topology) -> Result<LinkClass, Reported> {
    let name = of.text("the name of a class of links")?;
    topology.link_class(name).ok_or_else(|| {
        let names = names(topology);
        of.unknown_name("class of links", name, names.iter().map(String::as_str))
    })
}

/// Reports a load that does not say which links it is of.
fn without_class(load: &Cursor<'_>, topology: &Topology) -> Reported {
    let by_port = match topology.port_by_name(BOTTLENECK) {
        Some(_) => format!(
            "; `of = \"{BOTTLENECK}\"` is that of the one port with this name, as if its rate were meant"
        ),
        None => String::new(),
    };
    load.conflict(
        "`load` is the mean utilization of a class of links, and `of` does not say which",
        format!(
            "add `of = \"hosts\"` for the links from the hosts, or one of {}{by_port}",
            class_names(topology)
        ),
    )
}

/// Reports a class that no flow of the group crosses.
fn uncrossed(
    of: &Cursor<'_>,
    class: &LinkClass,
    topology: &Topology,
    crossings: &Crossings,
) -> Reported {
    let crossed = topology.link_classes().into_iter().filter(|class| {
        let mut ports = class.ports.iter();
        ports.any(|port| crossings.share(*port) > 0.0)
    });
    let crossed: Vec<_> = crossed.map(|class| format!("\"{}\"", class.name)).collect();
    of.conflict(
        format!("no flow of the group crosses a link of `{}`", class.name),
        format!("its flows cross {}", crossed.join(", ")),
    )
}

fn names(topology: &Topology) -> Vec<String> {
    let classes = topology.link_classes().into_iter().map(|class| class.name);
    let bottleneck = topology
        .port_by_name(BOTTLENECK)
        .map(|_| BOTTLENECK.to_owned());
    classes.chain(bottleneck).collect()
}

/// Returns the classes of a network, in one line.
fn class_names(topology: &Topology) -> String {
    let names = topology.link_classes().into_iter();
    let names: Vec<_> = names.map(|class| format!("\"{}\"", class.name)).collect();
    crate::error::list(names.iter().map(String::as_str))
}
