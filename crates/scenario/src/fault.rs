//! Faults: what goes wrong on links, and when.

use std::collections::HashMap;

use serde::{Serialize, Serializer};
use weir_fabric::Probability;
use weir_units::{Duration, Rate, Time};

use crate::document::{At, Fields, Reported, section_by_kind};
use crate::error::{ProblemKind, list, nearest};
use crate::schema::{Accepts, Key, Section};
use crate::topology::matches;
use crate::{PortIndex, Topology};

/// Something that goes wrong for a while.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The ports whose packets meet it, after they have been sent.
    pub ports: Vec<PortIndex>,
    /// From when.
    pub at: Time,
    /// Until when; without, until the end.
    pub until: Option<Time>,
    /// What.
    pub kind: FaultKind,
}

/// What goes wrong. Faults of one kind on one port never overlap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FaultKind {
    /// Every packet is lost.
    Down,
    /// Packets are lost at random.
    Loss {
        /// How probably.
        #[serde(serialize_with = "value")]
        probability: Probability,
    },
    /// Packets arrive twice at random.
    Duplicate {
        /// How probably.
        #[serde(serialize_with = "value")]
        probability: Probability,
    },
    /// Packets are damaged at random, and dropped by the receiver.
    Corrupt {
        /// How probably.
        #[serde(serialize_with = "value")]
        probability: Probability,
    },
    /// Packets fall behind those sent after them, at random.
    Reorder {
        /// How probably.
        #[serde(serialize_with = "value")]
        probability: Probability,
        /// By how long.
        delay: Duration,
    },
    /// The link is longer.
    Delay {
        /// By how much.
        delay: Duration,
    },
    /// Packets are delayed by random spans, in order.
    Jitter {
        /// Up to this, uniformly from zero.
        jitter: Duration,
    },
    /// The link sends at another rate.
    Rate {
        /// At this.
        rate: Rate,
    },
}

fn value<S: Serializer>(value: &Probability, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(value.value())
}

const PORTS: Key = Key::required(
    "ports",
    Accepts::Other("the name of a port, a pattern such as \"switch->web*\", or a list of them"),
    "the ports whose packets meet the fault, after they have been sent; name both ports of a link \
     for both directions",
);

const AT: Key = Key::required("at", Accepts::SPAN, "from when");

const UNTIL: Key = Key::optional(
    "until",
    Accepts::POSITIVE_SPAN,
    "until the end",
    "until when",
);

const PROBABILITY: Key = Key::required("probability", Accepts::Probability, "how probably");

/// All kinds of faults.
pub(crate) static SECTIONS: [&Section; 8] = [
    &Section {
        title: "[[faults]] kind = \"down\"",
        doc: "Every packet is lost.",
        keys: &[Key::kind(&["down"]), PORTS, AT, UNTIL],
    },
    &Section {
        title: "[[faults]] kind = \"loss\"",
        doc: "Packets are lost at random.",
        keys: &[Key::kind(&["loss"]), PORTS, AT, UNTIL, PROBABILITY],
    },
    &Section {
        title: "[[faults]] kind = \"duplicate\"",
        doc: "Packets arrive twice at random.",
        keys: &[Key::kind(&["duplicate"]), PORTS, AT, UNTIL, PROBABILITY],
    },
    &Section {
        title: "[[faults]] kind = \"corrupt\"",
        doc: "Packets are damaged at random, and dropped by the receiver.",
        keys: &[Key::kind(&["corrupt"]), PORTS, AT, UNTIL, PROBABILITY],
    },
    &Section {
        title: "[[faults]] kind = \"reorder\"",
        doc: "Packets fall behind those sent after them, at random.",
        keys: &[
            Key::kind(&["reorder"]),
            PORTS,
            AT,
            UNTIL,
            PROBABILITY,
            Key::required(
                "delay",
                Accepts::POSITIVE_SPAN,
                "how long they are held back",
            ),
        ],
    },
    &Section {
        title: "[[faults]] kind = \"delay\"",
        doc: "The link is longer.",
        keys: &[
            Key::kind(&["delay"]),
            PORTS,
            AT,
            UNTIL,
            Key::required(
                "delay",
                Accepts::POSITIVE_SPAN,
                "the additional delay, one way",
            ),
        ],
    },
    &Section {
        title: "[[faults]] kind = \"jitter\"",
        doc: "Packets are delayed by random spans, in order.",
        keys: &[
            Key::kind(&["jitter"]),
            PORTS,
            AT,
            UNTIL,
            Key::required(
                "jitter",
                Accepts::POSITIVE_SPAN,
                "the longest such span; they are uniform from zero",
            ),
        ],
    },
    &Section {
        title: "[[faults]] kind = \"rate\"",
        doc: "The link sends at another rate.",
        keys: &[
            Key::kind(&["rate"]),
            PORTS,
            AT,
            UNTIL,
            Key::required("rate", Accepts::RATE, "the rate"),
        ],
    },
];

impl Fault {
    pub(crate) fn read(
        at: &At<'_>,
        topology: &Topology,
        duration: Duration,
    ) -> Result<Self, Reported> {
        let section = section_by_kind(at, &SECTIONS)?;
        let fields = Fields::open(at.clone(), section)?;
        let ports = fields
            .needed("ports")
            .and_then(|at| read_ports(&at, topology));
        let (begin, until) = (fields.get("at"), fields.optional("until"));
        let kind = FaultKind::read(section.kind(), &fields);
        let fault = Self {
            ports: ports?,
            at: begin?,
            until: until?,
            kind: kind?,
        };
        if fault.at >= Time::ZERO + duration {
            return Err(fields.blame("at").conflict(
                format!(
                    "the fault begins at {}, and the simulation ends at {duration}",
                    fault.at
                ),
                "set `at` to less, or a longer `duration`",
            ));
        }
        match fault.until {
            Some(until) if until <= fault.at => Err(fields.blame("until").conflict(
                format!("the fault ends at {until} but begins at {}", fault.at),
                "set `until` after `at`",
            )),
            _ => Ok(fault),
        }
    }
}

/// Reports faults of one kind that meet on a port: which one holds nobody could tell.
pub(crate) fn check_overlaps(
    items: &[At<'_>],
    faults: &[Fault],
    topology: &Topology,
) -> Result<(), Reported> {
    let mut by_place: HashMap<_, Vec<usize>> = HashMap::new();
    for (index, fault) in faults.iter().enumerate() {
        for port in &fault.ports {
            let key = (std::mem::discriminant(&fault.kind), *port);
            by_place.entry(key).or_default().push(index);
        }
    }
    let mut overlaps = Vec::new();
    for ((_, port), mut indices) in by_place {
        indices.sort_by_key(|index| faults[*index].at);
        for pair in indices.windows(2) {
            let until = faults[pair[0]].until.unwrap_or(Time::MAX);
            if faults[pair[1]].at < until {
                overlaps.push((pair[0].max(pair[1]), pair[0].min(pair[1]), port));
            }
        }
    }
    // A hash table has no order of its own.
    overlaps.sort_unstable();
    let Some((second, first, port)) = overlaps.first() else {
        return Ok(());
    };
    let port = &topology.port(*port).name;
    Err(items[*second].conflict(
        format!("the port `{port}` still has another fault of this kind, `faults.{first}`"),
        "end one before the other begins",
    ))
}

impl FaultKind {
    fn read(kind: Option<&str>, fields: &Fields<'_>) -> Result<Self, Reported> {
        Ok(match kind {
            Some("loss") => Self::Loss {
                probability: fields.get("probability")?,
            },
            Some("duplicate") => Self::Duplicate {
                probability: fields.get("probability")?,
            },
            Some("corrupt") => Self::Corrupt {
                probability: fields.get("probability")?,
            },
            Some("reorder") => {
                let (probability, delay) = (fields.get("probability"), fields.get("delay"));
                Self::Reorder {
                    probability: probability?,
                    delay: delay?,
                }
            }
            Some("delay") => Self::Delay {
                delay: fields.get("delay")?,
            },
            Some("jitter") => Self::Jitter {
                jitter: fields.get("jitter")?,
            },
            Some("rate") => Self::Rate {
                rate: fields.get("rate")?,
            },
            _ => Self::Down,
        })
    }
}

/// The ports that names or patterns mean, each once.
pub(crate) fn read_ports(at: &At<'_>, topology: &Topology) -> Result<Vec<PortIndex>, Reported> {
    let mut ports: Vec<PortIndex> = Vec::new();
    for item in at.items() {
        let name = item.text("the name of a port, or a list of names")?;
        let indices = topology.port_indices();
        let found: Vec<_> = indices
            .filter(|port| matches(name, &topology.port(*port).name))
            .collect();
        if found.is_empty() {
            let names = || topology.ports.iter().map(|port| port.name.as_str());
            return Err(item.problem(ProblemKind::UnknownName {
                what: "port",
                name: name.to_owned(),
                existing: list(names()),
                nearest: nearest(name, names()),
            }));
        }
        ports.extend(found);
    }
    let mut seen = std::collections::HashSet::new();
    ports.retain(|port| seen.insert(*port));
    match ports.is_empty() {
        true => Err(at.wrong_kind("at least one port")),
        false => Ok(ports),
    }
}
