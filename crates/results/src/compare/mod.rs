//! Two experiments side by side: a simulation and a live run of the same scenario, or any two.
//!
//! [`Comparison::read`] takes two directories that [`Output`](crate::Output) has written, and gives
//! numbers ([`Comparison::to_json`]), a text ([`Comparison::to_text`]) and a page with both drawn into
//! the same plots ([`Comparison::to_html`]).

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

/// What the run with the file's own values is called in [`Comparison::runs`].
const OWN: &str = "";

/// Two experiments, called A and B.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// A.
    pub first: ExperimentId,
    /// B.
    pub second: ExperimentId,
    /// In which respects the two are not of the same scenario, in words.
    pub notes: Vec<String>,
    /// The runs that both have, by name; the one with the file's own values has none.
    pub runs: IndexMap<String, RunComparison>,
    #[serde(skip)]
    sides: [Side; 2],
}

/// Which experiment it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExperimentId {
    /// The directory, as it was named.
    pub directory: String,
    /// The scenario's title.
    pub title: String,
    /// Where it took place.
    pub world: RunKind,
}

/// A run in both experiments.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunComparison {
    /// What the groups achieved: by group, by key of `summary.json`.
    pub groups: IndexMap<String, IndexMap<&'static str, ValuePair>>,
    /// What went through the ports: by port, by key of `summary.json`.
    pub ports: IndexMap<String, IndexMap<&'static str, ValuePair>>,
    /// `reduction` of both, if they have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reduction: Option<ValuePair>,
}

/// A number of A and the same of B.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ValuePair {
    /// A's.
    pub first: f64,
    /// B's.
    pub second: f64,
    /// By which part of A's B's is larger; `None` where A's is zero.
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
    /// One of them is no output of an experiment, or they have neither a group nor a port in common.
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
    /// None that a comparison can cause; those of the serializer.
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

/// The measures of what both have by the same name. A measure that only one has is left out.
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

/// What differs apart from the results.
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
