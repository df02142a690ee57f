//! The example: three server processes, of which each is restarted, and a client process that calls all
//! the time.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the example prints")]

// The processes are this program again: cargo does not tell a test where examples are.
#[path = "../examples/kv/main.rs"]
mod kv;

use std::io::{BufRead, BufReader, Lines, Read};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};

use libtest_mimic::{Arguments, Failed, Trial};
use rustix::process::{Pid, Signal, kill_process};

/// The first argument of a process that is the example.
const EXAMPLE: &str = "grpc-kv-example";

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

/// Three addresses that are free now.
fn addresses() -> Vec<SocketAddr> {
    let bind = |_| UdpSocket::bind("127.0.0.1:0").unwrap();
    let sockets: Vec<_> = (0..3).map(bind).collect();
    let address = |socket: &UdpSocket| socket.local_addr().unwrap();
    sockets.iter().map(address).collect()
}

struct Process(Child);

impl Process {
    fn start(directory: &Path, addresses: &[SocketAddr], arguments: &[&str]) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(EXAMPLE).args(arguments);
        command.arg("--directory").arg(directory);
        for address in addresses {
            command.arg("--at").arg(address.to_string());
        }
        Self(command.stdout(Stdio::piped()).spawn().unwrap())
    }

    fn signal(&self, signal: Signal) {
        let id = Pid::from_raw(self.0.id().cast_signed()).unwrap();
        kill_process(id, signal).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // After a failure; a cluster stops its servers. It may be gone.
        if self.0.try_wait().is_ok_and(|status| status.is_none()) {
            self.signal(Signal::TERM);
            let _ = self.0.wait();
        }
    }
}

/// A cluster, and the lines that it prints.
struct Cluster {
    /// It ends before the pipe that it writes to.
    process: Process,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Cluster {
    fn start(directory: &Path, addresses: &[SocketAddr], arguments: &[&str]) -> Self {
        let mut process = Process::start(directory, addresses, arguments);
        let output = process.0.stdout.take().unwrap();
        Self {
            lines: BufReader::new(output).lines(),
            process,
        }
    }

    /// Returns the next line that has these words.
    fn wait_for(&mut self, words: &str) -> String {
        let mut lines = self.lines.by_ref().map(Result::unwrap);
        let found = lines.find(|line| line.contains(words));
        found.unwrap_or_else(|| panic!("the cluster ended before {words:?}"))
    }
}

/// Ends a load; returns what it reports.
fn report(mut load: Process) -> String {
    let mut output = load.0.stdout.take().unwrap();
    load.signal(Signal::TERM);
    let mut report = String::new();
    output.read_to_string(&mut report).unwrap();
    println!("{report}");
    assert!(load.0.wait().unwrap().success(), "{report}");
    assert!(report.contains(" 0 failed, 0 wrong answers"), "{report}");
    report
}

/// Returns the number before a word of a report.
fn count(report: &str, word: &str) -> u32 {
    let words: Vec<_> = report.split_ascii_whitespace().collect();
    let place = words.iter().position(|other| other.starts_with(word));
    words[place.unwrap() - 1].parse().unwrap()
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
