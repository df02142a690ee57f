//! Controllers, hosts and somebody who pushes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use weir_control::{Credentials, HeldFile, HeldPolicy, HostChannel, HostEvent, HostOptions};
use weir_rollout::Labels;

use crate::support::{CommandOutput, run, wait, weir};

/// A process that is killed when dropped.
pub(crate) struct Killed(pub(crate) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Certificates and states.
pub(crate) struct World {
    pub(crate) directory: TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let world = Self { directory };
        let certificates = world.path("certificates");
        let mut arguments = vec!["sed", "certificates", certificates.to_str().unwrap()];
        arguments.extend(["--publisher", "alice"]);
        let names: Vec<_> = (0..8).map(|number| format!("host{number}")).collect();
        arguments.extend(names.iter().flat_map(|name| ["--host", name.as_str()]));
        run(&arguments).ok();
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Returns the command of a controller with a state of its own.
    fn controller_command(&self, port: u16, state: &str, more: &[&str]) -> Command {
        let mut command = weir(&["controller", "--listen", &format!("127.0.0.1:{port}")]);
        command.arg("--certificates").arg(self.path("certificates"));
        command.arg("--state").arg(self.path(state)).args(more);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Starts a controller, and waits until it answers, if only that it does not lead.
    pub(crate) fn controller(&self, port: u16, state: &str, more: &[&str]) -> Killed {
        let mut command = self.controller_command(port, state, more);
        let mut child = Killed(command.spawn().unwrap());
        wait("a listening controller", || {
            let ended = child.0.try_wait().unwrap();
            assert!(ended.is_none(), "the controller has ended");
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        child
    }

    /// Runs a controller that is to fail.
    pub(crate) fn failing_controller(&self, port: u16, state: &str) -> String {
        let mut command = self.controller_command(port, state, &[]);
        let output = command.stderr(Stdio::piped()).output().unwrap();
        assert!(matches!(output.status.code(), Some(1 | 2)), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// Runs `weir policy` for controllers at these ports.
    pub(crate) fn policy(&self, ports: &[u16], arguments: &[&str]) -> CommandOutput {
        let certificates = self.path("certificates");
        let addresses: Vec<_> = ports
            .iter()
            .map(|port| format!("127.0.0.1:{port}"))
            .collect();
        let mut all = vec!["policy"];
        all.extend(arguments);
        all.extend(["--certificates", certificates.to_str().unwrap()]);
        all.extend(
            addresses
                .iter()
                .flat_map(|address| ["--controller", address.as_str()]),
        );
        run(&all)
    }

    pub(crate) fn push(&self, ports: &[u16], text: &str, more: &[&str]) -> CommandOutput {
        let file = self.file("pushed.toml", text);
        let arguments = ["push", file.to_str().unwrap(), "--as", "alice", "-m", "why"];
        self.policy(ports, &[&arguments, more].concat())
    }

    pub(crate) fn status(&self, ports: &[u16]) -> Option<Value> {
        let said = self.policy(ports, &["status", "--json", "--hosts", "100"]);
        (said.code == Some(0)).then(|| serde_json::from_str(&said.stdout).unwrap())
    }

    /// Returns the versions that hosts run by what the controller knows, and whether all of them are attached.
    pub(crate) fn running(&self, ports: &[u16]) -> Option<Vec<Option<u64>>> {
        let status = self.status(ports)?;
        let hosts = status["hosts"].as_array().unwrap();
        let attached = hosts.iter().all(|host| host["attached"] == true);
        let running = hosts.iter().map(|host| host["running"].as_u64());
        attached.then(|| running.collect())
    }

    /// Waits until as many hosts are attached and run a version.
    pub(crate) fn wait_for(&self, ports: &[u16], version: u64, hosts: usize) {
        wait(&format!("version {version} everywhere"), || {
            self.running(ports).is_some_and(|running| {
                running.len() == hosts && running.iter().all(|other| *other == Some(version))
            })
        });
    }

    /// Returns the log, which has no gaps.
    pub(crate) fn log(&self, ports: &[u16]) -> Vec<Value> {
        let said = self.policy(ports, &["log", "--json", "--from", "1", "--count", "10000"]);
        said.ok();
        let lines = said.stdout.lines();
        let entries: Vec<Value> = lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        for (place, entry) in entries.iter().enumerate() {
            assert_eq!(entry["number"], place as u64 + 1);
        }
        entries
    }
}

/// Returns the entries of one kind.
pub(crate) fn of_kind<'l>(log: &'l [Value], event: &str) -> Vec<&'l Value> {
    log.iter().filter(|entry| entry["event"] == event).collect()
}

/// Hosts that put versions in force at once, and keep them on disk.
pub(crate) struct Hosts {
    runtime: Option<Runtime>,
}

impl Hosts {
    pub(crate) fn start(world: &World, ports: &[u16], count: usize) -> Self {
        let runtime = Runtime::new().unwrap();
        let entered = runtime.enter();
        for number in 0..count {
            let name = format!("host{number}");
            let certificates = world.path("certificates");
            let file = HeldFile::in_directory(&world.path(&name)).unwrap();
            let kept = file.load().unwrap();
            let role = if number < 4 { "role=web" } else { "role=db" };
            let mut channel = HostChannel::start(HostOptions {
                controllers: ports
                    .iter()
                    .map(|port| format!("127.0.0.1:{port}"))
                    .collect(),
                credentials: Credentials::from_directory(&certificates, &name).unwrap(),
                labels: Labels::parse([role]).unwrap(),
                held: kept.map(|kept| kept.held),
                wake: None,
                name,
            });
            tokio::spawn(async move {
                while let Some(event) = channel.event().await {
                    if let HostEvent::Assigned(assigned) = event {
                        let version = assigned.held.version;
                        if assigned.text.contains("bbr") {
                            channel.refused(version, "line 1: there is no bbr here");
                            continue;
                        }
                        let (held, text) = (assigned.held, assigned.text);
                        file.save(&HeldPolicy {
                            held: held.clone(),
                            text,
                        })
                        .unwrap();
                        channel.taken(held);
                    }
                }
            });
        }
        drop(entered);
        Self {
            runtime: Some(runtime),
        }
    }

    /// Returns what a host has on its disk.
    pub(crate) fn kept(world: &World, number: usize) -> u64 {
        let file = HeldFile::in_directory(&world.path(&format!("host{number}"))).unwrap();
        file.load().unwrap().map_or(0, |kept| kept.held.version)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Returns a port that is free.
pub(crate) fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// Copies a directory.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Versions that differ.
pub(crate) fn text(number: u64) -> String {
    format!("[[rules]]\nto_port = {number}\ncongestion = \"cubic\"\n")
}
