//! Named network namespaces, so that the command can run in them too.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A network namespace, deleted with its interfaces when dropped.
pub(crate) struct Namespace(String);

impl Namespace {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let namespace = Self(format!("weir-enforce-{}-{number}", std::process::id()));
        ip(&format!("netns add {}", namespace.0));
        namespace
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    /// Runs `ip` with these arguments in the namespace.
    pub(crate) fn ip(&self, words: &str) {
        ip(&format!("-n {} {words}", self.0));
    }

    /// Returns a command that runs a program in the namespace.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0, program]);
        command
    }

    /// As [`Self::command`], with the mounts of this process: `ip netns exec` hides the control groups.
    pub(crate) fn enter(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/run/netns/{}", self.0))
            .arg(program);
        command
    }

    /// Runs a closure in the namespace. Sockets that it opens stay in the namespace.
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let file = File::open(format!("/run/netns/{}", self.0)).unwrap();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(file.as_fd(), kind).unwrap();
                work()
            });
            thread.join().unwrap()
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        ip(&format!("netns delete {}", self.0));
    }
}

/// Connects two namespaces by a veth pair with these interface names, both up.
pub(crate) fn join(one: (&Namespace, &str), other: (&Namespace, &str)) {
    let ((one, name), (other, peer)) = (one, other);
    let peer_namespace = other.name();
    one.ip(&format!(
        "link add {name} type veth peer name {peer} netns {peer_namespace}"
    ));
    one.ip(&format!("link set {name} up"));
    other.ip(&format!("link set {peer} up"));
}

fn ip(words: &str) {
    let output = Command::new("ip").args(words.split(' ')).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    // A namespace may be deleted while a test is already failing.
    assert!(
        output.status.success() || std::thread::panicking(),
        "{words}: {said}"
    );
}

/// Returns whether namespaces can be created here; prints the reason if not.
pub(crate) fn possible(test: &str) -> bool {
    let reason = match (
        rustix::process::geteuid().is_root(),
        Command::new("ip").arg("-V").output().is_ok(),
    ) {
        (true, true) => return true,
        (false, _) => "it takes root",
        (_, false) => "no `ip` here (apt-get install iproute2)",
    };
    eprintln!("SKIPPED: {test}: {reason}");
    false
}

/// Returns whether programs can outlive their process here; prints the reason if not.
pub(crate) fn can_fail_open(test: &str) -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release
        .split(['.', '-'])
        .map_while(|part| part.parse().ok());
    let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if possible(test) && version < (6, 6) {
        eprintln!("SKIPPED: {test}: it takes Linux 6.6");
        return false;
    }
    possible(test)
}
