//! What an enforcer between two interfaces can do with the rules of a policy.

use weir_policy::{PolicyRule, RuleFinding};

/// Checks a rule for an [`Enforcer`](super::Enforcer) between the `attached` interfaces; none if they are
/// not known.
pub fn check_rule(rule: &PolicyRule, attached: &[String]) -> Vec<RuleFinding> {
    let mut findings = rule.needs_sockets();
    findings.extend(rule.needs_no_records());
    findings.extend(rule.unmatched_interfaces(attached));
    findings
}
