//! Results of transfers with deadlines.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use weir_units::{Duration, Rate};

use crate::serialized::{bps, seconds};

/// The results of all groups' transfers with deadlines that began after the warm-up and were due
/// before the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadlineSummary {
    /// The number of transfers.
    pub transfers: u64,
    /// The number of transfers that missed their deadline.
    pub missed: u64,
    /// The minimum number that any schedule must miss: the sum over the ports. `None` if no
    /// measured port is on the path of any transfer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fewest_missed: Option<u64>,
    /// The time during which at least one of them was active.
    #[serde(rename = "busy_s", with = "seconds")]
    pub busy: Duration,
    /// Their bytes in that time, per time.
    #[serde(rename = "goodput_bps", with = "bps")]
    pub goodput: Rate,
    /// The transfers by bottleneck, by the measured port's name, if there are several. The
    /// bottleneck is the slowest port on their path.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub ports: IndexMap<String, PortDeadlines>,
}

/// The results of the transfers with deadlines whose bottleneck is one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortDeadlines {
    /// The number of transfers.
    pub transfers: u64,
    /// The number of transfers that missed their deadline.
    pub missed: u64,
    /// The minimum number that any schedule must miss. For each period of continuous activity, it
    /// assumes that all transfers start with the first one and that the port sends one after the
    /// other (Moore 1968).
    pub fewest_missed: u64,
}
