//! What an enforcer between two interfaces can do with the rules of a policy.

use weir_policy::{PolicyRule, RuleFinding};

/// Checks a rule for an [`Enforcer`](super::Enforcer) between the `attached` interfaces; none if they are
/// not known.
pub fn check_rule(rule: &PolicyRule, attached: &[String]) -> Vec<RuleFinding> {
    // All that a rule can ask for is done between two interfaces.
    rule.unmatched_interfaces(attached).into_iter().collect()
}
