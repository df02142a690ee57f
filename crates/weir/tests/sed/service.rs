//! `weir sed controller` and `weir sed agent` as services: what they tell their manager, their log, and
//! their metrics.

use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::namespace::possible;
use crate::network::{Row, wait};
use crate::support::notify::NotifySocket;
use crate::support::prometheus::{assert_well_formed, scrape};
use crate::support::{CommandOutput, has_time, run, weir};

/// A controller whose standard error is a file.
struct LoggingController {
    child: Child,
    manager: NotifySocket,
    folder: TempDir,
}

impl LoggingController {
    /// Starts it with these arguments, and waits until it is ready. `journal` is whether the file counts
    /// as systemd's journal.
    fn start(journal: bool, more: &[&str]) -> Self {
        let (folder, manager) = (tempfile::tempdir().unwrap(), NotifySocket::new());
        let certificates = folder.path().join("certificates");
        run(&["sed", "certificates", certificates.to_str().unwrap()]).ok();
        let list = certificates.join("crl.pem");
        let errors = File::create(folder.path().join("errors")).unwrap();
        let own = errors.metadata().unwrap();
        let inode = if journal { own.ino() } else { 0 };
        let child = weir(&["sed", "controller", "--listen", "0", "--certificates"])
            .arg(certificates)
            .arg("--crl")
            .arg(list)
            .arg("--state")
            .arg(folder.path().join("state"))
            .args(more)
            .env("JOURNAL_STREAM", format!("{}:{inode}", own.dev()))
            .envs([manager.variable()])
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .unwrap();
        let controller = Self {
            child,
            manager,
            folder,
        };
        let status = controller.manager.expect("READY=1");
        assert!(status.starts_with("listens on 127.0.0.1:"), "{status}");
        controller
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the folder of its certificates.
    fn certificates(&self) -> String {
        let certificates = self.path().join("certificates");
        certificates.to_str().unwrap().to_owned()
    }

    /// Asks for its status.
    fn status(&self) -> CommandOutput {
        let log = self.log();
        let (_, address) = log.split_once(" listens on ").unwrap();
        let (address, _) = address.split_once('\n').unwrap();
        let certificates = self.certificates();
        let arguments = ["--certificates", &certificates, "--controller", address];
        run(&[&["sed", "status"][..], &arguments].concat())
    }

    /// Returns its metrics, if it was started with them.
    fn metrics(&self) -> String {
        let log = self.log();
        let (_, address) = log.split_once("metrics at http://").unwrap();
        let address: SocketAddr = address.split_once('/').unwrap().0.parse().unwrap();
        scrape(address)
    }

    /// Returns its log.
    fn log(&self) -> String {
        std::fs::read_to_string(self.path().join("errors")).unwrap()
    }

    /// Ends it; returns its log.
    fn end(mut self) -> String {
        self.signal(Signal::TERM);
        self.manager.expect("STOPPING=1");
        assert!(self.child.wait().unwrap().success());
        self.log()
    }
}

impl Drop for LoggingController {
    fn drop(&mut self) {
        // It has usually ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn lines_have_times_except_for_the_journal_which_gets_levels() {
    let said = LoggingController::start(false, &[]).end();
    let lines: Vec<_> = said.lines().collect();
    // It also tells that it leads, if it has come to that.
    assert!(lines.len() >= 2, "{said}");
    assert!(lines.iter().all(|line| has_time(line)), "{said}");
    assert!(lines[0].contains(" INFO controller "), "{said}");
    let said = LoggingController::start(true, &[]).end();
    let lines: Vec<_> = said.lines().collect();
    assert!(lines[0].starts_with("<6>controller "), "{said}");
    let last = lines.last().unwrap();
    assert!(last.starts_with("<6>ended; "), "{said}");
}

#[test]
fn a_controller_tells_of_reloads() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("deadlines.toml");
    std::fs::write(&file, "[[rules]]\nsize = \"1KB\"\ndeadline = \"1s\"\n").unwrap();
    let controller = LoggingController::start(true, &["--rules", file.to_str().unwrap()]);
    controller.signal(Signal::HUP);
    assert_eq!(controller.manager.expect_reload(), "1 rules in force");
    std::fs::write(&file, "[[rules]]\nto = 5\nfrom = 6\n").unwrap();
    controller.signal(Signal::HUP);
    assert!(controller.manager.expect_reload().contains("refused"));
    let said = controller.end();
    let reloads: Vec<_> = said
        .lines()
        .filter(|line| line.contains("SIGHUP: "))
        .collect();
    assert!(
        reloads[0].starts_with("<6>SIGHUP: ") && reloads[0].contains(": 1 rules in force"),
        "{said}"
    );
    assert!(
        reloads[1].starts_with("<4>SIGHUP: ") && reloads[1].ends_with("stay in force"),
        "{said}"
    );
    assert!(
        reloads[1].contains(":2: rules.0.to") && reloads[1].contains(":3: rules.0.from"),
        "{said}"
    );
    assert_eq!(reloads.len(), 2, "{said}");
}

#[test]
fn a_controller_serves_well_formed_metrics() {
    let controller = LoggingController::start(true, &["--metrics", "0"]);
    let metrics = controller.metrics();
    for name in [
        "weir_sed_orders_total",
        "weir_sed_decision_seconds_bucket",
        "weir_sed_last_step_timestamp_seconds",
    ] {
        assert!(
            metrics.contains(&format!("\n{name}")),
            "no {name} in {metrics}"
        );
    }
    assert_well_formed("a_controller_serves_well_formed_metrics", &metrics);
    controller.end();
}

#[test]
fn renewed_and_revoked_certificates_count_without_a_restart() {
    let controller = LoggingController::start(true, &["--metrics", "0"]);
    let certificates = controller.certificates();
    controller.status().ok();
    let renewed = run(&["sed", "certificates", &certificates, "--renew"]);
    assert!(renewed.ok().stdout.contains("valid for 90 days"));
    controller.signal(Signal::HUP);
    assert!(controller.manager.expect_reload().contains("read again"));
    controller.status().ok();
    let revoked = run(&["sed", "certificates", "revoke", &certificates, "operator"]);
    assert!(
        revoked
            .ok()
            .stdout
            .contains("operator: 2 certificates added to")
    );
    controller.signal(Signal::HUP);
    controller.manager.expect_reload();
    for _ in 0..3 {
        let refused = controller.status();
        refused.failed(1, &["the certificate of this end is revoked"]);
    }
    wait("all refusals are counted", || {
        let metrics = controller.metrics();
        let count = metrics.split_once("\nweir_sed_refused_clients_total ");
        let (count, _) = count.unwrap().1.split_once('\n').unwrap();
        count.parse::<u64>().unwrap() >= 3
    });
    // A file that is half written changes nothing.
    std::fs::write(format!("{certificates}/controller.key"), "-----BEGIN").unwrap();
    controller.signal(Signal::HUP);
    let said = controller.manager.expect_reload();
    assert!(said.contains("cannot be read again"), "{said}");
    let days = ["--renew", "--days", "7"];
    let renewed = run(&[&["sed", "certificates", &certificates][..], &days].concat());
    assert!(renewed.ok().stdout.contains("valid for 7 days"));
    controller.signal(Signal::HUP);
    controller.manager.expect_reload();
    controller.status().ok();
    let said = controller.end();
    let refusals = said
        .lines()
        .filter(|line| line.contains("a client is refused"));
    let refusals: Vec<_> = refusals.collect();
    assert!(refusals[0].starts_with("<4>"), "{said}");
    assert!(refusals[0].contains("address=127.0.0.1"), "{said}");
    assert!(refusals[0].contains("its certificate is revoked"), "{said}");
    assert!(said.contains("controller.key"), "{said}");
}

#[test]
fn what_cannot_be_revoked_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let revoke = |name| run(&["sed", "certificates", "revoke", folder, name]);
    // A wrong directory does not become an authority.
    revoke("tor1").failed(1, &["authority.key"]);
    run(&["sed", "certificates", folder]).ok();
    revoke("tor1").failed(1, &["no certificate of tor1", folder]);
    run(&["sed", "certificates", folder, "--days", "0"]).failed(2, &["--days", "0"]);
    run(&["sed", "certificates"]).failed(2, &["DIR"]);
    let list = format!("{folder}/authority.pem");
    let controller = [
        "sed",
        "controller",
        "--certificates",
        folder,
        "--crl",
        &list,
    ];
    run(&controller).failed(2, &["--crl", "no certificate revocation list"]);
}

#[test]
fn an_agent_tells_of_its_controller() {
    let test = "an_agent_tells_of_its_controller";
    if !possible(test) {
        return;
    }
    let (row, manager) = (Row::new(), NotifySocket::new());
    let more = ["--rate", "1Gbps", "--metrics", "9102"];
    let agent = row.agent_with(&more, &[manager.variable()]);
    assert!(manager.expect("READY=1").starts_with("no controller yet"));
    let _controller = row.controller(&[]);
    let mut status = String::new();
    while !status.starts_with("STATUS=obeys the controller ") {
        status = manager.next().join(" ");
    }
    let address = SocketAddr::from(([127, 0, 0, 1], 9102));
    let shown = [
        "weir_sed_agent_attached 1\n",
        "weir_sed_agent_queued_bytes{interface=\"lan0\"}",
        "weir_sed_agent_last_step_timestamp_seconds 1",
        "weir_sed_agent_controller_heard_timestamp_seconds 1",
    ];
    let metrics = row.middle.run(|| {
        wait("the agent shows that it works", || {
            let metrics = scrape(address);
            { shown }
                .iter()
                .all(|line| metrics.contains(&format!("\n{line}")))
        });
        scrape(address)
    });
    assert_well_formed(test, &metrics);
    agent.signal(Signal::INT);
    let mut state = manager.next();
    while state[0] != "STOPPING=1" {
        state = manager.next();
    }
    let (status, told) = agent.end();
    assert!(status.success(), "{status}: {told}");
}
