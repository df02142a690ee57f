//! Inline enforcement between two interfaces: kernel TCP at both ends, and a second bridge behind
//! it that loses packets.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};
use rustix::process::Signal;
use serde_json::Value;
use weir_enforce::inline::Inline;
use weir_enforce::port::PacketSocket;
use weir_enforce::segment::Segment;
use weir_fabric::{DropReason, Element, Output, Packet, PortIndex};
use weir_units::Time;
use weir_wire::Ecn;

use crate::POLICY;
use crate::namespace::{Namespace, join, possible};
use crate::running::{Running, wait};

pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 66, 0, 1);
pub(crate) const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 66, 0, 2);

/// A bridge that drops one of `n` data segments, marks others, and records the frames it receives.
#[derive(Debug)]
struct Lossy {
    lose_one_of: u64,
    mark_one_of: u64,
    seen: u64,
    lost: u64,
    /// The recorded frames, each with a length prefix.
    written: Vec<u8>,
}

/// The maximum number of recorded bytes.
const MOST_WRITTEN: usize = 8 << 20;

impl Element<Segment> for Lossy {
    fn process(
        &mut self,
        _: Time,
        ingress: PortIndex,
        mut packet: Segment,
        out: &mut Output<'_, Segment>,
    ) {
        if self.written.len() < MOST_WRITTEN {
            let cut = packet.on_wire();
            let length = (cut.ethernet().len() + cut.payload().len()) as u32;
            self.written.extend([0; 8]);
            self.written.extend([length.to_le_bytes(); 2].concat());
            self.written.extend(cut.ethernet());
            self.written.extend(cut.payload());
        }
        if packet.tcp().is_some_and(|segment| segment.payload > 0) {
            self.seen += 1;
            if self.seen.is_multiple_of(self.lose_one_of) {
                self.lost += 1;
                return out.drop(packet, DropReason::Element);
            }
            if packet.ecn() == Ecn::Ect0 && self.seen.is_multiple_of(self.mark_one_of) {
                packet.set_ecn(Ecn::Ce);
            }
        }
        out.forward(ingress, packet);
    }
}

/// A row of namespaces: server, enforcer, lossy bridge, client.
pub(crate) struct Row {
    pub(crate) server: Namespace,
    pub(crate) middle: Namespace,
    pub(crate) client: Namespace,
    _lossy: Namespace,
    stop: OwnedFd,
    thread: Option<JoinHandle<Inline>>,
}

impl Row {
    pub(crate) fn new(lose_one_of: u64, mark_one_of: u64) -> Self {
        let [server, middle, lossy, client] = [(); 4].map(|()| Namespace::new());
        join((&server, "eth0"), (&middle, "lan0"));
        join((&middle, "wan0"), (&lossy, "in0"));
        join((&lossy, "out0"), (&client, "eth0"));
        server.ip(&format!("address add {SERVER}/24 dev eth0"));
        client.ip(&format!("address add {CLIENT}/24 dev eth0"));
        let ports = lossy.run(|| ["in0", "out0"].map(|name| PacketSocket::bind(name).unwrap()));
        let element = Lossy {
            lose_one_of,
            mark_one_of,
            seen: 0,
            lost: 0,
            written: Vec::new(),
        };
        let mut cable = Inline::new(ports.map(Into::into), element);
        let stop = eventfd(0, EventfdFlags::empty()).unwrap();
        let stopped = stop.try_clone().unwrap();
        let thread = std::thread::spawn(move || {
            cable.run(&stopped).unwrap();
            cable
        });
        Self {
            server,
            middle,
            client,
            _lossy: lossy,
            stop,
            thread: Some(thread),
        }
    }

    /// Stops the lossy bridge.
    fn cut(&mut self) -> Option<Inline> {
        rustix::io::write(&self.stop, &1_u64.to_ne_bytes()).unwrap();
        Some(self.thread.take()?.join().unwrap())
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.cut();
        }
    }
}

/// Returns the byte at `position` of a stream.
fn byte(position: u64) -> u8 {
    (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// A connection over which the client receives the ordered number of bytes, and checks each.
pub(crate) struct Download {
    pub(crate) orders: Sender<u64>,
    pub(crate) received: Receiver<u64>,
    sender: JoinHandle<()>,
    receiver: JoinHandle<()>,
}

impl Download {
    pub(crate) fn start(row: &Row, port: u16) -> Self {
        Self::between([&row.server, &row.client], port)
    }

    /// Opens the same between other namespaces.
    pub(crate) fn between([server, client]: [&Namespace; 2], port: u16) -> Self {
        let listener = server.run(move || TcpListener::bind((SERVER, port)).unwrap());
        let accept = std::thread::spawn(move || listener.accept().unwrap().0);
        let mut to = client.run(move || TcpStream::connect((SERVER, port)).unwrap());
        let mut from: TcpStream = accept.join().unwrap();
        let (orders, wanted) = channel::<u64>();
        let (done, received) = channel();
        let sender = std::thread::spawn(move || {
            let mut position = 0;
            for amount in wanted {
                let end = position + amount;
                while position < end {
                    let next = (position + 65_536).min(end);
                    let chunk: Vec<u8> = (position..next).map(byte).collect();
                    from.write_all(&chunk).unwrap();
                    position = next;
                }
            }
        });
        let receiver = std::thread::spawn(move || {
            let (mut buffer, mut position) = (vec![0; 65_536], 0);
            loop {
                let count = to.read(&mut buffer).unwrap();
                if count == 0 {
                    return;
                }
                for received in &buffer[..count] {
                    assert_eq!(*received, byte(position), "byte {position}");
                    position += 1;
                }
                // The receiver may be gone already.
                let _ = done.send(position);
            }
        });
        Self {
            orders,
            received,
            sender,
            receiver,
        }
    }

    /// Sends more, and waits until the client has received it.
    pub(crate) fn get(&self, amount: u64, upto: u64) {
        self.orders.send(amount).unwrap();
        while self.received.recv().unwrap() < upto {}
    }

    /// Closes the connection, and waits until it is closed.
    pub(crate) fn end(self) {
        drop(self.orders);
        self.sender.join().unwrap();
        self.receiver.join().unwrap();
    }
}

pub(crate) fn flow_of(status: &Value, port: u16) -> Value {
    let flows = status["flows"].as_array().unwrap();
    let from = format!("{SERVER}:{port}");
    let found = flows.iter().find(|flow| flow["from"] == from.as_str());
    found
        .unwrap_or_else(|| panic!("no flow from {from}: {status}"))
        .clone()
}

/// A policy for the server's data; the client's data is not controlled.
pub(crate) const DOWNLOADS: &str =
    "[[rules]]\ninterface = \"wan*\"\nbuffer = \"1MB\"\ncongestion = ";

#[test]
fn losses_are_hidden_from_kernel_tcp_and_a_reload_leaves_flows_alone() {
    if !possible("losses_are_hidden_from_kernel_tcp_and_a_reload_leaves_flows_alone") {
        return;
    }
    let mut row = Row::new(67, u64::MAX);
    let arguments = ["--inline", "lan0", "wan0", "--metrics", "0"];
    let policy = format!("{DOWNLOADS}\"bbr\"\n");
    let running = Running::start(&row.middle, &policy, &arguments);
    assert!(
        running
            .first
            .contains("1 rules between lan0 and wan0, http"),
        "{}",
        running.first
    );
    let first = Download::start(&row, 8001);
    first.get(4_000_000, 4_000_000);

    // Load another policy, which does not affect the flow.
    let before = flow_of(&running.status(), 8001);
    assert_eq!(before["congestion"], "bbr");
    let other = format!("{DOWNLOADS}{{ name = \"cubic\", max_window = \"300KB\" }}\n");
    assert!(running.reload(&other).ok().stdout.contains("1 rules"));
    let wrong = running.reload("[[rules]]\nto = 5\n");
    wrong.failed(1, &["policy.toml:2: rules.0.to", "stays in force"]);
    let second = Download::start(&row, 8002);
    first.get(2_000_000, 6_000_000);
    second.get(2_000_000, 2_000_000);

    let status = running.status();
    let (first_flow, second_flow) = (flow_of(&status, 8001), flow_of(&status, 8002));
    assert_eq!(first_flow["congestion"], "bbr");
    assert!(
        first_flow["delivered"].as_u64() >= Some(6_000_000),
        "{status}"
    );
    assert_eq!(second_flow["congestion"], "cubic");
    assert!(
        second_flow["enforced"].as_u64() <= Some(300_000),
        "{status}"
    );
    assert_eq!(
        (&second_flow["interface"], &second_flow["rule"]),
        (&"wan0".into(), &1.into())
    );
    let in_line = &status["totals"]["in_line"];
    assert!(in_line["masked"].as_u64() > Some(50), "{status}");
    assert!(
        in_line["most_kept_bytes"].as_u64() <= Some(2_000_000),
        "{status}"
    );
    let text = running.status_text();
    assert!(
        text.contains("losses masked") && text.contains("bbr"),
        "{text}"
    );
    let metrics = running.first.trim().rsplit(", http://").next().unwrap();
    let metrics = scraped(&row.middle, metrics);
    assert!(
        metrics.contains(
            "weir_enforce_repaired_bytes_total{interface=\"wan0\",rule=\"1\",algorithm=\"bbr\"}"
        ),
        "{metrics}"
    );
    first.end();
    second.end();

    wait("what is kept goes with the flows", || {
        running.status()["totals"]["in_line"]["kept_bytes"] == 0
    });
    let cable = row.cut().unwrap();
    let lossy: &Lossy = cable.element().unwrap();
    assert!(lossy.lost > 50, "{}", lossy.lost);
    // On a busy machine the sender's own time-out may be faster now and then.
    let noticed = sent_again(&row.server);
    assert!(
        noticed <= lossy.lost / 10,
        "its TCP has sent {noticed} segments again"
    );
    assert_eq!(wrong_checksums(&row), 0);
    are_sound(&lossy.written);
    running.signal(Signal::INT);
    let (status, said) = running.end();
    assert!(
        status.success() && said.contains("nothing passes"),
        "{status}: {said}"
    );
    assert!(!is_promiscuous(&row.middle, "lan0"));
}

/// Returns the Prometheus metrics.
fn scraped(namespace: &Namespace, address: &str) -> String {
    let address = address.trim_end_matches("/metrics").to_owned();
    namespace.ip("link set lo up");
    namespace.run(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        let ask = b"GET /metrics HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n";
        stream.write_all(ask).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    })
}

/// Reads a counter of the kernel's TCP in a namespace.
fn counter(namespace: &Namespace, file: &'static str, name: &'static str) -> u64 {
    let text = namespace
        .run(move || std::fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap());
    let mut rows = text.lines().filter(|line| line.starts_with("Tcp:"));
    let (names, values) = (rows.next().unwrap(), rows.next().unwrap());
    let mut pairs = names.split(' ').zip(values.split(' '));
    let (_, value) = pairs.find(|(found, _)| *found == name).unwrap();
    value.parse().unwrap()
}

/// Returns the number of segments that a server's TCP has retransmitted.
fn sent_again(namespace: &Namespace) -> u64 {
    counter(namespace, "snmp", "RetransSegs")
}

fn wrong_checksums(row: &Row) -> u64 {
    counter(&row.client, "snmp", "InCsumErrors") + counter(&row.server, "snmp", "InCsumErrors")
}

pub(crate) fn is_promiscuous(namespace: &Namespace, name: &str) -> bool {
    let output = (namespace.command("ip").args(["-d", "link", "show", name]))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    !text.contains("promiscuity 0")
}

/// Checks with tshark that the recorded frames have correct checksums.
fn are_sound(written: &[u8]) {
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("SKIPPED: checksums by tshark: it is not here");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wire.pcap");
    // The header of a pcap file of Ethernet frames.
    let mut bytes = [0xa1b2_c3d4_u32, 4 << 16 | 2, 0, 0, 65_535, 1]
        .map(u32::to_le_bytes)
        .concat();
    bytes.extend(written);
    std::fs::write(&file, bytes).unwrap();
    let count = |filter: &str| tshark(&file, filter);
    let (all, good) = (
        count("tcp"),
        count("tcp.checksum.status == 1 && ip.checksum.status == 1"),
    );
    assert!(all > 1000 && all == good, "{good} of {all} are right");
}

/// Returns the number of packets in a file that match a filter.
fn tshark(file: &Path, filter: &str) -> usize {
    let output = Command::new("tshark")
        .args([
            "-o",
            "tcp.check_checksum:TRUE",
            "-o",
            "ip.check_checksum:TRUE",
        ])
        .args(["-T", "fields", "-e", "frame.number", "-Y", filter, "-r"])
        .arg(file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().count()
}

#[test]
fn ecn_is_negotiated_and_a_signal_in_the_middle_of_a_flow_ends_it() {
    if !possible("ecn_is_negotiated_and_a_signal_in_the_middle_of_a_flow_ends_it") {
        return;
    }
    let row = Row::new(u64::MAX, 20);
    let ecn = |namespace: &Namespace, value: &'static str| {
        namespace.run(move || std::fs::write("/proc/sys/net/ipv4/tcp_ecn", value).unwrap());
    };
    ecn(&row.server, "0");
    ecn(&row.client, "1");
    let policy = format!("{DOWNLOADS}\"dctcp\"\n");
    let running = Running::start(&row.middle, &policy, &["--inline", "wan0", "lan0"]);
    let download = Download::start(&row, 8003);
    download.get(1_000_000, 1_000_000);
    let status = running.status();
    let flow = flow_of(&status, 8003);
    let part = |key: &str| flow[key].as_f64().unwrap() / flow["delivered"].as_f64().unwrap();
    assert!(part("marked") > 0.01 && part("marked") < 0.3, "{flow}");
    assert!(
        status["totals"]["in_line"]["echoes"].as_u64() > Some(10),
        "{status}"
    );
    download.orders.send(50_000_000).unwrap();
    running.signal(Signal::TERM);
    let (status, said) = running.end();
    assert!(status.success(), "{status}: {said}");
    // The flow continues over a kernel bridge.
    row.middle.ip("link add name bridge type bridge");
    row.middle.ip("link set lan0 master bridge");
    row.middle.ip("link set wan0 master bridge");
    row.middle.ip("link set bridge up");
    while download.received.recv().unwrap() < 51_000_000 {}
    download.end();
    // A bridge port cannot be bridged by the enforcer.
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), POLICY).unwrap();
    let output = (row.middle.command(env!("CARGO_BIN_EXE_weir")))
        .args(["enforce", "--inline", "lan0", "wan0", "--policy"])
        .arg(file.path())
        .arg("--control")
        .arg(file.path().with_extension("sock"))
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("`lan0` is a port of `bridge`"), "{said}");
}

#[test]
fn inline_mode_needs_two_different_ethernet_interfaces() {
    if !possible("inline_mode_needs_two_different_ethernet_interfaces") {
        return;
    }
    let namespace = Namespace::new();
    namespace.ip("link add lan0 type veth peer name lan1");
    namespace.ip("link add wan0 type veth peer name wan1");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), POLICY).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("weir.sock");
    let refused = |ends: [&str; 2], words: &[&str]| {
        let mut command = namespace.command(env!("CARGO_BIN_EXE_weir"));
        command.args(["enforce", "--inline"]).args(ends);
        command.arg("--policy").arg(file.path());
        let output = command.arg("--control").arg(&socket).output().unwrap();
        crate::support::command_output(output).failed(1, words);
    };
    refused(["lan0", "lan0"], &["`lan0` is at both ends"]);
    refused(["lan0", "none0"], &["no interface called `none0`"]);
    refused(["lo", "lan0"], &["`lo` carries no Ethernet frames"]);
    refused(["lan0", "a/b"], &["`a/b` cannot be the name"]);
    without_root(&namespace, file.path());
    let running = Running::start(&namespace, POLICY, &["--inline", "lan0", "wan0"]);
    assert!(is_promiscuous(&namespace, "lan0"));
    namespace.ip("link delete wan0");
    let (status, said) = running.end();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(
        said.contains("interface wan0 is gone") && said.contains("both its interfaces"),
        "{said}"
    );
    assert!(!is_promiscuous(&namespace, "lan0"));
}

/// Checks the errors for a user other than root, with a writable and an unwritable socket directory.
fn without_root(namespace: &Namespace, policy: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    const NOBODY: u32 = 65_534;
    let folder = tempfile::tempdir().unwrap();
    let open_to_all = |path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    open_to_all(folder.path(), 0o777);
    open_to_all(policy, 0o644);
    for (control, words) in [
        (
            folder.path().join("weir.sock"),
            ["packet socket", "cap_net_raw"],
        ),
        (
            "/run/weir-nobody/weir.sock".into(),
            ["/run/weir-nobody/weir.sock", "run as root"],
        ),
    ] {
        let output = namespace.run(|| {
            Command::new(env!("CARGO_BIN_EXE_weir"))
                .args(["enforce", "--inline", "lan0", "wan0", "--policy"])
                .arg(policy)
                .arg("--control")
                .arg(control)
                .uid(NOBODY)
                .gid(NOBODY)
                .output()
        });
        match output {
            Ok(output) => crate::support::command_output(output).failed(1, &words),
            Err(error) => eprintln!("SKIPPED: without root: the binary is out of reach: {error}"),
        }
    }
}
