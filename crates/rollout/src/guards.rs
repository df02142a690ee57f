//! Guards of a roll-out: hosts with the version against hosts without it.

use weir_canary::{Estimate, Guard, Snapshot, figure_text};
use weir_policy::GuardCondition;
use weir_units::{Duration, Time};

/// The guards of the version on its way.
#[derive(Debug, Default)]
pub(crate) struct GuardWatch {
    guards: Vec<(GuardCondition, Guard)>,
    evaluated_at: Option<Time>,
    /// The figures at the last evaluation.
    pub(crate) treated: Snapshot,
    pub(crate) control: Snapshot,
}

/// The pause between evaluations.
const PERIOD: Duration = Duration::from_secs(1);

impl GuardWatch {
    pub(crate) fn new<'c>(conditions: impl Iterator<Item = &'c GuardCondition>) -> Self {
        let guard = |condition: &GuardCondition| (condition.clone(), Guard::new(condition.clone()));
        Self {
            guards: conditions.map(guard).collect(),
            ..Self::default()
        }
    }

    /// Returns the span of which figures are to be: the longest of the guards; `None` without guards.
    pub(crate) fn span(&self) -> Option<Duration> {
        self.guards.iter().map(|(_, guard)| guard.span()).max()
    }

    /// Returns whether it is time for an evaluation.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        let last = self.evaluated_at.and_then(|last| now.checked_since(last));
        !self.guards.is_empty() && last.is_none_or(|pause| pause >= PERIOD)
    }

    /// Evaluates the guards. Returns why the version is to be taken back.
    pub(crate) fn evaluate(
        &mut self,
        now: Time,
        treated: Snapshot,
        control: Snapshot,
    ) -> Option<String> {
        self.evaluated_at = Some(now);
        let summaries = (treated.summary(), control.summary());
        (self.treated, self.control) = (treated, control);
        let mut guards = self.guards.iter_mut();
        let evidence =
            guards.find_map(|(_, guard)| guard.evaluate(now, &summaries.0, &summaries.1));
        evidence.map(|evidence| evidence.to_string())
    }

    /// Describes what each guard saw at the last evaluation.
    pub(crate) fn seen(&self) -> Vec<String> {
        let (treated, control) = (self.treated.summary(), self.control.summary());
        let of = |(condition, _): &(GuardCondition, Guard)| {
            let figure = |estimate: Option<Estimate>| {
                estimate.map_or("no figures".to_owned(), |estimate| {
                    let text = |value| figure_text(condition.metric, value);
                    let (low, high) = (text(estimate.low), text(estimate.high));
                    format!(
                        "{} ({low} to {high}) of {}",
                        text(estimate.value),
                        estimate.connections
                    )
                })
            };
            let with = figure(treated.estimate(condition.metric));
            let without = figure(control.estimate(condition.metric));
            format!("not {condition}: {with} with it, {without} without")
        };
        self.guards.iter().map(of).collect()
    }
}
