//! The execution of a sweep's run, from its plan to its row.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};
use weir_results::{FlowFile, OutputError, Recorder};
use weir_scenario::Scenario;
use weir_sim::{BuildError, ControllerFailure, Simulation};
use weir_units::{Duration, Time};

use crate::plan::{PlannedRun, Sweep};
use crate::row::Row;
use crate::steady::{SteadyRule, SteadyStateDetector};

/// The number of slices of a run, with a check between them whether to continue, if no rule checks more
/// often.
const SLICES: u64 = 200;

impl Sweep {
    /// Executes a run. Calls `go_on` repeatedly; when it returns false, the run is dropped without a row. A
    /// scenario that cannot be simulated, or a run that fails, gives a row with its error.
    pub fn execute(&self, planned: &PlannedRun, go_on: &mut dyn FnMut() -> bool) -> Option<Row> {
        execute_run(planned, self.early_stop(), &mut (), go_on).0
    }

    /// Executes a run of the sweep in a directory, where its flows are kept if the sweep says so.
    pub(crate) fn execute_in(
        &self,
        directory: &Path,
        planned: &PlannedRun,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Row>, OutputError> {
        let path = self.flows_path(directory, &planned.key);
        let mut file = path.map(|path| FlowFile::create(&path)).transpose()?;
        let (row, failed) = execute_run(planned, self.early_stop(), &mut file, go_on);
        if let Some(error) = failed {
            return Err(error);
        }
        // A run without a result has no flows.
        if row.as_ref().is_some_and(|row| row.error.is_none()) {
            file.map(FlowFile::finish).transpose()?;
        }
        Ok(row)
    }
}

/// Does the same as [`Sweep::execute`] for a run without a sweep. Returns the row, and what the recorder failed with.
pub(crate) fn execute_run(
    planned: &PlannedRun,
    steady: Option<&SteadyRule>,
    recorder: &mut dyn Recorder,
    go_on: &mut dyn FnMut() -> bool,
) -> (Option<Row>, Option<OutputError>) {
    let begin = thread_time();
    let mut row = match &planned.scenario {
        Err(error) => Row::failed(planned, error.clone()),
        Ok(scenario) => {
            let run = || {
                simulate(
                    scenario.clone(),
                    steady.map(SteadyStateDetector::new),
                    recorder,
                    go_on,
                )
            };
            match catch_unwind(AssertUnwindSafe(run)) {
                Ok(Ok(Some(outcome))) => Row::done(planned, &outcome.summary, outcome.stopped),
                Ok(Ok(None)) => return (None, None),
                Ok(Err(RunError::Output(error))) => return (None, Some(error)),
                Ok(Err(RunError::Build(error))) => Row::failed(planned, error.to_string()),
                Ok(Err(RunError::Plugin(error))) => Row::failed(planned, error.to_string()),
                Err(panic) => Row::failed(planned, describe(&*panic)),
            }
        }
    };
    row.cpu = thread_time() - begin;
    (Some(row), None)
}

/// The result of a run, and when it was found steady, if it was.
struct Outcome {
    summary: weir_results::RunSummary,
    stopped: Option<Time>,
}

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Plugin(#[from] ControllerFailure),
}

impl From<weir_sim::RunError> for RunError {
    fn from(error: weir_sim::RunError) -> Self {
        match error {
            weir_sim::RunError::Output(error) => Self::Output(error),
            weir_sim::RunError::Plugin(failure) => Self::Plugin(failure),
        }
    }
}

fn simulate(
    scenario: Scenario,
    steady: Option<SteadyStateDetector>,
    recorder: &mut dyn Recorder,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Option<Outcome>, RunError> {
    let (warm_up, duration) = (scenario.warm_up, scenario.duration);
    // What is steady before a change or a fault is not the result.
    let mut steady = steady.filter(|_| scenario.changes.is_empty() && scenario.faults.is_empty());
    let mut simulation = Simulation::new(scenario)?;
    let slice = (duration / SLICES).max(Duration::from_nanos(1));
    let slice = steady
        .as_ref()
        .map_or(slice, |steady| steady.batch().min(duration));
    while simulation.now() < simulation.end() {
        if !go_on() {
            return Ok(None);
        }
        let until = simulation.now() + slice;
        simulation.advance(until, recorder)?;
        let now = simulation.now();
        if let Some(steady) = &mut steady
            && now > Time::ZERO + warm_up
            && now < simulation.end()
            && steady.observe(&simulation.summary())
        {
            let summary = steady.extrapolated(simulation.summary(), duration);
            return Ok(Some(Outcome {
                summary,
                stopped: Some(now),
            }));
        }
    }
    let summary = simulation.finish(recorder)?;
    Ok(Some(Outcome {
        summary,
        stopped: None,
    }))
}

/// Returns the message of a panic: a bug in this program, which must not end the other runs.
fn describe(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("panic: {}", text.unwrap_or_default())
}

/// Returns the CPU time of this thread.
pub fn thread_time() -> Duration {
    let time = std::time::Duration::try_from(clock_gettime(ClockId::ThreadCPUTime));
    time.unwrap_or_default().into()
}
