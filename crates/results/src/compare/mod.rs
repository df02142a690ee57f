//! A comparison of two experiments: a simulation and a live run of the same scenario, or any two.
//!
//! [`Comparison::read`] reads two directories that [`Output`](crate::Output) has written. The
//! result is available as JSON ([`Comparison::to_json`]), as text ([`Comparison::to_text`]) and as
//! an HTML page that draws both in the same plots ([`Comparison::to_html`]).

mod measures;
mod page;
mod read;
#[cfg(test)]
mod tests;
mod text;

use std::path::Path;

use indexmap::IndexMap;
use serde::Serialize;

pub use read::CompareError;
use read::Side;

use crate::{Ratio, RunKind, RunSummary, Summary};

/// The name in [`Comparison::runs`] of the run with the file's own values.
const OWN: &str = "";

/// Two experiments, called A and B.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// A.
    pub first: ExperimentId,
    /// B.
    pub second: ExperimentId,
    /// How the two scenarios differ, as text.
    pub notes: Vec<String>,
    /// The runs that both have, by name; the run with the file's own values has an empty name.
    pub runs: IndexMap<String, RunComparison>,
    #[serde(skip)]
    sides: [Side; 2],
}

/// Identifies an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExperimentId {
    /// The directory, as given by the caller.
    pub directory: String,
    /// The scenario's title.
    pub title: String,
    /// Simulated or live.
    pub world: RunKind,
}

/// A run in both experiments.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunComparison {
    /// The groups' results: by group, by key of `summary.json`.
    pub groups: IndexMap<String, IndexMap<&'static str, ValuePair>>,
    /// The ports' results: by port, by key of `summary.json`.
    pub ports: IndexMap<String, IndexMap<&'static str, ValuePair>>,
    /// `reduction` of both, if they have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reduction: Option<ValuePair>,
}

/// A value of A and the same value of B.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ValuePair {
    /// A's value.
    pub first: f64,
    /// B's value.
    pub second: f64,
    /// The difference from A to B, relative to A; `None` where A is zero.
    pub difference: Option<Ratio>,
}

impl ValuePair {
    fn of(first: f64, second: f64) -> Self {
        Self {
            first,
            second,
            difference: Ratio::new(second / first - 1.0),
        }
    }
}

impl Comparison {
    /// Reads two directories.
    ///
    /// # Errors
    /// One of them is not an experiment's output, or the two have no group and no port in common.
    pub fn read(first: &Path, second: &Path) -> Result<Self, CompareError> {
        let sides = [Side::read(first)?, Side::read(second)?];
        let [one, other] = &sides;
        let mut runs = IndexMap::new();
        for (name, run) in one.summary.runs() {
            let name = name.unwrap_or(OWN);
            if let Some(beside) = other.run(name) {
                runs.insert(name.to_owned(), RunComparison::of(run, beside));
            }
        }
        let is_empty = |run: &RunComparison| run.groups.is_empty() && run.ports.is_empty();
        if runs.values().all(is_empty) {
            return Err(CompareError::NothingInCommon {
                first: one.summary.title.clone(),
                second: other.summary.title.clone(),
            });
        }
        Ok(Self {
            first: one.about(),
            second: other.about(),
            notes: notes(&one.summary, &other.summary),
            runs,
            sides,
        })
    }

    /// The numbers as JSON over several lines.
    ///
    /// # Errors
    /// Only the serializer's; a comparison itself causes none.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }
}

impl RunComparison {
    fn of(one: &RunSummary, other: &RunSummary) -> Self {
        let reductions = one.reduction.zip(other.reduction);
        Self {
            groups: both(&one.groups, &other.groups, measures::of_groups),
            ports: both(&one.ports, &other.ports, measures::of_ports),
            reduction: reductions.map(|(one, other)| ValuePair::of(one.value(), other.value())),
        }
    }
}

/// Returns the measures of the entries that both have by the same name. Omits a measure that only
/// one has.
fn both<T>(
    one: &IndexMap<String, T>,
    other: &IndexMap<String, T>,
    measures: fn(&T) -> Vec<(&'static str, f64)>,
) -> IndexMap<String, IndexMap<&'static str, ValuePair>> {
    let common = one
        .iter()
        .filter_map(|(name, thing)| Some((name, measures(thing), measures(other.get(name)?))));
    let pairs = common.map(|(name, one, other)| {
        let other: IndexMap<_, _> = other.into_iter().collect();
        let pairs = one
            .into_iter()
            .filter_map(|(key, value)| Some((key, ValuePair::of(value, *other.get(key)?))));
        (name.clone(), pairs.collect())
    });
    pairs.collect()
}

/// Describes how the two differ apart from the results.
fn notes(one: &Summary, other: &Summary) -> Vec<String> {
    let mut notes = Vec::new();
    if (&one.title, &one.source) != (&other.title, &other.source) {
        notes.push(format!(
            "these are two scenarios: \"{}\" and \"{}\"",
            one.title, other.title
        ));
    }
    if one.run.settings != other.run.settings {
        notes.push(format!(
            "the settings differ: {} and {}",
            settings(&one.run),
            settings(&other.run)
        ));
    }
    let spans = [&one.run, &other.run].map(|run| run.warm_up);
    if spans[0] != spans[1] {
        notes.push(format!(
            "the warm-ups differ: {} and {}",
            spans[0], spans[1]
        ));
    }
    for (label, run) in [("A", &one.run), ("B", &other.run)] {
        if run.interrupted {
            notes.push(format!("{label} was interrupted after {}", run.simulated));
        }
        if let Some(emulation) = run.emulation.as_ref().filter(|found| !found.faithful) {
            notes.push(format!(
                "the emulation of {label} was not faithful: {}",
                emulation.reasons.join("; ")
            ));
        }
    }
    let names = |summary: &Summary| -> Vec<String> {
        let run = &summary.run;
        run.groups.keys().chain(run.ports.keys()).cloned().collect()
    };
    let (of_one, of_other) = (names(one), names(other));
    let missing = |from: &[String], names: &[String]| -> Vec<String> {
        let names = names.iter().filter(|name| !from.contains(name));
        names.cloned().collect()
    };
    let (only_one, only_other) = (missing(&of_other, &of_one), missing(&of_one, &of_other));
    for (label, only) in [("A", only_one), ("B", only_other)] {
        if !only.is_empty() {
            notes.push(format!("only {label} has {}", only.join(", ")));
        }
    }
    notes
}

fn settings(run: &RunSummary) -> String {
    if run.settings.is_empty() {
        return "none".to_owned();
    }
    let settings = run.settings.iter();
    let settings: Vec<_> = settings
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    settings.join(", ")
}
