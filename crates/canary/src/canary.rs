//! A rule that is tried: the statistics of its two groups, and its guards.

use weir_policy::{Group, PolicyRule, Share};
use weir_units::{Duration, Time};

use crate::{ConnectionRecord, Evidence, GroupStatistics, Guard, RuleId, Summary};

/// The span of the recent figures in reports.
pub const RECENT: Duration = Duration::from_secs(30);

/// A rule that is tried, until one of its guards takes it back.
#[derive(Debug)]
pub struct Canary {
    rule: PolicyRule,
    treated: GroupStatistics,
    control: GroupStatistics,
    guards: Vec<Guard>,
    undone: Option<Undone>,
}

/// A rule that a guard has taken back.
#[derive(Clone, Debug, PartialEq)]
pub struct Undone {
    /// When.
    pub at: Time,
    /// Why.
    pub evidence: Evidence,
}

/// The figures of both groups in the same time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Those of the connections to which the rule's action applies.
    pub treated: Summary,
    /// Those of the control group.
    pub control: Summary,
}

/// A canary as an operator sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct CanaryReport {
    /// The rule.
    pub rule: RuleId,
    /// Its line in the policy file.
    pub line: u32,
    /// Its share; `None` for all connections.
    pub share: Option<Share>,
    /// Whether there is a control group.
    pub is_compared: bool,
    /// That it has been taken back, and why.
    pub undone: Option<Undone>,
    /// The figures of the last [`RECENT`].
    pub recent: Comparison,
    /// The figures since the rule came into force.
    pub total: Comparison,
}

impl Canary {
    /// Creates the canary of a rule without any records.
    pub fn new(rule: PolicyRule) -> Self {
        let guards: Vec<_> = { rule.undo_if.iter() }
            .map(|condition| Guard::new(condition.clone()))
            .collect();
        let window = guards.iter().map(Guard::span).fold(RECENT, Duration::max);
        Self {
            rule,
            treated: GroupStatistics::new(window),
            control: GroupStatistics::new(window),
            guards,
            undone: None,
        }
    }

    /// Notes where the rule is in a new version of its file.
    pub(crate) fn set_line(&mut self, line: u32) {
        self.rule.line = line;
    }

    /// Returns the rule's line in the policy file.
    pub fn line(&self) -> u32 {
        self.rule.line
    }

    /// Returns whether a guard has taken the rule back.
    pub fn is_undone(&self) -> bool {
        self.undone.is_some()
    }

    /// Takes in a record of one of the rule's connections.
    pub fn record(&mut self, at: Time, record: &ConnectionRecord) {
        match record.group {
            Group::Treated => self.treated.record(at, record),
            Group::Control => self.control.record(at, record),
        }
    }

    /// Evaluates the guards. Returns why the rule is to be taken back, once.
    pub fn evaluate(&mut self, now: Time) -> Option<Evidence> {
        self.treated.forget_old(now);
        self.control.forget_old(now);
        if self.is_undone() {
            return None;
        }
        let (treated, control) = (&self.treated, &self.control);
        let evidence = self.guards.iter_mut().find_map(|guard| {
            let span = guard.span();
            let of = |group: &GroupStatistics| group.summary_of_last(now, span);
            guard.evaluate(now, &of(treated), &of(control))
        })?;
        self.undone = Some(Undone {
            at: now,
            evidence: evidence.clone(),
        });
        Some(evidence)
    }

    /// Returns the figures.
    pub fn report(&self, now: Time, rule: RuleId) -> CanaryReport {
        let compare = |of: &dyn Fn(&GroupStatistics) -> Summary| Comparison {
            treated: of(&self.treated),
            control: of(&self.control),
        };
        CanaryReport {
            rule,
            line: self.rule.line,
            share: self.rule.share,
            is_compared: self.rule.compare,
            undone: self.undone.clone(),
            recent: compare(&|group| group.summary_of_last(now, RECENT)),
            total: compare(&GroupStatistics::summary_of_all),
        }
    }

    /// Returns the same rule, in force again and without any records.
    pub(crate) fn resumed(&self) -> Self {
        Self::new(self.rule.clone())
    }
}
