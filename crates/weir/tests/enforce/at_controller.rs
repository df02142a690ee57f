//! Enforcers at an interface and in line that follow a controller: they put its versions in force, and report what the
//! flows do that rules control.

use std::cell::Cell;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::in_line::{Download, Row};
use crate::namespace::{Namespace, possible};
use crate::support::{run, wait};
use crate::traffic::{neighbours, send_window};

const CONTROLLER: &str = "127.0.0.1:9600";

/// A controller and an enforcer, which is host `web1`, in one namespace.
struct Host<'n> {
    directory: TempDir,
    namespace: &'n Namespace,
    controller: Child,
    enforcer: Child,
}

impl<'n> Host<'n> {
    /// Starts both; the enforcer controls what these arguments say.
    fn start(namespace: &'n Namespace, arguments: &[&str]) -> Self {
        namespace.ip("link set lo up");
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let certificates = path("certificates");
        let place = certificates.to_str().unwrap();
        run(&[
            "sed",
            "certificates",
            place,
            "--publisher",
            "alice",
            "--host",
            "web1",
        ])
        .ok();
        let mut command = namespace.enter(env!("CARGO_BIN_EXE_weir"));
        command.args([
            "controller",
            "--listen",
            CONTROLLER,
            "--certificates",
            place,
        ]);
        command.arg("--state").arg(path("state"));
        let controller = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut command = namespace.enter(env!("CARGO_BIN_EXE_weir"));
        command.arg("enforce").args(arguments);
        command.args(["--controller", CONTROLLER, "--certificates", place]);
        command.args(["--name", "web1", "--label", "role=web"]);
        command.arg("--state").arg(path("host"));
        command.arg("--control").arg(path("weir.sock"));
        let enforcer = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut host = Self {
            namespace,
            controller: controller.unwrap(),
            enforcer: enforcer.unwrap(),
            directory,
        };
        let mut first = String::new();
        let output = host.enforcer.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut first).unwrap();
        assert!(first.contains("of a controller"), "{first}");
        host.wait_for(0);
        host
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.namespace.enter(env!("CARGO_BIN_EXE_weir"));
        command.arg("policy").args(arguments);
        command.args(["--controller", CONTROLLER, "--certificates"]);
        command.arg(self.path("certificates"));
        command
    }

    fn push(&self, text: &str, more: &[&str]) {
        let file = self.path("policy.toml");
        std::fs::write(&file, text).unwrap();
        let push = ["push", file.to_str().unwrap(), "--as", "alice", "-m", "why"];
        let output = self.command(&[&push, more].concat()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    fn status(&self) -> Value {
        let output = self.command(&["status", "--json"]).output().unwrap();
        // The controller may not listen yet.
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    fn wait_for(&self, version: u64) {
        wait(&format!("version {version}"), || {
            let status = self.status();
            let host = &status["hosts"][0];
            host["running"] == version && host["attached"] == true && status["rollout"].is_null()
        });
    }

    /// Returns a figure of the hosts that have the version on its way: its value and of how many connections.
    fn figure(&self, name: &str) -> Option<(f64, u64)> {
        let status = self.status();
        let treated = &status["rollout"]["figures"][name]["treated"];
        Some((treated["value"].as_f64()?, treated["connections"].as_u64()?))
    }
}

impl Drop for Host<'_> {
    fn drop(&mut self) {
        // An enforcer that is killed in line leaves frames to the kernel.
        let pid = rustix::process::Pid::from_child(&self.enforcer);
        let _ = rustix::process::kill_process(pid, Signal::TERM);
        let _ = self.enforcer.wait();
        let _ = self.controller.kill();
        let _ = self.controller.wait();
    }
}

/// As many flows as a median with its interval needs, and more.
const FLOWS: u64 = 12;

/// Connections over which the client receives data.
struct Downloads(Vec<(Download, Cell<u64>)>);

impl Downloads {
    fn start(ends: [&Namespace; 2]) -> Self {
        let ports = (8100..).take(FLOWS as usize);
        Self(
            ports
                .map(|port| (Download::between(ends, port), Cell::new(0)))
                .collect(),
        )
    }

    /// Receives some more over each.
    fn get(&self) -> bool {
        for (download, received) in &self.0 {
            received.set(received.get() + 100_000);
            download.get(100_000, received.get());
        }
        true
    }
}

/// The one host is the first stage, and stays it for the length of the test.
const STAGED: [&str; 6] = [
    "--stages",
    "50 %, then all",
    "--wait",
    "5min",
    "--guard",
    "retransmits > 100x for 1min",
];

fn rule(window: &str) -> String {
    format!(
        "[[rules]]\nfrom_port = \"8000-8999\"\ncongestion = {{ name = \"cubic\", max_window = \"{window}\" }}\n"
    )
}

#[cfg(feature = "bpf")]
#[test]
fn an_enforcer_at_an_interface_follows_and_reports() {
    if !possible("an_enforcer_at_an_interface_follows_and_reports") {
        return;
    }
    let [server, client] = neighbours();
    let host = Host::start(&server, &["-i", "eth0"]);
    host.push(&rule("40KB"), &[]);
    host.wait_for(1);
    let first = Download::between([&server, &client], 8001);
    first.get(2_000_000, 2_000_000);
    assert!(send_window(&server, 8001) <= 40_000);
    host.push(&rule("80KB"), &STAGED);
    wait("version 2", || host.status()["rollout"]["taken"] == 1);
    // The flow that version 1 controls is none of version 2.
    let mut of_first = 2_000_000;
    let others = Downloads::start([&server, &client]);
    wait("its figures", || {
        of_first += 500_000;
        first.get(500_000, of_first);
        others.get() && host.figure("rtt").is_some()
    });
    let (rtt, connections) = host.figure("rtt").unwrap();
    assert!(rtt > 0.0 && rtt < 1.0, "{rtt}");
    assert!(connections <= FLOWS, "{connections}");
    let (retransmits, _) = host.figure("retransmits").unwrap();
    assert!((0.0..0.5).contains(&retransmits), "{retransmits}");
    first.end();
}

#[test]
fn an_enforcer_in_line_follows_and_reports_what_it_has_retransmitted() {
    if !possible("an_enforcer_in_line_follows_and_reports_what_it_has_retransmitted") {
        return;
    }
    let row = Row::new(50, u64::MAX);
    let host = Host::start(&row.middle, &["--inline", "lan0", "wan0"]);
    host.push(&rule("400KB"), &[]);
    host.wait_for(1);
    host.push(&rule("300KB"), &STAGED);
    wait("version 2", || host.status()["rollout"]["taken"] == 1);
    let downloads = Downloads::start([&row.server, &row.client]);
    wait("its figures", || {
        downloads.get()
            && host
                .figure("retransmits")
                .is_some_and(|(value, _)| value > 0.0)
            && host.figure("rtt").is_some()
    });
    let (retransmits, connections) = host.figure("retransmits").unwrap();
    assert!((2..=FLOWS).contains(&connections), "{connections}");
    // One segment of 50 is lost, and some of the retransmitted ones; a segment may be a part of the largest one.
    assert!((0.002..0.2).contains(&retransmits), "{retransmits}");
}
