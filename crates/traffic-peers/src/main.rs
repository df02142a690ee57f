//! `weir-peers`: measures QUIC stacks, TCP + TLS and the floor side by side (`make bench`).

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use weir_lab::network::NetworkKind;
use weir_traffic::calls::{Error, Launcher, Plan, Report, table, worker};
use weir_traffic_peers::drivers;

mod arguments;
mod plans;
#[cfg(test)]
mod tests;

use arguments::{Arguments, Command, Options};
use plans::Step;

/// The hidden subcommand of worker processes.
const WORKER: &str = "worker";

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<ExitCode, Error> {
    match arguments.command {
        Command::Worker => worker::run(&drivers()).map(|()| ExitCode::SUCCESS),
        Command::All(options) => measure(&options, plans::all(&options)?),
        Command::Latency(options) => measure(&options, [plans::latency(&options)?]),
        Command::Bulk(options) => measure(&options, [plans::bulk(&options)?]),
        Command::Mixes(options) => measure(&options, [plans::mixes(&options)?]),
        Command::Networks(options) => measure(&options, plans::networks(&options)?),
        Command::Sizes(options) => measure(&options, plans::sizes(&options)?),
        Command::Armed(options) => measure(&options, plans::armed(&options)?),
    }
}

/// Runs the plans, prints the report and writes it to a file if asked for; the exit code is a failure if
/// any measurement failed.
fn measure<S: Into<Step>>(
    options: &Options,
    steps: impl IntoIterator<Item = S>,
) -> Result<ExitCode, Error> {
    let mut report = run_all(steps)?;
    let baselines = options.baselines();
    report.compare(&baselines);
    if report != Report::default() {
        print(&table::render(&report, &baselines))?;
    }
    if let Some(path) = &options.json {
        let mut json = serde_json::to_vec_pretty(&report)?;
        json.push(b'\n');
        std::fs::write(path, json).map_err(Error::io("writing the JSON file"))?;
    }
    Ok(if report.failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Runs the plans one after the other. Those whose network cannot be made are skipped.
fn run_all<S: Into<Step>>(steps: impl IntoIterator<Item = S>) -> Result<Report, Error> {
    let launcher = Launcher::this_program(&[WORKER])?;
    let mut report = Report::default();
    for step in steps {
        let Step { kind, mut plan } = step.into();
        // The network lasts as long as this value.
        let made = match kind.map(NetworkKind::create).transpose() {
            Ok(made) => made,
            Err(error) => {
                let skipped = kind.map(|kind| kind.to_string()).unwrap_or_default();
                print(&format!("SKIPPED: {skipped}: {error}\n"))?;
                continue;
            }
        };
        if let Some(made) = &made {
            plan.network = made.network().clone();
        }
        report.merge(run_plan(&plan, &launcher)?);
    }
    Ok(report)
}

/// Runs one plan and shows its progress.
fn run_plan(plan: &Plan, launcher: &Launcher) -> Result<Report, Error> {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {elapsed} {msg}") {
        bar.set_style(style);
    }
    let found = weir_traffic::calls::run(plan, &drivers(), launcher, &mut |progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.done);
        bar.set_message(progress.now.clone());
    });
    bar.finish_and_clear();
    found
}

fn print(text: &str) -> Result<(), Error> {
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(Error::io("writing to standard output"))
}
