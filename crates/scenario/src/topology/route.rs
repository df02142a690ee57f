//! `[[routes]]`: explicit routes.

use weir_scenario_derive::Keys;

use super::build::Builder;
use super::names::HOSTS;
use super::{HostIndex, Node, PortIndex, SwitchIndex};
use crate::document::{Cursor, Reported};
use crate::schema::{Accepts, Fields};

/// An explicit route: the next hops at a switch for packets to some hosts.
#[derive(Clone, Debug, PartialEq, Eq, Keys)]
#[keys(
    title = "[[routes]]",
    doc = "An explicit route. Without one, packets take the paths with the fewest links, and flows are \
           spread over paths of equal length.",
    context = &Builder<'_>
)]
pub struct Route {
    /// The switch that the route applies to.
    #[key(accepts = Accepts::Other("the name of a switch"), read = read_switch(at, context))]
    pub switch: SwitchIndex,
    /// The destination hosts.
    #[key(accepts = HOSTS, read = context.names.hosts(at))]
    pub to: Vec<HostIndex>,
    /// The next hops; flows are spread over several, and over parallel links.
    #[key(
        accepts = Accepts::Other("the name of a neighbour of the switch, or a list of names"),
        by = read_ports(fields, context, switch?)
    )]
    pub via: Vec<PortIndex>,
}

fn read_switch(at: &Cursor<'_>, builder: &Builder<'_>) -> Result<SwitchIndex, Reported> {
    match builder.names.nodes(at)?[..] {
        [Node::Switch(switch)] => Ok(switch),
        _ => Err(at.wrong_kind("the name of a switch")),
    }
}

/// Reads the ports of `switch` that lead to the neighbours under the key `via`.
fn read_ports(
    fields: &Fields<'_>,
    builder: &Builder<'_>,
    switch: SwitchIndex,
) -> Result<Vec<PortIndex>, Reported> {
    let topology = &builder.topology;
    let neighbours = || {
        let ports = topology.ports_of(Node::Switch(switch));
        ports.map(|port| (port, topology.port(port).to))
    };
    let mut found = Vec::new();
    for at in fields.needed("via")?.items() {
        for node in builder.names.nodes(&at)? {
            let ports = neighbours().filter(|(_, neighbour)| *neighbour == node);
            let before = found.len();
            found.extend(ports.map(|(port, _)| port));
            if found.len() == before {
                let names = neighbours().map(|(_, neighbour)| topology.name(neighbour));
                return Err(at.unknown_name(
                    "neighbour of the switch",
                    topology.name(node),
                    names.collect::<Vec<_>>().into_iter(),
                ));
            }
        }
    }
    Ok(found)
}
