//! Runs in an emulated network, one after the other: concurrent runs would share the machine's CPU
//! time.

use weir_lab::runs::RunDirectories;
use weir_network::thresholds;
use weir_results::{Output, RunFiles};
use weir_sim::{Outcome, Run};
use weir_studio::LiveRun;

use super::context::Context;
use super::exports::Exports;
use super::progress::Bar;
use super::work::Outcomes;
use crate::failure::Failure;

/// The context that all live runs share.
pub(super) struct LiveWorker<'w> {
    /// The directory for tables, if requested.
    pub(super) output: Option<&'w Output>,
    pub(super) context: &'w Context<'w>,
}

impl LiveWorker<'_> {
    /// Executes all runs of an experiment. Must be called by the program's first thread, because
    /// hosts die with the calling thread.
    pub(super) fn run_all(
        &self,
        own: Run,
        variants: Vec<(String, Run)>,
        exports: Exports,
    ) -> Result<Outcomes, Failure> {
        let span = own.scenario.duration;
        let files = self
            .output
            .map(|output| output.run(own.columns.clone(), span))
            .transpose();
        let recorder = (files.map_err(Failure::of)?, exports);
        let (own, exports) = self.emulate(
            own,
            recorder,
            self.context.page,
            &self.context.bar("", span),
        )?;
        let variants = variants.into_iter();
        let variants = variants.map(|(name, run)| {
            if self.context.stop.should_stop() {
                Ok((name, None))
            } else {
                self.variant(name, run)
            }
        });
        Ok(Outcomes {
            own,
            variants: variants.collect::<Result<_, _>>()?,
            exports,
        })
    }

    fn variant(&self, name: String, run: Run) -> Result<(String, Option<Outcome>), Failure> {
        let span = run.scenario.duration;
        let files = self
            .output
            .map(|output| output.variant(&name, run.columns.clone(), span));
        let files = files.transpose().map_err(Failure::of)?;
        let bar = self.context.bar(&name, span);
        match self.emulate(run, (files, Exports::default()), None, &bar) {
            Ok((outcome, _)) => Ok((name, Some(outcome))),
            Err(failure) => Err(Failure::Failed(format!("variant `{name}`: {failure}"))),
        }
    }

    fn emulate(
        &self,
        run: Run,
        recorder: (Option<RunFiles>, Exports),
        page: Option<&LiveRun>,
        bar: &Bar<'_>,
    ) -> Result<(Outcome, Exports), Failure> {
        let thresholds = thresholds(&run.scenario);
        let runs = RunDirectories::of_this_machine();
        let mut watch = |now| {
            bar.show_live(now);
            if let Some(page) = page {
                page.reached(now);
            }
            !self.context.stop.should_stop()
        };
        let mut recorder = (recorder, page.cloned());
        let summary = weir_lab::run(&run.scenario, &runs, &mut recorder, &mut watch);
        let mut summary = summary.map_err(Failure::of)?;
        summary.settings = run.settings;
        if let Some(page) = page {
            page.end(&summary);
        }
        let ((files, exports), _) = recorder;
        let files = files.map(RunFiles::finish).transpose();
        let plots = files.map_err(Failure::of)?.map(|files| (files, thresholds));
        Ok((Outcome { summary, plots }, exports))
    }
}
