//! How switches spread packets over paths of equal length.

use serde::Serialize;
use weir_scenario_derive::Word;
use weir_units::Duration;

use crate::document::Reported;
use crate::schema::Fields;

/// How a switch spreads packets over several ports of equal cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Word)]
#[serde(rename_all = "kebab-case")]
pub enum LoadBalancing {
    /// The hash of the flow decides: equal-cost multipath routing (RFC 2992).
    #[default]
    Flow,
    /// Packets of a flow that follow one another without a gap take a random one: flowlet switching (Vanini et al.,
    /// "Let It Flow", NSDI 2017).
    Flowlet,
    /// Each packet takes a random one: packet spraying (Dixit et al., INFOCOM 2013).
    Packet,
}

/// The gap before a flowlet where none is written.
const FLOWLET_GAP: Duration = Duration::from_micros(100);

/// Reads `flowlet_gap`, which only flowlets have.
pub(super) fn flowlet_gap(
    fields: &Fields<'_>,
    load_balancing: LoadBalancing,
) -> Result<Option<Duration>, Reported> {
    let gap = fields.optional("flowlet_gap")?;
    match (load_balancing, gap) {
        (LoadBalancing::Flowlet, gap) => Ok(Some(gap.unwrap_or(FLOWLET_GAP))),
        (_, None) => Ok(None),
        (_, Some(_)) => Err(fields.error_position("flowlet_gap").conflict(
            "only flowlets have a gap",
            "remove it, or set `load_balancing = \"flowlet\"`",
        )),
    }
}
