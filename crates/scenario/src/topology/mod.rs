//! Topologies: hosts, switches, and the ports between them. Every form of network expands to one.

mod build;
mod crossings;
mod dumbbell;
mod fat_tree;
mod general;
mod leaf_spine;
mod link_class;
mod links;
mod load_balancing;
mod names;
mod parking_lot;
mod paths;
mod ports;
mod route;
mod routes;
mod shared_buffer;
#[cfg(test)]
mod short_form_tests;
mod star;
mod tcon;
#[cfg(test)]
mod tests;

use std::fmt;

use weir_scenario_derive::Keys;
use weir_units::{ByteSize, Duration, Rate};

use crate::Queue;
use crate::schema::{Accepts, Section};

pub(crate) use build::{Builder, Queues};
pub use crossings::Crossings;
pub(crate) use dumbbell::expand as expand_dumbbell;
pub(crate) use fat_tree::expand as expand_fat_tree;
pub(crate) use general::read as read_general;
pub(crate) use leaf_spine::expand as expand_leaf_spine;
pub use link_class::LinkClass;
pub(crate) use links::Link;
pub use load_balancing::LoadBalancing;
use load_balancing::flowlet_gap;
pub(crate) use names::{Names, check_name, matches};
pub(crate) use parking_lot::expand as expand_parking_lot;
pub(crate) use ports::{PORTS, read_ports};
pub use route::Route;
pub use routes::{PathFault, Routes};
use shared_buffer::SharedMemory;
pub use shared_buffer::{SharedBuffer, SharedLimit};
pub(crate) use star::expand as expand_star;
pub use tcon::TconRule;
pub(crate) use tcon::{ControlKeys, control};

/// The tables that describe a network.
pub(crate) const SECTIONS: [&Section; 14] = [
    dumbbell::Dumbbell::SECTION,
    dumbbell::Sender::SECTION,
    dumbbell::Receivers::SECTION,
    star::Star::SECTION,
    star::StarHosts::SECTION,
    leaf_spine::LeafSpine::SECTION,
    fat_tree::FatTree::SECTION,
    parking_lot::ParkingLot::SECTION,
    build::Hosts::SECTION,
    Switch::SECTION,
    SharedBuffer::SECTION,
    TconRule::SECTION,
    Link::SECTION,
    Route::SECTION,
];

/// The name of a dumbbell's bottleneck port.
pub(crate) const BOTTLENECK: &str = "bottleneck";

/// What stands between the name of a port and its number, if there are parallel links.
const PARALLEL: char = ':';

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(crate) u32);

        impl $name {
            /// Returns the index in the topology's list.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index! {
    /// A host: an index into [`Topology::hosts`].
    HostIndex
}
index! {
    /// A switch: an index into [`Topology::switches`].
    SwitchIndex
}
index! {
    /// A port: an index into [`Topology::ports`].
    PortIndex
}

impl PortIndex {
    /// Returns the port at the other end of the link, for the opposite direction.
    pub const fn reverse(self) -> Self {
        Self(self.0 ^ 1)
    }
}

/// The network of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// The hosts.
    pub hosts: Vec<Host>,
    /// The switches.
    pub switches: Vec<Switch>,
    /// The ports, two consecutive ones for each link: see [`PortIndex::reverse`].
    pub ports: Vec<Port>,
    /// The explicit routes, in file order. Without one, packets take the paths with the fewest
    /// links: see [`Topology::routes`].
    pub explicit_routes: Vec<Route>,
}

/// A host: the source or destination of flows. It does not forward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name.
    pub name: String,
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Keys)]
#[keys(title = "[switches.NAME]", doc = "A switch.", context = &Names)]
pub struct Switch {
    /// Its name.
    #[key(is = Ok(fields.at.name().to_owned()))]
    pub name: String,
    /// How packets are spread over paths of equal length and parallel links: by the flow (ECMP); each flowlet, packets
    /// of a flow without a gap, at random; or each packet at random ("packet spraying"), so that packets of a flow may
    /// overtake one another.
    #[key(default = "flow")]
    pub load_balancing: LoadBalancing,
    /// The shortest time between two packets of a flow after which the second begins a flowlet; with `flowlet`. Above
    /// the difference of the paths' delays packets stay in order.
    #[key(
        accepts = Accepts::POSITIVE_SPAN,
        absent = "100us with `flowlet`",
        by = flowlet_gap(fields, load_balancing?)
    )]
    pub flowlet_gap: Option<Duration>,
    /// The memory shared by its ports; if absent, each port has only the buffer of its queue.
    #[key(
        keys = SharedMemory,
        by = SharedMemory::read_keys(fields, ()).map(|keys| keys.shared_buffer)
    )]
    pub shared_buffer: Option<SharedBuffer>,
    /// Rules of transparent congestion control: the first rule that matches a flow's data applies.
    #[key(
        accepts = Accepts::Other("a list of tables"),
        absent = "the switch leaves TCP to its ends",
        or = Vec::new(),
        read = at.all("tables `[[switches.NAME.tcon]]`", |at| TconRule::read(at, context))
    )]
    pub tcon: Vec<TconRule>,
}

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// A host.
    Host(HostIndex),
    /// A switch.
    Switch(SwitchIndex),
}

/// An egress port, for one direction of a link: a queue, a rate, a delay.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// `A->B`, or another name such as `bottleneck`.
    pub name: String,
    /// The sending node.
    pub from: Node,
    /// The receiving node.
    pub to: Node,
    /// The rate of the link.
    pub rate: Rate,
    /// The propagation delay.
    pub delay: Duration,
    /// The largest IP packet of the link.
    pub mtu: ByteSize,
    /// The bytes that a packet occupies on the link beyond its IP bytes.
    pub framing: ByteSize,
    /// The queue of the link.
    pub queue: Queue,
}

impl Switch {
    /// Returns a switch without a shared buffer and without transparent congestion control.
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            load_balancing: LoadBalancing::default(),
            flowlet_gap: None,
            shared_buffer: None,
            tcon: Vec::new(),
        }
    }
}

impl Topology {
    /// Returns the host at `index`.
    pub fn host(&self, index: HostIndex) -> &Host {
        &self.hosts[index.index()]
    }

    /// Returns the switch at `index`.
    pub fn switch(&self, index: SwitchIndex) -> &Switch {
        &self.switches[index.index()]
    }

    /// Returns the port at `index`.
    pub fn port(&self, index: PortIndex) -> &Port {
        &self.ports[index.index()]
    }

    /// Returns the name of a host or switch.
    pub fn name(&self, node: Node) -> &str {
        match node {
            Node::Host(host) => &self.host(host).name,
            Node::Switch(switch) => &self.switch(switch).name,
        }
    }

    /// Returns all hosts.
    pub fn host_indices(&self) -> impl Iterator<Item = HostIndex> + use<> {
        (0..self.hosts.len() as u32).map(HostIndex)
    }

    /// Returns all switches.
    pub fn switch_indices(&self) -> impl Iterator<Item = SwitchIndex> + use<> {
        (0..self.switches.len() as u32).map(SwitchIndex)
    }

    /// Returns all ports.
    pub fn port_indices(&self) -> impl Iterator<Item = PortIndex> + use<> {
        (0..self.ports.len() as u32).map(PortIndex)
    }

    /// Returns the ports that send from `node`.
    pub fn ports_of(&self, node: Node) -> impl Iterator<Item = PortIndex> {
        self.port_indices()
            .filter(move |port| self.port(*port).from == node)
    }

    /// Returns the port called `name`.
    pub fn port_by_name(&self, name: &str) -> Option<PortIndex> {
        self.port_indices()
            .find(|port| self.port(*port).name == name)
    }

    /// Returns the smallest MTU of all links; zero if there is no link.
    pub fn smallest_mtu(&self) -> ByteSize {
        let mtus = self.ports.iter().map(|port| port.mtu);
        mtus.min().unwrap_or(ByteSize::ZERO)
    }

    /// Returns the rate of the slowest link; zero if there is no link.
    pub fn slowest_rate(&self) -> Rate {
        let rates = self.ports.iter().map(|port| port.rate);
        rates.min().unwrap_or(Rate::ZERO)
    }

    /// Returns the routes from each switch and host to each host.
    pub fn routes(&self) -> Routes {
        Routes::new(self)
    }
}

impl Node {
    /// Returns the switch, if it is one.
    pub const fn switch(self) -> Option<SwitchIndex> {
        match self {
            Self::Switch(switch) => Some(switch),
            Self::Host(_) => None,
        }
    }

    /// Returns the host, if it is one.
    pub const fn host(self) -> Option<HostIndex> {
        match self {
            Self::Host(host) => Some(host),
            Self::Switch(_) => None,
        }
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}
