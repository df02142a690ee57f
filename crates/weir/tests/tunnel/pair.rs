//! Namespaces for the ends of a tunnel, and destinations that say where connections come from.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread;

use crate::namespace::{Namespace, join, possible};
use crate::running::Running;

/// A namespace for applications and one for a gate, joined: 10.77.0.1 and 10.77.0.2, fd77::1 and fd77::2.
pub(crate) struct Pair {
    pub(crate) applications: Namespace,
    pub(crate) gate: Namespace,
}

impl Pair {
    /// `None` where there can be none.
    pub(crate) fn new(test: &str) -> Option<Self> {
        if !possible(test) {
            return None;
        }
        let (applications, gate) = (Namespace::new(), Namespace::new());
        connect((&applications, "veth0"), (&gate, "veth1"), 77);
        Some(Self { applications, gate })
    }

    /// Adds a namespace behind the gate, which forwards: 10.78.0.2 and fd78::2.
    pub(crate) fn behind_the_gate(&self) -> Namespace {
        let behind = Namespace::new();
        connect((&self.gate, "veth2"), (&behind, "veth3"), 78);
        for family in ["-4", "-6"] {
            let (gate, near) = match family {
                "-4" => ("10.78.0.1", "10.77.0.2"),
                _ => ("fd78::1", "fd77::2"),
            };
            behind.ip(&format!("{family} route add default via {gate}"));
            self.applications
                .ip(&format!("{family} route add default via {near}"));
        }
        let forward = "echo 1 >/proc/sys/net/ipv4/ip_forward; \
                       echo 1 >/proc/sys/net/ipv6/conf/all/forwarding";
        let mut shell = self.gate.command("sh");
        assert!(shell.args(["-c", forward]).status().unwrap().success());
        behind
    }
}

/// Joins two namespaces: 10.N.0.1 and 10.N.0.2, fdN::1 and fdN::2.
fn connect(one: (&Namespace, &str), other: (&Namespace, &str), network: u8) {
    join(one, other);
    for ((namespace, name), number) in [(one, 1), (other, 2)] {
        namespace.ip("link set lo up");
        namespace.ip(&format!("addr add 10.{network}.0.{number}/24 dev {name}"));
        namespace.ip(&format!(
            "addr add fd{network}::{number}/64 dev {name} nodad"
        ));
    }
}

/// Starts `weir tunnel` with these words in a namespace.
pub(crate) fn start(namespace: &Namespace, words: &str) -> Running {
    let mut command = namespace.enter(env!("CARGO_BIN_EXE_weir"));
    command.arg("tunnel").args(words.split(' ')).arg("--json");
    Running::start_command(command)
}

/// Answers each HTTP request in a namespace with the address that it comes from.
pub(crate) fn answer(namespace: &Namespace, address: &str) {
    let listener = namespace.run(|| TcpListener::bind(address).unwrap());
    thread::spawn(move || {
        for mut tcp in listener.incoming().flatten() {
            thread::spawn(move || {
                let _ = tcp.read(&mut [0; 4096]);
                let source = tcp.peer_addr().unwrap().ip().to_canonical().to_string();
                let length = source.len();
                let head = format!("HTTP/1.0 200 OK\r\nContent-Length: {length}\r\n\r\n");
                let _ = tcp.write_all((head + &source).as_bytes());
            });
        }
    });
}

/// Answers each datagram in a namespace with the address that it comes from.
pub(crate) fn answer_datagrams(namespace: &Namespace, address: &str) {
    let socket = namespace.run(|| UdpSocket::bind(address).unwrap());
    thread::spawn(move || {
        let mut buffer = [0; 64];
        while let Ok((_, source)) = socket.recv_from(&mut buffer) {
            let told = source.ip().to_canonical().to_string();
            let _ = socket.send_to(told.as_bytes(), source);
        }
    });
}

/// Asks a destination over TCP where the connection comes from.
pub(crate) fn source(namespace: &Namespace, address: &str) -> std::io::Result<String> {
    let mut tcp = namespace.run(|| TcpStream::connect(address))?;
    tcp.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    tcp.read_to_string(&mut answer)?;
    let body = answer.split("\r\n\r\n").nth(1);
    Ok(body.unwrap_or_default().to_owned())
}
