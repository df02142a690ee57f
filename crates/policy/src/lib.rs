//! Policies: which flows are controlled, and by which congestion control.
//!
//! A [`Policy`] is a list of rules. The [first that matches](first_match()) a flow applies; a flow
//! without a matching rule is not touched. Scenarios, enforcers and endpoints share these types.
//! `weir-scenario` parses policy files.
//!
//! ```
//! use weir_policy::{Policy, PolicyFlow, PolicyRule, TconControl};
//! use weir_units::ByteSize;
//!
//! let control = TconControl {
//!     congestion: "bbr".parse()?,
//!     ecn: None,
//!     buffer: ByteSize::from_bytes(4 << 20),
//! };
//! let web = PolicyRule {
//!     from_ports: vec!["80".parse()?],
//!     ..PolicyRule::new(Some(control))
//! };
//! let policy = Policy { rules: vec![web] };
//! let flow = PolicyFlow::between("192.0.2.1:80".parse()?, "198.51.100.7:4000".parse()?);
//! assert!(policy.decision(&flow).is_some());
//! let other = PolicyFlow::between("192.0.2.1:81".parse()?, "198.51.100.7:4000".parse()?);
//! assert_eq!(policy.explain(&other).mismatches[0].1.to_string(), "`from_port` is 81, not 80");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access;
mod changes;
mod check;
mod deadlines;
mod dscp;
mod first_match;
mod flow;
mod guard_condition;
mod name_pattern;
mod ports;
mod prefix;
mod process;
mod rule;
mod share;
mod source;
#[cfg(test)]
mod tests;

pub use access::{
    AccessPolicy, AccessRequest, AccessRule, ClientPattern, ClientPatternError, HostPattern,
    HostPatternError,
};
pub use changes::RuleChange;
pub use check::{RuleFinding, Severity};
pub use deadlines::{DeadlinePolicy, DeadlineRule};
pub use dscp::{Dscp, DscpError};
pub use first_match::{Match, first_match};
pub use flow::PolicyFlow;
pub use guard_condition::{
    Comparison, GuardCondition, GuardConditionError, GuardMetric, GuardThreshold,
};
pub use name_pattern::{NamePattern, NamePatternError};
pub use ports::{PortRange, PortRangeError};
pub use prefix::{Prefix, PrefixError};
pub use process::{
    CgroupPath, CgroupPathError, CommandPattern, CommandPatternError, SocketOwner, User, UserError,
};
pub use rule::{Decision, Explanation, Mismatch, Policy, PolicyRule, SocketOptions, TconControl};
pub use share::{Group, Share, connection_hash};
pub use source::PolicySource;
