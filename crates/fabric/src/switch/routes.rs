//! Routes: the egress port for each destination.

use std::cell::RefCell;
use std::collections::HashMap;

use weir_units::{Duration, Time};

use crate::flow_hash::mix;
use crate::packet::{self, Packet};

/// A port of a switch, counted from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortIndex(u32);

impl PortIndex {
    /// The port with this number.
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// Its number, as an index into the switch's ports.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// How packets are spread over several ports of equal cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadBalancing {
    /// The flow decides (ECMP: RFC 2992), so that its packets stay in order.
    #[default]
    Flow,
    /// Packets of a flow take a random one, and another after each gap (Vanini et al., NSDI 2017).
    Flowlet {
        /// The shortest time between two packets after which the second may take another port.
        gap: Duration,
    },
    /// Each packet takes a random one (Dixit et al., INFOCOM 2013): packets of a flow may overtake one another.
    Packet,
}

/// The routes of a switch: one port for each destination, or several of equal cost.
///
/// Destinations are small numbers; memory grows with the largest.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    to: Vec<Route>,
    /// The ports of routes that have several.
    sets: Vec<PortIndex>,
    load_balancing: LoadBalancing,
    flowlets: RefCell<Flowlets>,
}

/// The flowlets of the flows that have passed a switch, by a part of the flow's hash: flows that share an entry share
/// their gaps, as in a switch with a table of so many entries.
type Flowlets = HashMap<u16, Flowlet>;

/// A part of a flow without a gap.
#[derive(Clone, Copy, Debug)]
struct Flowlet {
    begin: Time,
    last: Time,
}

/// The route to a destination.
#[derive(Clone, Copy, Debug, Default)]
struct Route {
    /// The number of ports to choose from.
    choices: u32,
    /// The port, if there is one; the index of the first in `sets`, if there are several.
    first: u32,
}

impl Routes {
    /// The destination that no switch has a route to.
    pub const NOWHERE: u32 = packet::NOWHERE;

    /// Creates an empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Spreads packets over several ports in this way.
    pub fn with_load_balancing(self, load_balancing: LoadBalancing) -> Self {
        Self {
            load_balancing,
            ..self
        }
    }

    /// Sets the route to `destination` to one of `ports`, in place of an earlier one. No ports, or a
    /// route to [`Self::NOWHERE`], is no route.
    pub fn with(mut self, destination: u32, ports: impl AsRef<[PortIndex]>) -> Self {
        self.set(destination, ports.as_ref());
        self
    }

    /// Sets the route to `destination` to one of `ports`.
    pub fn set(&mut self, destination: u32, ports: &[PortIndex]) {
        if destination == Self::NOWHERE {
            return;
        }
        let slot = destination as usize;
        if self.to.len() <= slot {
            self.to.resize(slot + 1, Route::default());
        }
        let choices = ports.len() as u32;
        let first = match ports {
            &[PortIndex(port)] => port,
            several => {
                let first = self.sets.len() as u32;
                self.sets.extend_from_slice(several);
                first
            }
        };
        if let Some(route) = self.to.get_mut(slot) {
            *route = Route { choices, first };
        }
    }

    /// Iterates over every destination with each of its ports.
    pub fn iter(&self) -> impl Iterator<Item = (u32, PortIndex)> {
        (0..).zip(&self.to).flat_map(|(destination, route)| {
            (0..route.choices)
                .filter_map(|choice| self.choice(*route, choice))
                .map(move |port| (destination, port))
        })
    }

    /// Whether the choice of a port depends on the packets before.
    pub(super) fn has_flowlets(&self) -> bool {
        matches!(self.load_balancing, LoadBalancing::Flowlet { .. })
    }

    /// Returns all ports to a destination.
    pub(super) fn ports_to(&self, destination: u32) -> impl Iterator<Item = PortIndex> {
        let route = self
            .to
            .get(destination as usize)
            .copied()
            .unwrap_or_default();
        (0..route.choices).filter_map(move |choice| self.choice(route, choice))
    }

    /// Returns the port by which all packets for a destination leave, if there is only one.
    #[inline(always)]
    pub(super) fn only_port_to(&self, destination: u32) -> Option<PortIndex> {
        let route = *self.to.get(destination as usize)?;
        (route.choices == 1).then_some(PortIndex(route.first))
    }

    /// Returns the port by which a packet that arrives at `now` leaves.
    #[inline(always)]
    pub(super) fn port_for<P: Packet>(
        &self,
        now: Time,
        packet: &P,
        seed: u64,
    ) -> Option<PortIndex> {
        let route = *self.to.get(packet.destination() as usize)?;
        match route.choices {
            1 => Some(PortIndex(route.first)),
            0 => None,
            _ => self.choose(route, now, packet, seed),
        }
    }

    /// Returns when the flowlet of a packet began. It is the same if it is asked for again at the same time; times
    /// must not run backwards.
    fn flowlet(&self, now: Time, flow: u64, gap: Duration) -> Time {
        let mut flowlets = self.flowlets.borrow_mut();
        let entry = (mix(flow) >> 48) as u16;
        let flowlet = flowlets.entry(entry).or_insert(Flowlet {
            begin: now,
            last: now,
        });
        if now.since(flowlet.last) >= gap {
            flowlet.begin = now;
        }
        flowlet.last = now;
        flowlet.begin
    }

    /// Returns one of several ports, by the flow or at random. A random one depends on the time alone, so that
    /// it is the same whenever it is asked for.
    #[inline(never)]
    fn choose<P: Packet>(
        &self,
        route: Route,
        now: Time,
        packet: &P,
        seed: u64,
    ) -> Option<PortIndex> {
        let flow = packet.flow_hash() ^ seed;
        let hashed = match self.load_balancing {
            LoadBalancing::Flow => flow,
            LoadBalancing::Flowlet { gap } => flow ^ mix(self.flowlet(now, flow, gap).as_nanos()),
            LoadBalancing::Packet => flow ^ mix(now.as_nanos()),
        };
        // The product is below the number of choices times 2^64.
        let choice = (u128::from(mix(hashed)) * u128::from(route.choices)) >> 64;
        self.choice(route, choice as u32)
    }

    #[inline]
    fn choice(&self, route: Route, choice: u32) -> Option<PortIndex> {
        match route.choices {
            1 => Some(PortIndex(route.first)),
            _ => self
                .sets
                .get(route.first as usize + choice as usize)
                .copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_units::ByteSize;
    use weir_wire::{Ecn, FlowKey};

    use super::*;

    struct Sent {
        to: u32,
        port: u16,
    }

    impl Packet for Sent {
        fn length(&self) -> ByteSize {
            ByteSize::ZERO
        }
        fn ecn(&self) -> Ecn {
            Ecn::NotEct
        }
        fn set_ecn(&mut self, _: Ecn) {}
        fn destination(&self) -> u32 {
            self.to
        }
        fn flow(&self) -> FlowKey {
            FlowKey {
                source_port: self.port,
                ..FlowKey::UNSPECIFIED
            }
        }
    }

    fn ports(indices: &[u32]) -> Vec<PortIndex> {
        indices.iter().copied().map(PortIndex::new).collect()
    }

    fn port_of(routes: &Routes, to: u32, port: u16, seed: u64) -> Option<PortIndex> {
        routes.port_for(Time::ZERO, &Sent { to, port }, seed)
    }

    #[test]
    fn packets_spread_over_equal_cost_paths() {
        let routes = Routes::new()
            .with(0, ports(&[7]))
            .with(1, ports(&[2, 5, 6]));
        let routes = routes.with_load_balancing(LoadBalancing::Packet);
        let choose = |at, to| {
            let now = Time::from_nanos(at);
            routes.port_for(now, &Sent { to, port: 1 }, 1).unwrap()
        };
        let mut counts = [0u32; 7];
        for at in 0..30_000 {
            // Packets of 1538 bytes at 100 Gbit/s.
            counts[choose(at * 123, 1).index()] += 1;
            assert_eq!(choose(at, 1), choose(at, 1));
            assert_eq!(choose(at, 0), PortIndex(7));
        }
        // Four standard deviations are 327.
        assert!(
            [2, 5, 6]
                .iter()
                .all(|&port: &usize| counts[port].abs_diff(10_000) < 327)
        );
    }

    #[test]
    fn each_destination_is_routed_to_its_port() {
        let mut routes = Routes::new()
            .with(0, ports(&[3]))
            .with(4, ports(&[1]))
            .with(Routes::NOWHERE, ports(&[1]));
        let port = |to| routes.port_for(Time::ZERO, &Sent { to, port: 1 }, 9);
        assert_eq!(port(0), Some(PortIndex(3)));
        assert_eq!(port(4), Some(PortIndex(1)));
        assert_eq!(port(3), None);
        assert_eq!(port(5), None);
        assert_eq!(port(Routes::NOWHERE), None);
        routes.set(0, &[]);
        assert_eq!(port_of(&routes, 0, 1, 9), None);
        assert!(routes.iter().eq([(4, PortIndex(1))]));
    }

    #[test]
    fn flows_spread_over_equal_cost_paths_and_keep_theirs() {
        let routes = Routes::new()
            .with(0, ports(&[7]))
            .with(1, ports(&[2, 5, 6]));
        let choose = |port, seed| port_of(&routes, 1, port, seed).unwrap();
        let mut counts = [0u32; 7];
        for port in 0..30_000 {
            assert_eq!(choose(port, 1), choose(port, 1));
            counts[choose(port, 1).index()] += 1;
        }
        // Four standard deviations are 327.
        assert!(
            [2, 5, 6]
                .iter()
                .all(|&port: &usize| counts[port].abs_diff(10_000) < 327)
        );
        // Another switch chooses independently: a third stays by chance.
        let same = (0..30_000).filter(|&port| choose(port, 1) == choose(port, 2));
        assert!(same.count().abs_diff(10_000) < 327);
        assert!(
            routes.iter().eq([(0, 7), (1, 2), (1, 5), (1, 6)]
                .map(|(destination, port)| (destination, PortIndex(port))))
        );
    }

    #[test]
    fn a_flowlet_stays_on_its_port_until_a_gap() {
        let gap = Duration::from_micros(50);
        let routes = Routes::new()
            .with_load_balancing(LoadBalancing::Flowlet { gap })
            .with(1, ports(&[0, 1, 2, 3]));
        let mut now = Time::ZERO;
        let mut taken = Vec::new();
        for _ in 0..200 {
            let first = routes.port_for(now, &Sent { to: 1, port: 1 }, 1);
            for _ in 0..10 {
                now += Duration::from_micros(49);
                let port = routes.port_for(now, &Sent { to: 1, port: 1 }, 1);
                assert_eq!(port, first);
                assert_eq!(routes.port_for(now, &Sent { to: 1, port: 1 }, 1), first);
            }
            taken.extend(first);
            now += gap;
        }
        for port in ports(&[0, 1, 2, 3]) {
            let count = taken.iter().filter(|taken| **taken == port).count();
            assert!((25..=75).contains(&count), "{port:?}: {count}");
        }
    }
}
