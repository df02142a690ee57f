//! What is watched.

use weir_units::{ByteSize, Duration};

use crate::document::{At, Fields, Reported};
use crate::error::{ProblemKind, list, nearest};
use crate::fault::read_ports;
use crate::schema::{Accepts, Key, Literal, Section};
use crate::topology::{BOTTLENECK, Node};
use crate::{Group, PortIndex, Topology};

/// What is watched while the simulation runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measurements {
    /// The mean time between two samples, which are taken by a Poisson process so that they meet no
    /// rhythm (Vargas et al., section 5.4).
    pub sample_interval: Duration,
    /// The ports that are sampled and reported.
    pub ports: Vec<PortIndex>,
    /// How much of each packet a capture keeps.
    pub snap_length: ByteSize,
    /// Which group's time is compared with which.
    pub reduction: Option<Reduction>,
}

/// By how much one group's requests or transfers take less time than another's, all together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// The group whose time is less, it is hoped: a position in [`Scenario::groups`].
    ///
    /// [`Scenario::groups`]: crate::Scenario::groups
    pub of: usize,
    /// The group that it is compared with.
    pub against: usize,
}

pub(crate) static MEASUREMENTS: Section = Section {
    title: "[measurements]",
    doc: "What is watched.",
    keys: &[
        Key::default(
            "sample_interval",
            Accepts::Duration(Duration::from_micros(1), crate::schema::LONGEST),
            Literal::Text("10ms"),
            "the mean time between two samples of queues and goodput, taken by a Poisson process",
        ),
        Key::optional(
            "ports",
            Accepts::Other(
                "the name of a port, a pattern such as \"switch->web*\", or a list of them",
            ),
            "the dumbbell's `bottleneck`, else all ports of switches",
            "the ports that are sampled and reported",
        ),
        Key::default(
            "snap_length",
            Accepts::Size(ByteSize::from_bytes(64), ByteSize::from_bytes(65_535)),
            Literal::Text("128B"),
            "how much of each packet a capture (`--pcap`) keeps",
        ),
        Key::optional(
            "reduction",
            Accepts::Other("a table with `of` and `against`"),
            "not reported",
            "which group's time is compared with which",
        ),
    ],
};

pub(crate) static REDUCTION: Section = Section {
    title: "[measurements.reduction]",
    doc: "Two groups whose completion times are compared: the part of the time of the group `against` \
          that the group `of` saves, 1 - (sum of its times) / (sum of the other's), after the warm-up. \
          The two should have as many requests or transfers, of the same sizes.",
    keys: &[
        Key::required(
            "of",
            Accepts::Other("the name of a group"),
            "the group that is to be faster",
        ),
        Key::required(
            "against",
            Accepts::Other("the name of a group"),
            "the group that it is compared with",
        ),
    ],
};

impl Measurements {
    /// Reads the table. `groups` are not there where they have mistakes of their own: then what refers
    /// to them is not looked at.
    pub(crate) fn read(
        fields: &Fields<'_>,
        topology: &Topology,
        groups: Option<&[Group]>,
    ) -> Result<Self, Reported> {
        let reduction = match (fields.at("reduction"), groups) {
            (Some(at), Some(groups)) => Reduction::read(at, groups).map(Some),
            _ => Ok(None),
        };
        let (interval, snap) = (fields.get("sample_interval"), fields.get("snap_length"));
        let ports = match fields.at("ports") {
            Some(at) => read_ports(&at, topology),
            None => Ok(default_ports(topology)),
        };
        Ok(Self {
            sample_interval: interval?,
            ports: ports?,
            snap_length: snap?,
            reduction: reduction?,
        })
    }
}

impl Reduction {
    fn read(at: At<'_>, groups: &[Group]) -> Result<Self, Reported> {
        let fields = Fields::open(at, &REDUCTION)?;
        let (of, against) = (
            read_group(&fields, "of", groups),
            read_group(&fields, "against", groups),
        );
        let reduction = Self {
            of: of?,
            against: against?,
        };
        match reduction.of == reduction.against {
            false => Ok(reduction),
            true => Err(fields.blame("against").conflict(
                "a group saves nothing of its own time",
                "name two different groups",
            )),
        }
    }
}

/// The position of the group that the key names.
fn read_group(fields: &Fields<'_>, key: &str, groups: &[Group]) -> Result<usize, Reported> {
    let at = fields.needed(key)?;
    let name = at.text("the name of a group")?;
    let Some(position) = groups.iter().position(|group| group.name == name) else {
        let names = || groups.iter().map(|group| group.name.as_str());
        return Err(at.problem(ProblemKind::UnknownName {
            what: "group",
            name: name.to_owned(),
            existing: list(names()),
            nearest: nearest(name, names()),
        }));
    };
    match groups[position].workload.has_completions() {
        true => Ok(position),
        false => Err(at.conflict(
            format!(
                "`{name}` has a workload without end, which takes no time that one could compare"
            ),
            "name a group with requests or transfers",
        )),
    }
}

fn default_ports(topology: &Topology) -> Vec<PortIndex> {
    if let Some(port) = topology.port_by_name(BOTTLENECK) {
        return vec![port];
    }
    let ports = topology.port_indices();
    ports
        .filter(|port| matches!(topology.port(*port).from, Node::Switch(_)))
        .collect()
}
