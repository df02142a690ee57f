//! References to ports in a file.

use super::names::matches;
use super::{PortIndex, Topology};
use crate::document::{Cursor, Reported};
use crate::schema::Accepts;

/// The accepted forms of port names.
pub(crate) const PORTS: Accepts = Accepts::Other(
    "the name of a port, a pattern such as \"switch->web*\", a class of links such as \"leaf->spine\" or \"hosts\", \
     or a list of them",
);

/// Returns the ports that names, patterns or [classes of links](Topology::link_class) refer to, each once.
pub(crate) fn read_ports(at: &Cursor<'_>, topology: &Topology) -> Result<Vec<PortIndex>, Reported> {
    let find = |name: &str| {
        let ports = topology.port_indices();
        let named = ports.filter(|port| matches(name, &topology.port(*port).name));
        let named: Vec<_> = named.collect();
        match (named.is_empty(), topology.link_class(name)) {
            (true, Some(class)) => class.ports,
            _ => named,
        }
    };
    let names = || topology.ports.iter().map(|port| port.name.as_str());
    let unknown = |at: &Cursor<'_>, name: &str| at.unknown_name("port", name, names());
    at.each_once(
        "port",
        "the name of a port, or a list of names",
        find,
        unknown,
    )
}
