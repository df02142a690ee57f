//! Putting a topology together from what a file says, whatever the form.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use weir_units::{ByteSize, Duration, Rate};

use super::{Host, HostIndex, Node, Port, Switch, SwitchIndex, Topology};
use crate::Queue;
use crate::document::{At, Fields, Reported, Value};
use crate::error::{ProblemKind, list, nearest};
use crate::schema::{Accepts, Key, Literal};

/// Queues that the file names.
pub(crate) type Queues = HashMap<String, Result<Queue, Reported>>;

/// The name of the queue that never drops, which every file has.
const UNLIMITED: &str = "unlimited";

pub(crate) const MOST_HOSTS: u64 = 20_000;
pub(crate) const MANY_HOSTS: &str = "each has its own links and tables in memory";

pub(super) const COUNT: Key = Key::optional(
    "count",
    Accepts::Count(1, MOST_HOSTS),
    "one host called NAME",
    "how many equal hosts: NAME1, NAME2 …; NAME then means all of them",
);

pub(super) const MTU: Key = Key::default(
    "mtu",
    // Below, headers with all their options leave no room for data; above, IPv4 cannot tell.
    Accepts::Size(ByteSize::from_bytes(128), ByteSize::from_bytes(65_535)),
    Literal::Text("1500B"),
    "the longest IP packet that the links take",
);

pub(super) const FRAMING: Key = Key::default(
    "framing",
    Accepts::Size(ByteSize::ZERO, ByteSize::from_bytes(1_000)),
    Literal::Text("38B"),
    "what each packet occupies on the links beyond its IP bytes; 38 is Ethernet's preamble, header, \
     check sequence and gap, 2 is what ns-3's point-to-point links count",
);

/// What a link is like in both directions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkSettings {
    pub(crate) rate: Rate,
    pub(crate) delay: Duration,
    pub(crate) mtu: ByteSize,
    pub(crate) framing: ByteSize,
}

impl LinkSettings {
    /// The keys `rate`, `delay`, `mtu` and `framing` of a table.
    pub(crate) fn read(fields: &Fields<'_>) -> Result<Self, Reported> {
        let (rate, delay) = (fields.get("rate"), fields.get("delay"));
        let (mtu, framing) = (fields.get("mtu"), fields.get("framing"));
        Ok(Self {
            rate: rate?,
            delay: delay?,
            mtu: mtu?,
            framing: framing?,
        })
    }
}

/// What a name means.
#[derive(Clone, Debug)]
enum Meaning {
    Host(HostIndex),
    /// Equal hosts under one name.
    Hosts(Vec<HostIndex>),
    Switch(SwitchIndex),
}

/// The names of hosts, sets of hosts and switches.
#[derive(Debug, Default)]
pub(crate) struct Names {
    meanings: HashMap<String, Meaning>,
    /// In the order in which they were given.
    order: Vec<String>,
}

/// A topology in the making.
#[derive(Debug)]
pub(crate) struct Builder<'q> {
    pub(crate) topology: Topology,
    pub(crate) names: Names,
    queues: &'q Queues,
    /// Ports by name, and by what they connect.
    ports: HashMap<String, u32>,
}

impl<'q> Builder<'q> {
    pub(crate) fn new(queues: &'q Queues) -> Self {
        Self {
            topology: Topology {
                hosts: Vec::new(),
                switches: Vec::new(),
                ports: Vec::new(),
                chosen_routes: Vec::new(),
            },
            names: Names::default(),
            queues,
            ports: HashMap::new(),
        }
    }

    /// Adds the host `name`, or `count` of them.
    pub(crate) fn add_hosts(
        &mut self,
        at: &At<'_>,
        name: &str,
        count: Option<u32>,
    ) -> Result<Vec<HostIndex>, Reported> {
        check_name(at, name)?;
        let Some(count) = count else {
            return Ok(vec![self.add_host(at, name)?]);
        };
        let hosts: Result<Vec<_>, _> = (1..=count)
            .map(|number| self.add_host(at, &format!("{name}{number}")))
            .collect();
        let hosts = hosts?;
        self.names.add(at, name, Meaning::Hosts(hosts.clone()))?;
        Ok(hosts)
    }

    fn add_host(&mut self, at: &At<'_>, name: &str) -> Result<HostIndex, Reported> {
        let count = self.topology.hosts.len() as u64;
        if count >= MOST_HOSTS {
            return Err(at.problem(ProblemKind::TooMany {
                what: "hosts",
                count: count + 1,
                limit: MOST_HOSTS,
                reason: MANY_HOSTS,
            }));
        }
        let host = HostIndex(self.topology.hosts.len() as u32);
        self.names.add(at, name, Meaning::Host(host))?;
        self.topology.hosts.push(Host {
            name: name.to_owned(),
        });
        Ok(host)
    }

    /// Adds the switch `name`.
    pub(crate) fn add_switch(&mut self, at: &At<'_>, name: &str) -> Result<SwitchIndex, Reported> {
        check_name(at, name)?;
        let switch = SwitchIndex(self.topology.switches.len() as u32);
        self.names.add(at, name, Meaning::Switch(switch))?;
        self.topology.switches.push(Switch {
            name: name.to_owned(),
            shared_buffer: None,
            tcon: Vec::new(),
        });
        Ok(switch)
    }

    /// Adds a link: the port `from->to`, or called `name`, with the first queue, and the port back
    /// with the second.
    pub(crate) fn add_link(
        &mut self,
        at: &At<'_>,
        (from, to): (Node, Node),
        name: Option<&str>,
        settings: LinkSettings,
        queues: [Queue; 2],
    ) -> Result<(), Reported> {
        if from == to {
            let name = self.topology.name(from);
            return Err(at.conflict(
                format!("`{name}` is at both ends of the link"),
                "a link connects two different nodes",
            ));
        }
        let ends = [(from, to), (to, from)];
        for ((from, to), queue) in ends.into_iter().zip(queues) {
            let arrow = format!("{}->{}", self.topology.name(from), self.topology.name(to));
            let forward = self.topology.ports.len().is_multiple_of(2);
            let name = name
                .filter(|_| forward)
                .map_or_else(|| arrow.clone(), str::to_owned);
            let index = self.topology.ports.len() as u32;
            // The arrow is taken in any case: there is one link between two nodes.
            let taken = self.ports.insert(arrow.clone(), index).map(|_| &arrow);
            let taken = match name == arrow {
                true => taken,
                false => taken.or(self.ports.insert(name.clone(), index).map(|_| &name)),
            };
            if let Some(name) = taken {
                return Err(at.problem(ProblemKind::DuplicateName {
                    what: "port",
                    name: name.clone(),
                }));
            }
            self.topology.ports.push(Port {
                name,
                from,
                to,
                rate: settings.rate,
                delay: settings.delay,
                mtu: settings.mtu,
                framing: settings.framing,
                queue,
            });
        }
        Ok(())
    }

    /// The queue that a key names or describes. What is wrong with it has been reported and keeps the
    /// scenario from being accepted; an unlimited queue stands in, so that the rest is looked at too.
    pub(crate) fn queue(&self, at: &At<'_>) -> Queue {
        let queue = match &at.node.value {
            Value::Text(name) if name == UNLIMITED => Ok(Queue::UNLIMITED),
            Value::Text(name) => self.named_queue(at, name),
            _ => Queue::read(at),
        };
        queue.unwrap_or(Queue::UNLIMITED)
    }

    /// The queue of a key that must be there.
    pub(crate) fn needed_queue(&self, fields: &Fields<'_>) -> Queue {
        let queue = fields.needed("queue").map(|at| self.queue(&at));
        queue.unwrap_or(Queue::UNLIMITED)
    }

    /// The queue of a key that may be absent: then it is unlimited.
    pub(crate) fn optional_queue(&self, fields: &Fields<'_>, name: &str) -> Queue {
        let queue = fields.at(name).map(|at| self.queue(&at));
        queue.unwrap_or(Queue::UNLIMITED)
    }

    fn named_queue(&self, at: &At<'_>, name: &str) -> Result<Queue, Reported> {
        self.queues.get(name).copied().unwrap_or_else(|| {
            let mut names: Vec<_> = self.queues.keys().map(String::as_str).collect();
            names.push(UNLIMITED);
            names.sort_unstable();
            Err(at.problem(ProblemKind::UnknownName {
                what: "queue",
                name: name.to_owned(),
                existing: list(names.iter().copied()),
                nearest: nearest(name, names.into_iter()),
            }))
        })
    }
}

impl Names {
    fn add(&mut self, at: &At<'_>, name: &str, meaning: Meaning) -> Result<(), Reported> {
        match self.meanings.entry(name.to_owned()) {
            Entry::Vacant(vacant) => {
                vacant.insert(meaning);
                self.order.push(name.to_owned());
                Ok(())
            }
            Entry::Occupied(taken) => Err(at.problem(ProblemKind::DuplicateName {
                what: taken.get().what(),
                name: name.to_owned(),
            })),
        }
    }

    /// The nodes that a name, or a pattern with `*`, means.
    pub(crate) fn nodes(&self, at: &At<'_>) -> Result<Vec<Node>, Reported> {
        let name = at.text("the name of a host, of several hosts or of a switch")?;
        let found = self.find(name);
        match found.is_empty() {
            true => Err(self.unknown(at, "host or switch", name, |_| true)),
            false => Ok(found),
        }
    }

    /// The switch of this name.
    pub(crate) fn switch(&self, at: &At<'_>) -> Result<SwitchIndex, Reported> {
        let name = at.text("the name of a switch")?;
        let found = self.meanings.get(name);
        match found {
            Some(Meaning::Switch(switch)) => Ok(*switch),
            _ => {
                let is_switch = |meaning: &Meaning| matches!(meaning, Meaning::Switch(_));
                Err(self.unknown(at, "switch", name, is_switch))
            }
        }
    }

    /// The hosts that a name, a pattern with `*` or a list of them means, each once.
    pub(crate) fn hosts(&self, at: &At<'_>) -> Result<Vec<HostIndex>, Reported> {
        let mut hosts = Vec::new();
        for item in at.items() {
            let name = item.text("the name of a host or of several hosts, or a list of names")?;
            let found: Vec<_> = (self.find(name).into_iter())
                .filter_map(Node::host)
                .collect();
            if found.is_empty() {
                let is_host = |meaning: &Meaning| !matches!(meaning, Meaning::Switch(_));
                return Err(self.unknown(&item, "host", name, is_host));
            }
            hosts.extend(found);
        }
        let mut seen = std::collections::HashSet::new();
        hosts.retain(|host| seen.insert(*host));
        match hosts.is_empty() {
            true => Err(at.wrong_kind("at least one host")),
            false => Ok(hosts),
        }
    }

    fn find(&self, name: &str) -> Vec<Node> {
        let nodes = |meaning: &Meaning| match meaning {
            Meaning::Host(host) => vec![Node::Host(*host)],
            Meaning::Hosts(hosts) => hosts.iter().copied().map(Node::Host).collect(),
            Meaning::Switch(switch) => vec![Node::Switch(*switch)],
        };
        if !name.contains('*') {
            return self.meanings.get(name).map(nodes).unwrap_or_default();
        }
        // Names of sets would repeat their hosts.
        let single = self
            .order
            .iter()
            .filter(|candidate| matches(name, candidate));
        let meanings = single.filter_map(|candidate| self.meanings.get(candidate));
        meanings
            .filter(|meaning| !matches!(meaning, Meaning::Hosts(_)))
            .flat_map(nodes)
            .collect()
    }

    fn unknown(
        &self,
        at: &At<'_>,
        what: &'static str,
        name: &str,
        wanted: impl Fn(&Meaning) -> bool,
    ) -> Reported {
        let names: Vec<_> = self
            .order
            .iter()
            .filter(|name| self.meanings.get(*name).is_some_and(&wanted))
            .map(String::as_str)
            .collect();
        at.problem(ProblemKind::UnknownName {
            what,
            name: name.to_owned(),
            existing: list(names.iter().copied()),
            nearest: nearest(name, names.into_iter()),
        })
    }
}

impl Meaning {
    fn what(&self) -> &'static str {
        match self {
            Self::Host(_) => "host",
            Self::Hosts(_) => "set of hosts",
            Self::Switch(_) => "switch",
        }
    }
}

/// Whether `text` is `pattern`, in which each `*` stands for any characters.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(start) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(found) = text.find(part) else {
            return false;
        };
        text = &text[found + part.len()..];
    }
    text.ends_with(end)
}

/// Reports a name that could be mistaken for something else where it is used.
pub(crate) fn check_name(at: &At<'_>, name: &str) -> Result<(), Reported> {
    let begins = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if begins && name.chars().all(fits) && name.len() <= 64 {
        return Ok(());
    }
    Err(at.problem(ProblemKind::BadName {
        found: name.to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, text) in [
            ("a*", "a"),
            ("a*", "abc"),
            ("*", ""),
            ("*->b", "a->b"),
            ("a*b*c", "a-b-bc"),
            ("switch->h*", "switch->h12"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a*", "b"), ("a*a", "a"), ("a*b*c", "acb"), ("a", "ab")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
