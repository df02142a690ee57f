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
