//! Network namespaces with veth pairs between them, for tests with the privilege.

use std::process::{Command, Output};

/// Two network namespaces, a client's and a server's, removed on drop, also on panic.
pub(crate) struct Namespaces {
    pub(crate) client: String,
    pub(crate) server: String,
}

impl Namespaces {
    /// Returns `None` where this process lacks the privilege, and prints the reason.
    pub(crate) fn new(test: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: {test}: network namespaces take root");
            return None;
        }
        let name = |role| format!("weir-{test}-{role}-{}", std::process::id());
        let namespaces = Self {
            client: name("client"),
            server: name("server"),
        };
        for name in [&namespaces.client, &namespaces.server] {
            let made = ip(&["netns", "add", name]);
            if !made.is_some_and(|output| output.status.success()) {
                eprintln!("SKIPPED: {test}: `ip netns add` fails here");
                return None;
            }
        }
        for name in [&namespaces.client, &namespaces.server] {
            in_namespace(name, "link set lo up");
        }
        Some(namespaces)
    }

    /// Connects the two by a veth pair called `name` on both sides, in the network
    /// `10.77.number.0/24`; the server has address 2 there.
    pub(crate) fn join(&self, name: &str, number: u8) {
        let add = format!(
            "link add {name} type veth peer name {name} netns {}",
            self.server
        );
        in_namespace(&self.client, &add);
        for (namespace, host) in [(&self.client, 1), (&self.server, 2)] {
            let address = format!("address add 10.77.{number}.{host}/24 dev {name}");
            in_namespace(namespace, &address);
            in_namespace(namespace, &format!("link set {name} up"));
        }
    }

    pub(crate) fn in_client(&self, command: &str) {
        in_namespace(&self.client, command);
    }

    pub(crate) fn in_server(&self, command: &str) {
        in_namespace(&self.server, command);
    }

    /// Runs `work` on a thread of its own in a namespace; sockets that it opens stay there.
    pub(crate) fn enter<T: Send + 'static>(
        name: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> std::thread::JoinHandle<T> {
        let file = std::fs::File::open(format!("/run/netns/{name}")).unwrap();
        std::thread::spawn(move || {
            use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
            use std::os::fd::AsFd;
            let network = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(file.as_fd(), network).unwrap();
            work()
        })
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in [&self.client, &self.server] {
            // One of them may never have been created.
            ip(&["netns", "del", name]);
        }
    }
}

fn in_namespace(name: &str, command: &str) {
    let arguments: Vec<_> = ["-n", name].into_iter().chain(command.split(' ')).collect();
    let output = ip(&arguments).unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments:?}: {complaint}");
}

fn ip(arguments: &[&str]) -> Option<Output> {
    Command::new("ip").args(arguments).output().ok()
}
