//! Connections of a control group that are redirected, with curl as the application.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::Signal;

use crate::namespace::possible;
use crate::pair::{Pair, answer, start};
use crate::running::Running;
use crate::support::{run, wait};

/// A control group, removed when dropped.
struct Cgroup(PathBuf);

impl Cgroup {
    fn new() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let of_kind = |line: &&str| line.split(' ').nth(2) == Some("cgroup2");
        let root = mounts.lines().find(of_kind)?.split(' ').nth(1)?;
        let name = format!("weir-tunnel-{}", std::process::id());
        let directory = PathBuf::from(root).join(name);
        fs::create_dir(&directory).unwrap();
        Some(Self(directory))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        wait("the control group is empty", || {
            fs::remove_dir(&self.0).is_ok()
        });
    }
}

/// Applications on one side, and destinations with a server on the other.
struct Place {
    pair: Pair,
    cgroup: Cgroup,
    server: Running,
    control: PathBuf,
    _folder: tempfile::TempDir,
}

impl Place {
    /// `None` where there can be none.
    fn new(test: &str) -> Option<Self> {
        if !possible(test) {
            return None;
        }
        if cfg!(not(feature = "bpf")) {
            eprintln!("SKIPPED: {test}: built without BPF programs");
            return None;
        }
        if Command::new("curl").arg("--version").output().is_err() {
            eprintln!("SKIPPED: {test}: no curl");
            return None;
        }
        let Some(cgroup) = Cgroup::new() else {
            eprintln!("SKIPPED: {test}: no cgroup2 file system is mounted");
            return None;
        };
        let pair = Pair::new(test)?;
        for address in ["[::]:8080", "[::]:8081"] {
            answer(&pair.gate, address);
        }
        let allowed = ["10.77.0.2:8080", "10.77.0.2:8081", "[fd77::2]:8080"];
        let allowed = allowed
            .map(|allowed| format!("--allow {allowed}"))
            .join(" ");
        let server = start(&pair.gate, &format!("server --bind 10.77.0.2 {allowed}"));
        let folder = tempfile::tempdir().unwrap();
        Some(Self {
            pair,
            cgroup,
            server,
            control: folder.path().join("client.sock"),
            _folder: folder,
        })
    }

    fn client(&self) -> Running {
        let (cgroup, control) = (self.cgroup.0.display(), self.control.display());
        let pin = self.server.said["fingerprint"].as_str().unwrap();
        start(
            &self.pair.applications,
            &format!(
                "client --cgroup {cgroup} --redirect 10.77.0.0/16:8000-8999 --redirect fd77::/16 \
                 --except 10.77.0.2:8081 --via 10.77.0.2 --pin {pin} --control {control}"
            ),
        )
    }

    /// Returns where a request in the control group, or outside, was to go by curl's account, and where it came
    /// from by the destination's.
    fn request(&self, address: &str, is_in_group: bool) -> (SocketAddr, String) {
        let enter = if is_in_group {
            format!("echo $$ >{}/cgroup.procs && ", self.cgroup.0.display())
        } else {
            String::new()
        };
        let format = "'\\n%{remote_ip}\\n%{remote_port}'";
        let curl = format!("{enter}exec curl -sS -g -w {format} http://{address}/");
        let mut shell = self.pair.applications.enter("sh");
        let output = shell.args(["-c", &curl]).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<_> = said.lines().collect();
        let [source, to, port] = lines[..] else {
            panic!("{said}{errors}");
        };
        let to = SocketAddr::new(to.parse().unwrap(), port.parse().unwrap());
        (to, source.to_owned())
    }

    fn carried(&self) -> u64 {
        let control = self.control.to_str().unwrap();
        let found = run(&["tunnel", "status", control, "--json"]).json();
        let tunnels = found["tunnels"].as_array().unwrap();
        let redirected = tunnels.iter().find(|found| found["tunnel"] == "redirected");
        let redirected = redirected.unwrap();
        redirected["dcquic"].as_u64().unwrap() + redirected["tls"].as_u64().unwrap()
    }
}

#[test]
fn connections_of_a_control_group_are_redirected_until_the_client_ends() {
    let Some(place) = Place::new("connections_of_a_control_group_are_redirected") else {
        return;
    };
    let direct = |is_in_group| {
        let (to, source) = place.request("10.77.0.2:8080", is_in_group);
        assert_eq!(to, "10.77.0.2:8080".parse().unwrap());
        source == "10.77.0.1"
    };
    let mut client = place.client();
    for (number, (address, source)) in [
        ("10.77.0.2:8080", "10.77.0.2"),
        ("[::ffff:10.77.0.2]:8080", "10.77.0.2"),
        ("[fd77::2]:8080", "fd77::2"),
    ]
    .into_iter()
    .enumerate()
    {
        let (to, from) = place.request(address, true);
        assert_eq!((to, &*from), (address.parse().unwrap(), source));
        assert_eq!(place.carried(), number as u64 + 1);
    }
    // Outside the group, and what is not to be redirected.
    assert!(direct(false));
    assert_eq!(place.request("10.77.0.2:8081", true).1, "10.77.0.1");
    assert_eq!(place.carried(), 3);
    client.signal(Signal::TERM);
    assert!(client.child.wait().unwrap().success());
    assert!(direct(true));
    // A client that is killed leaves nothing behind.
    let client = place.client();
    assert!(!direct(true));
    drop(client);
    assert!(direct(true));
}
