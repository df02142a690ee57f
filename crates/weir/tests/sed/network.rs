//! Kernel TCP on both sides of an agent, with the controller on the agent's machine.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use weir_control::{Client, Credentials};
use weir_sed::{Demand, FlowPattern};

use crate::namespace::{Namespace, join};
use crate::support::{command_output, run};

pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 67, 0, 1);
pub(crate) const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 67, 0, 2);

/// A row of namespaces: a server, the machine of the agent and the controller, and a client.
pub(crate) struct Row {
    pub(crate) server: Namespace,
    pub(crate) middle: Namespace,
    pub(crate) client: Namespace,
    folder: TempDir,
}

impl Row {
    pub(crate) fn new() -> Self {
        let [server, middle, client] = [(); 3].map(|()| Namespace::new());
        join((&server, "eth0"), (&middle, "lan0"));
        join((&middle, "wan0"), (&client, "eth0"));
        server.ip(&format!("address add {SERVER}/24 dev eth0"));
        client.ip(&format!("address add {CLIENT}/24 dev eth0"));
        middle.ip("link set lo up");
        let folder = tempfile::tempdir().unwrap();
        let certificates = folder.path().join("certificates");
        let address = SERVER.to_string();
        let made = run(&[
            "sed",
            "certificates",
            certificates.to_str().unwrap(),
            "--switch",
            "tor1",
            "--application",
            "db",
            "--address",
            &address,
        ]);
        made.ok();
        Self {
            server,
            middle,
            client,
            folder,
        }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Starts a controller beside the agent, and reads its first line of standard error.
    pub(crate) fn controller(&self, more: &[&str]) -> Process {
        let mut command = self.middle.command(env!("CARGO_BIN_EXE_weir"));
        command
            .args(["sed", "controller", "--listen", "9600", "--lease", "1s"])
            .args(["--certificates", &self.path("certificates")])
            .args(["--state", &self.path("state")])
            .args(more);
        Process::start(command, false)
    }

    /// Starts an agent between the two sides, and reads its first line.
    pub(crate) fn agent(&self, more: &[&str]) -> Process {
        self.agent_of("tor1", more)
    }

    /// Starts an agent with these environment variables.
    pub(crate) fn agent_with(&self, more: &[&str], environment: &[(&str, &str)]) -> Process {
        let mut command = self.agent_command("tor1", more);
        command.envs(environment.iter().copied());
        Process::start(command, true)
    }

    /// Starts an agent with the name of another switch.
    pub(crate) fn agent_of(&self, name: &str, more: &[&str]) -> Process {
        Process::start(self.agent_command(name, more), true)
    }

    fn agent_command(&self, name: &str, more: &[&str]) -> Command {
        let mut command = self.middle.command(env!("CARGO_BIN_EXE_weir"));
        command
            .args(["sed", "agent", "--inline", "lan0", "wan0", "--name", name])
            .args(["--controllers", "127.0.0.1"])
            .args(["--certificates", &self.path("certificates")])
            .args(more);
        command
    }

    /// Returns the operator's view of the controller.
    pub(crate) fn status(&self) -> Option<Value> {
        let mut command = self.middle.command(env!("CARGO_BIN_EXE_weir"));
        command
            .args(["sed", "status", "--json", "--controller", "127.0.0.1"])
            .args(["--certificates", &self.path("certificates")]);
        let said = command_output(command.output().unwrap());
        (said.code == Some(0)).then(|| said.json())
    }

    pub(crate) fn is_attached(&self) -> bool {
        self.status()
            .is_some_and(|status| status["switches"][0]["attached"] == true)
    }

    /// Returns the sizes of the flows with deadlines, sorted.
    pub(crate) fn sizes(&self) -> Vec<String> {
        let status = self.status().unwrap();
        let flows = status["flows"].as_array().unwrap().iter();
        let sizes = flows.filter_map(|flow| Some(flow["size"].as_str()?.to_owned()));
        let mut sizes: Vec<_> = sizes.collect();
        sizes.sort();
        sizes
    }

    /// Registers the demand of the server's flows to a port.
    pub(crate) fn register(&self, port: u16, demand: Demand) {
        let certificates = self.folder.path().join("certificates");
        let flows = FlowPattern {
            source: SERVER.into(),
            destination: CLIENT.into(),
            source_port: None,
            destination_port: Some(port),
            protocol: 6,
        };
        self.middle.run(move || {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_all().build().unwrap();
            let credentials = Credentials::from_directory(&certificates, "db").unwrap();
            runtime.block_on(async {
                let client = Client::connect("127.0.0.1:9600", &credentials).await;
                client.unwrap().register(flows, demand).await.unwrap();
            });
        });
    }

    /// Returns the Prometheus metrics of an agent.
    pub(crate) fn metrics(&self) -> String {
        self.middle.run(|| {
            let mut stream = TcpStream::connect("127.0.0.1:9102").unwrap();
            let ask = b"GET /metrics HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n";
            stream.write_all(ask).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        })
    }

    /// Returns one of its metrics, as the sum of all its series.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let metrics = self.metrics();
        let name = format!("weir_sed_agent_{name}");
        assert!(
            metrics.contains(&format!("# TYPE {name} ")),
            "no {name}: {metrics}"
        );
        let of_name = |line: &&str| {
            let rest = line.strip_prefix(&name);
            rest.is_some_and(|rest| rest.starts_with([' ', '{']))
        };
        let series = metrics.lines().filter(of_name);
        let value = |line: &str| line.rsplit(' ').next()?.parse::<u64>().ok();
        series.map(|line| value(line).unwrap()).sum()
    }

    /// Returns the windows of the server's connections to a port, in bytes.
    pub(crate) fn windows(&self, port: u16) -> Vec<u64> {
        let mut command = self.server.command("ss");
        let port = format!(":{port}");
        command.args(["-tinH", "state", "established", "dport", "=", &port]);
        let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let words = text.split_ascii_whitespace();
        let windows = words.filter_map(|word| word.strip_prefix("snd_wnd:")?.parse().ok());
        windows.collect()
    }
}

/// A running `weir`; ended when dropped.
pub(crate) struct Process {
    child: Child,
    pub(crate) first: String,
    /// Its standard error after the first line.
    errors: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts the process, and waits for its first line on standard output or error.
    fn start(mut command: Command, on_output: bool) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut first = String::new();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let line = if on_output {
            output.read_line(&mut first)
        } else {
            lines.read_line(&mut first)
        };
        line.unwrap();
        let errors = Arc::new(Mutex::new(String::new()));
        let said = errors.clone();
        let reader = std::thread::spawn(move || {
            let mut line = String::new();
            while lines.read_line(&mut line).unwrap() > 0 {
                said.lock().unwrap().push_str(&line);
                line.clear();
            }
        });
        Self {
            child,
            first,
            errors,
            reader: Some(reader),
        }
    }

    /// Waits until its standard error contains these words.
    pub(crate) fn wait_for(&self, words: &str) {
        wait(words, || self.errors.lock().unwrap().contains(words));
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end; returns the exit status and its standard error.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        self.reader.take().unwrap().join().unwrap();
        let said = self.errors.lock().unwrap().clone();
        (self.child.wait().unwrap(), said)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has usually ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Connections by which the server sends to the client as fast as possible. The server opens them.
pub(crate) struct Transfers {
    received: Vec<Arc<AtomicU64>>,
    sockets: Vec<TcpStream>,
}

impl Transfers {
    pub(crate) fn start(row: &Row, port: u16, count: usize) -> Self {
        let listener = (row.client).run(|| TcpListener::bind((CLIENT, port)).unwrap());
        let mut transfers = Self {
            received: Vec::new(),
            sockets: Vec::new(),
        };
        for _ in 0..count {
            let mut from = (row.server).run(|| TcpStream::connect((CLIENT, port)).unwrap());
            let (mut to, _) = listener.accept().unwrap();
            transfers.sockets.push(from.try_clone().unwrap());
            let received = Arc::new(AtomicU64::new(0));
            transfers.received.push(received.clone());
            std::thread::spawn(move || while from.write_all(&[7; 65_536]).is_ok() {});
            std::thread::spawn(move || {
                let mut buffer = vec![0; 65_536];
                while let Ok(count @ 1..) = to.read(&mut buffer) {
                    received.fetch_add(count as u64, Ordering::Relaxed);
                }
            });
        }
        transfers
    }

    /// Waits until each connection has received this many more bytes.
    pub(crate) fn wait_for_bytes(&self, bytes: u64) {
        let now = |received: &Arc<AtomicU64>| received.load(Ordering::Relaxed);
        let before: Vec<_> = self.received.iter().map(now).collect();
        wait("all transfers go on", || {
            let pairs = self.received.iter().zip(&before);
            { pairs }.all(|(received, before)| now(received) >= before + bytes)
        });
    }
}

impl Drop for Transfers {
    fn drop(&mut self) {
        for socket in &self.sockets {
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
    }
}

/// Waits until a condition holds.
pub(crate) fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "not within 60 s: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
