//! A process in a control group of its own that opens sockets on request.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::net::sockopt::set_tcp_congestion;

use crate::namespace::Namespace;

/// Its name in the test binary, which is the program of the process.
const NAME: &str = "sockets::peer::peer";
/// The answer to a request, behind whatever the test binary prints.
const ANSWER: &str = "answer:";
const IS_PEER: &str = "WEIR_TEST_PEER";

/// A control group, removed when dropped.
pub(crate) struct Cgroup {
    pub(crate) directory: PathBuf,
    /// Its path below the root.
    pub(crate) path: String,
}

impl Cgroup {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self::make(format!("/weir-test-{}-{number}", std::process::id()))
    }

    /// Makes one below it.
    pub(crate) fn below(&self, name: &str) -> Self {
        Self::make(format!("{}/{name}", self.path))
    }

    fn make(path: String) -> Self {
        let directory = root().unwrap().join(path.trim_start_matches('/'));
        std::fs::create_dir(&directory).unwrap();
        Self { directory, path }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A process that was just killed may be in it for a moment.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.directory).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

/// Returns where the cgroup2 hierarchy is mounted.
pub(crate) fn root() -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let of_kind = |line: &&str| line.split(' ').nth(2) == Some("cgroup2");
    let line = mounts.lines().find(of_kind)?;
    line.split(' ').nth(1).map(PathBuf::from)
}

/// A running peer, ended when dropped.
pub(crate) struct Peer {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts a peer in a control group and a network namespace.
    pub(crate) fn start(cgroup: &Cgroup, namespace: &Namespace) -> Self {
        let program = std::env::current_exe().unwrap();
        Self::start_program(cgroup, namespace, &program)
    }

    /// Starts a peer whose program has this path.
    pub(crate) fn start_program(cgroup: &Cgroup, namespace: &Namespace, program: &Path) -> Self {
        let script = format!(
            "echo $$ >{}/cgroup.procs && exec nsenter --net=/run/netns/{} {} --ignored --exact {NAME} --nocapture",
            cgroup.directory.display(),
            namespace.name(),
            program.display(),
        );
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .env(IS_PEER, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            requests: child.stdin.take().unwrap(),
            answers: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    /// Has it do something, and waits until it is done.
    #[track_caller]
    pub(crate) fn ask(&mut self, request: &str) -> String {
        writeln!(self.requests, "{request}").unwrap();
        let mut line = String::new();
        loop {
            line.clear();
            let length = self.answers.read_line(&mut line).unwrap();
            assert!(length > 0, "the peer has ended at {request}");
            if let Some((_, answer)) = line.split_once(ANSWER) {
                return answer.trim().to_owned();
            }
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It has usually ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The process itself. Without a test that starts it, it does nothing.
#[test]
#[ignore = "other tests run it"]
fn peer() {
    if std::env::var_os(IS_PEER).is_none() {
        return;
    }
    let mut sockets = Sockets::default();
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        println!("{ANSWER}{}", sockets.handle(word, rest));
    }
}

#[derive(Default)]
struct Sockets {
    listeners: Vec<TcpListener>,
    connections: Vec<TcpStream>,
}

impl Sockets {
    fn handle(&mut self, word: &str, rest: &str) -> String {
        match word {
            "listen" => self.listeners.push(TcpListener::bind(rest).unwrap()),
            "connect" => self.connections.push(TcpStream::connect(rest).unwrap()),
            "accept" => {
                let listener = self.listeners.last().unwrap();
                self.connections.push(listener.accept().unwrap().0);
            }
            "serve" => {
                let (address, size) = rest.split_once(' ').unwrap();
                let listener = TcpListener::bind(address).unwrap();
                let data = vec![0; size.parse().unwrap()];
                std::thread::spawn(move || {
                    for connection in listener.incoming() {
                        connection.unwrap().write_all(&data).unwrap();
                    }
                });
            }
            "congestion" => {
                let result = set_tcp_congestion(self.connections.last().unwrap(), rest);
                return format!("{result:?}");
            }
            "send" => {
                let bytes = vec![0; rest.parse().unwrap()];
                self.connections.last().unwrap().write_all(&bytes).unwrap();
            }
            "close" => self.connections.clear(),
            _ => panic!("{word}"),
        }
        String::new()
    }
}
