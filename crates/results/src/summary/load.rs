//! The load of links.

use serde::{Deserialize, Serialize};

use crate::Ratio;

/// The load of a class of links after the warm-up: means of the links' utilizations, each the fraction of the time in
/// which the link is sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkLoad {
    /// The number of links, each in one direction.
    pub links: u64,
    /// By the data that the workloads send on average: each packet once, with headers and framing. Absent if a group
    /// sends as much as it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Ratio>,
    /// By the data of the flows that started, in the same sense.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<Ratio>,
    /// By all packets that the links sent: acknowledgments and retransmissions too.
    pub carried: Ratio,
    /// The largest of the links' utilizations.
    pub carried_max: Ratio,
}
