//! Repetitions of an experiment: the same scenario with several seeds, or several live runs of it.
//!
//! [`Repetitions::of`] takes the summaries. The result has the mean of each measure with its 95 % confidence
//! interval, as JSON ([`Repetitions::to_json`]), as text ([`Repetitions::to_text`]) and as a page
//! ([`Repetitions::to_html`]). It says where the runs fall into two groups, so that the mean describes neither: the
//! scenario is bistable.

mod interval;
mod page;
mod text;
mod two_groups;

use indexmap::IndexMap;
use serde::Serialize;

pub use interval::MeanInterval;
pub(crate) use text::bistable;
pub use two_groups::TwoGroups;

use crate::{RunKind, RunSummary, Summary, measures};

/// The measure of a group that says whether a scenario is bistable.
pub(crate) const DECISIVE: &str = "goodput_bps";

/// Repetitions of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Repetitions {
    /// The scenario's title.
    pub title: String,
    /// Simulated or live.
    pub world: RunKind,
    /// The seed of each repetition.
    pub seeds: Vec<u64>,
    /// The runs by name; the run with the file's own values has an empty name.
    pub runs: IndexMap<String, RepeatedRun>,
}

/// A run over all repetitions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RepeatedRun {
    /// The groups' results: by group, by key of `summary.json`.
    pub groups: IndexMap<String, IndexMap<&'static str, MeanInterval>>,
    /// The ports' results: by port, by key of `summary.json`.
    pub ports: IndexMap<String, IndexMap<&'static str, MeanInterval>>,
    /// The loads of links: by class, by key of `summary.json`.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub loads: IndexMap<String, IndexMap<&'static str, MeanInterval>>,
    /// The groups of flows whose goodputs fall into two groups of repetitions, in bit/s.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub bistable: IndexMap<String, TwoGroups>,
}

/// The values of a measure in all repetitions that have it, by entry and key.
pub(crate) type Series = IndexMap<String, IndexMap<&'static str, Vec<f64>>>;

impl Repetitions {
    /// Returns the statistics of these repetitions; `None` if there are none.
    pub fn of(summaries: &[&Summary]) -> Option<Self> {
        let first = summaries.first()?;
        let names: Vec<Option<&str>> = first.runs().map(|(name, _)| name).collect();
        let runs = names.into_iter().map(|name| {
            let runs = summaries.iter().filter_map(|summary| run_of(summary, name));
            let runs: Vec<&RunSummary> = runs.collect();
            (name.unwrap_or_default().to_owned(), RepeatedRun::of(&runs))
        });
        Some(Self {
            title: first.title.clone(),
            world: first.run.world,
            seeds: summaries.iter().map(|summary| summary.run.seed).collect(),
            runs: runs.collect(),
        })
    }

    /// The statistics as JSON over several lines.
    ///
    /// # Errors
    /// Only the serializer's; the statistics themselves cause none.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }
}

impl RepeatedRun {
    fn of(runs: &[&RunSummary]) -> Self {
        let groups = group_series(runs.iter().copied());
        let bistable = groups.iter().filter_map(|(name, measures)| {
            Some((name.clone(), TwoGroups::of(measures.get(DECISIVE)?)?))
        });
        Self {
            bistable: bistable.collect(),
            groups: intervals(&groups),
            ports: intervals(&port_series(runs.iter().copied())),
            loads: intervals(&load_series(runs.iter().copied())),
        }
    }
}

/// Returns the file's own run, or the variant with this name.
fn run_of<'s>(summary: &'s Summary, name: Option<&str>) -> Option<&'s RunSummary> {
    match name {
        None => Some(&summary.run),
        Some(name) => summary.variants.get(name),
    }
}

/// Returns the values of all measures of groups.
pub(crate) fn group_series<'r>(runs: impl Iterator<Item = &'r RunSummary>) -> Series {
    series(runs.map(|run| &run.groups), measures::of_groups)
}

/// Returns the values of all measures of ports.
pub(crate) fn port_series<'r>(runs: impl Iterator<Item = &'r RunSummary>) -> Series {
    series(runs.map(|run| &run.ports), measures::of_ports)
}

/// Returns the values of all measures of the loads of links.
fn load_series<'r>(runs: impl Iterator<Item = &'r RunSummary>) -> Series {
    series(runs.map(|run| &run.loads), measures::of_loads)
}

fn series<'r, T: 'r>(
    runs: impl Iterator<Item = &'r IndexMap<String, T>>,
    measures: fn(&T) -> Vec<(&'static str, f64)>,
) -> Series {
    let mut all = Series::new();
    for (name, entry) in runs.flatten() {
        let values = all.entry(name.clone()).or_default();
        for (key, value) in measures(entry) {
            values.entry(key).or_default().push(value);
        }
    }
    all
}

fn intervals(series: &Series) -> IndexMap<String, IndexMap<&'static str, MeanInterval>> {
    let entries = series.iter().map(|(name, measures)| {
        let measures = measures
            .iter()
            .filter_map(|(key, values)| Some((*key, MeanInterval::of(values)?)));
        (name.clone(), measures.collect())
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use weir_units::Rate;

    use super::*;
    use crate::GroupSummary;

    fn summary(seed: u64, mbps: u64) -> Summary {
        let group = GroupSummary {
            goodput: Rate::from_mbps(mbps),
            ..GroupSummary::default()
        };
        let run = RunSummary {
            seed,
            groups: [("g".to_owned(), group)].into(),
            ..RunSummary::default()
        };
        Summary::new("Title", "source", run)
    }

    #[test]
    fn each_measure_has_a_mean_with_its_interval() {
        let summaries = [summary(1, 90), summary(2, 110)];
        let repetitions = Repetitions::of(&summaries.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(repetitions.seeds, [1, 2]);
        let goodput = repetitions.runs[""].groups["g"]["goodput_bps"];
        assert_eq!((goodput.count, goodput.mean), (2, 100e6));
        let text = repetitions.to_text();
        assert!(text.contains("2 runs, seeds 1 and 2"), "{text}");
        assert!(
            text.contains("100 Mbps") && text.contains("127 Mbps"),
            "{text}"
        );
        assert!(!text.contains("bistable"), "{text}");
        let page = repetitions.to_html(&summaries.iter().collect::<Vec<_>>(), &[]);
        for part in [
            "2 runs, seeds 1 and 2",
            "± 95 %",
            "<td>100 Mbps</td>",
            "<td>127 Mbps</td>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        let json: serde_json::Value =
            serde_json::from_str(&repetitions.to_json().unwrap()).unwrap();
        assert_eq!(
            json["runs"][""]["groups"]["g"]["goodput_bps"]["mean"],
            100e6
        );
        assert_eq!(Repetitions::of(&[]), None);
    }

    #[test]
    fn a_scenario_whose_seeds_fall_into_two_groups_is_bistable() {
        let summaries = [(1, 200), (2, 800), (3, 210), (4, 810)];
        let summaries = summaries.map(|(seed, mbps)| summary(seed, mbps));
        let repetitions = Repetitions::of(&summaries.iter().collect::<Vec<_>>()).unwrap();
        let text = repetitions.to_text();
        let said = "bistable: the goodput of g is 205 Mbps in 2 runs and 805 Mbps in 2";
        assert!(text.contains(said), "{text}");
        let page = repetitions.to_html(&summaries.iter().collect::<Vec<_>>(), &[]);
        assert!(page.contains(said));
    }
}
