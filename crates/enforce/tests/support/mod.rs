//! Two hosts joined by a link that marks packets, to test the kernel's reaction.

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};

use libbpf_rs::{
    MapCore as _, MapFlags, MapHandle, Object, ObjectBuilder, TC_INGRESS, TcHookBuilder,
};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};
use rustix::thread::{Pid, UnshareFlags, gettid, unshare_unsafe};

type Job = Box<dyn FnOnce() + Send>;

/// A thread in its own network namespace, which is removed with the thread.
pub(crate) struct Host {
    jobs: Sender<Job>,
    thread: Pid,
}

impl Host {
    fn new() -> Self {
        let (jobs, queue) = channel::<Job>();
        let (ready, thread) = channel();
        std::thread::spawn(move || {
            // SAFETY: only the network namespace changes, and no file descriptor table.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.unwrap();
            ready.send(gettid()).unwrap();
            for job in queue {
                job();
            }
        });
        Self {
            jobs,
            thread: thread.recv().unwrap(),
        }
    }

    /// Runs a job in the namespace. Sockets opened there stay there.
    pub(crate) fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = channel();
        let job = Box::new(move || done.send(work()).unwrap());
        self.jobs.send(job).unwrap();
        result.recv().expect("the work has panicked")
    }

    /// Sets `net.ipv4.NAME`.
    pub(crate) fn set(&self, name: &'static str, value: &str) {
        let value = value.to_owned();
        self.run(move || std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value).unwrap());
    }

    /// Returns the output of a program run here.
    pub(crate) fn output(&self, command: &str) -> String {
        let command = command.to_owned();
        self.run(move || {
            let mut words = command.split(' ');
            let program = words.next().unwrap();
            let output = Command::new(program).args(words).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{command}: {said}");
            String::from_utf8(output.stdout).unwrap()
        })
    }
}

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 1, 1));

/// The address of [`Pair::server`].
pub(crate) const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 1, 2));

/// A client and a server, joined by a veth pair; the server marks packets on arrival.
pub(crate) struct Pair {
    pub(crate) client: Host,
    pub(crate) server: Host,
    markings: MapHandle,
    // The filter holds the program; this holds its maps.
    _object: Object,
}

impl Pair {
    pub(crate) fn new() -> Self {
        let (client, server) = (Host::new(), Host::new());
        let peer = server.thread.as_raw_nonzero();
        client.output(&format!(
            "ip link add one type veth peer name one netns {peer}"
        ));
        for (host, address) in [(&client, CLIENT), (&server, SERVER)] {
            host.output(&format!("ip address add {address}/24 dev one"));
            // One packet per segment, so that marks are per segment.
            host.output("ip link set one up gso_max_segs 1");
            host.set("tcp_ecn", "1");
        }
        // The queue is here, so that the flow is limited by its window.
        client.output("tc qdisc add dev one root handle 1: htb default 1");
        client.output("tc class add dev one parent 1: classid 1:1 htb rate 300mbit");
        let (object, markings) = server.run(attach_marker);
        Self {
            client,
            server,
            markings,
            _object: object,
        }
    }

    /// From now on, `marked` of each `period` packets are marked on their way to the server.
    pub(crate) fn mark(&self, marked: u32, period: u32) {
        let value: Vec<u8> = [period, marked, 0].map(u32::to_ne_bytes).concat();
        let first = 0_u32.to_ne_bytes();
        self.markings.update(&first, &value, MapFlags::ANY).unwrap();
    }
}

/// Compiles and loads mark.bpf.c, for packets that arrive at the interface `one` of this namespace.
fn attach_marker() -> (Object, MapHandle) {
    let directory = tempfile::tempdir().unwrap();
    let compiled = directory.path().join("mark.o");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/mark.bpf.c");
    let status = Command::new(env!("WEIR_CLANG"))
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g"])
        .args(["-I", env!("WEIR_BPF_HEADERS"), "-c"])
        .arg(source)
        .arg("-o")
        .arg(&compiled)
        .status()
        .unwrap();
    assert!(status.success());
    let object = ObjectBuilder::default().open_file(&compiled).unwrap();
    let object = object.load().unwrap();
    let program = object.progs().next().unwrap();
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
    let index = name_to_index(any, "one").unwrap();
    let mut hook = TcHookBuilder::new(program.as_fd())
        .ifindex(index as i32)
        .replace(true)
        .handle(1)
        .priority(1)
        .hook(TC_INGRESS);
    hook.create().unwrap();
    hook.attach().unwrap();
    let map = object.maps().next().unwrap();
    let markings = MapHandle::try_from(&map).unwrap();
    (object, markings)
}

/// Returns whether the tests can run here; prints the reason if not.
pub(crate) fn can_run(test: &str) -> bool {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: {test}: loading BPF programs takes root");
        return false;
    }
    for file in ["/sys/kernel/btf/vmlinux", "/proc/sys/net/ipv4/tcp_ecn"] {
        if !Path::new(file).exists() {
            eprintln!("SKIPPED: {test}: no {file} here");
            return false;
        }
    }
    if Command::new("ip").arg("-V").output().is_err() {
        eprintln!("SKIPPED: {test}: no `ip` here (apt-get install iproute2)");
        return false;
    }
    true
}
