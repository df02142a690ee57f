//! Hosts, switches, and the ports between them: what every form of topology expands to.

mod build;
mod dumbbell;
mod general;
mod links;
mod names;
mod ports;
mod route;
mod routes;
mod shared_buffer;
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
pub(crate) use dumbbell::expand as expand_dumbbell;
pub(crate) use general::read as read_general;
pub(crate) use links::Link;
pub(crate) use names::{Names, check_name};
pub(crate) use ports::{PORTS, read_ports};
pub use route::Route;
pub use routes::Routes;
use shared_buffer::SharedMemory;
pub use shared_buffer::{SharedBuffer, SharedLimit};
pub(crate) use star::expand as expand_star;
pub use tcon::TconRule;
pub(crate) use tcon::{ControlKeys, control};

/// The tables that describe a network.
pub(crate) const SECTIONS: [&Section; 11] = [
    dumbbell::Dumbbell::SECTION,
    dumbbell::Sender::SECTION,
    dumbbell::Receivers::SECTION,
    star::Star::SECTION,
    star::StarHosts::SECTION,
    build::Hosts::SECTION,
    Switch::SECTION,
    SharedBuffer::SECTION,
    TconRule::SECTION,
    Link::SECTION,
    Route::SECTION,
];

/// The name of the port where packets of a dumbbell queue.
pub(crate) const BOTTLENECK: &str = "bottleneck";

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(crate) u32);

        impl $name {
            /// The position in the topology's list.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index! {
    /// A host: a position in [`Topology::hosts`].
    HostIndex
}
index! {
    /// A switch: a position in [`Topology::switches`].
    SwitchIndex
}
index! {
    /// A port: a position in [`Topology::ports`].
    PortIndex
}

impl PortIndex {
    /// The port at the other end of the link, which sends the other way.
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
    /// The ports, two for each link, one after the other: see [`PortIndex::reverse`].
    pub ports: Vec<Port>,
    /// Routes that somebody chose, in the file's order. Wherever there is none, packets take the
    /// paths with the fewest links: see [`Topology::routes`].
    pub chosen_routes: Vec<Route>,
}

/// A host: where flows begin and end. It forwards nothing.
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
    /// The memory that its ports share; without it each port has only the buffer of its queue.
    #[key(
        keys = SharedMemory,
        by = SharedMemory::read_keys(fields, ()).map(|keys| keys.shared_buffer)
    )]
    pub shared_buffer: Option<SharedBuffer>,
    /// Transparent congestion control: whose data the switch controls, the first rule that fits.
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

/// A port and the direction of its link that it sends on: a queue, a rate, a delay.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// `A->B`, or a name of its own such as `bottleneck`.
    pub name: String,
    /// Who sends.
    pub from: Node,
    /// Who receives.
    pub to: Node,
    /// How fast the link sends.
    pub rate: Rate,
    /// How long a bit travels.
    pub delay: Duration,
    /// The longest IP packet that fits.
    pub mtu: ByteSize,
    /// What a packet occupies on the link beyond its IP bytes.
    pub framing: ByteSize,
    /// Where packets wait for the link.
    pub queue: Queue,
}

impl Switch {
    /// A switch without memory that its ports share, which controls nothing.
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            shared_buffer: None,
            tcon: Vec::new(),
        }
    }
}

impl Topology {
    /// The host at `index`.
    pub fn host(&self, index: HostIndex) -> &Host {
        &self.hosts[index.index()]
    }

    /// The switch at `index`.
    pub fn switch(&self, index: SwitchIndex) -> &Switch {
        &self.switches[index.index()]
    }

    /// The port at `index`.
    pub fn port(&self, index: PortIndex) -> &Port {
        &self.ports[index.index()]
    }

    /// The name of a host or switch.
    pub fn name(&self, node: Node) -> &str {
        match node {
            Node::Host(host) => &self.host(host).name,
            Node::Switch(switch) => &self.switch(switch).name,
        }
    }

    /// All hosts.
    pub fn host_indices(&self) -> impl Iterator<Item = HostIndex> + use<> {
        (0..self.hosts.len() as u32).map(HostIndex)
    }

    /// All switches.
    pub fn switch_indices(&self) -> impl Iterator<Item = SwitchIndex> + use<> {
        (0..self.switches.len() as u32).map(SwitchIndex)
    }

    /// All ports.
    pub fn port_indices(&self) -> impl Iterator<Item = PortIndex> + use<> {
        (0..self.ports.len() as u32).map(PortIndex)
    }

    /// The ports that send from `node`.
    pub fn ports_of(&self, node: Node) -> impl Iterator<Item = PortIndex> {
        self.port_indices()
            .filter(move |port| self.port(*port).from == node)
    }

    /// The port called `name`.
    pub fn port_by_name(&self, name: &str) -> Option<PortIndex> {
        self.port_indices()
            .find(|port| self.port(*port).name == name)
    }

    /// The smallest MTU of all links; nothing where there is no link.
    pub fn smallest_mtu(&self) -> ByteSize {
        let mtus = self.ports.iter().map(|port| port.mtu);
        mtus.min().unwrap_or(ByteSize::ZERO)
    }

    /// The rate of the slowest of all links; nothing where there is no link.
    pub fn slowest_rate(&self) -> Rate {
        let rates = self.ports.iter().map(|port| port.rate);
        rates.min().unwrap_or(Rate::ZERO)
    }

    /// Which ports lead from each switch and host to each host.
    pub fn routes(&self) -> Routes {
        Routes::new(self)
    }
}

impl Node {
    /// The switch, if it is one.
    pub const fn switch(self) -> Option<SwitchIndex> {
        match self {
            Self::Switch(switch) => Some(switch),
            Self::Host(_) => None,
        }
    }

    /// The host, if it is one.
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
