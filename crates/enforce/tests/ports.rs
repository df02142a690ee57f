//! Ports in their own network namespace. Skipped without privileges.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says why it is skipped"
)]

use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};

use weir_enforce::offload::SuperFrame;
use weir_enforce::port::{PacketSocket, PortError, Tap};
use weir_wire::{Ecn, FlowKey};

const LONG: Duration = Duration::from_secs(20);

/// Runs a test on a thread with its own network namespace, if that is allowed.
fn run_in_namespace(test: fn()) {
    let thread = std::thread::spawn(move || {
        // SAFETY: the call takes a number, and changes only this thread.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            let error = std::io::Error::last_os_error();
            println!("SKIPPED: a network namespace: {error}");
            return;
        }
        match Tap::create("probe0") {
            Ok(_) => test(),
            Err(error) => println!("SKIPPED: {error}"),
        }
    });
    thread.join().unwrap();
}

/// Runs `ip`; returns whether it is installed.
fn ip(words: &str) -> bool {
    match Command::new("ip").args(words.split(' ')).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "ip {words}: {said}");
            true
        }
        Err(error) => {
            println!("SKIPPED: ip: {error}");
            false
        }
    }
}

/// Waits for a link's carrier. A link that was set up drops frames until the kernel sees the carrier.
fn wait_until_up(name: &str) {
    for _ in 0..1000 {
        let output = Command::new("ip")
            .args(["-o", "link", "show", "up", name])
            .output();
        let said = String::from_utf8(output.unwrap().stdout).unwrap();
        if said.contains("state UP") {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{name} has no carrier");
}

/// Returns the next UDP frame to this port.
fn datagram(mut receive: impl FnMut(&mut [u8]) -> Option<usize>, port: u16) -> SuperFrame {
    let mut frame = SuperFrame::with_capacity(SuperFrame::LARGEST);
    let begin = Instant::now();
    while begin.elapsed() < LONG {
        let Some(length) = receive(frame.buffer_mut()) else {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        };
        let is_udp = frame.parse(length).is_ok() && frame.flow().protocol == FlowKey::UDP;
        if is_udp && frame.flow().destination_port == port {
            return frame;
        }
    }
    panic!("no datagram came");
}

#[test]
fn invalid_port_operations_are_errors() {
    run_in_namespace(|| {
        let tap = Tap::create("t0").unwrap();
        assert!(matches!(Tap::create("t0"), Err(PortError::NameTaken(name)) if name == "t0"));
        assert!(matches!(Tap::create("a/b"), Err(PortError::BadName(_))));
        assert!(matches!(
            PacketSocket::bind("t1"),
            Err(PortError::NoInterface(_))
        ));
        // The interface is down.
        assert!(tap.receive(&mut [0; 100]).unwrap().is_none());
        assert!(tap.send(&[std::io::IoSlice::new(&[0; 100])]).is_err());
        drop(tap);
        assert!(Tap::create("t0").is_ok());
    });
}

#[test]
fn a_tap_sends_and_receives_frames() {
    run_in_namespace(|| {
        let tap = Tap::create("t0").unwrap();
        if !ip("address add 10.1.0.1/24 dev t0") {
            return;
        }
        ip("link set t0 address 02:00:00:00:00:01 up");
        ip("neighbour add 10.1.0.2 lladdr 02:00:00:00:00:02 dev t0");
        let socket = UdpSocket::bind("10.1.0.1:5000").unwrap();
        socket.set_read_timeout(Some(LONG)).unwrap();
        socket.send_to(&[7; 900], "10.1.0.2:6000").unwrap();
        let frame = datagram(|buffer| tap.receive(buffer).unwrap(), 6000);
        assert_eq!(
            (frame.segments(), frame.segment_length(0).bytes()),
            (1, 928)
        );
        assert_eq!(frame.ecn(), Ecn::NotEct);
        assert_eq!(frame.flow().source_port, 5000);

        // The frame with both ends exchanged is received, though its checksum is partial: the sum over
        // the pseudo-header is the same.
        let cut = frame.cut(0..1, Ecn::Ce, [2, 0, 0, 0, 0, 1]);
        let mut back = cut.headers().to_vec();
        let addresses = 10 + 14 + 12;
        back[addresses..addresses + 8].rotate_left(4);
        back[addresses + 8..addresses + 12].rotate_left(2);
        let slices = [
            std::io::IoSlice::new(&back),
            std::io::IoSlice::new(cut.payload()),
        ];
        assert!(tap.send(&slices).unwrap());
        let mut data = [0; 1000];
        let (length, from) = socket.recv_from(&mut data).unwrap();
        assert_eq!((length, from), (900, "10.1.0.2:6000".parse().unwrap()));
        assert!(data[..length].iter().all(|byte| *byte == 7));
    });
}

#[test]
fn a_packet_socket_sees_the_other_end_of_a_pair() {
    run_in_namespace(|| {
        if !ip("link add v0 type veth peer name v1") {
            return;
        }
        ip("address add 10.1.0.1/24 dev v0");
        ip("link set v0 up");
        ip("link set v1 up");
        wait_until_up("v0");
        ip("neighbour add 10.1.0.2 lladdr 02:00:00:00:00:02 dev v0");
        let port = PacketSocket::bind("v1").unwrap();
        let socket = UdpSocket::bind("10.1.0.1:5000").unwrap();
        socket.send_to(&[7; 900], "10.1.0.2:6000").unwrap();
        let frame = datagram(|buffer| port.receive(buffer).unwrap(), 6000);
        assert!(frame.bytes().ends_with(&[7; 900]));
        let cut = frame.cut(0..1, Ecn::Ce, [2, 0, 0, 0, 0, 1]);
        assert!(port.send(&cut.slices()).unwrap());
    });
}

/// The kernel removes tags from received frames, and reports them in a control message.
#[test]
fn tags_of_vlans_are_in_the_frames() {
    run_in_namespace(|| {
        if !ip("link add v0 type veth peer name v1") {
            return;
        }
        ip("link set v0 up");
        ip("link set v1 up");
        wait_until_up("v0");
        let [from, to] = ["v0", "v1"].map(|name| PacketSocket::bind(name).unwrap());
        to.set_promiscuous().unwrap();
        assert!(to.is_attached() && to.take_dropped() == 0);
        // An empty virtio-net header, addresses, a tag, and UDP over IPv4 without a checksum.
        let mut sent = vec![0; 10];
        sent.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0x60, 7, 8, 0]);
        sent.extend([
            0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0x66, 0xca, 10, 1, 0, 1, 10, 1, 0, 2,
        ]);
        sent.extend([0x13, 0x88, 0x17, 0x70, 0, 12, 0, 0, 1, 2, 3, 4]);
        assert!(from.send(&[std::io::IoSlice::new(&sent)]).unwrap());
        let frame = datagram(|buffer| to.receive(buffer).unwrap(), 6000);
        assert_eq!(frame.bytes()[10..], sent[10..]);
        ip("link delete v0");
        assert!(!to.is_attached());
    });
}
