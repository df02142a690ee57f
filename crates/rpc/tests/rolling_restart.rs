//! The example: three server processes, of which each is restarted or one is killed, and a client process
//! that calls all the time.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the example prints")]

// The processes are this program again: cargo does not tell a test where examples are.
#[path = "../examples/kv/main.rs"]
mod kv;
mod processes;

use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use rustix::process::{Pid, Signal, kill_process};

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
    let trials = vec![
        trial(
            "a_rolling_restart_fails_no_call",
            a_rolling_restart_fails_no_call,
        ),
        trial(
            "a_killed_server_fails_no_idempotent_call",
            a_killed_server_fails_no_idempotent_call,
        ),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn a_rolling_restart_fails_no_call() {
    let directory = tempfile::tempdir().unwrap();
    let addresses = addresses();
    let arguments = ["cluster", "--pause", "300ms", "--rounds", "1"];
    let mut cluster = Cluster::start(directory.path(), &addresses, &arguments);
    cluster.wait_for("all run");
    let arguments = ["load", "--for", "10min", "--deadline", "20s"];
    let load = Process::start(directory.path(), &addresses, &arguments);
    cluster.wait_for("1 rounds are done");
    let report = report(load);
    // To each server before its restart, and to all but perhaps the last one after it.
    assert!(count(&report, "connections") >= 5, "{report}");
    cluster.process.signal(Signal::TERM);
    assert!(cluster.process.0.wait().unwrap().success());
}

fn a_killed_server_fails_no_idempotent_call() {
    let directory = tempfile::tempdir().unwrap();
    let addresses = addresses();
    let arguments = ["cluster", "--pause", "10min"];
    let mut cluster = Cluster::start(directory.path(), &addresses, &arguments);
    let line = cluster.wait_for("is process");
    cluster.wait_for("all run");
    let arguments = [
        "load",
        "--for",
        "10min",
        "--deadline",
        "20s",
        "--idempotent",
    ];
    let load = Process::start(directory.path(), &addresses, &arguments);
    std::thread::sleep(Duration::from_millis(500));
    let killed = line.rsplit(' ').next().unwrap().parse().unwrap();
    kill_process(Pid::from_raw(killed).unwrap(), Signal::KILL).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let report = report(load);
    assert!(count(&report, "calls") > 0, "{report}");
}
