//! `weir-peers`: measures QUIC stacks, TCP + TLS and the floor side by side on loopback (`make bench`).

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use weir_traffic::calls::{Error, Launcher, Report, table, worker};
use weir_traffic_peers::drivers;

mod arguments;
mod plans;
#[cfg(test)]
mod tests;

use arguments::{Arguments, Command, Options};

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
        Command::Latency(options) => measure(&options, vec![plans::latency(&options)?]),
        Command::Bulk(options) => measure(&options, vec![plans::bulk(&options)?]),
        Command::Mixes(options) => measure(&options, vec![plans::mixes(&options)?]),
        Command::Sizes(options) => measure(&options, plans::sizes(&options)?),
        Command::Armed(options) => measure(&options, plans::armed(&options)?),
    }
}

/// Runs the plans and prints the report; the exit code is a failure if any measurement failed.
fn measure(options: &Options, plans: Vec<weir_traffic::calls::Plan>) -> Result<ExitCode, Error> {
    let launcher = Launcher::this_program(&[WORKER])?;
    let drivers = drivers();
    let baselines = options.baselines();
    let mut report = Report::default();
    for plan in plans {
        let bar = ProgressBar::new(0);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {elapsed} {msg}") {
            bar.set_style(style);
        }
        let found = weir_traffic::calls::run(&plan, &drivers, &launcher, &mut |progress| {
            bar.set_length(progress.total);
            bar.set_position(progress.done);
            bar.set_message(progress.now.clone());
        });
        bar.finish_and_clear();
        report.merge(found?);
    }
    report.compare(&baselines);
    let text = table::render(&report, &baselines);
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(Error::io("writing the table"))?;
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
