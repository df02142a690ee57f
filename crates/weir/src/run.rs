//! `weir run`

mod live;
mod pace;
mod progress;
mod work;

use std::path::{Path, PathBuf};

use clap::Args;
use weir_network::Capture;
use weir_results::{Output, Summary};
use weir_scenario::Setting;
use weir_sim::{Experiment, Results};

use crate::failure::Failure;
use crate::interrupt::Stop;
use crate::output;
use crate::scenarios::{self, ScenarioArguments};
use live::LiveWorker;
use progress::Progress;
use work::{Outcomes, Worker};

/// The arguments of `weir run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir run buffer-sharing --out results                      a scenario that ships; see results/report.html
  weir run my.toml --set duration=5s --seed 2                other values than the file's
  weir run my.toml --set parameters.line_rate=5Gbps --json   the summary for programs
  weir run dctcp-queue --no-variants --pcap packets.pcapng   packets for Wireshark
  weir run --live my.toml --out live                         the same network with real endpoints

The file's own values are the run; its variants run beside it on all cores, and are reported by their
names. The same scenario with the same seed gives the same result, whatever else the machine does;
with --live what it does matters, and the summary says whether the emulation was faithful.
Ctrl-C ends the simulation and writes what there is; a second one ends the program at once.")]
pub(crate) struct Run {
    #[command(flatten)]
    chosen: ScenarioArguments,

    /// Seed of the random number generator, instead of the scenario's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

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

    /// Write the packets of the measured ports as pcapng, for the file's own run
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,

    /// Omit the scenario's variants
    #[arg(long)]
    no_variants: bool,
}

impl Run {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let Experiment {
            about,
            own,
            variants,
        } = self.experiment()?;
        // Report an unwritable file before the simulation starts.
        let create = |directory: &PathBuf| Output::create(directory).map_err(Failure::of);
        let output = self.out.as_ref().map(create).transpose()?;
        let open = |path: &PathBuf| Capture::create(path, &own.scenario).map_err(Failure::of);
        let capture = self.pcap.as_ref().map(open).transpose()?;

        let stop = Stop::on_signals()?;
        let spans = variants.iter().map(|(_, run)| run.scenario.duration);
        let spans: Vec<_> = spans.chain([own.scenario.duration]).collect();
        let progress = Progress::new(!self.json, &spans);
        let (output_of_runs, progress_of_runs) = (output.as_ref(), &progress);
        let outcomes = if self.live {
            LiveWorker {
                output: output_of_runs,
                progress: progress_of_runs,
                stop: &stop,
            }
            .run_all(own, variants, capture)
        } else {
            Worker {
                output: output_of_runs,
                progress: progress_of_runs,
                stop: &stop,
            }
            .run_all(own, variants, capture)
        };
        progress.clear();

        let Outcomes {
            own,
            variants,
            capture,
        } = outcomes?;
        if let Some(capture) = capture {
            let path = capture.finish().map_err(Failure::of)?;
            eprintln!("packets written to {}", path.display());
        }
        let mut results = Results::new(about, own);
        let mut left_out = 0;
        for (name, outcome) in variants {
            match outcome {
                Some(outcome) => results.add(name, outcome),
                None => left_out += 1,
            }
        }
        let summary = match (output, &self.out) {
            (Some(output), Some(directory)) => {
                let (summary, paths) = results.write(output).map_err(Failure::of)?;
                print_files(directory, &paths);
                summary
            }
            _ => results.into_summary(),
        };
        self.print(&summary)?;
        match stop.signal_exit_code() {
            Some(code) => Err(Failure::Interrupted {
                message: interruption(&summary, left_out),
                code,
            }),
            None => Ok(()),
        }
    }

    fn experiment(&self) -> Result<Experiment, Failure> {
        let seed = self.seed.map(|seed| Setting {
            path: "seed".to_owned(),
            value: seed.to_string(),
        });
        let settings = self.chosen.settings(seed);
        let loaded = self.chosen.load(&settings);
        let mut loaded = loaded.map_err(|error| self.chosen.failure(&error))?;
        if self.no_variants {
            loaded.variants.clear();
        }
        if self.live {
            scenarios::check_emulation(&loaded)?
        } else {
            scenarios::check_simulation(&loaded)?
        }
        Ok(Experiment::new(loaded, &settings))
    }

    fn print(&self, summary: &Summary) -> Result<(), Failure> {
        if self.json {
            output::print(&summary.to_json().map_err(Failure::of)?)
        } else {
            output::print(&summary.to_text())
        }
    }
}

/// Prints where the results are.
fn print_files(directory: &Path, paths: &[PathBuf]) {
    // The paths include the summary and the report.
    let tables = paths.len().saturating_sub(2);
    eprintln!(
        "written to {}: summary.json, report.html and {tables} tables",
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
