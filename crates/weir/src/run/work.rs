//! Runs simulations on all cores.

use std::time::Instant;

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use weir_network::thresholds;
use weir_results::{Output, RunFiles};
use weir_sim::{Outcome, Run, Simulation, Threads};
use weir_sweep::thread_time;

use super::context::Context;
use super::exports::Exports;
use super::pace::Pace;
use super::progress::Bar;
use crate::failure::Failure;

/// The context that all runs share.
pub(super) struct Worker<'w> {
    /// The directory for tables, if requested.
    pub(super) output: Option<&'w Output>,
    pub(super) context: &'w Context<'w>,
}

/// The results of an experiment.
pub(super) struct Outcomes {
    /// The run with the file's own values.
    pub(super) own: Outcome,
    /// The variants by name; `None` for one that had not started when the user stopped.
    pub(super) variants: Vec<(String, Option<Outcome>)>,
    /// The files of the file's own run beside its results.
    pub(super) exports: Exports,
}

impl Worker<'_> {
    /// Executes all runs of an experiment. If one fails, the others stop.
    pub(super) fn run_all(
        &self,
        own: Run,
        variants: Vec<(String, Run)>,
        exports: Exports,
    ) -> Result<Outcomes, Failure> {
        let (own, variants) = rayon::join(
            || self.own(own, exports),
            || {
                let variants = variants.into_par_iter();
                let outcomes = variants.map(|(name, run)| self.variant(name, run));
                outcomes.collect::<Result<Vec<_>, Failure>>()
            },
        );
        let (own, exports) = own?;
        Ok(Outcomes {
            own,
            variants: variants?,
            exports,
        })
    }

    fn own(&self, run: Run, exports: Exports) -> Result<(Outcome, Exports), Failure> {
        let span = run.scenario.duration;
        let files = self
            .output
            .map(|output| output.run(run.columns.clone(), span))
            .transpose();
        let bar = self.context.bar("", span);
        let done = files
            .map_err(Failure::of)
            .and_then(|files| self.simulate(run, (files, exports), &bar));
        done.inspect_err(|_| self.context.stop.fail())
    }

    fn variant(&self, name: String, run: Run) -> Result<(String, Option<Outcome>), Failure> {
        if self.context.stop.should_stop() {
            return Ok((name, None));
        }
        let span = run.scenario.duration;
        let files = self
            .output
            .map(|output| output.variant(&name, run.columns.clone(), span));
        let bar = self.context.bar(&name, span);
        let done = files
            .transpose()
            .map_err(Failure::of)
            .and_then(|files| self.simulate(run, (files, Exports::default()), &bar));
        match done {
            Ok((outcome, _)) => Ok((name, Some(outcome))),
            Err(failure) => {
                self.context.stop.fail();
                Err(Failure::Failed(format!("variant `{name}`: {failure}")))
            }
        }
    }

    fn simulate(
        &self,
        run: Run,
        mut recorder: (Option<RunFiles>, Exports),
        bar: &Bar<'_>,
    ) -> Result<(Outcome, Exports), Failure> {
        let begin = thread_time();
        let thresholds = thresholds(&run.scenario);
        let most = self.context.threads;
        let simulation = Simulation::with_threads(run.scenario, Threads::up_to(most));
        let mut simulation = simulation.map_err(Failure::of)?;
        simulation.set_thread_time(thread_time);
        if let Some(reason) = simulation.fewer_threads() {
            let threads = match simulation.threads() {
                1 => "one thread".to_owned(),
                several => format!("{several} threads"),
            };
            let note = format!("{threads} instead of {most}: {reason}");
            self.context.progress.note(&note);
        }
        let mut pace = Pace::new(simulation.end().since(simulation.now()));
        // With epochs the end may be earlier than planned.
        while simulation.now() < simulation.end() && !self.context.stop.should_stop() {
            let before = Instant::now();
            let until = simulation.now() + pace.slice();
            let advanced = simulation.advance(until, &mut recorder);
            advanced.map_err(Failure::of)?;
            pace.took(before.elapsed());
            bar.show(simulation.now(), simulation.packets());
        }
        let others = simulation.others_time();
        let mut summary = simulation.finish(&mut recorder).map_err(Failure::of)?;
        let (files, exports) = recorder;
        let files = files.map(RunFiles::finish).transpose();
        let files = files.map_err(Failure::of)?;
        summary.settings = run.settings;
        summary.cpu = thread_time() - begin + others;
        let plots = files.map(|files| (files, thresholds));
        Ok((Outcome { summary, plots }, exports))
    }
}
