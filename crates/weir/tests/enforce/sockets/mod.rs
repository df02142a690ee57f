//! The kernel's congestion control by policy, at the sockets of a control group.

mod canary;
mod peer;
mod plane;
mod rollout;
mod undo;

use crate::namespace::{Namespace, possible};
use crate::running::Running;
use peer::{Cgroup, Peer, root};

/// A namespace with loopback, and a control group.
pub(crate) struct Place {
    pub(crate) namespace: Namespace,
    pub(crate) cgroup: Cgroup,
}

impl Place {
    /// Returns a place whose sockets have Reno, unless told otherwise; `None` where there can be none.
    pub(crate) fn new(test: &str) -> Option<Self> {
        if !possible(test) {
            return None;
        }
        if root().is_none() {
            eprintln!("SKIPPED: {test}: no cgroup2 file system is mounted");
            return None;
        }
        let namespace = Namespace::new();
        namespace.ip("link set lo up");
        let place = Self {
            namespace,
            cgroup: Cgroup::new(),
        };
        place.set("tcp_congestion_control", "reno");
        Some(place)
    }

    /// Sets `net.ipv4.NAME`.
    pub(crate) fn set(&self, name: &str, value: &str) {
        let script = format!("echo {value} >/proc/sys/net/ipv4/{name}");
        let mut shell = self.namespace.command("sh");
        assert!(shell.args(["-c", &script]).status().unwrap().success());
    }

    /// Starts a peer in the control group.
    pub(crate) fn peer(&self) -> Peer {
        Peer::start(&self.cgroup, &self.namespace)
    }

    /// Starts an enforcer at the control group.
    pub(crate) fn enforce(&self, policy: &str, more: &[&str]) -> Running {
        let arguments = [&["--cgroup", &self.cgroup.path], more].concat();
        let running = Running::start(&self.namespace, policy, &arguments);
        assert!(
            running.first.contains("at the sockets of"),
            "{}",
            running.first
        );
        running
    }

    /// Returns what `ss` says of the connections from a port.
    pub(crate) fn sockets_from(&self, port: u16) -> String {
        let mut command = self.namespace.command("ss");
        let filter = format!("sport = {port}");
        let output = command
            .args(["-tineOH", "state", "established", &filter])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns whether the connection from a port has a word of `ss`, such as its congestion control.
    pub(crate) fn has(&self, port: u16, word: &str) -> bool {
        let sockets = self.sockets_from(port);
        assert_eq!(sockets.lines().count(), 1, "{sockets}");
        sockets.split_whitespace().any(|found| found == word)
    }
}

/// A connection between two peers, each in a control group.
pub(crate) fn connect(server: &mut Peer, client: &mut Peer, address: &str) {
    server.ask(&format!("listen {address}"));
    client.ask(&format!("connect {address}"));
    server.ask("accept");
}

/// Returns the processes that another one has started.
pub(crate) fn children(process: u32) -> Vec<i32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let list = std::fs::read_to_string(path).unwrap();
    list.split_whitespace()
        .map(|id| id.parse().unwrap())
        .collect()
}
