//! Hosts, switches, and the ports between them: what every form of topology expands to.

mod build;
mod dumbbell;
mod general;
mod links;
mod route;
mod star;
mod tcon;
#[cfg(test)]
mod tests;

use std::fmt;

use weir_units::{ByteSize, Duration, Rate};

use crate::Queue;

pub(crate) use build::{Builder, LinkSettings, Names, Queues, check_name, matches};
pub(crate) use dumbbell::{BOTTLENECK, DUMBBELL, RECEIVERS, SENDERS, read as read_dumbbell};
pub(crate) use general::{HOST, SHARED_BUFFER, SWITCH, read as read_general};
pub(crate) use links::LINK;
pub(crate) use route::ROUTE;
pub use route::{Route, Routes};
pub(crate) use star::{STAR, STAR_HOSTS, read as read_star};
pub use tcon::TconRule;
pub(crate) use tcon::control;
pub(crate) use tcon::{BUFFER, CONGESTION, ECN, PASS, TCON};

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
#[derive(Clone, Debug, PartialEq)]
pub struct Switch {
    /// Its name.
    pub name: String,
    /// The memory that its ports share; without it each port has only the buffer of its queue.
    pub shared_buffer: Option<SharedBuffer>,
    /// Whose data it controls in place of the senders: the first rule that fits.
    pub tcon: Vec<TconRule>,
}

/// Memory that the ports of a switch share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharedBuffer {
    /// How much there is.
    pub size: ByteSize,
    /// What a port may take of it, beside the limit of its queue.
    pub limit: SharedLimit,
}

/// How much of a shared buffer one port may hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SharedLimit {
    /// This much.
    Static(ByteSize),
    /// This many times what is free: dynamic thresholds (Choudhury and Hahne 1998).
    Dynamic {
        /// The factor.
        alpha: f64,
    },
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
