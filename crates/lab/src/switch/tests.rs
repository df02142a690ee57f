//! The switch between socket pairs in place of TAP interfaces: no privileges needed. All events follow
//! from the arrival times of frames, so nothing here depends on the speed of the machine.

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration as Wait, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use weir_enforce::offload::{Gso, GsoKind, PartialChecksum, SuperFrame, VnetHeader};
use weir_enforce::port::Tap;
use weir_fabric::PortChange;
use weir_scenario::{PortIndex, Scenario, Topology};
use weir_units::{ByteSize, Time};
use weir_wire::{Ecn, FlowKey};

use super::*;

/// The time after which a frame counts as lost.
const LONG: Wait = Wait::from_secs(20);

/// A network whose hosts are driven by the test.
struct Lab {
    scenario: Scenario,
    topology: Topology,
    hosts: Vec<(PortIndex, Tap)>,
    switch: SwitchHandle,
    copies: CaptureReceiver,
}

/// The bytes captured of each packet.
const SNAP: ByteSize = ByteSize::from_bytes(100);

fn address(port: PortIndex) -> IpAddr {
    IpAddr::from([10, 0, 0, port.index() as u8])
}

fn address_v6(port: PortIndex) -> IpAddr {
    IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, port.index() as u16])
}

impl Lab {
    fn new(network: &str, measured: &[&str]) -> Self {
        let text = format!(
            "title = \"t\"\nsource = \"t\"\nduration = \"1s\"\n{network}\n\
             [groups.g]\nfrom = \"a\"\nto = \"b\"\nworkload = \"bulk\"\n"
        );
        let mut scenario = Scenario::parse("test", &text, &[]).unwrap().scenario;
        let topology = scenario.topology.clone();
        let own = topology.port_indices();
        let own: Vec<_> = own
            .filter(|port| topology.port(*port).from.host().is_some())
            .collect();
        let (mut sockets, mut hosts) = (Vec::new(), Vec::new());
        for port in &own {
            let (inside, outside) = pair();
            hosts.push((*port, Tap::from(outside)));
            sockets.push(HostSocket {
                port: *port,
                device: Tap::from(inside).into(),
                mac: [2, 0, 0, 0, 0, port.index() as u8],
            });
        }
        let addresses = own
            .iter()
            .flat_map(|port| [(address(*port), *port), (address_v6(*port), *port)]);
        scenario.measurements.ports = measured
            .iter()
            .map(|name| topology.port_by_name(name).unwrap())
            .collect();
        scenario.live.delay_error = weir_units::Duration::MAX;
        let owners = own.iter().flat_map(|port| {
            let host = topology.port(*port).from.host().unwrap();
            [(address(*port), host), (address_v6(*port), host)]
        });
        let (copier, copies) = capture_channel(SNAP);
        let switch = start(SwitchSetup {
            scenario: &scenario,
            epoch: 0,
            sockets,
            addresses: addresses.collect(),
            owners: owners.collect(),
            demands: Vec::new(),
            capture: Some(copier),
        })
        .unwrap();
        Self {
            scenario,
            topology,
            hosts,
            switch,
            copies,
        }
    }

    fn port(&self, name: &str) -> PortIndex {
        self.topology.port_by_name(name).unwrap()
    }

    fn tap(&self, name: &str) -> &Tap {
        let port = self.port(name);
        let found = self.hosts.iter().find(|(own, _)| *own == port);
        &found.unwrap().1
    }

    fn send(&self, from: &str, to: IpAddr, payload: &[u8], segment: u16) {
        let frame = frame(address(self.port(from)), to, payload, segment);
        let sent = self.tap(from).send(&[std::io::IoSlice::new(&frame)]);
        assert!(sent.unwrap());
    }

    /// Returns the next frame that a host receives.
    fn receive(&self, at: &str) -> SuperFrame {
        let begin = Instant::now();
        let mut frame = SuperFrame::with_capacity(SuperFrame::LARGEST);
        while begin.elapsed() < LONG {
            if let Some(length) = self.tap(at).receive(frame.buffer_mut()).unwrap() {
                frame.parse(length).unwrap();
                return frame;
            }
            std::thread::sleep(Wait::from_micros(100));
        }
        panic!("nothing came to {at}");
    }

    /// Returns `count` segments that a host receives, one by one.
    fn segments(&self, at: &str, count: usize) -> Vec<(Ecn, Vec<u8>)> {
        let mut segments = Vec::new();
        while segments.len() < count {
            let frame = self.receive(at);
            for index in 0..frame.segments() {
                let cut = frame.cut(index..index + 1, frame.ecn(), [0; 6]);
                segments.push((frame.ecn(), cut.payload().to_vec()));
            }
        }
        segments
    }
}

fn pair() -> (OwnedFd, OwnedFd) {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    socketpair(AddressFamily::UNIX, SocketType::DGRAM, flags, None).unwrap()
}

/// A UDP super-packet with ECT(0).
fn frame(from: IpAddr, to: IpAddr, payload: &[u8], segment: u16) -> Vec<u8> {
    let (ip, ether) = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let length = ByteSize::from_bytes((28 + payload.len()) as u64);
            let mut header = vec![0x45, 2, 0, 0, 0, 0, 0x40, 0, 64, FlowKey::UDP, 0, 0];
            header.extend(from.octets());
            header.extend(to.octets());
            weir_wire::ip::rewrite(&mut header, length, Ecn::Ect0, 0);
            (header, [8, 0])
        }
        (_, IpAddr::V6(to)) => {
            let length = (8 + payload.len()) as u16;
            let mut header = vec![0x60, 0x20, 0, 0, 0, 0, FlowKey::UDP, 64];
            header[4..6].copy_from_slice(&length.to_be_bytes());
            header.extend([9; 16]);
            header.extend(to.octets());
            (header, [0x86, 0xdd])
        }
        _ => panic!("two versions of IP"),
    };
    let gso = Gso {
        kind: GsoKind::Udp,
        size: segment,
        cwr: false,
    };
    let vnet = VnetHeader {
        checksum: Some(PartialChecksum {
            start: (14 + ip.len()) as u16,
            field: 6,
        }),
        gso: (payload.len() > usize::from(segment)).then_some(gso),
        headers: (14 + ip.len() + 8) as u16,
    };
    let mut frame = vnet.emit().to_vec();
    frame.extend([0xFF; 12]);
    frame.extend(ether);
    frame.extend(ip);
    let [high, low] = ((8 + payload.len()) as u16).to_be_bytes();
    frame.extend([0x10, 0, 0x20, 0, high, low, 0, 0]);
    frame.extend(payload);
    frame
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|index| (index % 251) as u8).collect()
}

const PAIR: &str = r#"
[star]
rate = "100Gbps"
delay = "10us"
queue = "unlimited"
[star.hosts.a]
[star.hosts.b]
"#;

#[test]
fn frames_reach_their_host_with_its_mac_address() {
    let lab = Lab::new(PAIR, &["switch->b"]);
    let b = lab.port("b->switch");
    lab.send("a->switch", address(b), b"hello", 100);
    let frame = lab.receive("b->switch");
    let ethernet = &frame.bytes()[VnetHeader::LENGTH..];
    assert_eq!(ethernet[..6], [2, 0, 0, 0, 0, b.index() as u8]);
    assert!(ethernet.ends_with(b"hello"));
    // Also over IPv6.
    lab.send("a->switch", address_v6(b), b"again", 100);
    assert!(lab.receive("b->switch").bytes().ends_with(b"again"));
    let report = lab.switch.stop().unwrap();
    assert_eq!((report.frames, report.ignored), (2, 0));
    let (name, port) = &report.ports[0];
    assert_eq!((name.as_str(), port.packets), ("switch->b", 2));
    assert_eq!(port.bytes.bytes(), 28 + 5 + 48 + 5);
}

#[test]
fn super_packets_are_counted_and_delivered_segment_by_segment() {
    let lab = Lab::new(PAIR, &["switch->b"]);
    let payload = bytes(30_000);
    lab.send("a->switch", address(lab.port("b->switch")), &payload, 1000);
    let segments = lab.segments("b->switch", 30);
    let joined: Vec<u8> = segments.into_iter().flat_map(|(_, part)| part).collect();
    assert_eq!(joined, payload);
    let report = lab.switch.stop().unwrap();
    assert_eq!(report.frames, 1);
    assert_eq!(report.ports[0].1.packets, 30);
    assert_eq!(report.ports[0].1.bytes.bytes(), 30 * 1028);
}

#[test]
fn each_segment_is_queued_separately() {
    let lab = Lab::new(
        r#"
        [hosts.a]
        [hosts.b]
        [switches.s]
        [[links]]
        from = "a"
        to = "s"
        rate = "100Gbps"
        delay = "1us"
        [[links]]
        from = "s"
        to = "b"
        rate = "10Mbps"
        delay = "1us"
        queue = { kind = "step", ecn_threshold = "0B", buffer = "12KB" }
        "#,
        &["s->b"],
    );
    lab.send("a->s", address(lab.port("b->s")), &bytes(20_000), 1000);
    // One is being sent, and eleven of 1028 bytes wait: the first of these found an empty queue.
    let segments = lab.segments("b->s", 12);
    let marked: Vec<bool> = segments.iter().map(|(ecn, _)| *ecn == Ecn::Ce).collect();
    assert_eq!(marked[..2], [false, false]);
    assert!(marked[2..].iter().all(|marked| *marked), "{marked:?}");
    let report = lab.switch.stop().unwrap();
    let port = &report.ports[0].1;
    assert_eq!((port.packets, port.marks, port.drops.buffer), (12, 10, 8));
    assert_eq!(port.queue_max.bytes(), 11 * 1028);
}

#[test]
fn captured_frames_match_the_wire() {
    let lab = Lab::new(PAIR, &["a->switch", "switch->b"]);
    let b = lab.port("b->switch");
    lab.send("a->switch", address(b), &bytes(250), 100);
    lab.segments("b->switch", 3);
    let report = lab.switch.stop().unwrap();
    assert_eq!(report.uncopied, 0);
    let batches: Vec<_> = lab.copies.take().collect();
    let frames: Vec<_> = batches.iter().flat_map(CaptureBatch::frames).collect();
    let seen: Vec<_> = frames
        .iter()
        .map(|(port, frame)| (*port, frame.bytes.len(), frame.length))
        .collect();
    // Ethernet 14, IP 20, UDP 8.
    for port in [0, 1] {
        let of_port: Vec<_> = seen.iter().filter(|(at, ..)| *at == port).collect();
        let expected = [(port, 100, 142), (port, 100, 142), (port, 92, 92)];
        assert_eq!(of_port, expected.iter().collect::<Vec<_>>());
    }
    assert!(frames.is_sorted_by_key(|(_, frame)| frame.time));
    let (_, last) = frames.last().unwrap();
    assert_eq!(last.bytes[..6], [0xFF; 6], "as the sender wrote it");
    assert_eq!(last.bytes[42..], bytes(250)[200..]);
}

#[test]
fn faults_apply_from_the_command_on() {
    let lab = Lab::new(PAIR, &["switch->b"]);
    let (link, b) = (lab.port("switch->b"), address(lab.port("b->switch")));
    lab.switch.apply(link, PortChange::Down(true)).unwrap();
    // Commands are handled in order: once this is answered, the link is down.
    assert_eq!(lab.switch.sample().unwrap()[0].drops.down, 0);
    lab.send("a->switch", b, b"lost", 100);
    let begin = Instant::now();
    while lab.switch.sample().unwrap()[0].drops.down == 0 {
        assert!(begin.elapsed() < LONG, "nothing is dropped");
    }
    lab.switch.apply(link, PortChange::Down(false)).unwrap();
    lab.switch.begin().unwrap();
    assert_eq!(lab.switch.sample().unwrap()[0].drops.down, 1);
    lab.send("a->switch", b, b"found", 100);
    assert!(lab.receive("b->switch").bytes().ends_with(b"found"));
    let report = lab.switch.stop().unwrap();
    // Counters restart with the measurement.
    let port = &report.ports[0].1;
    assert_eq!((port.packets, port.drops.down), (1, 0));
}

#[test]
fn frames_are_forwarded_before_the_epoch() {
    let mut lab = Lab::new(PAIR, &["switch->b"]);
    let b = lab.port("b->switch");
    let (inside, outside) = pair();
    lab.hosts = vec![(lab.port("a->switch"), Tap::from(outside))];
    let (own, other) = pair();
    lab.hosts.push((b, Tap::from(own)));
    let socket = |port, device| HostSocket {
        port,
        device: Tap::from(device).into(),
        mac: [2; 6],
    };
    lab.switch = start(SwitchSetup {
        scenario: &lab.scenario,
        epoch: u64::MAX,
        sockets: vec![socket(lab.port("a->switch"), inside), socket(b, other)],
        addresses: vec![(address(b), b)],
        owners: AddressOwners::default(),
        demands: Vec::new(),
        capture: None,
    })
    .unwrap();
    lab.send("a->switch", address(b), b"early", 100);
    assert!(lab.receive("b->switch").bytes().ends_with(b"early"));
    assert_eq!(lab.switch.sample().unwrap()[0].time, Time::ZERO);
}

#[test]
fn addresses_can_be_withdrawn_and_assigned() {
    let lab = Lab::new(PAIR, &[]);
    let (b, other) = (lab.port("b->switch"), IpAddr::from([10, 9, 9, 9]));
    lab.send("a->switch", other, b"nobody", 100);
    lab.switch.withdraw(address(b)).unwrap();
    lab.switch.sample().unwrap();
    lab.send("a->switch", address(b), b"nobody", 100);
    // Frames sent earlier have been read when this is answered.
    lab.switch.assign(IpAddr::from([10, 0, 0, 77]), b).unwrap();
    lab.switch.sample().unwrap();
    lab.send("a->switch", IpAddr::from([10, 0, 0, 77]), b"new", 100);
    assert!(lab.receive("b->switch").bytes().ends_with(b"new"));
    let report = lab.switch.stop().unwrap();
    assert_eq!((report.frames, report.ignored), (3, 2));
}

#[test]
fn each_interface_of_a_host_receives_its_own_frames() {
    let lab = Lab::new(
        r#"
        [hosts.a]
        [hosts.b]
        [switches.s]
        [switches.t]
        [[links]]
        from = "a"
        to = "s"
        rate = "1Gbps"
        delay = "1us"
        [[links]]
        from = "s"
        to = "t"
        rate = "1Gbps"
        delay = "1us"
        [[links]]
        from = "b"
        to = "s"
        rate = "1Gbps"
        delay = "1us"
        [[links]]
        from = "b"
        to = "t"
        rate = "1Gbps"
        delay = "1us"
        "#,
        &[],
    );
    for to in ["b->s", "b->t"] {
        lab.send("a->s", address(lab.port(to)), to.as_bytes(), 100);
        assert!(lab.receive(to).bytes().ends_with(to.as_bytes()));
    }
}

#[test]
fn a_dead_host_does_not_affect_others() {
    let mut lab = Lab::new(PAIR, &[]);
    let (a, b) = (lab.port("a->switch"), lab.port("b->switch"));
    lab.hosts.retain(|(port, _)| *port == a);
    lab.send("a->switch", address(b), b"undeliverable", 100);
    lab.send("a->switch", address(a), b"to myself", 100);
    assert!(lab.receive("a->switch").bytes().ends_with(b"to myself"));
    let report = lab.switch.stop().unwrap();
    assert_eq!((report.frames, report.undeliverable), (2, 1));
}

#[test]
fn an_invalid_network_is_refused() {
    let text = PAIR.to_owned() + "[groups.g]\nfrom = \"a\"\nto = \"b\"\nworkload = \"bulk\"\n";
    let text = format!("title = \"t\"\nsource = \"t\"\nduration = \"1s\"\n{text}");
    let mut scenario = Scenario::parse("test", &text, &[]).unwrap().scenario;
    scenario.topology.switches[0].shared_buffer = Some(weir_scenario::SharedBuffer {
        size: ByteSize::ZERO,
        limit: weir_scenario::SharedLimit::Dynamic(f64::NAN),
    });
    let refused = start(SwitchSetup {
        scenario: &scenario,
        epoch: 0,
        sockets: Vec::new(),
        addresses: Vec::new(),
        owners: AddressOwners::default(),
        demands: Vec::new(),
        capture: None,
    });
    assert!(matches!(refused, Err(SwitchError::Network(_))));
}
