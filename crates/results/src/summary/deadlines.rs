//! How transfers with deadlines went.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use weir_units::{Duration, Rate};

use crate::serialized::{bps, seconds};

/// How all groups' transfers with deadlines went that began after the warm-up and were due before the
/// end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadlineSummary {
    /// How many there were.
    pub transfers: u64,
    /// How many were not complete in time.
    pub missed: u64,
    /// How many of them at least had to be late, whatever is done: the sum of what is told of each port.
    /// Nothing where no measured port is on the way of any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fewest_missed: Option<u64>,
    /// How long at least one of them was under way.
    #[serde(rename = "busy_s", with = "seconds")]
    pub busy: Duration,
    /// What they carried in that time, per time.
    #[serde(rename = "goodput_bps", with = "bps")]
    pub goodput: Rate,
    /// Of those whose bottleneck is each measured port, by its name, where there are several: the slowest on
    /// their way.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub ports: IndexMap<String, PortDeadlines>,
}

/// How the transfers with deadlines went whose bottleneck is one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortDeadlines {
    /// How many there were.
    pub transfers: u64,
    /// How many were not complete in time.
    pub missed: u64,
    /// How many of them at least had to be late, whatever is done: of those that were under way in one go,
    /// if they could all have begun with the first of them, sent one after the other by the port
    /// (Moore 1968).
    pub fewest_missed: u64,
}
