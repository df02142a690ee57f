//! Executes an experiment, simulated or live, and writes its output.

use std::path::PathBuf;

use weir_results::{Output, Summary};
use weir_sim::{Experiment, Results};
use weir_studio::{LiveRun, Script};
use weir_units::Duration;

use super::exports::{Exported, Exports};
use super::live::LiveWorker;
use super::progress::{Bar, Progress};
use super::work::{Outcomes, Worker};
use crate::failure::Failure;
use crate::interrupt::Stop;

/// How an experiment is executed.
pub(super) struct Context<'c> {
    /// Whether with real endpoints.
    pub(super) is_live: bool,
    /// The most threads of a simulation.
    pub(super) threads: usize,
    /// The beginning of the names of its progress bars.
    pub(super) label: String,
    /// The page that shows the file's own run while it goes on, if one does.
    pub(super) page: Option<&'c LiveRun>,
    pub(super) progress: &'c Progress,
    pub(super) stop: &'c Stop,
}

/// An experiment that has been executed.
pub(super) struct Finished {
    pub(super) summary: Summary,
    /// The files of its output.
    pub(super) paths: Vec<PathBuf>,
    /// The variants that had not begun when the user stopped.
    pub(super) left_out: usize,
    /// The files beside it.
    pub(super) exported: Vec<Exported>,
}

impl Context<'_> {
    /// Adds the progress bar of a run of this length.
    pub(super) fn bar(&self, name: &str, span: Duration) -> Bar<'_> {
        self.progress.bar(&format!("{}{name}", self.label), span)
    }

    /// Executes an experiment.
    pub(super) fn execute(
        &self,
        experiment: Experiment,
        mut output: Option<Output>,
        exports: Exports,
    ) -> Result<Finished, Failure> {
        if let Some(output) = &mut output {
            let script = Script::of_scenario("", &experiment.own.scenario);
            let text = script.map_err(Failure::of)?.file();
            output.keep_scenario(&text).map_err(Failure::of)?;
        }
        let Experiment {
            about,
            own,
            variants,
        } = experiment;
        let Outcomes {
            own,
            variants,
            exports,
        } = if self.is_live {
            let worker = LiveWorker {
                output: output.as_ref(),
                context: self,
            };
            worker.run_all(own, variants, exports)
        } else {
            let worker = Worker {
                output: output.as_ref(),
                context: self,
            };
            worker.run_all(own, variants, exports)
        }?;
        let exported = exports.finish(own.summary.simulated)?;
        let mut results = Results::new(about, own);
        let mut left_out = 0;
        for (name, outcome) in variants {
            match outcome {
                Some(outcome) => results.add(name, outcome),
                None => left_out += 1,
            }
        }
        let (summary, paths) = match output {
            Some(output) => results.write(output).map_err(Failure::of)?,
            None => (results.into_summary(), Vec::new()),
        };
        Ok(Finished {
            summary,
            paths,
            left_out,
            exported,
        })
    }
}
