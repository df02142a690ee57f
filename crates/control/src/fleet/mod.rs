//! The controller of policies: versions for a fleet of hosts, decided by [`weir_rollout`].
//!
//! | file | what it does |
//! |---|---|
//! | `store` | keeps versions, hosts and the log: in a file, or in etcd |
//! | `task` | takes what hosts and people want, and keeps what is decided before anybody learns of it |
//! | `session` | a host that is attached |
//! | `services` | gRPC: checks certificates and messages |
//! | `host` | a host's end: attaches again by itself |
//! | `held_file` | what a host keeps on its disk |
//! | `client` | for people who push and watch |
//! | `follower` | a policy source that follows the controller, for endpoints |
//! | `translate` | between the wire (`proto/weir/policy/v1`) and [`weir_rollout`] |

mod client;
mod follower;
mod held_file;
mod host;
mod metrics;
mod services;
mod session;
mod store;
mod task;
mod translate;

use std::time::SystemTime;

use weir_units::{Duration, Time};

pub use client::{FleetClient, FleetClientError, Pushed};
pub use follower::{FollowedPolicy, ReadPolicy};
pub use held_file::{HeldFile, HeldFileError, HeldPolicy};
pub use host::{AssignedPolicy, HostChannel, HostEvent, HostOptions, HostState};
pub(crate) use metrics::FleetMetrics;
pub use metrics::register_fleet_metrics;
pub(crate) use services::FleetServices;
pub(crate) use store::{PolicyStore, open};
pub use store::{StoreError, StoreLocation};
pub(crate) use task::{FleetInput, FleetTask};

/// Returns the time since 1970.
pub(crate) fn now() -> Time {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Time::ZERO + Duration::from(now.unwrap_or_default())
}
