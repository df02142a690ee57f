//! Joins the hops of a packet to its way, and finds what happened to it: a mark, a loss, a retransmission.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use serde::Serialize;
use weir_results::capture::{CapturedPacket, Content};
use weir_scenario::{Node, Topology};
use weir_units::ByteSize;
use weir_wire::Ecn;
use weir_wire::tcp::{Flags, Segment, Sequence};

use super::FlowNames;
use super::capture::Captured;
use crate::script::seconds;

/// A packet, and its hops.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Way {
    /// The flow's name, or the packet's addresses if the flow was not open.
    pub(super) flow: String,
    /// What it is: its flags, or its protocol.
    kind: String,
    /// Sequence and acknowledgment numbers.
    text: String,
    /// IP bytes.
    pub(super) length: u64,
    /// Whether its data had been sent before.
    pub(super) retransmitted: bool,
    /// The node that lost it; none if it was not lost, or that cannot be told.
    pub(super) lost: Option<String>,
    pub(super) hops: Vec<Hop>,
    #[serde(skip)]
    ends: (SocketAddr, SocketAddr),
    #[serde(skip)]
    is_tcp: bool,
}

/// A way over one link. Seconds of the run.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Hop {
    pub(super) port: String,
    /// The places of both nodes among the lanes.
    pub(super) from: usize,
    pub(super) to: usize,
    /// When its first bit left.
    pub(super) sent: f64,
    /// When its last bit arrived.
    pub(super) arrived: f64,
    ecn: &'static str,
    /// Whether the port before this link, or its switch, has marked it.
    pub(super) marked: bool,
    #[serde(skip)]
    pub(super) ends: (Node, Node),
}

/// What tells packets apart, and does not change on the way: switches change the ECN codepoint, and some the window.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Identity {
    source: SocketAddr,
    destination: SocketAddr,
    tcp: Option<SegmentIdentity>,
    size: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct SegmentIdentity {
    sequence: u32,
    acknowledgment: u32,
    payload: u32,
    flags: u8,
    /// The time stamps: the value, and the echo.
    stamps: Option<(u32, u32)>,
}

/// Returns the ways of packets, in the order in which they are first seen.
pub(super) fn of(hops: Vec<Captured>, topology: &Topology, names: &FlowNames) -> Vec<Way> {
    let mut ways: Vec<Way> = Vec::new();
    // The packets that wait at a node, or have arrived.
    let mut at: HashMap<(usize, Identity), VecDeque<usize>> = HashMap::new();
    let mut sent = Sent::default();
    for Captured { port, packet } in hops {
        let Some(link) = topology.ports.get(port) else {
            continue;
        };
        let identity = Identity::of(&packet);
        let waiting = at.get_mut(&(place(topology, link.from), identity));
        let known = waiting.and_then(VecDeque::pop_front);
        let way = known.unwrap_or_else(|| {
            let retransmitted = sent.is_again(&packet) && matches!(link.from, Node::Host(_));
            ways.push(Way::of(&packet, names, retransmitted));
            ways.len() - 1
        });
        if let Some(way) = ways.get_mut(way) {
            let before = way.hops.last().map(|hop| hop.ecn);
            let is_first = matches!(link.from, Node::Host(_));
            let ecn = name_of(packet.ecn);
            let on_link = (length(&packet) + link.framing).bytes() as f64 * 8.0
                / link.rate.bits_per_second().max(1) as f64;
            let arrived = seconds(packet.time);
            let way_back = on_link + link.delay.as_secs_f64();
            way.hops.push(Hop {
                port: link.name.clone(),
                from: 0,
                to: 0,
                sent: (arrived - way_back).max(0.0),
                arrived,
                ecn,
                marked: packet.ecn == Ecn::Ce && before.map_or(is_first, |before| before != ecn),
                ends: (link.from, link.to),
            });
        }
        let here = (place(topology, link.to), identity);
        at.entry(here).or_default().push_back(way);
    }
    find_losses(&mut ways, topology);
    ways
}

/// Keeps the packets that a port has sent, and those lost at its node whose flow it sends.
pub(super) fn only_by(ways: &mut Vec<Way>, port: &str, node: &str) {
    let passes = |way: &Way| way.hops.iter().any(|hop| hop.port == port);
    let ends: std::collections::HashSet<_> = ways
        .iter()
        .filter(|way| passes(way))
        .map(|way| way.ends)
        .collect();
    ways.retain(|way| {
        passes(way) || (way.lost.as_deref() == Some(node) && ends.contains(&way.ends))
    });
}

/// A packet is lost at a switch if a later one of its flow went on from there: queues are in order. That holds for TCP,
/// whose packets can be told apart.
fn find_losses(ways: &mut [Way], topology: &Topology) {
    // By the ends of the flow and the node: when the last packet that went on had arrived there.
    let mut went_on: HashMap<(SocketAddr, SocketAddr, usize), f64> = HashMap::new();
    for way in ways.iter() {
        for pair in way.hops.windows(2) {
            if let [before, _] = pair {
                let at = (way.ends.0, way.ends.1, place(topology, before.ends.1));
                let last = went_on.entry(at).or_insert(before.arrived);
                *last = last.max(before.arrived);
            }
        }
    }
    for way in ways.iter_mut().filter(|way| way.is_tcp) {
        let Some(last) = way.hops.last() else {
            continue;
        };
        let node = last.ends.1;
        let at = (way.ends.0, way.ends.1, place(topology, node));
        let is_overtaken = went_on.get(&at).is_some_and(|later| *later > last.arrived);
        if matches!(node, Node::Switch(_)) && is_overtaken {
            way.lost = Some(topology.name(node).to_owned());
        }
    }
}

/// Returns the place of a node among hosts and switches.
fn place(topology: &Topology, node: Node) -> usize {
    match node {
        Node::Host(host) => host.index(),
        Node::Switch(switch) => topology.hosts.len() + switch.index(),
    }
}

/// How far the data of each direction has been sent.
#[derive(Default)]
struct Sent(HashMap<(SocketAddr, SocketAddr), Sequence>);

impl Sent {
    /// Whether the packet has data that was sent before.
    fn is_again(&mut self, packet: &CapturedPacket) -> bool {
        let Content::Tcp(segment) = packet.content else {
            return false;
        };
        if segment.payload == 0 {
            return false;
        }
        let end = segment.sequence + segment.payload;
        let ends = (packet.source, packet.destination);
        let far = self.0.entry(ends).or_insert(segment.sequence);
        let is_again = segment.sequence.precedes(*far);
        if far.precedes(end) {
            *far = end;
        }
        is_again
    }
}

impl Identity {
    fn of(packet: &CapturedPacket) -> Self {
        let tcp = match packet.content {
            Content::Tcp(segment) => Some(SegmentIdentity {
                sequence: segment.sequence.number(),
                acknowledgment: segment.acknowledgment.number(),
                payload: segment.payload,
                flags: segment.flags.bits(),
                stamps: segment.timestamps.map(|stamps| (stamps.value, stamps.echo)),
            }),
            Content::Udp(_) => None,
        };
        Self {
            source: packet.source,
            destination: packet.destination,
            tcp,
            size: length(packet).bytes(),
        }
    }
}

impl Way {
    fn of(packet: &CapturedPacket, names: &FlowNames, retransmitted: bool) -> Self {
        let (source, destination) = (packet.source, packet.destination);
        let ports = (source.port(), destination.port());
        let name = names.get(&ports).or_else(|| names.get(&(ports.1, ports.0)));
        let (kind, text) = match packet.content {
            Content::Tcp(segment) => (flags(segment.flags), numbers(&segment)),
            Content::Udp(size) => ("UDP".to_owned(), format!("Len={}", size.bytes())),
        };
        Self {
            flow: name
                .cloned()
                .unwrap_or_else(|| format!("{source} to {destination}")),
            kind,
            text,
            length: length(packet).bytes(),
            retransmitted,
            lost: None,
            hops: Vec::new(),
            ends: (source, destination),
            is_tcp: matches!(packet.content, Content::Tcp(_)),
        }
    }
}

fn length(packet: &CapturedPacket) -> ByteSize {
    // IPv4 without options, and the header of UDP.
    match packet.content {
        Content::Tcp(segment) => {
            segment.header_length() + ByteSize::from_bytes(20 + u64::from(segment.payload))
        }
        Content::Udp(size) => size + ByteSize::from_bytes(28),
    }
}

fn flags(flags: Flags) -> String {
    let known = [
        (Flags::SYN, "SYN"),
        (Flags::FIN, "FIN"),
        (Flags::RST, "RST"),
        (Flags::PSH, "PSH"),
        (Flags::ACK, "ACK"),
        (Flags::ECE, "ECE"),
        (Flags::CWR, "CWR"),
    ];
    let set = known.iter().filter(|(flag, _)| flags.contains(*flag));
    set.map(|(_, name)| *name).collect::<Vec<_>>().join(" ")
}

fn numbers(segment: &Segment) -> String {
    let mut text = format!("Seq={}", segment.sequence.number());
    if segment.flags.contains(Flags::ACK) {
        text.push_str(&format!(" Ack={}", segment.acknowledgment.number()));
    }
    text.push_str(&format!(" Len={}", segment.payload));
    text
}

fn name_of(ecn: Ecn) -> &'static str {
    match ecn {
        Ecn::NotEct => "Not-ECT",
        Ecn::Ect0 => "ECT(0)",
        Ecn::Ect1 => "ECT(1)",
        Ecn::Ce => "CE",
    }
}
