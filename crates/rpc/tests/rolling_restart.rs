//! The example's rolling restart: three server processes, a client process that calls all the time.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the example prints")]

// The processes are this program again: cargo does not tell a test where examples are.
#[path = "../examples/kv/main.rs"]
mod kv;

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use libtest_mimic::{Arguments, Failed, Trial};
use rustix::process::{Pid, Signal, kill_process};

/// The first argument of a process that is the example.
const EXAMPLE: &str = "kv-example";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = arguments.next();
    if arguments.next().is_some_and(|first| first == EXAMPLE) {
        return kv::run(program.into_iter().chain(arguments));
    }
    let name = "a_rolling_restart_of_processes_fails_no_call";
    let trial = Trial::test(name, || -> Result<(), Failed> {
        a_rolling_restart_of_processes_fails_no_call();
        Ok(())
    });
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit_code()
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

    fn terminate(&mut self) {
        let id = Pid::from_raw(self.0.id().cast_signed()).unwrap();
        kill_process(id, Signal::TERM).unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // After a failure; a cluster stops its servers. It may be gone.
        if self.0.try_wait().is_ok_and(|status| status.is_none()) {
            let id = Pid::from_raw(self.0.id().cast_signed());
            let _ = id.map(|id| kill_process(id, Signal::TERM));
            let _ = self.0.wait();
        }
    }
}

fn a_rolling_restart_of_processes_fails_no_call() {
    let directory = tempfile::tempdir().unwrap();
    let addresses = addresses();
    let arguments = ["cluster", "--pause", "300ms", "--rounds", "1"];
    let mut cluster = Process::start(directory.path(), &addresses, &arguments);
    let mut lines = BufReader::new(cluster.0.stdout.take().unwrap()).lines();
    let mut wait_for = |end: &str| {
        let mut lines = lines.by_ref().map(Result::unwrap);
        let found = lines.find(|line| line.contains(end));
        assert!(found.is_some(), "the cluster ended before {end:?}");
    };
    wait_for("all run");
    let arguments = ["load", "--for", "10min", "--deadline", "20s"];
    let mut load = Process::start(directory.path(), &addresses, &arguments);
    wait_for("1 rounds are done");
    let mut output = load.0.stdout.take().unwrap();
    let id = Pid::from_raw(load.0.id().cast_signed()).unwrap();
    kill_process(id, Signal::TERM).unwrap();
    let mut report = String::new();
    output.read_to_string(&mut report).unwrap();
    println!("{report}");
    assert!(load.0.wait().unwrap().success(), "{report}");
    assert!(report.contains(" 0 failed, 0 wrong answers"), "{report}");
    // To each server before its restart, and to all but perhaps the last one after it.
    let connections = report.split(' ').zip(report.split(' ').skip(1));
    let connections = connections.filter(|(_, word)| word.starts_with("connections"));
    let count: Vec<u32> = connections
        .map(|(count, _)| count.parse().unwrap())
        .collect();
    assert!(count[0] >= 5, "{report}");
    cluster.terminate();
}
