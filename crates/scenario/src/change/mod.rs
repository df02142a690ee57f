//! Changes of settings at times of a run: thresholds of queues, shared buffers, parameters of congestion
//! controls, loads.
//!
//! | file | content |
//! |---|---|
//! | `read` | the tables `[[changes]]` |
//! | `queue` | what can change of a queue |
//! | `shared_buffer` | what can change of a shared buffer |
//! | `workload` | what can change of a workload |
//! | `schedule` | the settings in force at a time |

mod queue;
mod read;
mod schedule;
mod shared_buffer;
#[cfg(test)]
mod tests;
mod workload;

use weir_congestion::Value;
use weir_units::Time;

use crate::{PortIndex, SwitchIndex};

pub use queue::QueueChange;
pub(crate) use read::{ChangeTargets, SECTIONS, prepare, read_changes};
pub use schedule::ChangeSchedule;
pub use shared_buffer::SharedBufferChange;
pub use workload::WorkloadChange;

/// A change of settings at a time. It replaces these values, and leaves all else as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// When it takes effect: before all else that happens at this time.
    pub at: Time,
    /// What changes.
    pub set: ChangedSettings,
}

/// The settings of a [`Change`].
#[derive(Clone, Debug, PartialEq)]
pub enum ChangedSettings {
    /// Of the queues of ports.
    Queues {
        /// The ports.
        ports: Vec<PortIndex>,
        /// The values.
        queue: QueueChange,
    },
    /// Of the memory that the ports of switches share.
    SharedBuffers {
        /// The switches.
        switches: Vec<SwitchIndex>,
        /// The values.
        buffer: SharedBufferChange,
    },
    /// Of groups.
    Groups {
        /// Indices into [`Scenario::groups`](crate::Scenario::groups).
        groups: Vec<usize>,
        /// Parameters of their congestion control, for open flows and those to come.
        congestion: Vec<(&'static str, Value)>,
        /// How much they send.
        workload: WorkloadChange,
    },
}

/// Why a change does not fit what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Misfit {
    /// The key that does not fit.
    key: &'static str,
    conflict: String,
    remedy: String,
}
