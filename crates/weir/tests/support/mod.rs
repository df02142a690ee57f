//! Runs the built binary.

pub(crate) mod dashboard;
pub(crate) mod notify;
pub(crate) mod prometheus;

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Returns the binary with these arguments.
pub(crate) fn weir(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Waits until a condition holds.
pub(crate) fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "not within 30 s: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns whether a line begins with a time of RFC 3339 in UTC.
pub(crate) fn has_time(line: &str) -> bool {
    let is_like = |(found, like): (char, char)| match like {
        '0' => found.is_ascii_digit(),
        other => found == other,
    };
    let pattern = "0000-00-00T00:00:00.000000Z ";
    line.len() > pattern.len() && line.chars().zip(pattern.chars()).all(is_like)
}

/// The exit code and the output of the binary.
pub(crate) struct CommandOutput {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the binary to its end.
pub(crate) fn run(arguments: &[&str]) -> CommandOutput {
    command_output(weir(arguments).output().unwrap())
}

/// Returns the output of a process that has ended.
pub(crate) fn command_output(output: Output) -> CommandOutput {
    CommandOutput {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl CommandOutput {
    /// Checks for success; returns the output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        self.ok();
        serde_json::from_str(&self.stdout).unwrap()
    }

    /// Checks for success.
    #[track_caller]
    pub(crate) fn ok(&self) -> &Self {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self
    }

    /// Checks for this exit code, and for a message with all of these words and without internal terms.
    #[track_caller]
    pub(crate) fn failed(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{}{}", self.stdout, self.stderr);
        for word in words {
            assert!(
                self.stderr.contains(word),
                "no {word:?} in: {}",
                self.stderr
            );
        }
        for unwanted in ["panicked", "RUST_BACKTRACE", "Error {", "Os {"] {
            assert!(!self.stderr.contains(unwanted), "{}", self.stderr);
        }
    }
}

/// A `weir perf server` on a port chosen by the system. Killed when dropped.
pub(crate) struct PerfServer {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) fingerprint: String,
    pub(crate) metrics: Option<SocketAddr>,
}

impl PerfServer {
    pub(crate) fn start(more: &[&str]) -> Self {
        Self::start_with(more, &[])
    }

    /// Starts a server with these environment variables.
    pub(crate) fn start_with(more: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut child = weir(&["perf", "server", "--port", "0", "--json"])
            .args(more)
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let listening: Value = serde_json::from_str(&line).unwrap();
        Self {
            child,
            address: listening["listening"].as_str().unwrap().parse().unwrap(),
            fingerprint: listening["fingerprint"].as_str().unwrap().to_owned(),
            metrics: listening["metrics"]
                .as_str()
                .map(|text| text.parse().unwrap()),
        }
    }

    /// Returns a client of this server with these arguments.
    pub(crate) fn client(&self, more: &[&str]) -> Command {
        let mut command = weir(&["perf", "client", "127.0.0.1", "--port"]);
        command.arg(self.address.port().to_string()).args(more);
        command
    }
}

impl Drop for PerfServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
