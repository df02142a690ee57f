//! A controller of policies with thousands of hosts, which a few processes play: how long a version takes to come to
//! them, what memory the controller has, and what is left when it or half of the hosts are killed during a push.
//!
//! As root the hosts are in a network namespace, and the link between drops everything during a push; otherwise they are
//! on loopback. `make bench-controller` runs it; HOSTS and PROCESSES are environment variables.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::{Builder, Runtime};
use weir_control::certificates::Authority;
use weir_control::{
    Controller, ControllerOptions, Credentials, EpochFile, FleetClient, HostChannel, HostEvent,
    HostOptions, Role, StoreLocation, policy_v1 as v1,
};
use weir_rollout::Labels;
use weir_sed::ControllerConfig;

const DAY: Duration = Duration::from_secs(24 * 3600);

fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let open = getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit {
        current: open,
        maximum: open,
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    match arguments.as_slice() {
        [_, "controller", directory, port] => controller(Path::new(directory), port),
        [_, "hosts", directory, address, from, count] => {
            let (from, count) = (from.parse().unwrap(), count.parse().unwrap());
            hosts(Path::new(directory), address, from, count);
        }
        _ => measure(),
    }
}

/// Runs a controller until it is killed.
fn controller(directory: &Path, port: &str) {
    let runtime = Runtime::new().unwrap();
    let options = ControllerOptions {
        listen: format!("0.0.0.0:{port}").parse().unwrap(),
        credentials: Credentials::from_directory(directory, "controller").unwrap(),
        state: EpochFile::claim(&directory.join("state")).unwrap(),
        config: ControllerConfig::paper(),
        rules: Vec::new(),
        flows_per_client: 10,
        policies: Some(StoreLocation::File(directory.join("policy.redb"))),
        metrics: None,
    };
    let controller = runtime.block_on(Controller::bind(options)).unwrap();
    println!("{}", controller.address().port());
    let run = controller.run(std::future::pending());
    runtime.block_on(run).unwrap();
}

/// Plays hosts, which put each version in force at once, until it is killed.
fn hosts(directory: &Path, address: &str, from: usize, count: usize) {
    let credentials = Credentials::from_directory(directory, "hosts").unwrap();
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        for number in from..from + count {
            let mut channel = HostChannel::start(HostOptions {
                controllers: vec![address.to_owned()],
                credentials: credentials.clone(),
                name: format!("host{number}"),
                labels: Labels::parse(["role=web"]).unwrap(),
                held: None,
                wake: None,
            });
            tokio::spawn(async move {
                while let Some(event) = channel.event().await {
                    if let HostEvent::Assigned(assigned) = event {
                        channel.taken(assigned.held);
                    }
                }
            });
            if number % 50 == 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        std::future::pending::<()>().await;
    });
}

/// Kills a child process when it is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A namespace for the hosts, and the link to it.
struct Network(String);

impl Network {
    /// The controller's end, and its address.
    const LINK: &str = "weir-fleet";
    const CONTROLLER: &str = "10.213.0.1";

    /// Creates it; `None` where this is not possible.
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let network = Self(format!("weir-fleet-{}", std::process::id()));
        let (name, link) = (&network.0, Self::LINK);
        let commands = [
            format!("netns add {name}"),
            format!("link add {link} type veth peer name eth0 netns {name}"),
            format!("address add {}/24 dev {link}", Self::CONTROLLER),
            format!("link set {link} up"),
            format!("-n {name} address add 10.213.0.2/24 dev eth0"),
            format!("-n {name} link set eth0 up"),
        ];
        commands.iter().all(|words| ip(words)).then_some(network)
    }

    /// Has the link drop everything, or nothing any more.
    fn set_up(&self, is_up: bool) {
        let state = if is_up { "up" } else { "down" };
        assert!(ip(&format!("-n {} link set eth0 {state}", self.0)));
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // The link goes with the namespace.
        ip(&format!("netns delete {}", self.0));
    }
}

/// Runs `ip`; returns whether it succeeds.
fn ip(words: &str) -> bool {
    let status = Command::new("ip").args(words.split(' ')).status();
    status.is_ok_and(|status| status.success())
}

struct World {
    directory: tempfile::TempDir,
    port: String,
    controller: Option<Killed>,
    hosts: Vec<Option<Killed>>,
    count: usize,
    client: FleetClient,
    runtime: Runtime,
    pushed: u64,
    /// Last, so that it is dropped after the processes in it.
    network: Option<Network>,
}

fn number(name: &str, usual: usize) -> usize {
    let value = std::env::var(name).ok().filter(|text| !text.is_empty());
    value.map_or(usual, |text| text.parse().unwrap())
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let authority = Authority::open(directory.path()).unwrap();
        for (name, role) in [
            ("controller", Role::Controller),
            ("alice", Role::Publisher("alice".to_owned())),
            // One certificate for all of them, as they are all played here.
            ("hosts", Role::Host("*".to_owned())),
        ] {
            authority.issue(name, &[role], &[], DAY).unwrap();
        }
        let credentials = Credentials::from_directory(directory.path(), "alice").unwrap();
        let mut world = Self {
            directory,
            port: "0".to_owned(),
            controller: None,
            hosts: Vec::new(),
            count: number("HOSTS", 10_000),
            client: FleetClient::new(Vec::new(), credentials.clone()),
            runtime: Runtime::new().unwrap(),
            pushed: 0,
            network: Network::new(),
        };
        world.start_controller();
        let address = format!("127.0.0.1:{}", world.port);
        world.client = FleetClient::new(vec![address], credentials);
        world
    }

    fn own(&self, mut command: Command, arguments: &[&str]) -> Command {
        command.arg(arguments[0]).arg(self.directory.path());
        command.args(&arguments[1..]);
        command
    }

    /// Returns the command and the controller's address of processes that play hosts.
    fn host_command(&self) -> (Command, String) {
        let own = std::env::current_exe().unwrap();
        match &self.network {
            Some(Network(name)) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", name]).arg(own);
                (command, format!("{}:{}", Network::CONTROLLER, self.port))
            }
            None => (Command::new(own), format!("127.0.0.1:{}", self.port)),
        }
    }

    fn start_controller(&mut self) {
        let own = Command::new(std::env::current_exe().unwrap());
        let mut command = self.own(own, &["controller", &self.port]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        line.trim().clone_into(&mut self.port);
        self.controller = Some(Killed(child));
    }

    fn start_hosts(&mut self) {
        let processes = number("PROCESSES", 4);
        self.hosts.resize_with(processes, || None);
        let each = self.count / processes;
        for part in 0..processes {
            if self.hosts[part].is_none() {
                let (from, count) = ((part * each).to_string(), each.to_string());
                let (command, address) = self.host_command();
                let child = self
                    .own(command, &["hosts", &address, &from, &count])
                    .spawn();
                self.hosts[part] = Some(Killed(child.unwrap()));
            }
        }
        self.count = each * processes;
    }

    fn status(&self) -> Option<v1::FleetStatus> {
        let request = v1::FleetStatusRequest { hosts: 0 };
        self.runtime.block_on(self.client.status(request)).ok()
    }

    /// Returns how many attached hosts have a version, and how many are attached.
    fn with(&self, version: u64) -> (usize, usize) {
        let Some(status) = self.status() else {
            return (0, 0);
        };
        let mut versions = status.versions.iter();
        let found = versions.find(|count| count.version == Some(version));
        let with = found.map_or(0, |count| count.connected as usize);
        (with, status.connected as usize)
    }

    fn wait_for(&self, version: u64, hosts: usize) -> Duration {
        let begin = Instant::now();
        while self.with(version).0 < hosts {
            assert!(
                begin.elapsed() < Duration::from_secs(300),
                "{:?}",
                self.with(version)
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        begin.elapsed()
    }

    fn push(&mut self) -> u64 {
        self.pushed += 1;
        let text = format!(
            "[[rules]]\ncongestion = \"dctcp\"\n# {}\n{}",
            self.pushed,
            "# Two kilobytes of reasons.\n".repeat(75)
        );
        let request = v1::PushRequest {
            message: format!("push {}", self.pushed),
            text,
            plan: Some(v1::Plan {
                stages: "all".to_owned(),
                wait_nanoseconds: 0,
                guards: Vec::new(),
                refusals: 0,
            }),
            simulated: String::new(),
            supersede: false,
        };
        let pushed = self.runtime.block_on(self.client.push(request)).unwrap();
        pushed.version
    }

    fn controller_memory(&self) -> (u64, u64) {
        let pid = self.controller.as_ref().unwrap().0.id();
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let of = |key: &str| {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix(key))
                .unwrap();
            let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
            kilobytes / 1024
        };
        (of("VmRSS:"), of("VmHWM:"))
    }

    /// Waits until the version is everywhere: the next one can be pushed then.
    fn settle(&self, version: u64) {
        while self.status().is_none_or(|status| status.stable != version) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns how many hosts took a version by the log, and whether any did twice.
    fn log(&self, version: u64) -> (usize, bool) {
        let request = v1::LogRequest {
            from: 1,
            count: 10_000,
        };
        let log = self.runtime.block_on(self.client.log(request)).unwrap();
        let mut hosts = Vec::new();
        for (place, entry) in log.entries.iter().enumerate() {
            assert_eq!(entry.number, place as u64 + 1, "the log has no gaps");
            let event: serde_json::Value = serde_json::from_str(&entry.json).unwrap();
            if event["event"] == "took" && event["version"] == version {
                let names = event["hosts"].as_array().unwrap().iter();
                hosts.extend(names.map(|name| name.as_str().unwrap().to_owned()));
            }
        }
        let all = hosts.len();
        hosts.sort();
        hosts.dedup();
        (hosts.len(), hosts.len() != all)
    }
}

/// How long the link drops everything: until both ends have noticed that the other one is silent.
const DROPPED: Duration = Duration::from_secs(25);

/// Has the link between drop everything during a push.
fn measure_drop(world: &mut World) {
    if world.network.is_none() {
        println!("the link between is not cut: it takes root");
        return;
    }
    let before = world.pushed;
    world.network.as_ref().unwrap().set_up(false);
    let version = world.push();
    std::thread::sleep(DROPPED);
    let (with, attached) = world.with(version);
    println!(
        "the link drops everything for {DROPPED:?} during a push: {with} have it, {attached} are attached"
    );
    assert_eq!(
        (with, version),
        (0, before + 1),
        "a version goes through a cut link"
    );
    world.network.as_ref().unwrap().set_up(true);
    let begin = Instant::now();
    world.wait_for(version, world.count);
    println!(
        "all have it {:.1} s after the link is back; log: {:?} (hosts that took it, any twice)",
        begin.elapsed().as_secs_f64(),
        world.log(version)
    );
    world.settle(version);
}

fn measure() {
    let mut world = World::new();
    let begin = Instant::now();
    world.start_hosts();
    world.wait_for(0, world.count);
    let (now, most) = world.controller_memory();
    println!(
        "{} hosts attached in {:.1} s; controller: {now} MB resident, {most} MB at most",
        world.count,
        begin.elapsed().as_secs_f64()
    );
    for _ in 0..3 {
        let begin = Instant::now();
        let version = world.push();
        world.wait_for(version, world.count * 99 / 100);
        let most_have = begin.elapsed();
        world.wait_for(version, world.count);
        let (now, most) = world.controller_memory();
        println!(
            "push: 99 % have it after {:.2} s, all after {:.2} s; controller: {now} MB resident, {most} MB at most",
            most_have.as_secs_f64(),
            begin.elapsed().as_secs_f64(),
        );
        world.settle(version);
    }
    let version = world.push();
    drop(world.controller.take());
    let begin = Instant::now();
    world.start_controller();
    world.wait_for(version, world.count);
    println!(
        "controller killed just after a push is answered: all have the version {:.1} s after it is started again",
        begin.elapsed().as_secs_f64()
    );
    world.settle(version);
    println!(
        "log: {:?} (hosts that took it, any twice)",
        world.log(version)
    );
    measure_drop(&mut world);
    let version = world.push();
    let half = world.hosts.len() / 2;
    for hosts in world.hosts.iter_mut().take(half) {
        drop(hosts.take());
    }
    let begin = Instant::now();
    world.wait_for(version, world.count / 2);
    println!(
        "half of the hosts killed during a push: the others have it after {:.2} s",
        begin.elapsed().as_secs_f64()
    );
    let begin = Instant::now();
    world.start_hosts();
    world.wait_for(version, world.count);
    println!(
        "all have it {:.1} s after the killed ones are started again",
        begin.elapsed().as_secs_f64()
    );
    let (now, most) = world.controller_memory();
    println!("controller: {now} MB resident, {most} MB at most");
}
