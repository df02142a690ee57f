//! Policy files: which TCP flows are controlled on real interfaces, and by which algorithm; and, of the same
//! shape, files of deadlines ([`DeadlinePolicy`]).
//!
//! A [`Policy`] is a list of rules; the first one that fits a flow holds, and a flow that none fits is
//! left alone. `docs/policy.md` describes the file.
//!
//! ```
//! use weir_scenario::{Policy, PolicyFlow};
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
//! let policy = Policy::parse("policy.toml", text)?;
//! let flow = PolicyFlow::between("192.0.2.1:8080".parse()?, "198.51.100.7:4000".parse()?);
//! let rule = policy.rule(&flow).ok_or("no rule")?;
//! assert_eq!(rule.line, 6);
//! assert!(rule.control.as_ref().is_some_and(|control| control.congestion.name() == "bbr"));
//!
//! let error = Policy::parse("policy.toml", "[[rules]]\nto = \"10.0.0.0/33\"\npass = true").unwrap_err();
//! assert!(error.to_string().starts_with("policy.toml:2: rules.0.to: `10.0.0.0/33`"), "{error}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod condition;
mod deadlines;
mod dscp;
mod fit;
mod name_pattern;
mod ports;
mod prefix;
mod read;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;

use weir_wire::FlowKey;

pub(crate) use deadlines::SECTIONS as DEADLINE_SECTIONS;
pub use deadlines::{DeadlinePolicy, DeadlineRule};
pub use dscp::Dscp;
pub use fit::{Explanation, Misfit};
pub use name_pattern::NamePattern;
pub use ports::PortRange;
pub use prefix::Prefix;
pub(crate) use read::SECTIONS;

use crate::TconControl;

/// A policy: the first rule that fits a flow holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    /// The rules, in the file's order.
    pub rules: Vec<PolicyRule>,
}

/// A rule. An empty list of conditions fits every flow.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyRule {
    /// Where the rule begins in its file, counted from 1.
    pub line: u32,
    /// Who sends the data.
    pub from: Vec<Prefix>,
    /// Who receives it.
    pub to: Vec<Prefix>,
    /// The port that the data comes from.
    pub from_ports: Vec<PortRange>,
    /// The port that the data goes to.
    pub to_ports: Vec<PortRange>,
    /// The interface that the data leaves by.
    pub interfaces: Vec<NamePattern>,
    /// The class that the data's packets say they are of.
    pub dscp: Vec<Dscp>,
    /// What is done; nothing where it is `None`.
    pub control: Option<TconControl>,
}

/// What a rule can ask of the data that goes one way of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFlow<'n> {
    /// Addresses and ports, as the sender of the data names them.
    pub key: FlowKey,
    /// The interface that the data leaves by; `None` where there is none, which fits no rule that names
    /// interfaces.
    pub interface: Option<&'n str>,
    /// What the packets of the handshake say; zero unless somebody has set it.
    pub dscp: Dscp,
}

impl PolicyFlow<'_> {
    /// A TCP flow between two ports, by no interface and of the default class.
    pub fn between(from: SocketAddr, to: SocketAddr) -> Self {
        Self {
            key: FlowKey {
                source: from.ip(),
                destination: to.ip(),
                source_port: from.port(),
                destination_port: to.port(),
                protocol: FlowKey::TCP,
            },
            interface: None,
            dscp: Dscp::DEFAULT,
        }
    }
}
