//! What is wrong with rules where they are to be put in force: each data plane checks rules by a function
//! of its own, which the file's reader calls and which returns these findings.

use crate::{NamePattern, PolicyRule};

/// A key of a rule that a data plane cannot put in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFinding {
    /// The key in the file.
    pub key: &'static str,
    /// Whether the policy is refused.
    pub severity: Severity,
    /// What is wrong.
    pub problem: String,
    /// What would be right.
    pub remedy: String,
}

/// How bad a [`RuleFinding`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The data plane refuses the policy.
    Refused,
    /// The rule is accepted, but the key has no effect, or the rule never matches.
    Warning,
}

impl RuleFinding {
    /// Creates a finding for which the policy is refused.
    pub fn refused(
        key: &'static str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            key,
            severity: Severity::Refused,
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }

    /// Creates a finding that does not keep the policy from being put in force.
    pub fn warning(
        key: &'static str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::refused(key, problem, remedy)
        }
    }
}

impl PolicyRule {
    /// Returns the keys that only the plane at sockets knows how to put in force, as refused by a plane
    /// that sees no sockets.
    pub fn needs_sockets(&self) -> Vec<RuleFinding> {
        let owner = "who opened a socket is not known there";
        let option = "it is an option of a socket, and no socket is changed there";
        let keys = [
            ("cgroup", !self.cgroups.is_empty(), owner),
            ("user", !self.users.is_empty(), owner),
            ("command", !self.commands.is_empty(), owner),
            ("min_rto", self.socket.min_rto.is_some(), option),
            ("max_ack_delay", self.socket.max_ack_delay.is_some(), option),
            ("set_dscp", self.socket.set_dscp.is_some(), option),
        ];
        let used = keys.into_iter().filter(|(_, is_used, _)| *is_used);
        used.map(|(key, _, problem)| {
            let remedy =
                format!("leave `{key}` out, or put the policy in force by `weir enforce --cgroup`");
            RuleFinding::refused(key, problem, remedy)
        })
        .collect()
    }

    /// Returns what a data plane without records of connections refuses: comparisons and guards.
    pub fn needs_no_records(&self) -> Vec<RuleFinding> {
        let keys = [
            ("compare", self.compare),
            ("undo_if", !self.undo_if.is_empty()),
        ];
        let used = keys.into_iter().filter(|(_, is_used)| *is_used);
        let refused = |(key, _)| {
            RuleFinding::refused(
                key,
                "connections are not measured here",
                format!("leave `{key}` out, or let `weir enforce --cgroup` enforce the policy"),
            )
        };
        used.map(refused).collect()
    }

    /// Returns a warning if the rule names interfaces, and none of those that it could match is attached.
    /// Nothing is known about a plane without `attached` interfaces.
    pub fn unmatched_interfaces(&self, attached: &[String]) -> Option<RuleFinding> {
        let is_attached = |pattern: &NamePattern| attached.iter().any(|name| pattern.matches(name));
        if attached.is_empty()
            || self.interfaces.is_empty()
            || self.interfaces.iter().any(is_attached)
        {
            return None;
        }
        let names: Vec<_> = self.interfaces.iter().map(NamePattern::to_string).collect();
        Some(RuleFinding::warning(
            "interface",
            format!(
                "the rule never matches: {} is not attached",
                names.join(" or ")
            ),
            format!(
                "name one of the attached interfaces: {}",
                attached.join(", ")
            ),
        ))
    }
}
