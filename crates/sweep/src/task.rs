//! A run that is carried out elsewhere: in another process, on another machine.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use weir_results::Value;
use weir_scenario::{Document, ScenarioError};

use crate::execution::carry_out;
use crate::key::{CODE_VERSION, RunKey};
use crate::plan::{PlannedRun, Sweep};
use crate::row::Row;
use crate::steady::SteadyRule;

/// All that a run needs, as JSON: neither the sweep's file nor the scenario's has to be there where it is
/// carried out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    code: String,
    number: u64,
    key: RunKey,
    inputs: IndexMap<String, Value>,
    seed: u64,
    steady: Option<SteadyRule>,
    /// The scenario in the general form, or what is wrong with it.
    scenario: Result<String, String>,
}

/// Why a task cannot be made or carried out.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// It comes from another version of the code, which gives other numbers.
    #[error(
        "this run was planned by version {planned} of weir's code, and this is version {own}: install the \
         same one everywhere"
    )]
    OtherVersion {
        /// The version that planned it.
        planned: String,
        /// The version that was to carry it out.
        own: &'static str,
    },
    /// It is no task.
    #[error("this is no run of a sweep: {0}")]
    Format(#[from] serde_json::Error),
    /// The scenario cannot be written down.
    #[error("the scenario cannot be written down: {0}")]
    Write(#[from] toml::ser::Error),
    /// The scenario cannot be read back.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
}

impl Task {
    /// A run of this sweep.
    ///
    /// # Errors
    /// The scenario cannot be written down.
    pub fn of(sweep: &Sweep, planned: &PlannedRun) -> Result<Self, TaskError> {
        Ok(Self {
            code: CODE_VERSION.to_owned(),
            number: planned.number,
            key: planned.key.clone(),
            inputs: planned.inputs.clone(),
            seed: planned.seed,
            steady: sweep.steady().cloned(),
            scenario: match &planned.scenario {
                Ok(scenario) => Ok(toml::to_string(scenario)?),
                Err(error) => Err(error.clone()),
            },
        })
    }

    /// As text.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn to_json(&self) -> Result<String, TaskError> {
        Ok(serde_json::to_string(self)?)
    }

    /// From text.
    ///
    /// # Errors
    /// It is no task.
    pub fn from_json(text: &str) -> Result<Self, TaskError> {
        Ok(serde_json::from_str(text)?)
    }

    /// Carries it out, as [`Sweep::carry_out`] does.
    ///
    /// # Errors
    /// Another version of the code planned it; its scenario is none.
    pub fn carry_out(self, go_on: &mut dyn FnMut() -> bool) -> Result<Option<Row>, TaskError> {
        if self.code != CODE_VERSION {
            return Err(TaskError::OtherVersion {
                planned: self.code,
                own: CODE_VERSION,
            });
        }
        let scenario = match self.scenario {
            Ok(text) => Ok(Document::parse("the planned run", &text)?.scenario()?),
            Err(error) => Err(error),
        };
        let planned = PlannedRun {
            number: self.number,
            key: self.key,
            inputs: self.inputs,
            seed: self.seed,
            scenario,
        };
        Ok(carry_out(&planned, self.steady.as_ref(), go_on))
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
            let row = task.clone().carry_out(&mut || true).unwrap().unwrap();
            let here = sweep.carry_out(&planned, &mut || true).unwrap();
            let timeless = |row: Row| Row {
                cpu: Duration::ZERO,
                ..row
            };
            assert_eq!(timeless(row), timeless(here));

            let old = Task {
                code: "0".to_owned(),
                ..task
            };
            let error = old.carry_out(&mut || true).unwrap_err();
            assert!(matches!(error, TaskError::OtherVersion { .. }), "{error}");
        }
    }
}
