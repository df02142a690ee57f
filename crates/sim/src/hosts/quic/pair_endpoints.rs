//! The links between two hosts that their connections may use.

use std::collections::BTreeMap;

use weir_scenario::{Group, HostIndex, Node, PortIndex, Routes, Topology};
use weir_units::ByteSize;

use super::host_paths::HostPath;
use crate::flows::HostPair;
use crate::packet::Network;

/// The links of each pair of a group's hosts that has had a connection.
#[derive(Debug, Default)]
pub(super) struct PairLinks(BTreeMap<(HostIndex, HostIndex), Vec<ClientLink>>);

/// The hosts of a group, and the routes between them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostEnvironment<'a> {
    pub(crate) group: &'a Group,
    pub(crate) topology: &'a Topology,
    pub(crate) routes: &'a Routes,
}

/// A link of the connecting host.
#[derive(Clone, Debug)]
pub(super) struct ClientLink {
    /// The host's port.
    port: PortIndex,
    mtu: ByteSize,
    /// The number of the host's address on the link.
    number: u32,
    /// The ports of the other host by which packets return, with the MTUs of their links.
    back: Vec<(PortIndex, ByteSize)>,
}

/// Paths, each with the MTU of its first link.
pub(super) type WaysWithMtu = Vec<(HostPath, ByteSize)>;

impl PairLinks {
    /// Returns the links between two hosts of the group, the preferred one first.
    pub(super) fn links(&mut self, around: HostEnvironment<'_>, pair: HostPair) -> &[ClientLink] {
        let links = self.0.entry((pair.from, pair.to));
        links.or_insert_with(|| {
            let HostEnvironment {
                group,
                topology,
                routes,
            } = around;
            let uplinks = group.egress_ports(topology, routes, (pair.from, pair.to), 0);
            let links = uplinks.iter().map(|port| ClientLink {
                port: *port,
                mtu: topology.port(*port).mtu,
                number: Network::destination_at(topology, pair.from, *port),
                back: back(topology, routes, pair, *port, uplinks.len() > 1),
            });
            links.collect()
        })
    }
}

impl ClientLink {
    /// Returns the paths of both ends of a flow over these links: the connecting end's, and the other's.
    pub(super) fn ways(links: &[Self], pair: HostPair, flow: u32) -> (WaysWithMtu, WaysWithMtu) {
        let responder = pair.to.index() as u32;
        let there = links.iter().map(|link| {
            let host_path = HostPath {
                port: link.port.index() as u32,
                own: link.number,
                peer: responder,
            };
            (host_path, link.mtu)
        });
        let back = links.iter().filter_map(|link| {
            // Flows are spread over equal paths.
            let choice = flow as usize % link.back.len().max(1);
            let (port, mtu) = link.back.get(choice)?;
            let host_path = HostPath {
                port: port.index() as u32,
                own: responder,
                peer: link.number,
            };
            Some((host_path, *mtu))
        });
        (there.collect(), back.collect())
    }
}

/// Returns the ports by which the listening host sends back to a link of the connecting one.
fn back(
    topology: &Topology,
    routes: &Routes,
    pair: HostPair,
    uplink: PortIndex,
    is_one_of_several: bool,
) -> Vec<(PortIndex, ByteSize)> {
    let with_mtu = |port: PortIndex| (port, topology.port(port).mtu);
    if !is_one_of_several {
        let ports = routes.from_host(pair.to, pair.from);
        return ports.into_iter().map(with_mtu).collect();
    }
    let ports = topology.ports_of(Node::Host(pair.to));
    let known = ports.filter_map(|port| {
        let links = links_between(topology, routes, port, (pair.from, uplink))?;
        Some((port, links))
    });
    let known: Vec<_> = known.collect();
    let least = known.iter().map(|(_, links)| *links).min();
    let nearest = known.iter().filter(|(_, links)| Some(*links) == least);
    nearest.map(|(port, _)| with_mtu(*port)).collect()
}

/// Returns the number of links from a host's port to another host's `uplink`; `None` if it is unreachable.
fn links_between(
    topology: &Topology,
    routes: &Routes,
    mut port: PortIndex,
    (host, uplink): (HostIndex, PortIndex),
) -> Option<usize> {
    for links in 0..=topology.switches.len() {
        if port == uplink.reverse() {
            return Some(links);
        }
        let switch = topology.port(port).to.switch()?;
        port = *routes.to_uplink(switch, host, uplink).first()?;
    }
    None
}

#[cfg(test)]
mod tests {
    use weir_scenario::Scenario;

    use super::*;

    /// A client at two switches; a host at both of them, and one behind a third.
    const TEXT: &str = r#"
        title = "Two ways"
        source = "a test"
        duration = "1s"
        [hosts.client]
        [hosts.near]
        [hosts.far]
        [switches.s1]
        [switches.s2]
        [switches.core]
        [[links]]
        from = "client"
        to = "s*"
        rate = "1Gbps"
        delay = "1us"
        [[links]]
        from = "near"
        to = "s*"
        rate = "1Gbps"
        delay = "1us"
        [[links]]
        from = "core"
        to = "s*"
        rate = "1Gbps"
        delay = "1us"
        [[links]]
        from = "far"
        to = "core"
        rate = "1Gbps"
        delay = "1us"
        mtu = "9000B"
        [groups.flow]
        from = "client"
        to = ["near", "far"]
        via = "s2"
        transport = "quic"
        workload = "bulk"
    "#;

    #[test]
    fn each_link_of_the_client_is_a_path_in_both_directions() {
        let scenario = Scenario::parse("test", TEXT, &[]).unwrap().scenario;
        let (topology, group) = (&scenario.topology, &scenario.groups[0]);
        let routes = topology.routes();
        let mut pairs = PairLinks::default();
        let mut ways = |to: usize| {
            let (from, to) = (group.from[0], group.to[to]);
            let around = HostEnvironment {
                group,
                topology,
                routes: &routes,
            };
            let links = pairs.links(around, HostPair { from, to });
            ClientLink::ways(links, HostPair { from, to }, 5)
        };
        let name = |host_path: &(HostPath, ByteSize)| {
            let port = topology.ports[host_path.0.port as usize].name.clone();
            format!("{port} {}", host_path.1)
        };
        let names = |ways: &WaysWithMtu| ways.iter().map(name).collect::<Vec<_>>();

        let (there, back) = ways(0);
        assert_eq!(names(&there), ["client->s2 1.5KB", "client->s1 1.5KB"]);
        assert_eq!(names(&back), ["near->s2 1.5KB", "near->s1 1.5KB"]);
        for ((there, _), (back, _)) in there.iter().zip(&back) {
            assert_eq!((there.own, there.peer), (back.peer, back.own));
        }
        let (_, back) = ways(1);
        assert_eq!(names(&back), ["far->core 9KB", "far->core 9KB"]);
        assert!(back[0].0.peer != back[1].0.peer);
    }
}
