//! Builds a topology from a file in any of the forms.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use weir_scenario_derive::Keys;
use weir_units::{ByteSize, Duration, Rate};

use super::names::{NameTarget, check_name};
use super::shared_buffer::SharedMemory;
use super::{
    Host, HostIndex, LoadBalancing, Names, Node, PARALLEL, Port, Switch, SwitchIndex, Topology,
    flowlet_gap,
};
use crate::Queue;
use crate::document::{Cursor, Reported, Value};
use crate::error::ProblemKind;
use crate::level::UNLIMITED;
use crate::schema::{Accepts, Fields};

/// The named queues of a file.
pub(crate) type Queues = HashMap<String, Result<Queue, Reported>>;

/// The accepted forms of a queue: a name or a table.
pub(super) const QUEUE: Accepts =
    Accepts::Other("the name of a queue, or a table that describes one");

pub(super) const MOST_HOSTS: u64 = 20_000;

/// The keys of a table of hosts.
#[derive(Clone, Copy, Debug, Keys)]
#[keys(title = "[hosts.NAME]", doc = "A host, or several equal ones.")]
pub(super) struct Hosts {
    /// The number of equal hosts: NAME1, NAME2 …; NAME then means all of them.
    #[key(accepts = Accepts::Count(1, MOST_HOSTS), absent = "one host called NAME")]
    pub(super) count: Option<u32>,
}

/// The packet sizes of a link, and the framing overhead.
#[derive(Clone, Copy, Debug, Serialize, Keys)]
pub(crate) struct PacketSizes {
    // Below, headers with all options leave no room for data; above, the length does not fit IPv4.
    /// The largest IP packet on the links.
    #[key(
        accepts = Accepts::Size(ByteSize::from_bytes(128), ByteSize::from_bytes(65_535)),
        default = "1500B"
    )]
    pub(crate) mtu: ByteSize,
    /// The bytes that each packet occupies on the links beyond its IP bytes; 38 is Ethernet's
    /// preamble, header, check sequence and gap, 2 is the overhead of ns-3's point-to-point links.
    #[key(accepts = Accepts::Size(ByteSize::ZERO, ByteSize::from_bytes(1_000)), default = "38B")]
    pub(crate) framing: ByteSize,
}

/// The options of all switches of a network.
#[derive(Clone, Copy, Debug, Default, Keys)]
pub(super) struct FabricOptions {
    /// How packets are spread over paths of equal length and parallel links: by the flow (ECMP); each flowlet, packets
    /// of a flow without a gap, at random; or each packet at random ("packet spraying"), so that packets of a flow may
    /// overtake one another.
    #[key(default = "flow")]
    load_balancing: LoadBalancing,
    /// The shortest time between two packets of a flow after which the second begins a flowlet; with `flowlet`. Above
    /// the difference of the paths' delays packets stay in order.
    #[key(
        accepts = Accepts::POSITIVE_SPAN,
        absent = "100us with `flowlet`",
        by = flowlet_gap(fields, load_balancing?)
    )]
    flowlet_gap: Option<Duration>,
    #[key(flatten)]
    memory: SharedMemory,
}

/// The properties of a link in both directions.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkSettings {
    pub(super) rate: Rate,
    pub(super) delay: Duration,
    pub(super) sizes: PacketSizes,
}

/// A topology that is being built.
#[derive(Debug)]
pub(crate) struct Builder<'q> {
    pub(crate) topology: Topology,
    pub(crate) names: Names,
    queues: &'q Queues,
    /// The names of ports, and of the nodes that they connect.
    ports: HashSet<String>,
}

impl<'q> Builder<'q> {
    pub(crate) fn new(queues: &'q Queues) -> Self {
        Self {
            topology: Topology {
                hosts: Vec::new(),
                switches: Vec::new(),
                ports: Vec::new(),
                explicit_routes: Vec::new(),
            },
            names: Names::default(),
            queues,
            ports: HashSet::new(),
        }
    }

    /// Adds the host `name`, or `count` of them.
    pub(super) fn add_hosts(
        &mut self,
        at: &Cursor<'_>,
        name: &str,
        count: Option<u32>,
    ) -> Result<Vec<Node>, Reported> {
        check_name(at, name)?;
        let Some(count) = count else {
            return Ok(vec![Node::Host(self.add_host(at, name)?)]);
        };
        let hosts: Result<Vec<_>, _> = (1..=count)
            .map(|number| self.add_host(at, &format!("{name}{number}")))
            .collect();
        let hosts = hosts?;
        let nodes = hosts.iter().copied().map(Node::Host).collect();
        self.names.add(at, name, NameTarget::Hosts(hosts))?;
        Ok(nodes)
    }

    fn add_host(&mut self, at: &Cursor<'_>, name: &str) -> Result<HostIndex, Reported> {
        let count = self.topology.hosts.len() as u64;
        if count >= MOST_HOSTS {
            return Err(at.problem(ProblemKind::TooMany {
                what: "hosts",
                count: count + 1,
                limit: MOST_HOSTS,
                reason: "each has its own links and tables in memory",
            }));
        }
        let host = HostIndex(self.topology.hosts.len() as u32);
        self.names.add(at, name, NameTarget::Host(host))?;
        self.topology.hosts.push(Host {
            name: name.to_owned(),
        });
        Ok(host)
    }

    /// Adds a switch.
    pub(super) fn add_switch(&mut self, at: &Cursor<'_>, switch: Switch) -> Result<Node, Reported> {
        let index = SwitchIndex(self.topology.switches.len() as u32);
        let meaning = NameTarget::Switch(index);
        self.names.add(at, &switch.name, meaning)?;
        self.topology.switches.push(switch);
        Ok(Node::Switch(index))
    }

    /// Adds the switches NAME1, NAME2 … with these options each.
    pub(super) fn add_switches(
        &mut self,
        at: &Cursor<'_>,
        name: &str,
        count: u32,
        options: FabricOptions,
    ) -> Result<Vec<Node>, Reported> {
        let switches = (1..=count).map(|number| Switch {
            load_balancing: options.load_balancing,
            flowlet_gap: options.flowlet_gap,
            shared_buffer: options.memory.shared_buffer,
            ..Switch::new(&format!("{name}{number}"))
        });
        switches.map(|switch| self.add_switch(at, switch)).collect()
    }

    /// Gives several hosts a name in common.
    pub(super) fn name_hosts(
        &mut self,
        at: &Cursor<'_>,
        name: &str,
        hosts: &[Node],
    ) -> Result<(), Reported> {
        let hosts = hosts.iter().copied().filter_map(Node::host).collect();
        self.names.add(at, name, NameTarget::Hosts(hosts))
    }

    /// Calls these hosts `rackN`, and links each to the rack's switch; the switch's ports have the queue.
    pub(super) fn add_rack(
        &mut self,
        at: &Cursor<'_>,
        (number, switch): (u32, Node),
        hosts: &[Node],
        link: LinkSettings,
        queue: Queue,
    ) -> Result<(), Reported> {
        self.name_hosts(at, &format!("rack{number}"), hosts)?;
        for host in hosts {
            self.add_link(at, (*host, switch), None, link, [Queue::UNLIMITED, queue])?;
        }
        Ok(())
    }

    /// Adds parallel links: one as [`Self::add_link`] does, or several with the ports `from->to:1`,
    /// `from->to:2` and so on.
    pub(super) fn add_links(
        &mut self,
        at: &Cursor<'_>,
        (from, to): (Node, Node),
        count: u32,
        settings: LinkSettings,
        queues: [Queue; 2],
    ) -> Result<(), Reported> {
        if count == 1 {
            return self.add_link(at, (from, to), None, settings, queues);
        }
        self.check_ends(at, (from, to))?;
        let arrows = [self.arrow(from, to), self.arrow(to, from)];
        for arrow in &arrows {
            self.reserve(at, arrow)?;
        }
        for number in 1..=count {
            let names = arrows
                .clone()
                .map(|arrow| format!("{arrow}{PARALLEL}{number}"));
            self.push_ports((from, to), names, settings, queues);
        }
        Ok(())
    }

    /// Adds a link: the port `from->to`, or `name`, with the first queue, and the port back with
    /// the second.
    pub(super) fn add_link(
        &mut self,
        at: &Cursor<'_>,
        (from, to): (Node, Node),
        name: Option<&str>,
        settings: LinkSettings,
        queues: [Queue; 2],
    ) -> Result<(), Reported> {
        self.check_ends(at, (from, to))?;
        // The arrow names are always reserved: parallel links are one entry.
        let [mut there, back] = [self.arrow(from, to), self.arrow(to, from)];
        self.reserve(at, &there)?;
        self.reserve(at, &back)?;
        if let Some(name) = name.filter(|name| *name != there) {
            self.reserve(at, name)?;
            there = name.to_owned();
        }
        self.push_ports((from, to), [there, back], settings, queues);
        Ok(())
    }

    fn check_ends(&self, at: &Cursor<'_>, (from, to): (Node, Node)) -> Result<(), Reported> {
        if from == to {
            let name = self.topology.name(from);
            return Err(at.conflict(
                format!("`{name}` is at both ends of the link"),
                "a link connects two different nodes",
            ));
        }
        Ok(())
    }

    /// Returns the name of the port from one node to another.
    fn arrow(&self, from: Node, to: Node) -> String {
        format!("{}->{}", self.topology.name(from), self.topology.name(to))
    }

    /// Takes the name of a port, which must be free.
    fn reserve(&mut self, at: &Cursor<'_>, name: &str) -> Result<(), Reported> {
        if self.ports.insert(name.to_owned()) {
            return Ok(());
        }
        Err(at.conflict(
            format!("`{name}` is the name of another port"),
            "parallel links between two nodes are one entry with `count`",
        ))
    }

    /// Adds the two ports of a link.
    fn push_ports(
        &mut self,
        (from, to): (Node, Node),
        names: [String; 2],
        settings: LinkSettings,
        queues: [Queue; 2],
    ) {
        let ends = [(from, to), (to, from)];
        for (((from, to), name), queue) in ends.into_iter().zip(names).zip(queues) {
            self.topology.ports.push(Port {
                name,
                from,
                to,
                rate: settings.rate,
                delay: settings.delay,
                mtu: settings.sizes.mtu,
                framing: settings.sizes.framing,
                queue,
            });
        }
    }

    /// Returns the queue that a key names or describes. If it has a mistake, which was reported and
    /// rejects the scenario, an unlimited queue replaces it so that the rest is checked too.
    pub(super) fn queue(&self, at: &Cursor<'_>) -> Queue {
        let queue = match &at.node.value {
            Value::Text(name) if name == UNLIMITED => Ok(Queue::UNLIMITED),
            Value::Text(name) => self.named_queue(at, name),
            _ => Queue::read(at),
        };
        queue.unwrap_or(Queue::UNLIMITED)
    }

    /// Returns the queue of the required key `queue`.
    pub(super) fn needed_queue(&self, fields: &Fields<'_>) -> Queue {
        let queue = fields.needed("queue").map(|at| self.queue(&at));
        queue.unwrap_or(Queue::UNLIMITED)
    }

    fn named_queue(&self, at: &Cursor<'_>, name: &str) -> Result<Queue, Reported> {
        self.queues.get(name).copied().unwrap_or_else(|| {
            let mut names: Vec<_> = self.queues.keys().map(String::as_str).collect();
            names.push(UNLIMITED);
            names.sort_unstable();
            Err(at.unknown_name("queue", name, names.into_iter()))
        })
    }
}
