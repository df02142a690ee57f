//! Versions of a policy for a fleet of hosts: who gets which, in stages, with guards between them.
//!
//! A [`Fleet`] holds versions, hosts and the version on its way. It does no I/O. What is decided is a [`Batch`] of
//! records: a store keeps it as a whole, and then the fleet [applies](Fleet::apply) it. If the store fails, nothing
//! has happened. Time is an argument: nanoseconds since 1970.
//!
//! Each decision has a number, the revision. A host takes none with a lower number than the one that it has
//! ([`Held::accepts`]), so that a controller that comes back with an old copy of its store does not take anything
//! back by accident.
//!
//! ```
//! use weir_rollout::{Fleet, Hello, Labels, Push, RolloutPlan};
//! use weir_units::{Duration, Time};
//!
//! let mut fleet = Fleet::new("f00d");
//! let now = Time::ZERO + Duration::from_secs(1);
//! for name in ["web1", "web2"] {
//!     let hello = Hello { name: name.into(), labels: "role=web".parse()?, held: None };
//!     let batch = fleet.seen(now, std::slice::from_ref(&hello));
//!     fleet.apply(batch); // after a store has kept it
//!     fleet.connect(&hello);
//! }
//! let batch = fleet.push(now, Push {
//!     author: "alice".into(),
//!     message: "DCTCP for all".into(),
//!     text: "[[rules]]\ncongestion = \"dctcp\"\n".into(),
//!     plan: RolloutPlan { stages: "50 %, then all".parse()?, ..RolloutPlan::at_once() },
//!     simulated: None,
//!     supersede: false,
//! })?;
//! fleet.apply(batch);
//! let assigned = |name| fleet.assignment(name).map(|assignment| assignment.version);
//! let mut versions = [assigned("web1"), assigned("web2")];
//! versions.sort();
//! assert_eq!(versions, [Some(0), Some(1)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod decide;
mod entry;
mod fleet;
mod guards;
mod held;
mod labels;
mod progress;
mod record;
mod stages;
mod status;
#[cfg(test)]
mod tests;

pub use decide::{MOST_TEXT, Push, PushError, UndoError};
pub use entry::{Entry, Event};
pub use fleet::{Assignment, Batch, Fleet, Inconsistent, MetricsOrder, Stored};
pub use held::{Held, Hello};
pub use labels::{LabelError, Labels};
pub use record::{Cutoff, HostRecord, Rollout, RolloutPlan, State, TextDigest, Version};
pub use stages::{Stage, Stages, StagesError};
pub use status::{FleetStatus, HostCounts, HostStatus, RolloutStatus};
