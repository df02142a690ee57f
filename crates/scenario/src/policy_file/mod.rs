//! Policy files: which TCP flows are controlled on real interfaces, and by which algorithm.
//! Deadline files have the same form. `docs/policy.md` and `docs/deadlines.md` describe them.
//!
//! ```
//! use weir_policy::PolicyFlow;
//! use weir_scenario::parse_policy;
//!
//! let text = r#"
//! [[rules]]
//! to = ["10.0.0.0/8", "fd00::/8"]
//! pass = true
//!
//! [[rules]]
//! from_port = [80, "8000-8999"]
//! congestion = { name = "bbr" }
//! "#;
//! let policy = parse_policy("policy.toml", text)?;
//! let flow = PolicyFlow::between("192.0.2.1:8080".parse()?, "198.51.100.7:4000".parse()?);
//! let rule = policy.decision(&flow).ok_or("no rule")?.rule;
//! assert_eq!(rule.line, 6);
//! assert!(rule.control.as_ref().is_some_and(|control| control.congestion.name() == "bbr"));
//!
//! let error = parse_policy("policy.toml", "[[rules]]\nto = \"10.0.0.0/33\"\npass = true").unwrap_err();
//! assert!(error.to_string().starts_with("policy.toml:2: rules.0.to: `10.0.0.0/33`"), "{error}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access;
mod canary;
pub(crate) mod condition;
mod deadlines;
mod policy;
mod rules;
mod socket;
#[cfg(test)]
mod tests;

pub(crate) use access::SECTIONS as ACCESS_SECTIONS;
pub use access::{load_access, parse_access};
pub(crate) use deadlines::SECTIONS as DEADLINE_SECTIONS;
pub use deadlines::{load_deadlines, parse_deadlines};
pub(crate) use policy::SECTIONS as POLICY_SECTIONS;
pub use policy::{CheckedPolicy, load_policy, load_policy_for, parse_policy, parse_policy_for};
