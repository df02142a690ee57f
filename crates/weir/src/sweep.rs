//! `weir sweep`

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration as StdDuration;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use weir_scenario::Setting;
use weir_sweep::{
    Journal, PlannedRun, Row, Rows, RunObserver, Shard, SteadyRule, Sweep as Plan, SweepError,
};

use crate::failure::Failure;
use crate::interrupt::Stop;
use crate::output;
use crate::python;

/// The Python package's plotting module.
const PICTURES: &str = "weir.pictures";
/// The maximum number of run errors that are printed; the dataset has all.
const TOLD_ERRORS: usize = 5;

/// The arguments of `weir sweep`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir sweep sweeps/table1.toml --out study            all runs, on all cores
  weir sweep sweeps/table1.toml --out study --resume   go on after Ctrl-C, a kill or a power failure
  weir sweep sweeps/table1.toml --out try --some 200   200 runs spread evenly over the sweep
  weir sweep sweeps/table1.toml --out study --set duration=10s
  weir sweep sweeps/table1.toml --out study --shard 3/16 --resume   one part of sixteen, for a cluster
  weir sweep sweeps/table1.toml --out study --resume --report study.html   a page with pictures (Python package)

Each run's row goes into DIR/runs.jsonl when the run is over; DIR/runs.parquet is made of all rows at the
end. Rows of other settings or of another version of weir are never mixed in.")]
pub(crate) struct Sweep {
    /// Sweep file
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Directory for the rows and the dataset
    #[arg(long, value_name = "DIR", required_unless_present = "dry_run")]
    out: Option<PathBuf>,

    /// New value of a key of the scenario, in all runs (repeatable)
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<Setting>,

    /// Continue with the rows in the directory
    #[arg(long)]
    resume: bool,

    /// Run about this many points, spread evenly over the sweep
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "shard")]
    some: Option<u64>,

    /// Run one part of several: every OF-th run, beginning with the INDEX-th, from zero
    #[arg(long, value_name = "INDEX/OF", value_parser = shard)]
    shard: Option<Shard>,

    /// End runs that are steady, by the rule of docs/sweeps.md; overrides the file
    #[arg(long, conflicts_with = "full_length")]
    early_stop: bool,

    /// End no run early; overrides the file
    #[arg(long)]
    full_length: bool,

    /// Number of concurrent runs, instead of one for each core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,

    /// Write an HTML page with plots of all rows at the end (needs the Python package)
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Print the plan without running it
    #[arg(long)]
    dry_run: bool,
}

fn shard(text: &str) -> Result<Shard, String> {
    let numbers = text
        .split_once('/')
        .and_then(|(index, of)| Some((index.parse::<u64>().ok()?, of.parse::<u64>().ok()?)));
    match numbers {
        Some((index, of)) if index < of => Ok(Shard { index, of }),
        _ => Err(
            "write INDEX/OF, with INDEX from 0 to OF - 1: `0/16` is the first of sixteen"
                .to_owned(),
        ),
    }
}

impl Sweep {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let sweep = self.load().map_err(Failure::of)?;
        let planned = self.planned(&sweep);
        let Some(directory) = self.out.as_ref().filter(|_| !self.dry_run) else {
            return self.print_plan(&sweep, &planned);
        };
        // Check for the plotting package before hours of simulation.
        let python = match self.report {
            Some(_) => Some(python::with(PICTURES, "weir sweep --report")?),
            None => None,
        };
        let shard = self.shard.unwrap_or(Shard::WHOLE);
        let (journal, rows, mut reuse) =
            Journal::open(directory, shard, &planned, self.resume).map_err(Failure::of)?;
        let is_done = |run: &&PlannedRun| sweep.is_done(journal.directory(), &rows, run);
        reuse.lost_flows = rows.len() - planned.iter().filter(is_done).count();
        for line in reuse.lines() {
            eprintln!("{line}");
        }

        let stop = Stop::on_signals()?;
        let rows = self.run_missing(&sweep, &planned, (&journal, rows), &stop)?;
        self.finish(&sweep, directory, &rows)?;
        if let (Some(python), Some(report)) = (&python, &self.report)
            && stop.signal_exit_code().is_none()
        {
            draw(python, directory, report)?;
        }
        match stop.signal_exit_code() {
            Some(code) => Err(Failure::Interrupted {
                message: format!(
                    "interrupted after {} of {} runs: --resume goes on",
                    rows.len(),
                    planned.len()
                ),
                code,
            }),
            None => Ok(()),
        }
    }

    fn load(&self) -> Result<Plan, SweepError> {
        let sweep = Plan::load(&self.file)?.with(&self.set)?;
        let rule = sweep.early_stop().cloned();
        match (self.early_stop, self.full_length) {
            (true, _) => sweep.with_steady(Some(rule.unwrap_or_default())),
            (_, true) => sweep.with_steady(None),
            (false, false) => Ok(sweep),
        }
    }

    fn planned(&self, sweep: &Plan) -> Vec<PlannedRun> {
        match (self.some, self.shard) {
            (Some(count), _) => sweep.plan_subset(count),
            (None, shard) => sweep.plan_of(shard.unwrap_or(Shard::WHOLE)),
        }
    }

    fn print_plan(&self, sweep: &Plan, planned: &[PlannedRun]) -> Result<(), Failure> {
        let broken = planned.iter().filter(|run| run.scenario.is_err()).count();
        let axes = sweep.axes().iter().map(|axis| format!("  {}\n", axis.path));
        let early = match sweep.early_stop() {
            Some(SteadyRule { batch, batches, .. }) => {
                format!("; a run ends early when {batches} batches of {batch} are steady")
            }
            None => String::new(),
        };
        output::print(&format!(
            "{}\n{}\n{} runs, of which {broken} cannot be simulated{early}\n{}",
            sweep.title,
            sweep.source,
            planned.len(),
            axes.collect::<String>()
        ))
    }

    /// Executes the runs that have no row yet.
    fn run_missing(
        &self,
        sweep: &Plan,
        planned: &[PlannedRun],
        (journal, rows): (&Journal, Rows),
        stop: &Stop,
    ) -> Result<Rows, Failure> {
        let over = (planned.iter())
            .filter(|run| sweep.is_done(journal.directory(), &rows, run))
            .count();
        let bar = Bar::new(planned.len(), over, stop);
        let jobs = self.jobs.map_or(0, usize::from);
        let rows = sweep.execute_remaining(planned, rows, journal, jobs, &bar);
        bar.clear();
        rows.map_err(Failure::of)
    }

    /// Creates the dataset from all rows in the directory, including those of other parts.
    fn finish(&self, sweep: &Plan, directory: &Path, own: &Rows) -> Result<(), Failure> {
        let written = sweep.write_dataset(directory).map_err(Failure::of)?;
        let cpu = own.cpu().as_secs_f64();
        let errors = written.rows.errors();
        let failed = errors.iter().map(|(_, count)| count).sum::<usize>();
        output::print(&format!(
            "{}: {} of {} runs, {failed} failed; {cpu:.1} s of CPU time, {:.2} s a run\n",
            written.path.display(),
            written.dataset.rows(),
            sweep.runs(),
            cpu / own.len().max(1) as f64,
        ))?;
        for (error, count) in errors.iter().take(TOLD_ERRORS) {
            eprintln!("{count} failed: {error}");
        }
        if failed > 0 && failed == written.rows.len() {
            return Err(Failure::Failed("no run gave a result".to_owned()));
        }
        Ok(())
    }
}

/// Runs the Python package to create the page.
fn draw(python: &Path, directory: &Path, report: &Path) -> Result<(), Failure> {
    let status = Command::new(python)
        .args(["-m", PICTURES])
        .args([directory, report])
        .status()
        .map_err(|error| Failure::Failed(format!("{}: {error}", python.display())))?;
    if !status.success() {
        // The Python program has printed the reason.
        return Err(Failure::Failed(format!("no page: {}", report.display())));
    }
    Ok(())
}

/// The progress of the sweep; hidden if standard error is not a terminal.
struct Bar<'s> {
    bar: ProgressBar,
    stop: &'s Stop,
    failed: AtomicUsize,
}

impl<'s> Bar<'s> {
    fn new(runs: usize, over: usize, stop: &'s Stop) -> Self {
        let bar = ProgressBar::with_draw_target(Some(runs as u64), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template(
            "{bar:24} {pos} of {len} runs, {per_sec}, {eta} left{msg}",
        );
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_position(over as u64);
        bar.reset_eta();
        bar.enable_steady_tick(StdDuration::from_millis(500));
        Self {
            bar,
            stop,
            failed: AtomicUsize::new(0),
        }
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl RunObserver for Bar<'_> {
    fn should_continue(&self) -> bool {
        !self.stop.should_stop()
    }

    fn on_finished(&self, row: &Row) {
        if row.error.is_some() {
            let count = self.failed.fetch_add(1, Ordering::Relaxed) + 1;
            self.bar.set_message(format!(", {count} failed"));
        }
        self.bar.inc(1);
    }
}
