//! A controller and four hosts with the kernel's TCP: a version that loses comes back from the first of them, and a
//! network that drops everything for a while changes nothing.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::canary;
use super::peer::{Cgroup, Peer};
use crate::namespace::{Namespace, join};
use crate::support::run;

/// How many hosts there are.
const HOSTS: u16 = 4;
const CONTROLLER: &str = "10.8.0.2:9600";
/// What the servers send, behind the router with the short queue.
const SCENARIO: &str = r#"title = "Four web servers"
source = "a test"
duration = "500ms"

[dumbbell]
rate = "50Mbps"
queue = { kind = "drop-tail", buffer = "45KB" }

[dumbbell.senders.server]
count = 4
rtt = "1ms"

[groups.web]
from = "server*"
to = "receiver"
workload = "bulk"
stands_for = { from = "10.9.0.1", from_port = "8101-8104" }
"#;

/// Ended when dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// A controller, and hosts whose data pass the same router.
struct Fleet {
    directory: TempDir,
    controller_namespace: Namespace,
    enforcers: Vec<Ended>,
    _controller: Ended,
    _servers: Vec<Peer>,
    _groups: Vec<Cgroup>,
    path: canary::Path,
}

impl Fleet {
    fn new(test: &str) -> Option<Self> {
        let path = canary::Path::new(test)?;
        let controller_namespace = Namespace::new();
        join(
            (&path.place.namespace, "ctl"),
            (&controller_namespace, "eth0"),
        );
        path.place.namespace.ip("address add 10.8.0.1/24 dev ctl");
        controller_namespace.ip("link set lo up");
        controller_namespace.ip("address add 10.8.0.2/24 dev eth0");
        let directory = tempfile::tempdir().unwrap();
        let certificates = directory.path().join("certificates");
        let mut arguments = vec!["sed", "certificates", certificates.to_str().unwrap()];
        let names: Vec<_> = (1..=HOSTS).map(|number| format!("web{number}")).collect();
        arguments.extend(["--publisher", "alice"]);
        arguments.extend(names.iter().flat_map(|name| ["--host", name.as_str()]));
        run(&arguments).ok();
        let mut command = controller_namespace.enter(env!("CARGO_BIN_EXE_weir"));
        command.args(["controller", "--listen", CONTROLLER]);
        command.arg("--certificates").arg(&certificates);
        command.arg("--state").arg(directory.path().join("state"));
        let controller = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut fleet = Self {
            directory,
            controller_namespace,
            enforcers: Vec::new(),
            _controller: Ended(controller.unwrap()),
            _servers: Vec::new(),
            _groups: Vec::new(),
            path,
        };
        for number in 1..=HOSTS {
            fleet.start_host(number);
        }
        Some(fleet)
    }

    fn start_host(&mut self, number: u16) {
        let place = &self.path.place;
        let name = format!("web{number}");
        let group = place.cgroup.below(&name);
        let mut server = Peer::start(&group, &place.namespace);
        server.ask(&format!("serve 10.9.0.1:{} 60000", 8100 + number));
        let mut command = place.namespace.enter(env!("CARGO_BIN_EXE_weir"));
        command.args([
            "enforce",
            "--cgroup",
            &group.path,
            "--controller",
            CONTROLLER,
        ]);
        command.args(["--name", &name, "--label", "role=web"]);
        command
            .arg("--certificates")
            .arg(self.path_of("certificates"));
        command.arg("--state").arg(self.path_of(&name));
        command
            .arg("--control")
            .arg(self.path_of(&format!("{name}.sock")));
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.unwrap();
        let mut first = String::new();
        let output = child.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut first).unwrap();
        assert!(first.contains("of a controller"), "{first}");
        self.enforcers.push(Ended(child));
        self._servers.push(server);
        self._groups.push(group);
    }

    fn path_of(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs `weir policy` where the controller is.
    fn policy(&self, arguments: &[&str]) -> String {
        let mut command = self.controller_namespace.enter(env!("CARGO_BIN_EXE_weir"));
        command.arg("policy").args(arguments);
        command.args(["--controller", CONTROLLER, "--certificates"]);
        let output = command.arg(self.path_of("certificates")).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{arguments:?}: {said}");
        text + &said
    }

    fn push(&self, initial_window: u32, more: &[&str]) -> String {
        let text = format!(
            "[[rules]]\nfrom_port = \"8101-8104\"\n\
             congestion = {{ name = \"cubic\", initial_window = {initial_window} }}\n"
        );
        let file = self.path_of("policy.toml");
        std::fs::write(&file, text).unwrap();
        let message = format!("begin with {initial_window} segments");
        let push = [
            "push",
            file.to_str().unwrap(),
            "--as",
            "alice",
            "-m",
            &message,
        ];
        self.policy(&[&push, more].concat())
    }

    fn status(&self) -> Option<Value> {
        let mut command = self.controller_namespace.enter(env!("CARGO_BIN_EXE_weir"));
        command.args(["policy", "status", "--json", "--controller", CONTROLLER]);
        let output = command
            .arg("--certificates")
            .arg(self.path_of("certificates"))
            .output();
        serde_json::from_slice(&output.unwrap().stdout).ok()
    }

    fn wait_until(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            let status = self.status();
            if let Some(status) = status.as_ref().filter(|status| is_so(status)) {
                return status.clone();
            }
            assert!(
                Instant::now() < deadline,
                "not within two minutes: {what}: {status:?}"
            );
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn wait_for(&self, version: u64) {
        self.wait_until(&format!("version {version}"), |status| {
            let hosts = status["hosts"].as_array().unwrap();
            status["version"] == version
                && hosts.len() == usize::from(HOSTS)
                && hosts
                    .iter()
                    .all(|host| host["running"] == version && host["attached"] == true)
        });
    }

    /// Returns the version on a host's disk.
    fn kept(&self, number: u16) -> u64 {
        let file = self.path_of(&format!("web{number}")).join("policy.json");
        let text = std::fs::read_to_string(file).unwrap();
        let kept: Value = serde_json::from_str(&text).unwrap();
        kept["version"].as_u64().unwrap()
    }
}

/// Fetches from one server after the other.
fn fetch(is_over: &AtomicBool) {
    for number in (1..=HOSTS).cycle() {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let mut data = Vec::new();
        let mut stream = TcpStream::connect(("10.9.0.1", 8100 + number)).unwrap();
        stream.read_to_end(&mut data).unwrap();
        assert_eq!(data.len(), 60_000);
    }
}

fn simulated(path: &Path) -> [&str; 4] {
    let scenario = path.to_str().unwrap();
    ["--simulate", scenario, "--refuse-if", "goodput_bps < 0.5x"]
}

#[test]
fn a_version_that_loses_comes_back_from_the_first_hosts() {
    let test = "a_version_that_loses_comes_back_from_the_first_hosts";
    let Some(fleet) = Fleet::new(test) else {
        return;
    };
    fleet.wait_for(0);
    fleet.push(10, &[]);
    fleet.wait_for(1);
    let scenario = fleet.path_of("scenario.toml");
    std::fs::write(&scenario, SCENARIO).unwrap();
    let stages = ["--stages", "10 % of role=web, then all", "--wait", "5min"];
    let guard = ["--guard", "retransmits > 2x for 3s"];
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = canary::Over(&is_over);
        scope.spawn(|| fleet.path.clients.run(|| fetch(&is_over)));
        let said = fleet.push(100, &[&simulated(&scenario)[..], &stages, &guard].concat());
        assert!(
            said.contains("goodput") && said.contains("version 2 is on its way"),
            "{said}"
        );
        fleet.wait_until("version 2 at one host", |status| {
            status["rollout"]["taken"] == 1
        });
        fleet.wait_until("the way back", |status| status["rollout"].is_null());
    });
    fleet.wait_for(1);
    let log = fleet.policy(&["log"]);
    println!("{log}");
    let taken_back = log
        .lines()
        .find(|line| line.contains("taken back"))
        .unwrap();
    assert!(
        taken_back.contains("in stage 1, to version 1: retransmits > 2x for 3s: "),
        "{log}"
    );
    assert!(
        log.contains("1 host\n") && log.contains("simulated: "),
        "{log}"
    );
    // The network between drops everything for a while.
    fleet.path.place.namespace.ip("link set ctl down");
    fleet.push(20, &[]);
    assert!((1..=HOSTS).all(|number| fleet.kept(number) == 1));
    fleet.path.place.namespace.ip("link set ctl up");
    fleet.wait_for(3);
    assert!((1..=HOSTS).all(|number| fleet.kept(number) == 3));
}
