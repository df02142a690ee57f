//! A running `weir enforce`.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::namespace::Namespace;
pub(crate) use crate::support::wait;
use crate::support::{CommandOutput, run};

/// An enforcer in a namespace; ended when dropped.
pub(crate) struct Running {
    pub(crate) child: Child,
    /// Its first line of output.
    pub(crate) first: String,
    pub(crate) policy: PathBuf,
    pub(crate) socket: PathBuf,
    _folder: TempDir,
}

impl Running {
    /// Starts an enforcer with this policy and these arguments, and waits until it is ready.
    pub(crate) fn start(namespace: &Namespace, policy: &str, arguments: &[&str]) -> Self {
        Self::start_with(namespace, policy, arguments, &[])
    }

    /// Starts it with these environment variables.
    pub(crate) fn start_with(
        namespace: &Namespace,
        policy: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.toml");
        let socket = folder.path().join("weir.sock");
        std::fs::write(&file, policy).unwrap();
        let mut child = (namespace.enter(env!("CARGO_BIN_EXE_weir")).arg("enforce"))
            .args(arguments)
            .arg("--control")
            .arg(&socket)
            .arg("--policy")
            .arg(&file)
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = String::new();
        let output = child.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut first).unwrap();
        Self {
            child,
            first,
            policy: file,
            socket,
            _folder: folder,
        }
    }

    fn ask(&self, words: &[&str]) -> CommandOutput {
        let socket = self.socket.to_str().unwrap();
        run(&[words, &["--control", socket]].concat())
    }

    pub(crate) fn status(&self) -> Value {
        self.ask(&["enforce", "status", "--json"]).json()
    }

    /// Returns the status as text.
    pub(crate) fn status_text(&self) -> String {
        self.ask(&["enforce", "status"]).ok().stdout.clone()
    }

    /// Writes another policy and reloads it.
    pub(crate) fn reload(&self, policy: &str) -> CommandOutput {
        std::fs::write(&self.policy, policy).unwrap();
        self.ask(&["policy", "reload"])
    }

    /// Resumes the rule on a line of its policy.
    pub(crate) fn resume(&self, line: u32) -> CommandOutput {
        self.ask(&["enforce", "resume", &line.to_string()])
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end; returns the exit status and its standard error.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let mut said = String::new();
        let mut errors = self.child.stderr.take().unwrap();
        errors.read_to_string(&mut said).unwrap();
        let status = self.child.wait().unwrap();
        if status.code().is_some() {
            assert!(!Path::new(&self.socket).exists(), "the socket stays behind");
        }
        (status, said)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has usually ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
