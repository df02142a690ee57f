//! A scenario under two versions of a policy.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use tempfile::TempDir;
use weir_control::policy_v1 as v1;
use weir_policy::{Comparison as Side, Policy};
use weir_results::{Comparison, Ratio, ValuePair};
use weir_scenario::Document;

use super::controllers::{named, rules};
use crate::failure::Failure;
use crate::interrupt::Stop;
use crate::run;

/// Under what a version is not pushed: `completion.p99_s > 1.1x`.
#[derive(Clone, Debug)]
pub(super) struct RefusalCondition {
    text: String,
    measure: String,
    side: Side,
    factor: f64,
}

impl FromStr for RefusalCondition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || {
            format!(
                "`{text}` is no condition: write MEASURE > FACTORx such as `completion.p99_s > 1.1x`, or \
                 `goodput_bps < 0.9x`; measures are the keys of summary.json"
            )
        };
        let (measure, side, rest) = match (text.split_once('>'), text.split_once('<')) {
            (Some((measure, rest)), None) => (measure, Side::Above, rest),
            (None, Some((measure, rest))) => (measure, Side::Below, rest),
            _ => return Err(form()),
        };
        let factor = rest
            .trim()
            .strip_suffix('x')
            .and_then(|text| text.parse().ok());
        let factor = factor.filter(|factor: &f64| factor.is_finite() && *factor > 0.0);
        Ok(Self {
            text: text.to_owned(),
            measure: measure.trim().to_owned(),
            side,
            factor: factor.ok_or_else(form)?,
        })
    }
}

impl RefusalCondition {
    fn holds(&self, values: &ValuePair) -> bool {
        let threshold = self.factor * values.first;
        match self.side {
            Side::Above => values.second > threshold,
            Side::Below => values.second < threshold,
        }
    }
}

/// The results under both versions.
pub(super) struct Simulated {
    comparison: Comparison,
    /// Removes the results when they are not wanted.
    _directory: Option<TempDir>,
}

impl Simulated {
    /// Simulates a scenario, without its variants, under the version before and under another policy.
    pub(super) fn run(
        scenario: &Path,
        before: &v1::Version,
        policy: &Policy,
        out: Option<&Path>,
    ) -> Result<Self, Failure> {
        let name = named(before.number);
        let old = rules(before)?;
        let (directory, temporary) = match out {
            Some(directory) => (directory.to_owned(), None),
            None => {
                let made = TempDir::with_prefix("weir-policy-").map_err(Failure::of)?;
                (made.path().to_owned(), Some(made))
            }
        };
        let document = Document::load_or_shipped(scenario);
        let failure = |error| {
            let text = weir_scenario::shipped::error_message(scenario, &error);
            Failure::Failed(text)
        };
        let document = document.map_err(failure)?;
        let stop = Stop::on_signals()?;
        let interrupted = |code| Failure::Interrupted {
            message: "interrupted: nothing is decided by a simulation that was cut short"
                .to_owned(),
            code,
        };
        let mut directories: [PathBuf; 2] = Default::default();
        let both = [
            ("before", name.as_str(), &old),
            ("after", "the new version", policy),
        ];
        for (place, (folder, label, policy)) in directories.iter_mut().zip(both) {
            *place = directory.join(folder);
            let mut loaded = document.expand().map_err(failure)?;
            loaded.variants.clear();
            if !policy.rules.is_empty() {
                let under = loaded.under(policy);
                let (under, groups) = under.map_err(|misfit| {
                    Failure::Failed(format!(
                        "{label} does not fit {}: {misfit}",
                        scenario.display()
                    ))
                })?;
                run::print_policy(&groups);
                loaded = under;
            }
            run::simulate_to(loaded, label, place, &stop)?;
            if let Some(code) = stop.signal_exit_code() {
                return Err(interrupted(code));
            }
        }
        // What follows, a push above all, ends at the first signal.
        stop.done().map_err(interrupted)?;
        let [before, after] = directories;
        let tolerance = Ratio::of(1, 10);
        Ok(Self {
            comparison: Comparison::read(&before, &after, tolerance).map_err(Failure::of)?,
            _directory: temporary,
        })
    }

    pub(super) fn text(&self) -> String {
        self.comparison.to_text()
    }

    /// Returns the values of a measure by the names of groups and ports.
    fn values<'s>(&'s self, measure: &'s str) -> impl Iterator<Item = (&'s str, &'s ValuePair)> {
        let runs = self.comparison.runs.values();
        let parts = runs.flat_map(|run| run.groups.iter().chain(&run.ports));
        parts.filter_map(move |(name, values)| Some((name.as_str(), values.get(measure)?)))
    }

    /// Refuses a version of which a condition holds.
    pub(super) fn check(&self, conditions: &[RefusalCondition]) -> Result<(), Failure> {
        for condition in conditions {
            if self.values(&condition.measure).next().is_none() {
                return Err(self.unknown(&condition.measure));
            }
            let mut values = self.values(&condition.measure);
            if let Some((name, values)) = values.find(|(_, values)| condition.holds(values)) {
                return Err(Failure::Failed(format!(
                    "not pushed: {} holds of {name}: {} instead of {}",
                    condition.text, values.second, values.first
                )));
            }
        }
        Ok(())
    }

    fn unknown(&self, measure: &str) -> Failure {
        let runs = self.comparison.runs.values();
        let parts = runs.flat_map(|run| run.groups.values().chain(run.ports.values()));
        let mut known: Vec<_> = parts.flat_map(|values| values.keys().copied()).collect();
        known.sort_unstable();
        known.dedup();
        let problem = format!(
            "there is no measure `{measure}`; there is {}",
            known.join(", ")
        );
        Failure::option("refuse-if", problem)
    }

    /// Says in one line what was simulated, for the log.
    pub(super) fn summary(&self, scenario: &Path, conditions: &[RefusalCondition]) -> String {
        let scenario = scenario.display();
        match conditions {
            [] => format!("{scenario}, without a condition"),
            conditions => {
                let texts: Vec<_> = { conditions.iter() }
                    .map(|condition| format!("not {}", condition.text))
                    .collect();
                format!("{scenario}: {}", texts.join(", "))
            }
        }
    }
}
