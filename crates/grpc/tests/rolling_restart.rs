//! The example: three server processes, of which each is restarted, and a client process that calls all
//! the time.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the example prints")]

// The processes are this program again: cargo does not tell a test where examples are.
#[path = "../examples/grpc-kv/main.rs"]
mod kv;
#[path = "../../rpc/tests/processes/mod.rs"]
mod processes;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use rustix::process::Signal;

use processes::{Cluster, EXAMPLE, Process, addresses, count, report};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = arguments.next();
    if arguments.next().is_some_and(|first| first == EXAMPLE) {
        return kv::run(program.into_iter().chain(arguments));
    }
    let trial = |name: &str, test: fn()| {
        Trial::test(name, move || -> Result<(), Failed> {
            test();
            Ok(())
        })
    };
    let trials = vec![trial(
        "a_rolling_restart_fails_no_call",
        a_rolling_restart_fails_no_call,
    )];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn a_rolling_restart_fails_no_call() {
    let directory = tempfile::tempdir().unwrap();
    let addresses = addresses();
    let arguments = ["cluster", "--pause", "1s", "--rounds", "1"];
    let mut cluster = Cluster::start(directory.path(), &addresses, &arguments);
    cluster.wait_for("all run");
    let arguments = ["load", "--for", "10min", "--deadline", "20s"];
    let load = Process::start(directory.path(), &addresses, &arguments);
    cluster.wait_for("1 rounds are done");
    let report = report(load);
    // One for each server, and one at least to a server that has started again: on a busy machine the load may come to
    // the others only after their restart.
    assert!(count(&report, "connections") >= 4, "{report}");
    cluster.process.signal(Signal::TERM);
    assert!(cluster.process.0.wait().unwrap().success());
}
