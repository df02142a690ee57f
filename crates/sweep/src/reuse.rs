//! What becomes of the rows in a sweep's directory when the sweep goes on.

use std::collections::{BTreeMap, HashMap};

use indexmap::IndexMap;
use weir_results::Value;

use crate::plan::PlannedRun;
use crate::row::{Row, Rows};

/// The numbers of planned runs that keep their rows, and of those that are executed again, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowReuse {
    /// Runs that have rows.
    pub kept: usize,
    /// Runs among these that are executed again, as the file with their flows is gone.
    pub lost_flows: usize,
    /// Runs whose rows another version of the code made, by the parts of the code that differ.
    pub other_code: BTreeMap<Vec<String>, usize>,
    /// Runs whose rows are of another scenario, or of settings that are not among the sweep's keys.
    pub other_scenario: usize,
    /// Rows of no planned run: of other values of the sweep's keys, of other parts of the sweep, or older ones of runs
    /// that have newer rows.
    pub other_rows: usize,
}

impl RowReuse {
    /// Returns the rows of the planned runs, and what becomes of all.
    pub(crate) fn of(all: Rows, planned: &[PlannedRun]) -> (Rows, Self) {
        let by_key: HashMap<_, _> = planned.iter().map(|run| (&run.key, run)).collect();
        let (mut rows, mut others) = (Rows::default(), Vec::new());
        for row in all.into_rows() {
            match by_key.get(&row.key) {
                Some(_) => rows.push(row),
                None => others.push(row),
            }
        }
        let reuse = Self::count(&rows, &others, planned);
        (rows, reuse)
    }

    fn count(rows: &Rows, others: &[Row], planned: &[PlannedRun]) -> Self {
        let missing = planned.iter().filter(|run| !rows.has(&run.key));
        let missing = missing.map(|run| (place(run.seed, &run.inputs), run));
        let missing: HashMap<_, _> = missing.collect();
        // The newest row of a run says why it does not count.
        let mut replaced = HashMap::new();
        for row in others {
            if let Some(run) = missing.get(&place(row.seed, &row.inputs)) {
                replaced.insert(run.number, (*run, row));
            }
        }
        let mut reuse = Self {
            kept: planned.iter().filter(|run| rows.has(&run.key)).count(),
            other_rows: others.len() - replaced.len(),
            ..Self::default()
        };
        for (run, row) in replaced.into_values() {
            let changed = run.code.changed_since(&row.code);
            if changed.is_empty() {
                reuse.other_scenario += 1;
            } else {
                *reuse.other_code.entry(changed).or_default() += 1;
            }
        }
        reuse
    }

    /// Returns a line for each number that is not zero.
    pub fn lines(&self) -> Vec<String> {
        let runs = |count: usize| {
            if count == 1 {
                "1 run".to_owned()
            } else {
                format!("{count} runs")
            }
        };
        let mut lines = Vec::new();
        let kept = self.kept - self.lost_flows;
        if kept > 0 {
            lines.push(format!("kept: the rows of {}", runs(kept)));
        }
        if self.lost_flows > 0 {
            let count = runs(self.lost_flows);
            lines.push(format!("again: {count}, whose file with flows is gone"));
        }
        for (parts, count) in &self.other_code {
            let parts = parts.join(", ");
            lines.push(format!(
                "again: {}, whose code has changed: {parts}",
                runs(*count)
            ));
        }
        if self.other_scenario > 0 {
            let count = runs(self.other_scenario);
            lines.push(format!(
                "again: {count}, whose scenario has changed, or settings that are not keys of the sweep"
            ));
        }
        if self.other_rows > 0 {
            lines.push(format!(
                "left alone: {} rows of other values, of other parts of the sweep, or replaced by newer rows",
                self.other_rows
            ));
        }
        lines
    }
}

/// Returns what tells a run from others of its sweep, whatever the code.
fn place(seed: u64, inputs: &IndexMap<String, Value>) -> String {
    format!("{seed} {inputs:?}")
}

#[cfg(test)]
mod tests;
