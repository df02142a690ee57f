//! Super-packets stay whole, whether the ends use ECN or not, and whatever algorithm is enforced.

use etherparse::{PacketBuilder, TcpOptionElement};
use weir_fabric::PacketCount;
use weir_tcon::{FlowPolicy, Limits, Tcon};
use weir_wire::Ecn;

use super::*;
use crate::offload::{Gso, GsoKind, PartialChecksum};

const SEGMENT: u16 = 1_000;
const SERVER: [u8; 4] = [10, 0, 0, 1];
const CLIENT: [u8; 4] = [10, 0, 0, 2];
/// The first sequence numbers.
const SERVER_ISN: u32 = 5_000;
const CLIENT_ISN: u32 = 70_000;

/// The ends of a connection, which write their frames themselves. The server is at the left.
struct Ends {
    cable: Inline,
    left: Tap,
    right: Tap,
    stop: OwnedFd,
    sent: u32,
}

/// Which end supports ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Support {
    Nobody,
    Receiver,
    Both,
}

impl Ends {
    /// Opens a connection with this algorithm for the server's data.
    fn open(algorithm: &str, support: Support) -> Self {
        let policy = FlowPolicy::new(algorithm.parse().unwrap());
        let tcon: Tcon<Segment> = Tcon::new(Limits::default(), Box::new(ServerData(policy)), 1);
        let (cable, [left, right], stop) = cable_with(tcon);
        let mut ends = Self {
            cable,
            left,
            right,
            stop,
            sent: 0,
        };
        let offer = match support {
            Support::Nobody => Flags::SYN,
            Support::Receiver | Support::Both => Flags::SYN | Flags::ECE_AND_CWR,
        };
        let accept = match support {
            Support::Both => Flags::SYN | Flags::ACK | Flags::ECE,
            Support::Nobody | Support::Receiver => Flags::SYN | Flags::ACK,
        };
        ends.client_sends(offer, CLIENT_ISN, 0);
        ends.server_sends(&frame(
            SERVER,
            accept,
            SERVER_ISN,
            CLIENT_ISN + 1,
            0,
            Ecn::NotEct,
        ));
        ends.acknowledge(Flags::empty());
        while received(&ends.right).is_some() || received(&ends.left).is_some() {}
        ends
    }

    fn run(&mut self) {
        self.cable.run_for(&self.stop, Duration::ZERO).unwrap();
    }

    fn client_sends(&mut self, flags: Flags, sequence: u32, acknowledgment: u32) {
        let frame = frame(CLIENT, flags, sequence, acknowledgment, 0, Ecn::NotEct);
        self.right.send(&[IoSlice::new(&frame)]).unwrap();
        self.run();
    }

    fn server_sends(&mut self, frame: &[u8]) {
        self.left.send(&[IoSlice::new(frame)]).unwrap();
        self.run();
    }

    /// The client acknowledges all data.
    fn acknowledge(&mut self, more: Flags) {
        let number = SERVER_ISN + 1 + self.sent;
        self.client_sends(Flags::ACK | more, CLIENT_ISN + 1, number);
    }

    /// The server sends a super-packet. Returns the frames that the client receives at once: for each the
    /// number of segments, and whether it has CWR.
    fn send_data(&mut self, segments: u16, support: Support) -> Vec<(u16, bool)> {
        let ecn = match support {
            Support::Both => Ecn::Ect0,
            Support::Nobody | Support::Receiver => Ecn::NotEct,
        };
        let flags = Flags::ACK | Flags::PSH;
        let length = u32::from(segments) * u32::from(SEGMENT);
        let number = SERVER_ISN + 1 + self.sent;
        let frame = frame(SERVER, flags, number, CLIENT_ISN + 1, length as usize, ecn);
        self.sent += length;
        self.server_sends(&frame);
        let mut frames = Vec::new();
        while let Some(bytes) = received(&self.right) {
            let frame = parsed(&bytes).unwrap();
            let has_cwr = frame.tcp(0).unwrap().flags.contains(Flags::CWR);
            let expected = match support {
                Support::Nobody => Ecn::NotEct,
                Support::Both => Ecn::Ect0,
                Support::Receiver => frame.ecn(),
            };
            assert_eq!(frame.ecn(), expected);
            frames.push((frame.segments(), has_cwr));
        }
        frames
    }
}

/// Controls the server's data only.
#[derive(Debug)]
struct ServerData(FlowPolicy);

impl weir_tcon::PolicyLookup for ServerData {
    fn policy_for(&self, flow: &weir_tcon::FlowInfo) -> Option<&FlowPolicy> {
        (flow.key.source_port == 80).then_some(&self.0)
    }
}

/// Returns a frame with its virtio-net header: a super-packet if it has more data than a segment.
fn frame(
    from: [u8; 4],
    flags: Flags,
    sequence: u32,
    acknowledgment: u32,
    payload: usize,
    ecn: Ecn,
) -> Vec<u8> {
    let (to, ports) = if from == SERVER {
        (CLIENT, (80, 4000))
    } else {
        (SERVER, (4000, 80))
    };
    let is_syn = flags.contains(Flags::SYN);
    let options: &[_] = if is_syn {
        &[
            TcpOptionElement::MaximumSegmentSize(SEGMENT),
            TcpOptionElement::WindowScale(7),
            TcpOptionElement::SelectiveAcknowledgementPermitted,
        ]
    } else {
        &[]
    };
    let mut bytes = VnetHeader::default().emit().to_vec();
    PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ipv4(from, to, 64)
        .tcp(ports.0, ports.1, sequence, 60_000)
        .ack(acknowledgment)
        .options(options)
        .unwrap()
        .write(&mut bytes, &vec![7; payload])
        .unwrap();
    let ip = VnetHeader::LENGTH + 14;
    let length = (bytes.len() - ip) as u64;
    weir_wire::ip::rewrite(
        &mut bytes[ip..ip + 20],
        weir_units::ByteSize::from_bytes(length),
        ecn,
        0,
    );
    bytes[ip + 20 + 13] = flags.bits();
    let vnet = VnetHeader {
        checksum: Some(PartialChecksum {
            start: 34,
            field: 16,
        }),
        gso: (payload > usize::from(SEGMENT)).then_some(Gso {
            kind: GsoKind::TcpV4,
            size: SEGMENT,
            cwr: false,
        }),
        headers: 54,
    };
    bytes[..VnetHeader::LENGTH].copy_from_slice(&vnet.emit());
    bytes
}

const ALL: [Support; 3] = [Support::Nobody, Support::Receiver, Support::Both];

#[test]
fn super_packets_leave_whole_with_every_algorithm() {
    for algorithm in weir_congestion::algorithms().map(|algorithm| algorithm.name) {
        for support in ALL {
            let mut ends = Ends::open(algorithm, support);
            let frames = ends.send_data(10, support);
            // What the window admits leaves in one frame.
            assert!(
                matches!(frames[..], [(1.., _)]),
                "{algorithm}, {support:?}: {frames:?}"
            );
            let has_cwr = match support {
                Support::Nobody => false,
                Support::Receiver => matches!(algorithm, "dctcp" | "d2tcp"),
                Support::Both => matches!(
                    algorithm,
                    "dctcp" | "d2tcp" | "dcudp-proportional" | "dcudp-rtt-fair"
                ),
            };
            assert_eq!(frames[0].1, has_cwr, "{algorithm}, {support:?}");
            let kept: &Tcon<Segment> = ends.cable.element().unwrap();
            assert_ne!(kept.kept(), PacketCount::ZERO, "it is controlled");
        }
    }
}

#[test]
fn one_segment_with_cwr_answers_an_echo_under_cubic() {
    let mut ends = Ends::open("cubic", Support::Both);
    assert_eq!(ends.send_data(4, Support::Both), [(4, false)]);
    ends.acknowledge(Flags::ECE);
    // The sender is not told.
    let frame = parsed(&received(&ends.left).unwrap()).unwrap();
    assert!(!frame.tcp(0).unwrap().flags.contains(Flags::ECE));
    assert_eq!(ends.send_data(4, Support::Both), [(1, true), (3, false)]);
    ends.acknowledge(Flags::empty());
    assert_eq!(ends.send_data(4, Support::Both), [(4, false)]);
}
