//! Numbers of rules over several versions of a policy.

use weir_policy::{Policy, PolicyRule};

use crate::RuleId;

/// Numbers the rules of a policy: a rule that is unchanged in the next version keeps its number, wherever it
/// is, and numbers are not used again.
#[derive(Debug, Default)]
pub struct RuleIds {
    rules: Vec<(PolicyRule, RuleId)>,
    next: u32,
}

impl RuleIds {
    /// Returns the numbers of the rules of a policy, in its order.
    pub fn assign(&mut self, policy: &Policy) -> Vec<RuleId> {
        let mut old = std::mem::take(&mut self.rules);
        for rule in &policy.rules {
            let known = old.iter().position(|(other, _)| other.is_same(rule));
            let id = match known {
                Some(place) => old.remove(place).1,
                None => self.fresh(),
            };
            self.rules.push((rule.clone(), id));
        }
        self.rules.iter().map(|(_, id)| *id).collect()
    }

    fn fresh(&mut self) -> RuleId {
        let id = RuleId(self.next);
        self.next += 1;
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchanged_rules_keep_their_numbers() {
        let policy = |ports: &[&str]| {
            let rule = |(line, port): (usize, &&str)| PolicyRule {
                line: line as u32,
                to_ports: vec![port.parse().unwrap()],
                ..PolicyRule::new(None)
            };
            let rules = ports.iter().enumerate().map(rule).collect();
            Policy { rules }
        };
        let mut ids = RuleIds::default();
        let mut assign = |ports: &[&str]| {
            let assigned = ids.assign(&policy(ports));
            assigned.iter().map(|id| id.0).collect::<Vec<_>>()
        };
        assert_eq!(assign(&["1", "2", "2"]), [0, 1, 2]);
        assert_eq!(assign(&["3", "2", "1"]), [3, 1, 0]);
        assert_eq!(
            assign(&["2", "2"]),
            [1, 4],
            "that of a removed rule is not used again"
        );
    }
}
