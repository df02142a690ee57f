//! What decides whether a treatment of connections is good: statistics of the connections that have it and
//! of those that do not, and guards that take it back.
//!
//! A source makes [records](ConnectionRecord) of connections; it need not be this host's kernel. A
//! [`Canary`] keeps the [statistics](GroupStatistics) of a rule's two groups, each figure an [`Estimate`] with its
//! 95 % interval, and evaluates the rule's [`Guard`]s. [`Canaries`] are those of a policy. Time is an
//! argument, in any clock that does not go back.
//!
//! Which connections are treated is decided by [`weir_policy::Share`], by a hash that a program in the kernel
//! computes too ([`connection_hash()`]).
//!
//! ```
//! use weir_canary::{Canaries, ConnectionRecord, ConnectionState};
//! use weir_policy::{Group, Policy, PolicyRule, Share, TconControl};
//! use weir_units::{ByteSize, Duration, Time};
//!
//! let control = TconControl {
//!     congestion: "bbr".parse()?,
//!     ecn: None,
//!     buffer: ByteSize::from_mib(4),
//! };
//! let rule = PolicyRule {
//!     share: Share::new(0.5, 0),
//!     compare: true,
//!     undo_if: vec!["retransmits > 2x for 10s".parse()?],
//!     ..PolicyRule::new(Some(control))
//! };
//! let mut canaries = Canaries::default();
//! let ids = canaries.set_policy(&Policy { rules: vec![rule] });
//!
//! // Of the treated connections every tenth segment is lost, of the others every hundredth.
//! let mut undone = Vec::new();
//! for connection in 0..2_000 {
//!     let group = Group::ALL[connection as usize % 2];
//!     let now = Time::ZERO + Duration::from_millis(10 * connection);
//!     canaries.record(now, &ConnectionRecord {
//!         rule: ids[0],
//!         group,
//!         connection,
//!         segments_sent: 100,
//!         segments_retransmitted: if group == Group::Treated { 10 } else { 1 },
//!         rtt_smoothed: Some(Duration::from_millis(1)),
//!         rtt_min: None,
//!         delivery_rate: None,
//!         duration: Duration::from_millis(20),
//!         delivered: ByteSize::from_kib(100),
//!         state: ConnectionState::Completed,
//!     });
//!     undone.extend(canaries.evaluate(now));
//! }
//! let said = undone[0].evidence.to_string();
//! assert!(said.starts_with("retransmits > 2x for 10s: 10% "), "{said}");
//! assert!(canaries.is_undone(ids[0]) && undone.len() == 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod canaries;
mod canary;
mod connections;
mod estimate;
mod group_statistics;
mod guard;
mod histogram;
mod order_statistics;
mod record;
mod rule_ids;
mod segments;
mod snapshot;
mod summary;
#[cfg(test)]
mod tests;

pub use canaries::{Canaries, ResumeError, Undo};
pub use canary::{Canary, CanaryReport, Comparison, RECENT, Undone};
pub use estimate::{Difference, Estimate};
pub use group_statistics::{GroupStatistics, SHORT};
pub use guard::{Evidence, Guard, LEAST_CONNECTIONS, figure_text};
pub use record::{ConnectionRecord, ConnectionState, RuleId};
pub use rule_ids::RuleIds;
pub use snapshot::{Snapshot, SnapshotParts};
pub use summary::Summary;
pub use weir_policy::{Group, Share, connection_hash};
