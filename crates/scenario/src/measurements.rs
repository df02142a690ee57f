//! What is watched.

use weir_units::{ByteSize, Duration};

use crate::document::{Fields, Reported};
use crate::fault::read_ports;
use crate::schema::{Accepts, Key, Literal, Section};
use crate::topology::{BOTTLENECK, Node};
use crate::{PortIndex, Topology};

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
    ],
};

impl Measurements {
    pub(crate) fn read(fields: &Fields<'_>, topology: &Topology) -> Result<Self, Reported> {
        let (interval, snap) = (fields.get("sample_interval"), fields.get("snap_length"));
        let ports = match fields.at("ports") {
            Some(at) => read_ports(&at, topology),
            None => Ok(default_ports(topology)),
        };
        Ok(Self {
            sample_interval: interval?,
            ports: ports?,
            snap_length: snap?,
        })
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
