//! `[measurements]`: the measured ports and groups.

use weir_scenario_derive::Keys;
use weir_units::{ByteSize, Duration};

use crate::document::{Cursor, Reported};
use crate::schema::{Accepts, Fields, LONGEST};
use crate::topology::{BOTTLENECK, Node, PORTS, read_ports};
use crate::{Group, PortIndex, Topology};

/// The measurements of a run.
#[derive(Clone, Debug, PartialEq, Eq, Keys)]
#[keys(title = "[measurements]", doc = "The measured ports and the intervals of samples.", context = MeasurementTargets<'_>)]
pub struct Measurements {
    // A Poisson process avoids aliasing with periodic behaviour (Vargas et al., section 5.4).
    /// The mean time between two samples of queues and goodput, taken by a Poisson process.
    #[key(accepts = Accepts::Duration(Duration::from_micros(1), LONGEST), default = "10ms")]
    pub sample_interval: Duration,
    /// The ports that are sampled and reported.
    #[key(
        accepts = PORTS,
        absent = "the dumbbell's `bottleneck`, else all ports of switches",
        or = default_ports(context.topology),
        read = read_ports(at, context.topology)
    )]
    pub ports: Vec<PortIndex>,
    /// The number of bytes that a capture (`--pcap`) keeps of each packet.
    #[key(
        accepts = Accepts::Size(ByteSize::from_bytes(64), ByteSize::from_bytes(65_535)),
        default = "128B"
    )]
    pub snap_length: ByteSize,
    /// The groups whose completion times are compared.
    #[key(
        accepts = Accepts::Other("a table with `of` and `against`"),
        absent = "not reported",
        by = Reduction::read_in(fields, context.groups)
    )]
    pub reduction: Option<Reduction>,
}

/// The parts of a scenario that measurements refer to.
#[derive(Clone, Copy)]
pub(crate) struct MeasurementTargets<'s> {
    pub(crate) topology: &'s Topology,
    /// `None` if the groups have mistakes; references to them are not checked then.
    pub(crate) groups: Option<&'s [Group]>,
}

/// The reduction of one group's total completion time against another's. Groups are indices into
/// [`Scenario::groups`].
///
/// [`Scenario::groups`]: crate::Scenario::groups
#[derive(Clone, Copy, Debug, PartialEq, Eq, Keys)]
#[keys(
    title = "[measurements.reduction]",
    doc = "Two groups whose completion times are compared: the part of the time of the group `against` \
           that the group `of` saves, 1 - (sum of its times) / (sum of the other's), after the warm-up. \
           The two should have as many requests or transfers, of the same sizes.",
    context = &[Group],
    check = table.check(fields)
)]
pub struct Reduction {
    /// The group that should be faster.
    #[key(accepts = Accepts::Other("the name of a group"), read = read_group(at, context))]
    pub of: usize,
    /// The group to compare with.
    #[key(accepts = Accepts::Other("the name of a group"), read = read_group(at, context))]
    pub against: usize,
}

impl Reduction {
    fn read_in(fields: &Fields<'_>, groups: Option<&[Group]>) -> Result<Option<Self>, Reported> {
        match (fields.at("reduction"), groups) {
            (Some(at), Some(groups)) => Self::read(&at, groups).map(Some),
            _ => Ok(None),
        }
    }

    fn check(self, fields: &Fields<'_>) -> Result<(), Reported> {
        if self.of == self.against {
            Err(fields.error_position("against").conflict(
                "a group saves nothing of its own time",
                "name two different groups",
            ))
        } else {
            Ok(())
        }
    }
}

/// Returns the index of the named group.
fn read_group(at: &Cursor<'_>, groups: &[Group]) -> Result<usize, Reported> {
    let name = at.text("the name of a group")?;
    let Some(position) = groups.iter().position(|group| group.name == name) else {
        let names = groups.iter().map(|group| group.name.as_str());
        return Err(at.unknown_name("group", name, names));
    };
    if groups[position].workload.has_completions() {
        Ok(position)
    } else {
        Err(at.conflict(
            format!(
                "`{name}` has a workload without end, which takes no time that one could compare"
            ),
            "name a group with requests or transfers",
        ))
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
