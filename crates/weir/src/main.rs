//! The `weir` command: parses arguments, calls the libraries and prints results.
//!
//! There is one file per command: `bench/rpc.rs` is `weir bench rpc`, `perf/client.rs` is `weir
//! perf client`, and so on. Standard output contains results only; progress, warnings and errors go
//! to standard error. Exit codes: 0, 1 for a failure, 2 for an invalid command line, 130 after
//! Ctrl-C.

mod algorithms;
mod arguments;
mod bench;
mod check;
mod compare;
mod completions;
mod copy;
mod dcudp;
mod enforce;
mod fail_open;
mod failure;
mod interrupt;
mod lab;
mod list;
mod logging;
mod manual;
mod output;
mod perf;
mod policy;
mod python;
mod run;
mod scenarios;
mod sed;
mod service_manager;
mod studio;
mod sweep;
mod tune;
mod tunnel;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::failure::Failure;

/// A software-defined transport for data centers: simulate flows that share a switch, and compare
/// DCQUIC with existing transports.
#[derive(Debug, Parser)]
#[command(
    name = "weir",
    version,
    arg_required_else_help = true,
    after_help = "\
Examples:
  weir run buffer-sharing             simulate a scenario, one of `weir list` or a file of yours
  weir run --live FILE                put real endpoints through a scenario's network, in real time
  weir studio FILE                    play it on a local page, and turn its knobs while it runs
  weir sweep FILE --out DIR           simulate it under thousands of settings
  weir tune --data DIR …              ECN and RED thresholds for given traffic, as a switch loads them
  weir check FILE                     look for mistakes in a scenario file, and print it in full
  weir compare DIR DIR                two results of `weir run --out` side by side
  weir bench rpc                      request/response over DCQUIC beside TCP+TLS, in 30 seconds
  weir perf server                    wait for throughput tests; prints what clients need
  weir perf client HOST --pin 3f5a…   measure the throughput to that server
  weir copy FILE HOST: --pin 3f5a…    copy files to where `weir copy serve` runs
  weir tunnel client …                TCP applications over DCQUIC, without a change to them
  weir enforce -i eth0 --policy FILE  give TCP flows another congestion control than their own
  weir controller                     hold the policy of all hosts, for `weir policy push`
  weir algorithms                     list the congestion control algorithms

`weir COMMAND --help` tells more about each."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Log to standard error; twice for more, three times for everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count, display_order = 900)]
    verbose: u8,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Simulate a scenario and its variants, or run them live
    Run(run::Run),
    /// Check a scenario file, and print its expanded form
    Check(check::Check),
    /// Compare two experiments: a simulation and a live run, or any two
    Compare(compare::Compare),
    /// Play a scenario on a local page, and change it while it runs
    Studio(studio::Studio),
    /// Simulate a scenario with thousands of settings, on all cores, resumable
    Sweep(sweep::Sweep),
    /// Search for the thresholds that suit given traffic, with the Python package
    Tune(tune::Tune),
    /// List the available scenarios, with their sources
    List(list::List),
    /// Compare transports by application-level latency
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Measure the throughput between two machines, like iperf3
    #[command(subcommand)]
    Perf(perf::Perf),
    /// Copy files to another machine, resumable and verified
    Copy(copy::Copy),
    /// Carry TCP applications over DCQUIC, without a change to them
    #[command(subcommand)]
    Tunnel(tunnel::Tunnel),
    /// List the live runs on this machine, and remove the remains of killed ones
    #[command(subcommand)]
    Lab(lab::Lab),
    /// A host of a live run
    #[command(name = weir_lab::HOST_COMMAND, hide = true)]
    LabHost(lab::LabHost),
    /// List the congestion control algorithms and their parameters
    Algorithms(algorithms::Algorithms),
    /// Control the congestion of the TCP flows of this machine's interfaces
    Enforce(enforce::Enforce),
    /// Check which TCP flows a policy file controls, and how; push versions of it to many hosts
    #[command(subcommand)]
    Policy(policy::Policy),
    /// Hold the policy of all hosts, and assign a window to each flow of SED's switches
    Controller(sed::controller::Controller),
    /// Plan a network for DCUDP
    #[command(subcommand)]
    Dcudp(dcudp::Dcudp),
    /// Meet the deadlines of TCP flows: the controller, the agents, and their status
    #[command(subcommand)]
    Sed(sed::Sed),
    /// Print a shell's completion script
    Completions(completions::Completions),
    /// Write the manual pages
    #[command(hide = true)]
    Manual(manual::Manual),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    logging::start(cli.verbose);
    match run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(run) => run.run(),
        Command::Check(check) => check.run(),
        Command::Compare(compare) => compare.run(),
        Command::Studio(studio) => studio.run(),
        Command::Sweep(sweep) => sweep.run(),
        Command::Tune(tune) => tune.run(),
        Command::List(list) => list.run(),
        Command::Bench(bench) => bench.run(),
        Command::Perf(perf) => perf.run(),
        Command::Copy(copy) => copy.run(),
        Command::Tunnel(tunnel) => tunnel.run(),
        Command::Lab(lab) => lab.run(),
        Command::LabHost(host) => host.run(),
        Command::Algorithms(algorithms) => algorithms.run(),
        Command::Enforce(enforce) => enforce.run(),
        Command::Policy(policy) => policy.run(),
        Command::Controller(controller) => {
            let runtime = tokio::runtime::Runtime::new().map_err(Failure::of)?;
            runtime.block_on(controller.run())
        }
        Command::Dcudp(dcudp) => dcudp.run(),
        Command::Sed(sed) => sed.run(),
        Command::Completions(completions) => completions.run(),
        Command::Manual(manual) => manual.run(),
    }
}
