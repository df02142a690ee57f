//! A comparison of two experiments: a simulation and a live run of the same scenario, or any two.
//!
//! [`Comparison::read`] reads two directories that [`Output`](crate::Output) has written, or two with such
//! directories in them: the repetitions of an experiment. With repetitions, each pair of means has a
//! confidence interval of its difference and a [`Verdict`]. The result is available as JSON ([`Comparison::to_json`]), as text ([`Comparison::to_text`]) and as
//! an HTML page that draws both in the same plots ([`Comparison::to_html`]).

mod page;
mod read;
mod statistics;
#[cfg(test)]
mod tests;
mod text;

use std::path::Path;

use indexmap::IndexMap;
use serde::Serialize;

pub use read::CompareError;
use read::Side;
pub use statistics::{PairStatistics, Verdict};

use crate::repetitions::{Series, bistable, group_series, port_series};
use crate::{MeanInterval, Ratio, RunKind, RunSummary, Summary, TwoGroups};

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
    /// The number of repetitions.
    pub repetitions: usize,
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

/// A value of A and the same value of B, means if there are repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ValuePair {
    /// A's value.
    pub first: f64,
    /// B's value.
    pub second: f64,
    /// The difference from A to B, relative to A; `None` where A is zero.
    pub difference: Option<Ratio>,
    /// How certain they are, if A or B has repetitions.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub statistics: Option<PairStatistics>,
}

impl ValuePair {
    /// Returns the pair of these repetitions' values, whose relative difference may be up to `tolerance`.
    fn of(first: &[f64], second: &[f64], tolerance: Ratio) -> Option<Self> {
        let (one, other) = (MeanInterval::of(first)?, MeanInterval::of(second)?);
        let repeats = one.count > 1 || other.count > 1;
        Some(Self {
            first: one.mean,
            second: other.mean,
            difference: Ratio::new(other.mean / one.mean - 1.0),
            statistics: repeats.then(|| PairStatistics::of(&one, &other, tolerance)),
        })
    }
}

impl Comparison {
    /// Reads two directories. With repetitions, two means [agree](Verdict::Agree) if their relative
    /// difference is certain to be at most `tolerance`.
    ///
    /// # Errors
    /// One of them is not an experiment's output, or the two have no group and no port in common.
    pub fn read(first: &Path, second: &Path, tolerance: Ratio) -> Result<Self, CompareError> {
        let sides = [Side::read(first)?, Side::read(second)?];
        let [one, other] = &sides;
        let mut runs = IndexMap::new();
        for (name, _) in one.summary().runs() {
            let name = name.unwrap_or(OWN);
            let both = [one, other].map(|side| side.runs(name).collect::<Vec<_>>());
            if !both[1].is_empty() {
                let [one, other] = &both;
                runs.insert(name.to_owned(), RunComparison::of(one, other, tolerance));
            }
        }
        let is_empty = |run: &RunComparison| run.groups.is_empty() && run.ports.is_empty();
        if runs.values().all(is_empty) {
            return Err(CompareError::NothingInCommon {
                first: one.summary().title.clone(),
                second: other.summary().title.clone(),
            });
        }
        Ok(Self {
            first: one.about(),
            second: other.about(),
            notes: notes(one, other),
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
    fn of(one: &[&RunSummary], other: &[&RunSummary], tolerance: Ratio) -> Self {
        let reductions = [one, other].map(|runs| -> Vec<f64> {
            let reductions = runs.iter().filter_map(|run| run.reduction);
            reductions.map(Ratio::value).collect()
        });
        let groups = [one, other].map(|runs| group_series(runs.iter().copied()));
        let ports = [one, other].map(|runs| port_series(runs.iter().copied()));
        Self {
            groups: both(&groups, tolerance),
            ports: both(&ports, tolerance),
            reduction: ValuePair::of(&reductions[0], &reductions[1], tolerance),
        }
    }
}

/// Returns the measures of the entries that both have by the same name. Omits a measure that only
/// one has.
fn both(
    [one, other]: &[Series; 2],
    tolerance: Ratio,
) -> IndexMap<String, IndexMap<&'static str, ValuePair>> {
    let common = one
        .iter()
        .filter_map(|(name, measures)| Some((name, measures, other.get(name)?)));
    let pairs = common.map(|(name, one, other)| {
        let pairs = one.iter().filter_map(|(key, values)| {
            let pair = ValuePair::of(values, other.get(key)?, tolerance)?;
            Some((*key, pair))
        });
        (name.clone(), pairs.collect())
    });
    pairs.collect()
}

/// Describes how the two differ apart from the results.
fn notes(first: &Side, second: &Side) -> Vec<String> {
    let (one, other) = (first.summary(), second.summary());
    let mut notes = Vec::new();
    if (&one.title, &one.source) != (&other.title, &other.source) {
        notes.push(format!(
            "these are two scenarios: \"{}\" and \"{}\"",
            one.title, other.title
        ));
    }
    // Repetitions differ in their seeds.
    let counts_seed = first.repetitions() == 1 && second.repetitions() == 1;
    let settings = [&one.run, &other.run].map(|run| settings(run, counts_seed));
    if settings[0] != settings[1] {
        notes.push(format!("the settings differ: {}", settings.join(" and ")));
    }
    let spans = [&one.run, &other.run].map(|run| run.warm_up);
    if spans[0] != spans[1] {
        notes.push(format!(
            "the warm-ups differ: {} and {}",
            spans[0], spans[1]
        ));
    }
    for (label, side) in [("A", first), ("B", second)] {
        notes.extend(notes_of(label, side));
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

/// Describes what speaks against the results of one side.
fn notes_of(label: &str, side: &Side) -> Vec<String> {
    let mut notes = Vec::new();
    let all = side.repetitions();
    // `A`, or `3 of 5 runs of A`.
    let which = |count: usize| match all {
        1 => label.to_owned(),
        all => format!("{count} of {all} runs of {label}"),
    };
    let interrupted: Vec<_> = side.runs(OWN).filter(|run| run.interrupted).collect();
    if let Some(run) = interrupted.first() {
        let which = which(interrupted.len());
        notes.push(format!("{which} was interrupted after {}", run.simulated));
    }
    let emulations = side.runs(OWN).filter_map(|run| run.emulation.as_ref());
    let unfaithful: Vec<_> = emulations.filter(|found| !found.faithful).collect();
    if let Some(emulation) = unfaithful.first() {
        notes.push(format!(
            "the emulation of {} was not faithful: {}",
            which(unfaithful.len()),
            emulation.reasons.join("; ")
        ));
    }
    for (group, measures) in group_series(side.runs(OWN)) {
        let goodputs = measures.get(crate::repetitions::DECISIVE);
        if let Some(two) = goodputs.and_then(|values| TwoGroups::of(values)) {
            notes.push(format!("{label} is {}", bistable(&group, &two)));
        }
    }
    notes
}

/// Returns the settings of a run, its seed among them only if it counts.
fn settings(run: &RunSummary, counts_seed: bool) -> String {
    let counts = |key: &str| counts_seed || key != "seed";
    let settings = run.settings.iter().filter(|(key, _)| counts(key));
    let settings: Vec<_> = settings
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    if settings.is_empty() {
        return "none".to_owned();
    }
    settings.join(", ")
}
