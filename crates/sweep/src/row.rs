//! The row of a run, and sets of rows.

use std::cmp::Reverse;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use weir_results::{Dataset, RunSummary, Value};
use weir_units::{Duration, Time};

use crate::code::CodeVersion;
use crate::key::RunKey;
use crate::plan::{PlannedRun, Sweep};

/// A row: inputs, and outputs or an error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The run's number in the sweep.
    pub run: u64,
    /// The run's key.
    pub key: RunKey,
    /// The version of the code that the run used.
    pub code: CodeVersion,
    /// The seed.
    pub seed: u64,
    /// The values of the sweep's keys, by column name.
    pub inputs: IndexMap<String, Value>,
    /// The outputs, by their path in `summary.json`: `groups.cubic.share`.
    pub outputs: IndexMap<String, Value>,
    /// The error, if there are no outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it was found steady and stopped early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<Time>,
    /// The CPU time of the run.
    pub cpu: Duration,
}

impl Row {
    pub(crate) fn done(planned: &PlannedRun, summary: &RunSummary, stopped: Option<Time>) -> Self {
        Self {
            outputs: outputs(summary),
            stopped_at: stopped,
            ..Self::blank(planned)
        }
    }

    pub(crate) fn failed(planned: &PlannedRun, error: String) -> Self {
        Self {
            error: Some(error),
            ..Self::blank(planned)
        }
    }

    fn blank(planned: &PlannedRun) -> Self {
        Self {
            run: planned.number,
            key: planned.key.clone(),
            code: planned.code.clone(),
            seed: planned.seed,
            inputs: planned.inputs.clone(),
            outputs: IndexMap::new(),
            error: None,
            stopped_at: None,
            cpu: Duration::ZERO,
        }
    }

    /// Returns the cells of the dataset's row.
    fn cells(&self) -> impl Iterator<Item = (String, Value)> {
        let own = [
            ("run", Some(Value::Count(self.run))),
            ("key", Some(Value::Text(self.key.to_string()))),
            ("code", Some(Value::Text(self.code.to_string()))),
            ("seed", Some(Value::Count(self.seed))),
            ("error", self.error.clone().map(Value::Text)),
            (
                "stopped_at_s",
                self.stopped_at.map(|at| seconds(at.since(Time::ZERO))),
            ),
            ("cpu_s", Some(seconds(self.cpu))),
        ];
        let own = own
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let maps = self.inputs.iter().chain(&self.outputs);
        own.chain(maps.map(|(name, value)| (name.clone(), value.clone())))
    }
}

fn seconds(span: Duration) -> Value {
    Value::Number(span.as_secs_f64())
}

/// Returns all numbers of a summary's groups, ports and loads, and its `reduction`, by their paths.
fn outputs(summary: &RunSummary) -> IndexMap<String, Value> {
    let mut found = IndexMap::new();
    for (name, part) in [
        ("groups", serde_json::to_value(&summary.groups)),
        ("ports", serde_json::to_value(&summary.ports)),
        ("loads", serde_json::to_value(&summary.loads)),
        ("reduction", serde_json::to_value(summary.reduction)),
    ] {
        if let Ok(part) = part {
            collect(name, &part, &mut found);
        }
    }
    found
}

fn collect(path: &str, value: &serde_json::Value, found: &mut IndexMap<String, Value>) {
    match value {
        serde_json::Value::Object(entries) => {
            for (key, value) in entries {
                collect(&format!("{path}.{key}"), value, found);
            }
        }
        serde_json::Value::Number(number) => {
            let count = number.as_u64().map(Value::Count);
            let value = count.or_else(|| number.as_f64().map(Value::Number));
            found.extend(value.map(|value| (path.to_owned(), value)));
        }
        serde_json::Value::Bool(flag) => {
            found.insert(path.to_owned(), Value::Flag(*flag));
        }
        _ => {}
    }
}

/// A set of rows, at most one per run.
#[derive(Clone, Debug, Default)]
pub struct Rows(IndexMap<RunKey, Row>);

impl Rows {
    /// Adds a run's row, if it has one. A later row of a run replaces an earlier one.
    pub fn push(&mut self, row: impl Into<Option<Row>>) {
        self.0.extend(row.into().map(|row| (row.key.clone(), row)));
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this run has a row. A failed run is not repeated: it would fail again.
    pub fn has(&self, key: &RunKey) -> bool {
        self.0.contains_key(key)
    }

    /// Returns the errors of failed runs, each with the number of its runs, the most frequent first.
    pub fn errors(&self) -> Vec<(&str, usize)> {
        let mut counts = IndexMap::<&str, usize>::new();
        for error in self.0.values().filter_map(|row| row.error.as_deref()) {
            *counts.entry(error).or_default() += 1;
        }
        let mut errors: Vec<_> = counts.into_iter().collect();
        errors.sort_by_key(|&(_, count)| Reverse(count));
        errors
    }

    /// Returns the CPU time of all runs.
    pub fn cpu(&self) -> Duration {
        self.0
            .values()
            .fold(Duration::ZERO, |sum, row| sum + row.cpu)
    }

    /// Returns the row of a run.
    pub(crate) fn get(&self, key: &RunKey) -> Option<&Row> {
        self.0.get(key)
    }

    pub(crate) fn into_rows(self) -> impl Iterator<Item = Row> {
        self.0.into_values()
    }

    /// Returns the rows of the sweep, in its order, with the columns in the order of its keys.
    pub fn dataset(&self, sweep: &Sweep) -> Dataset {
        let mut dataset = Dataset::default();
        for planned in sweep.plan() {
            // Two combinations can give the same scenario.
            if let Some(row) = self.0.get(&planned.key) {
                let row = Row {
                    run: planned.number,
                    inputs: planned.inputs,
                    ..row.clone()
                };
                dataset.push(row.cells());
            }
        }
        dataset
    }
}
