//! Tasks: runs for execution in another process or on another machine.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use weir_results::Value;
use weir_scenario::{Document, ScenarioError};

use crate::code::{Code, CodeVersion};
use crate::execution::execute_run;
use crate::key::RunKey;
use crate::plan::{PlannedRun, Sweep};
use crate::row::Row;
use crate::steady::SteadyRule;

/// A self-contained run, as JSON: its executor needs neither the sweep's file nor the scenario's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    code: CodeVersion,
    number: u64,
    key: RunKey,
    inputs: IndexMap<String, Value>,
    seed: u64,
    steady: Option<SteadyRule>,
    /// The scenario in the general form, or the error in it.
    scenario: Result<String, String>,
}

/// An error in creating or executing a task.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// It comes from another version of the code, which gives other results.
    #[error(
        "this run was planned by another version of weir, which differs in {}: install the same one everywhere",
        parts.join(", ")
    )]
    OtherVersion {
        /// The parts of the code that the run uses and that differ.
        parts: Vec<String>,
    },
    /// The text is not a task.
    #[error("this is no run of a sweep: {0}")]
    Format(#[from] serde_json::Error),
    /// The sweep keeps flows, which a task does not return.
    #[error(
        "`keep = [\"flows\"]` is for runs on this machine: remove it, or use weir sweep --shard"
    )]
    KeepsFlows,
    /// The scenario has a plug-in, whose file a task does not contain.
    #[error(
        "congestion control `{0}` is a file, which only runs on this machine have: use weir sweep --shard"
    )]
    HasPlugin(String),
    /// The scenario cannot be serialized.
    #[error("the scenario cannot be written down: {0}")]
    Write(#[from] toml::ser::Error),
    /// The scenario cannot be parsed.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
}

impl Task {
    /// Creates a task for a run of this sweep.
    ///
    /// # Errors
    /// The sweep keeps flows; the scenario has a plug-in, or cannot be serialized.
    pub fn of(sweep: &Sweep, planned: &PlannedRun) -> Result<Self, TaskError> {
        if sweep.keeps_flows() {
            return Err(TaskError::KeepsFlows);
        }
        if let Ok(scenario) = &planned.scenario
            && let Some((_, spec)) = scenario
                .congestion()
                .find(|(_, spec)| spec.plugin().is_some())
        {
            return Err(TaskError::HasPlugin(spec.to_string()));
        }
        Ok(Self {
            code: planned.code.clone(),
            number: planned.number,
            key: planned.key.clone(),
            inputs: planned.inputs.clone(),
            seed: planned.seed,
            steady: sweep.early_stop().cloned(),
            scenario: match &planned.scenario {
                Ok(scenario) => Ok(toml::to_string(scenario)?),
                Err(error) => Err(error.clone()),
            },
        })
    }

    /// Serializes the task to text.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn to_json(&self) -> Result<String, TaskError> {
        Ok(serde_json::to_string(self)?)
    }

    /// Parses a task from text.
    ///
    /// # Errors
    /// The text is not a task.
    pub fn from_json(text: &str) -> Result<Self, TaskError> {
        Ok(serde_json::from_str(text)?)
    }

    /// Executes it, as [`Sweep::execute`] does.
    ///
    /// # Errors
    /// Another version of the code planned it; its scenario is invalid.
    pub fn execute(self, go_on: &mut dyn FnMut() -> bool) -> Result<Option<Row>, TaskError> {
        let differing = Code::own().differing(&self.code);
        if !differing.is_empty() {
            let parts = differing.into_iter().map(str::to_owned).collect();
            return Err(TaskError::OtherVersion { parts });
        }
        let scenario = match self.scenario {
            Ok(text) => Ok(Document::parse("the planned run", &text)?.scenario()?),
            Err(error) => Err(error),
        };
        let planned = PlannedRun {
            number: self.number,
            key: self.key,
            code: self.code,
            inputs: self.inputs,
            seed: self.seed,
            scenario,
        };
        Ok(execute_run(&planned, self.steady.as_ref(), &mut (), go_on).0)
    }
}

#[cfg(test)]
mod tests {
    use weir_units::Duration;

    use super::*;

    #[test]
    fn a_task_gives_the_row_that_its_sweep_gives() {
        let directory = tempfile::tempdir().unwrap();
        let scenario = r#"
            title = "A flow"
            source = "a test"
            duration = "20ms"
            [dumbbell]
            rate = "1Gbps"
            queue = { kind = "drop-tail", buffer = "100KB" }
            [dumbbell.senders.sender]
            rtt = "100us"
            [groups.cubic]
            from = "sender"
            to = "receiver"
            workload = "bulk"
        "#;
        std::fs::write(directory.path().join("flow.toml"), scenario).unwrap();
        let path = directory.path().join("sweep.toml");
        let sweep = r#"
            title = "Rates"
            source = "a test"
            scenario = "flow.toml"
            seeds = [3]
            [grid]
            "dumbbell.rate" = ["1Gbps", "2.5Gbps"]
            "groups.cubic.congestion" = ["cubic", "nonsense"]
            [early_stop]
            batch = "1ms"
        "#;
        std::fs::write(&path, sweep).unwrap();
        let sweep = Sweep::load(&path).unwrap();
        for planned in sweep.plan() {
            let text = Task::of(&sweep, &planned).unwrap().to_json().unwrap();
            let task = Task::from_json(&text).unwrap();
            let row = task.clone().execute(&mut || true).unwrap().unwrap();
            let here = sweep.execute(&planned, &mut || true).unwrap();
            let timeless = |row: Row| Row {
                cpu: Duration::ZERO,
                ..row
            };
            assert_eq!(timeless(row), timeless(here));

            let old = Task {
                code: CodeVersion::parse("simulator:0"),
                ..task
            };
            let error = old.execute(&mut || true).unwrap_err();
            assert!(matches!(error, TaskError::OtherVersion { .. }), "{error}");
        }
    }
}
