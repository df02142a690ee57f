//! Which links a group's packets cross, and how many of them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{HostIndex, Node, PortIndex, Routes, SwitchIndex, Topology};
use crate::{ArrivalPairs, Group, Transport, Workload};

/// A switch of a path, the farthest from the destination first.
type SwitchOrder = (Reverse<u32>, SwitchIndex);

/// The number of flows to one destination by port.
type PortFlows = BTreeMap<PortIndex, f64>;

/// A path that does not end is refused where routes are checked; here it ends after this many steps for each
/// switch.
const STEPS_PER_SWITCH: usize = 1_000;

/// The share of a group's flows that crosses each port.
#[derive(Clone, Debug)]
pub struct Crossings(Vec<f64>);

impl Crossings {
    /// Returns the share of the flows that crosses a port, 0 to 1.
    pub fn share(&self, port: PortIndex) -> f64 {
        self.0.get(port.index()).copied().unwrap_or(0.0)
    }
}

impl Group {
    /// Returns how many of the group's flows cross each port from sender to receiver, if all pairs of hosts have
    /// equally many, or all senders or receivers as the workload draws them, and if flows are spread evenly over
    /// equal paths; of a trace, how many of its bytes.
    pub fn crossings(&self, topology: &Topology, routes: &Routes) -> Crossings {
        let mut by_destination: BTreeMap<HostIndex, PortFlows> = BTreeMap::new();
        let mut cross = |(from, to): (HostIndex, HostIndex), flows: f64| {
            let first = self.first_ports(topology, routes, (from, to));
            let ports = by_destination.entry(to).or_default();
            for port in &first {
                *ports.entry(*port).or_default() += flows / first.len() as f64;
            }
        };
        // Each pair, or each sender or receiver, has as many flows as any other; the pairs of a trace have the
        // bytes of their flows.
        let all = match (&self.workload, self.arrival_pairs()) {
            (Workload::Trace { trace }, _) => {
                let bytes = trace.flows.iter().map(|flow| {
                    let bytes = flow.size.bytes() as f64;
                    cross((flow.from, flow.to), bytes);
                    bytes
                });
                bytes.sum()
            }
            (_, ArrivalPairs::Any(pairs)) => {
                pairs.iter().for_each(|pair| cross(*pair, 1.0));
                pairs.len() as f64
            }
            (
                _,
                ArrivalPairs::BySender(sets)
                | ArrivalPairs::ByReceiver {
                    receivers: sets, ..
                },
            ) => {
                for pairs in &sets {
                    let each = 1.0 / pairs.len() as f64;
                    pairs.iter().for_each(|pair| cross(*pair, each));
                }
                sets.len() as f64
            }
        };
        let mut flows = vec![0.0; topology.ports.len()];
        for (to, first) in by_destination {
            for (port, crossing) in spread(topology, routes, to, first) {
                flows[port.index()] += crossing;
            }
        }
        let all = all.max(1.0);
        Crossings(flows.into_iter().map(|flows| flows / all).collect())
    }

    /// Returns the same for one pair of hosts: the ports that its flows cross, each with their share.
    pub fn pair_crossings(
        &self,
        topology: &Topology,
        routes: &Routes,
        pair: (HostIndex, HostIndex),
    ) -> Vec<(PortIndex, f64)> {
        let first = self.first_ports(topology, routes, pair);
        let share = 1.0 / first.len().max(1) as f64;
        let first = first.into_iter().map(|port| (port, share)).collect();
        spread(topology, routes, pair.1, first)
            .into_iter()
            .collect()
    }

    /// Returns the ports that all flows of the group cross.
    pub fn common_ports(&self, topology: &Topology, routes: &Routes) -> Vec<PortIndex> {
        let all_of_pair = |pair| {
            let crossings = self.pair_crossings(topology, routes, pair).into_iter();
            let whole = crossings.filter(|(_, share)| *share > 1.0 - 1e-9);
            whole.map(|(port, _)| port).collect::<Vec<_>>()
        };
        let mut pairs = self.pairs();
        let mut common = pairs.next().map(all_of_pair).unwrap_or_default();
        for pair in pairs {
            if common.is_empty() {
                break;
            }
            let crossed = all_of_pair(pair);
            common.retain(|port| crossed.contains(port));
        }
        common
    }

    /// Returns the ports by which flows between two hosts leave, each as many of them.
    pub fn first_ports(
        &self,
        topology: &Topology,
        routes: &Routes,
        (from, to): (HostIndex, HostIndex),
    ) -> Vec<PortIndex> {
        let fixed = self.via.is_some() || matches!(self.transport, Transport::Quic { .. });
        if fixed {
            let ways = self.egress_ports(topology, routes, (from, to), 0);
            return ways.into_iter().take(1).collect();
        }
        routes.from_host(from, to)
    }
}

/// Returns the flows to `to` on all ports of their way, given those that leave their hosts by the ports `first`.
fn spread(topology: &Topology, routes: &Routes, to: HostIndex, first: PortFlows) -> PortFlows {
    let mut all = PortFlows::new();
    let mut waiting: BTreeMap<SwitchOrder, f64> = BTreeMap::new();
    let mut cross = |port: PortIndex, flows: f64, waiting: &mut BTreeMap<SwitchOrder, f64>| {
        *all.entry(port).or_default() += flows;
        if let Node::Switch(switch) = topology.port(port).to {
            let order = (Reverse(routes.distance_from_switch(switch, to)), switch);
            *waiting.entry(order).or_default() += flows;
        }
    };
    for (port, flows) in first {
        cross(port, flows, &mut waiting);
    }
    let mut steps = STEPS_PER_SWITCH * topology.switches.len();
    while let Some(((_, switch), flows)) = waiting.pop_first() {
        let ports = routes.from_switch(switch, to);
        for port in ports {
            cross(*port, flows / ports.len() as f64, &mut waiting);
        }
        match steps.checked_sub(1) {
            Some(left) => steps = left,
            None => break,
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use crate::Scenario;

    #[test]
    fn flows_are_spread_over_equal_paths() {
        let text = "
            title = 't'
            source = 's'
            duration = '1s'
            [hosts.a]
            count = 2
            [hosts.b]
            count = 2
            [switches.left]
            [switches.right]
            [switches.one]
            [switches.two]
            [[links]]
            from = 'a'
            to = 'left'
            rate = '1Gbps'
            delay = '1us'
            [[links]]
            from = 'b'
            to = 'right'
            rate = '1Gbps'
            delay = '1us'
            [[links]]
            from = 'left'
            to = 'one'
            rate = '1Gbps'
            delay = '1us'
            [[links]]
            from = 'left'
            to = 'two'
            rate = '1Gbps'
            delay = '1us'
            [[links]]
            from = 'one'
            to = 'right'
            rate = '1Gbps'
            delay = '1us'
            [[links]]
            from = 'two'
            to = 'right'
            rate = '1Gbps'
            delay = '1us'
            [[routes]]
            switch = 'left'
            to = 'b1'
            via = 'two'
            [groups.g]
            from = ['a', 'b']
            to = ['a', 'b']
            workload = 'bulk'";
        let scenario = Scenario::parse("t.toml", text, &[]).unwrap().scenario;
        let topology = &scenario.topology;
        let crossings = scenario.groups[0].crossings(topology, &topology.routes());
        let share = |name| crossings.share(topology.port_by_name(name).unwrap());
        let near = |name, expected: f64| {
            let found = share(name);
            assert!((found - expected).abs() < 1e-12, "{name}: {found}");
        };
        // Twelve pairs; four from a to b, of which the two to b1 go by `two`, and the others by both.
        near("a1->left", 3.0 / 12.0);
        near("right->b1", 3.0 / 12.0);
        near("left->two", 3.0 / 12.0);
        near("left->one", 1.0 / 12.0);
        near("one->right", 1.0 / 12.0);
        near("right->two", 2.0 / 12.0);
        near("right->one", 2.0 / 12.0);
        let common = scenario.groups[0].common_ports(topology, &topology.routes());
        assert_eq!(common, []);
    }
}
