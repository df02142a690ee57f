//! `weir run`

mod assigned;
mod context;
mod exports;
mod live;
mod pace;
mod page;
mod progress;
mod seeds;
mod work;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use weir_results::{Output, Repetitions, Summary};
use weir_scenario::{GroupUnderPolicy, LoadedScenario, Setting};
use weir_sim::Experiment;
use weir_units::Duration;

use crate::failure::Failure;
use crate::interrupt::Stop;
use crate::output;
use crate::policy::HostArguments;
use crate::scenarios::{self, ScenarioArguments};
use assigned::AssignedVersion;
use context::Context;
use exports::Exports;
use page::Page;
use progress::Progress;
use seeds::Seeds;

/// The arguments of `weir run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir run buffer-sharing --out results                      a scenario that ships; see results/report.html
  weir run my.toml --set duration=5s --seed 2                other values than the file's
  weir run my.toml --set parameters.line_rate=5Gbps --json   the summary for programs
  weir run dctcp-queue --no-variants --pcap packets.pcapng   packets for Wireshark
  weir run incast --no-variants --trace incast.perfetto      a trace for https://ui.perfetto.dev
  weir run my.toml --seeds 1..8 --out runs                   means over eight seeds; see runs/seed-1
  weir run my.toml --jobs 2                                  two variants at a time
  weir run fat-tree.toml --threads 8                         one large network on eight cores
  weir run fabric.toml --policy policy.toml                  groups under the rules of a policy: docs/rollout.md
  weir run --live my.toml --out live                         the same network with real endpoints
  weir run --live my.toml --studio                           and a page on which to look at it meanwhile
  weir run --live fabric.toml --controller ctl1 --name lab1  under the version that a controller has for lab1

The file's own values are the run; its variants run beside it on all cores, and are reported by their
names. The same scenario with the same seed gives the same result, whatever else the machine does;
with --live what it does matters, and the summary says whether the emulation was faithful.
With --threads one run uses several cores, and gives the same result. This pays for leaves and spines or
a fat tree with 16 hosts or more for each thread. All groups must be `bulk` over TCP without TLS and
deadlines, and there may be no faults, no SED and no TCon: any other run stays on one thread, and says why.
Ctrl-C ends the simulation and writes what there is; a second one ends the program at once.")]
pub(crate) struct Run {
    #[command(flatten)]
    chosen: ScenarioArguments,

    #[command(flatten)]
    host: HostArguments,

    /// Seed of the random number generator, instead of the scenario's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Run once for each of these seeds, `1..8` (both included) or `1,2,5`, and print means with 95 %
    /// confidence intervals; with --live, as many live runs
    #[arg(long, value_name = "SEEDS", conflicts_with_all = ["seed", "pcap", "trace"])]
    seeds: Option<Seeds>,

    /// Write summary.json, report.html and tables of flows and samples to this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Print the summary as JSON
    #[arg(long)]
    json: bool,

    /// Run real endpoints over the scenario's network in real time, instead of simulating it:
    /// kernel TCP and DCQUIC in network namespaces; requires root
    #[arg(long)]
    live: bool,

    /// Show the live run on a local page while it goes on, and afterwards until Ctrl-C; any port that is free, or this one
    #[arg(
        long,
        value_name = "PORT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "0",
        requires = "live",
        conflicts_with = "seeds"
    )]
    studio: Option<u16>,

    /// Write the packets of the measured ports as pcapng, for the file's own run
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,

    /// Write queues, windows, flows and faults over time as a trace for Perfetto, for the file's own run
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Omit the scenario's variants
    #[arg(long)]
    no_variants: bool,

    /// Number of concurrent runs, variants and seeds, instead of one for each core
    #[arg(long, value_name = "N", conflicts_with = "live")]
    jobs: Option<NonZeroUsize>,

    /// Simulate a large network on up to N threads; fewer runs go on at the same time then
    #[arg(long, value_name = "N", default_value = "1", conflicts_with = "live")]
    threads: NonZeroUsize,
}

impl Run {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let run = || match &self.seeds {
            Some(seeds) => self.repeat(seeds),
            None => self.once(),
        };
        if self.threads.get() == 1 && self.jobs.is_none() {
            return run();
        }
        // Each of the runs that go on at the same time has this number of threads.
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let runs = (cores / self.threads).max(1);
        let runs = self.jobs.map_or(runs, NonZeroUsize::get);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(runs).build();
        pool.map_err(Failure::of)?.install(run)
    }

    /// Takes the version of a controller, if the policy comes from one.
    fn assigned(&self) -> Result<Option<AssignedVersion>, Failure> {
        if !self.host.is_used() {
            return Ok(None);
        }
        if !self.live {
            let problem = "it is for --live: `weir policy push --simulate` simulates a version";
            return Err(Failure::option("controller", problem));
        }
        let loaded = self.chosen.load(&self.chosen.settings(None));
        let loaded = loaded.map_err(|error| self.chosen.failure(&error))?;
        AssignedVersion::take(&self.host, &loaded).map(Some)
    }

    fn once(&self) -> Result<(), Failure> {
        let assigned = self.assigned()?;
        let (experiment, groups) = self.experiment(self.seed, assigned.as_ref())?;
        print_policy(&groups);
        // Report an unwritable file before the simulation starts.
        let output = self.out.as_deref().map(create).transpose()?;
        let own = &experiment.own;
        let exports = Exports::create(self.pcap.as_ref(), self.trace.as_ref(), &own.scenario)?;

        let stop = Stop::on_signals()?;
        let name = self.chosen.name();
        let page = self
            .studio
            .map(|port| Page::open(port, &name, &experiment.own.scenario));
        let page = page.transpose()?;
        let progress = Progress::new(!self.json, &spans(&experiment));
        let context = Context {
            is_live: self.live,
            threads: self.threads.get(),
            label: String::new(),
            page: page.as_ref().map(Page::run),
            progress: &progress,
            stop: &stop,
        };
        let finished = context.execute(experiment, output, exports);
        progress.clear();

        let finished = finished?;
        for file in &finished.exported {
            eprintln!("{} written to {}", file.content, file.path.display());
        }
        if let Some(directory) = &self.out {
            print_files(directory, &finished.paths);
        }
        self.print(&finished.summary)?;
        let code = stop.signal_exit_code();
        if let Some(page) = page {
            page.wait(&stop);
        }
        match code {
            None => Ok(()),
            Some(code) => Err(Failure::Interrupted {
                message: interruption(&finished.summary, finished.left_out),
                code,
            }),
        }
    }

    /// Runs the scenario once for each seed, and prints the means.
    fn repeat(&self, seeds: &Seeds) -> Result<(), Failure> {
        if let Some(directory) = &self.out {
            seeds.check(directory)?;
        }
        let assigned = self.assigned()?;
        let mut planned = Vec::new();
        let mut columns = Vec::new();
        for seed in seeds.iter() {
            let directory = (self.out.as_deref()).map(|all| seeds::directory(all, seed));
            let output = directory.as_deref().map(create).transpose()?;
            let (experiment, groups) = self.experiment(Some(seed), assigned.as_ref())?;
            if planned.is_empty() {
                print_policy(&groups);
                let variants = experiment.variants.iter().map(|(_, run)| run);
                let runs = [&experiment.own].into_iter().chain(variants);
                columns = runs.map(|run| run.columns.clone()).collect();
            }
            planned.push((seed, experiment, output));
        }
        let stop = Stop::on_signals()?;
        let all_spans = planned
            .iter()
            .flat_map(|(_, experiment, _)| spans(experiment));
        let progress = Progress::new(!self.json, &all_spans.collect::<Vec<_>>());
        let execute = |(seed, experiment, output)| {
            if stop.should_stop() {
                return Ok(None);
            }
            let context = Context {
                is_live: self.live,
                threads: self.threads.get(),
                label: format!("seed {seed} "),
                page: None,
                progress: &progress,
                stop: &stop,
            };
            let finished = context.execute(experiment, output, Exports::default());
            let finished = finished.inspect_err(|_| stop.fail())?;
            Ok(Some(finished.summary))
        };
        // Live runs follow one another: they would share the machine's CPU time.
        let summaries: Result<Vec<Option<Summary>>, Failure> = if self.live {
            planned.into_iter().map(execute).collect()
        } else {
            planned.into_par_iter().map(execute).collect()
        };
        progress.clear();

        let summaries = summaries?;
        let all = summaries.len();
        let summaries: Vec<Summary> = summaries.into_iter().flatten().collect();
        let of_seeds: Vec<&Summary> = summaries.iter().collect();
        let repetitions = Repetitions::of(&of_seeds);
        if let Some(directory) = &self.out {
            if let Some(repetitions) = &repetitions {
                let values: Vec<_> = columns.iter().map(Vec::as_slice).collect();
                seeds::write(directory, repetitions, &of_seeds, &values)?;
            }
            eprintln!(
                "written to {}: a directory for each of {} seeds, report.html and repetitions.json with means and \
                 intervals",
                directory.display(),
                summaries.len()
            );
        }
        if let Some(repetitions) = &repetitions {
            if self.json {
                output::print(&repetitions.to_json().map_err(Failure::of)?)?;
            } else {
                output::print(&repetitions.to_text())?;
            }
        }
        match stop.signal_exit_code() {
            Some(code) => Err(Failure::Interrupted {
                message: format!(
                    "interrupted: these results are of {} of {all} seeds, the last ones cut short",
                    summaries.len()
                ),
                code,
            }),
            None => Ok(()),
        }
    }

    /// Returns the runs with a seed, and what becomes of the groups under the policy.
    fn experiment(
        &self,
        seed: Option<u64>,
        assigned: Option<&AssignedVersion>,
    ) -> Result<(Experiment, Vec<GroupUnderPolicy>), Failure> {
        let seed = seed.map(|seed| Setting {
            path: "seed".to_owned(),
            value: seed.to_string(),
        });
        let mut settings = self.chosen.settings(seed);
        let loaded = self.chosen.load(&settings);
        let loaded = loaded.map_err(|error| self.chosen.failure(&error))?;
        let (mut loaded, groups) = match assigned {
            Some(assigned) => assigned.apply(loaded)?,
            None => self.chosen.under_policy(loaded)?,
        };
        settings.extend(assigned.map_or_else(
            || self.chosen.policy_setting(),
            |assigned| Some(assigned.setting()),
        ));
        if self.no_variants {
            loaded.variants.clear();
        }
        if self.live {
            scenarios::check_emulation(&loaded)?
        } else {
            scenarios::check_simulation(&loaded)?
        }
        Ok((Experiment::new(loaded, &settings), groups))
    }

    fn print(&self, summary: &Summary) -> Result<(), Failure> {
        if self.json {
            output::print(&summary.to_json().map_err(Failure::of)?)
        } else {
            output::print(&summary.to_text())
        }
    }
}

/// Simulates a scenario under a policy, of which results have this name, and writes them to a directory.
pub(crate) fn simulate_to(
    loaded: LoadedScenario,
    policy: &str,
    directory: &Path,
    stop: &Stop,
) -> Result<(), Failure> {
    scenarios::check_simulation(&loaded)?;
    let setting = Setting {
        path: "policy".to_owned(),
        value: policy.to_owned(),
    };
    let experiment = Experiment::new(loaded, &[setting]);
    let output = create(directory)?;
    let progress = Progress::new(true, &spans(&experiment));
    let context = Context {
        is_live: false,
        threads: 1,
        label: format!("{policy} "),
        page: None,
        progress: &progress,
        stop,
    };
    let finished = context.execute(experiment, Some(output), Exports::default());
    progress.clear();
    finished.map(drop)
}

/// Creates an experiment's output directory.
fn create(directory: &Path) -> Result<Output, Failure> {
    Output::create(directory).map_err(Failure::of)
}

/// Returns the simulated times of an experiment's runs.
fn spans(experiment: &Experiment) -> Vec<Duration> {
    let variants = experiment.variants.iter().map(|(_, run)| run);
    let runs = variants.chain([&experiment.own]);
    runs.map(|run| run.scenario.duration).collect()
}

/// Prints what a policy does with the groups.
pub(crate) fn print_policy(groups: &[GroupUnderPolicy]) {
    for group in groups {
        eprintln!("policy: {group}");
    }
}

/// Prints where the results are.
fn print_files(directory: &Path, paths: &[PathBuf]) {
    let is_table = |path: &&PathBuf| path.extension().is_some_and(|kind| kind == "parquet");
    let tables = paths.iter().filter(is_table).count();
    eprintln!(
        "written to {}: summary.json, report.html, weir-run.toml and {tables} tables",
        directory.display()
    );
}

/// Returns the message of an interrupted experiment.
fn interruption(summary: &Summary, left_out: usize) -> String {
    let total = summary.variants.len() + left_out;
    match left_out {
        0 => "interrupted: these results are of what there was".to_owned(),
        _ => format!(
            "interrupted: these results are of what there was; {left_out} of {total} variants had not \
             begun and are not in them"
        ),
    }
}
