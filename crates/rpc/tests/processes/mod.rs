//! The processes of a key-value example, and what they print. weir-grpc's tests have it too.

use std::io::{BufRead, BufReader, Lines, Read};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// The first argument of a process that is the example.
pub(crate) const EXAMPLE: &str = "kv-example";

/// Three addresses that are free now.
pub(crate) fn addresses() -> Vec<SocketAddr> {
    let bind = |_| UdpSocket::bind("127.0.0.1:0").unwrap();
    let sockets: Vec<_> = (0..3).map(bind).collect();
    let address = |socket: &UdpSocket| socket.local_addr().unwrap();
    sockets.iter().map(address).collect()
}

/// A process of the example.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    pub(crate) fn start(directory: &Path, addresses: &[SocketAddr], arguments: &[&str]) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(EXAMPLE).args(arguments);
        command.arg("--directory").arg(directory);
        for address in addresses {
            command.arg("--at").arg(address.to_string());
        }
        Self(command.stdout(Stdio::piped()).spawn().unwrap())
    }

    pub(crate) fn signal(&self, signal: Signal) {
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
pub(crate) struct Cluster {
    /// It ends before the pipe that it writes to.
    pub(crate) process: Process,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Cluster {
    pub(crate) fn start(directory: &Path, addresses: &[SocketAddr], arguments: &[&str]) -> Self {
        let mut process = Process::start(directory, addresses, arguments);
        let output = process.0.stdout.take().unwrap();
        Self {
            lines: BufReader::new(output).lines(),
            process,
        }
    }

    /// Returns the next line that has these words.
    pub(crate) fn wait_for(&mut self, words: &str) -> String {
        let mut lines = self.lines.by_ref().map(Result::unwrap);
        let found = lines.find(|line| line.contains(words));
        found.unwrap_or_else(|| panic!("the cluster ended before {words:?}"))
    }
}

/// Ends a load; returns what it reports.
pub(crate) fn report(mut load: Process) -> String {
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
pub(crate) fn count(report: &str, word: &str) -> u32 {
    let words: Vec<_> = report.split_ascii_whitespace().collect();
    let place = words.iter().position(|other| other.starts_with(word));
    words[place.unwrap() - 1].parse().unwrap()
}
