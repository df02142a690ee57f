//! All rules of a policy that are tried.

use std::collections::BTreeMap;

use weir_policy::Policy;
use weir_units::{Duration, Time};

use crate::{Canary, CanaryReport, ConnectionRecord, Evidence, RuleId, RuleIds};

/// The pause between evaluations of the guards.
const PERIOD: Duration = Duration::from_secs(1);

/// The rules of a policy of which connections are measured: those with `compare` or `undo_if`.
#[derive(Debug, Default)]
pub struct Canaries {
    ids: RuleIds,
    rules: BTreeMap<RuleId, Canary>,
    evaluated_at: Option<Time>,
}

/// A rule that is to be taken back.
#[derive(Clone, Debug, PartialEq)]
pub struct Undo {
    /// The rule.
    pub rule: RuleId,
    /// Its line in the policy file.
    pub line: u32,
    /// Why.
    pub evidence: Evidence,
}

/// Why a rule cannot be resumed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    /// There is no measured rule on this line.
    #[error("no rule with `undo_if` is on line {line}; {}", those_on(lines))]
    NoSuchRule {
        /// The line.
        line: u32,
        /// The lines of the rules that there are.
        lines: Vec<u32>,
    },
    /// No guard has taken it back.
    #[error("the rule on line {0} is in force: no guard has taken it back")]
    InForce(u32),
}

fn those_on(lines: &[u32]) -> String {
    let lines: Vec<_> = lines.iter().map(u32::to_string).collect();
    if lines.is_empty() {
        "no rule has one".to_owned()
    } else {
        format!("there is one on {}", lines.join(", "))
    }
}

impl Canaries {
    /// Sets the policy, and returns the numbers of its rules in their order. A rule that is unchanged keeps its
    /// number and its statistics, and remains off if a guard has taken it back.
    pub fn set_policy(&mut self, policy: &Policy) -> Vec<RuleId> {
        let ids = self.ids.assign(policy);
        let mut old = std::mem::take(&mut self.rules);
        let rules = ids.iter().zip(&policy.rules);
        for (id, rule) in rules.filter(|(_, rule)| rule.needs_records()) {
            let mut canary = (old.remove(id)).unwrap_or_else(|| Canary::new(rule.clone()));
            canary.set_line(rule.line);
            self.rules.insert(*id, canary);
        }
        ids
    }

    /// Returns whether there are no such rules: records are of no use.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Takes in a record that was made at a time; one of another rule is ignored.
    pub fn record(&mut self, at: Time, record: &ConnectionRecord) {
        if let Some(canary) = self.rules.get_mut(&record.rule) {
            canary.record(at, record);
        }
    }

    /// Evaluates all guards if a second has passed since the last time. Returns the rules that are to be taken
    /// back from now on, each once.
    pub fn evaluate(&mut self, now: Time) -> Vec<Undo> {
        if (self.evaluated_at).is_some_and(|last| now.since(last) < PERIOD) {
            return Vec::new();
        }
        self.evaluated_at = Some(now);
        let undo = |(rule, canary): (&RuleId, &mut Canary)| {
            let evidence = canary.evaluate(now)?;
            Some(Undo {
                rule: *rule,
                line: canary.line(),
                evidence,
            })
        };
        self.rules.iter_mut().filter_map(undo).collect()
    }

    /// Returns whether a guard has taken the rule back.
    pub fn is_undone(&self, rule: RuleId) -> bool {
        self.rules.get(&rule).is_some_and(Canary::is_undone)
    }

    /// Puts the rule on a line of the policy file in force again; its statistics begin anew.
    ///
    /// # Errors
    /// [`ResumeError`]: there is no such rule, or it is in force.
    pub fn resume(&mut self, line: u32) -> Result<RuleId, ResumeError> {
        let found = self
            .rules
            .iter_mut()
            .find(|(_, canary)| canary.line() == line);
        match found {
            Some((id, canary)) if canary.is_undone() => {
                *canary = canary.resumed();
                Ok(*id)
            }
            Some(_) => Err(ResumeError::InForce(line)),
            None => Err(ResumeError::NoSuchRule {
                line,
                lines: self.rules.values().map(Canary::line).collect(),
            }),
        }
    }

    /// Returns the figures of all these rules, in the file's order.
    pub fn reports(&self, now: Time) -> Vec<CanaryReport> {
        let rules = self.rules.iter();
        let mut reports: Vec<_> = rules.map(|(id, canary)| canary.report(now, *id)).collect();
        reports.sort_by_key(|report| report.line);
        reports
    }
}
