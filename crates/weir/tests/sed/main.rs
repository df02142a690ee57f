//! `weir sed`: certificates, a controller, its status, and, as root, an agent between two interfaces.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(dead_code, reason = "the support is shared with other tests")]

mod agent;
#[cfg(feature = "bpf")]
mod fail_open;
#[cfg(feature = "bpf")]
#[path = "../enforce/files.rs"]
mod files;
#[path = "../enforce/namespace.rs"]
mod namespace;
mod network;
mod rules;
mod service;
#[path = "../support/mod.rs"]
mod support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use support::{run, weir};

struct Controller {
    child: Child,
    address: String,
}

impl Controller {
    fn start(certificates: &str, state: &Path) -> Self {
        let mut child = weir(&["sed", "controller", "--listen", "0", "--metrics", "0"])
            .args(["--certificates", certificates])
            .arg("--state")
            .arg(state)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        let (_, address) = line.rsplit_once(' ').unwrap();
        let address = address.to_owned();
        // Read the rest too, so that the process never blocks on its output.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_controller_shows_its_status_and_locks_its_state() {
    let directory = tempfile::tempdir().unwrap();
    let certificates = directory.path().join("certificates");
    let certificates = certificates.to_str().unwrap();
    let state = directory.path().join("state");
    let missing = run(&["sed", "status", "--certificates", certificates]);
    missing.failed(2, &["authority.pem", "weir sed certificates"]);
    let made = run(&["sed", "certificates", certificates, "--switch", "tor1"]);
    assert!(made.ok().stdout.contains("tor1.pem"));
    let controller = Controller::start(certificates, &state);
    let shown = [
        "sed",
        "status",
        "--certificates",
        certificates,
        "--controller",
    ];
    let said = run(&[&shown[..], &[&controller.address]].concat());
    assert!(said.ok().stdout.contains("term 1"), "{}", said.stdout);
    let json = run(&[&shown[..], &[&controller.address, "--json"]].concat()).json();
    assert_eq!(json["term"], 1);
    assert_eq!(json["flows"].as_array().unwrap().len(), 0);
    let second = run(&[
        "sed",
        "controller",
        "--listen",
        "0",
        "--certificates",
        certificates,
        "--state",
        state.to_str().unwrap(),
    ]);
    second.failed(2, &["--state", "running"]);
    drop(controller);
    let nobody = run(&[&shown[..], &["127.0.0.1:1"]].concat());
    nobody.failed(1, &["no controller at 127.0.0.1:1"]);
}

#[test]
fn conflicting_settings_are_named() {
    let controller = |more: &[&str]| run(&[&["sed", "controller"], more].concat());
    controller(&["--threshold", "30KB", "--recovery", "40KB"]).failed(2, &["--recovery", "30KB"]);
    controller(&["--threshold", "0"]).failed(2, &["--threshold", "above zero"]);
    controller(&["--lease", "1ms"]).failed(2, &["--lease", "100ms"]);
    controller(&["--rules", "/no/such.toml"]).failed(1, &["/no/such.toml"]);
    controller(&["--rtt", "soon"]).failed(2, &["--rtt", "soon"]);
    controller(&["--allocation", "paper", "--best-effort", "9"])
        .failed(2, &["--best-effort", "earliest-deadline"]);
    let names = |name: &str| run(&["sed", "certificates", "/nonexistent", "--switch", name]);
    names("authority").failed(2, &["not free"]);
    names("../x").failed(2, &["lower-case"]);
}
