mod bursts;

use std::net::IpAddr;

use proptest::prelude::*;
use weir_fabric::{Burst, EgressPort, Faults, Link, Queue, Routes, Rule, Switch};
use weir_units::{ByteSize, Duration, Rate};
use weir_wire::Ecn;
use weir_wire::tcp::{Options, Sequence, SynOptions};

use super::*;
use crate::demand::Demand;

/// A segment between host 0, the sender, and host 1.
#[derive(Clone, Debug)]
struct Frame {
    segment: Segment,
    forth: bool,
    /// Distinguishes flows.
    port: u16,
    ecn: Ecn,
    /// A removed option leaves its bytes in the header.
    length: ByteSize,
    burst: Option<Burst>,
}

impl Packet for Frame {
    fn length(&self) -> ByteSize {
        self.length
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }
    fn destination(&self) -> u32 {
        u32::from(self.forth)
    }
    fn flow(&self) -> FlowKey {
        if self.forth {
            flow(self.port)
        } else {
            flow(self.port).reversed()
        }
    }
    fn burst(&self) -> Option<Burst> {
        self.burst
    }
    fn tcp(&self) -> Option<Segment> {
        Some(self.segment)
    }
    fn set_window(&mut self, window: u16) {
        self.segment.window = window;
    }
    fn refuse_sack(&mut self) {
        if let Options::Syn(options) = &mut self.segment.options {
            options.sack_permitted = false;
        }
    }
}

fn flow(port: u16) -> FlowKey {
    FlowKey {
        source: IpAddr::from([10, 0, 0, 1]),
        destination: IpAddr::from([10, 0, 0, 2]),
        source_port: port,
        destination_port: 80,
        protocol: FlowKey::TCP,
    }
}

/// The initial sequence number of both ends, close to the wrap.
const FIRST: Sequence = Sequence::new(u32::MAX - 2000);
const MSS: u32 = 1460;

/// A switch with an agent; port 0 leads to the sender and port 1 to the receiver, 1 Gbit/s each.
struct World {
    switch: Switch<Frame>,
    now: Time,
    scale: u8,
    /// Packets that are sent are a piece of this.
    burst: Option<Burst>,
}

impl World {
    fn new(config: AgentConfig, scale: u8) -> Self {
        let egress_port = |seed| {
            let buffer = Rule::tail_drop(ByteSize::from_bytes(150_000));
            let link = Link::new(Rate::from_gbps(1), Duration::from_micros(50));
            EgressPort::new(Queue::new([buffer], seed), link, Faults::none())
        };
        let routes = Routes::new()
            .with(0, [PortIndex::new(0)])
            .with(1, [PortIndex::new(1)]);
        let switch = Switch::new([egress_port(1), egress_port(2)], routes, 1).unwrap();
        Self {
            switch: switch.with_element(Agent::<Frame>::new(config, 5)),
            now: Time::ZERO,
            scale,
            burst: None,
        }
    }

    fn agent(&mut self) -> &mut Agent<Frame> {
        self.switch.element_mut().unwrap()
    }

    fn send(&mut self, port: u16, forth: bool, segment: Segment) {
        let ingress = PortIndex::new(u32::from(!forth));
        let frame = Frame {
            segment,
            forth,
            port,
            ecn: Ecn::NotEct,
            length: ByteSize::from_bytes(20 + u64::from(segment.payload)) + segment.header_length(),
            burst: self.burst,
        };
        self.switch.forward(self.now, ingress, frame, |_, _| {});
    }

    /// The handshake of a flow.
    fn connect(&mut self, port: u16) {
        let options = Options::Syn(SynOptions {
            maximum_segment_size: MSS as u16,
            window_scale: Some(self.scale),
            sack_permitted: true,
        });
        let syn = Segment {
            sequence: FIRST,
            flags: Flags::SYN,
            window: u16::MAX,
            options,
            ..Segment::default()
        };
        self.send(port, true, syn);
        let answer = Segment {
            acknowledgment: FIRST + 1,
            flags: Flags::SYN | Flags::ACK,
            ..syn
        };
        self.send(port, false, answer);
        let third = Segment {
            sequence: FIRST + 1,
            acknowledgment: FIRST + 1,
            flags: Flags::ACK,
            window: u16::MAX,
            ..Segment::default()
        };
        self.send(port, true, third);
    }

    /// Sends the flow's data from this byte on.
    fn data(&mut self, port: u16, from: u32) {
        let segment = Segment {
            sequence: FIRST + 1 + from,
            acknowledgment: FIRST + 1,
            payload: MSS,
            flags: Flags::ACK,
            window: 100,
            ..Segment::default()
        };
        self.send(port, true, segment);
    }

    /// The receiver acknowledges this many bytes.
    fn acknowledge(&mut self, port: u16, bytes: u32) {
        let segment = Segment {
            sequence: FIRST + 1,
            acknowledgment: FIRST + 1 + bytes,
            flags: Flags::ACK,
            window: 500,
            ..Segment::default()
        };
        self.send(port, false, segment);
    }

    fn order(&mut self, order: WindowOrder) {
        let now = self.now;
        self.agent().receive(now, order);
        self.switch.handle_timeout(now, |_, _| {});
    }

    fn allow(&mut self, port: u16, segments: u32) {
        self.order(WindowOrder::Allow {
            flow: flow(port),
            window: segments * MSS,
        });
    }

    /// Advances the time, and handles the timeouts of the elements.
    fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        while let Some(next) = self
            .switch
            .timeout_of_elements()
            .filter(|next| *next <= until)
        {
            self.now = next.max(self.now);
            self.switch.handle_timeout(self.now, |_, _| {});
        }
        self.now = until;
    }

    fn reports(&mut self) -> Vec<SwitchReport> {
        let agent = self.agent();
        std::iter::from_fn(|| agent.next_report()).collect()
    }

    /// Returns what has arrived at the receiver, or at the sender.
    fn arrived(&mut self, forth: bool) -> Vec<Segment> {
        self.pass(Duration::from_millis(10));
        let (now, port) = (self.now, PortIndex::new(u32::from(forth)));
        let frames = std::iter::from_fn(|| self.switch.poll_delivered(now, port));
        frames.map(|frame| frame.segment).collect()
    }
}

fn world() -> World {
    let mut world = World::new(AgentConfig::paper(), 7);
    world.connect(1);
    world.reports();
    world.arrived(true);
    world.arrived(false);
    world
}

#[test]
fn handshakes_and_closes_are_reported_to_the_controller() {
    let mut world = World::new(AgentConfig::paper(), 7);
    world.connect(1);
    let opened = SwitchReport::Opened {
        flow: flow(1),
        port: 1,
        age: Duration::ZERO,
        demand: None,
    };
    let accepted = SwitchReport::Accepted {
        flow: flow(1),
        segment: MSS,
        reverse_port: 0,
    };
    assert_eq!(world.reports(), [opened, accepted]);
    let fin = Segment {
        sequence: FIRST + 1,
        acknowledgment: FIRST + 1,
        flags: Flags::ACK | Flags::FIN,
        ..Segment::default()
    };
    let forged = Segment {
        sequence: FIRST + (1 << 30),
        ..fin
    };
    world.send(1, true, forged);
    assert_eq!(world.reports(), []);
    assert_eq!(world.agent().counters().forged, 1);
    world.send(1, true, fin);
    world.send(1, true, fin);
    assert_eq!(world.reports(), [SwitchReport::Closed { flow: flow(1) }]);
    // Packets pass in any case.
    assert_eq!(world.arrived(true).len(), 5);
}

#[test]
fn a_queue_is_congested_from_the_threshold_on_and_recovers_without_a_packet() {
    let mut world = world();
    for number in 0..31 {
        assert_eq!(world.reports(), [], "{number}");
        world.data(1, number * MSS);
    }
    // One is being transmitted.
    assert_eq!(world.reports(), [SwitchReport::Congested { port: 1 }]);
    world.data(1, 31 * MSS);
    assert_eq!(world.reports(), []);
    // Until 15 of the 31 waiting packets are left.
    world.pass(Duration::from_micros(16 * 12));
    assert_eq!(world.reports(), []);
    world.pass(Duration::from_micros(24));
    assert_eq!(world.reports(), [SwitchReport::Recovered { port: 1 }]);
}

#[test]
fn windows_follow_orders_until_released() {
    let mut world = world();
    world.data(1, 0);
    world.acknowledge(1, MSS);
    assert_eq!(world.arrived(false)[0].window, 500);
    world.allow(1, 2);
    world.acknowledge(1, MSS);
    // 23 units of 128 bytes, two segments and a little.
    assert_eq!(world.arrived(false)[0].window, 23);
    assert_eq!(world.agent().allowed(&flow(1)), Some(2 * MSS));
    world.order(WindowOrder::Release { flow: flow(1) });
    world.acknowledge(1, MSS);
    assert_eq!(world.arrived(false)[0].window, 500);
    assert_eq!(world.agent().counters().clamped, 1);
}

#[test]
fn a_stopped_flow_receives_a_window_update_when_allowed() {
    let mut world = world();
    world.data(1, 0);
    world.allow(1, 0);
    world.acknowledge(1, MSS);
    assert_eq!(world.arrived(false)[0].window, 0);
    world.allow(1, 3);
    let update = world.arrived(false);
    assert_eq!(update.len(), 1);
    assert_eq!(update[0].window, 35);
    assert_eq!(update[0].acknowledgment, FIRST + 1 + MSS);
    // The next change is carried by an ACK.
    world.allow(1, 5);
    assert_eq!(world.arrived(false), []);
    assert_eq!(world.agent().counters().updates, 1);
    assert!(world.switch.counters().balance(world.switch.inside()));
}

#[test]
fn a_flow_that_is_stopped_before_it_has_begun_sends_one_segment() {
    let mut world = World::new(AgentConfig::paper(), 0);
    world.connect(1);
    world.allow(1, 0);
    world.arrived(false);
    // Its SYN-ACK is lost, and retransmitted.
    world.connect(1);
    assert_eq!(world.arrived(false)[0].window, MSS as u16);
    world.data(1, 0);
    world.acknowledge(1, MSS);
    assert_eq!(world.arrived(false)[0].window, 0);
    world.allow(1, 1);
    assert_eq!(world.arrived(false)[0].window, 500);
}

#[test]
fn windows_expire_with_their_lease() {
    let mut world = world();
    world.data(1, 0);
    world.allow(1, 0);
    world.acknowledge(1, MSS);
    assert_eq!(world.arrived(false)[0].window, 0);
    world.pass(Duration::from_secs(1));
    world.order(WindowOrder::Renew);
    world.pass(Duration::from_millis(1900));
    assert_eq!(world.agent().allowed(&flow(1)), Some(0));
    world.pass(Duration::from_millis(200));
    assert_eq!(world.agent().allowed(&flow(1)), None);
    assert_eq!(world.arrived(false)[0].window, 500);
    assert_eq!(world.agent().counters().expired, 1);
}

#[test]
fn a_dropped_packet_is_retransmitted_once_it_is_the_first_missing() {
    let config = AgentConfig {
        retransmit: true,
        ..AgentConfig::paper()
    };
    let mut world = World::new(config, 7);
    world.connect(1);
    let syn = world.arrived(true)[0];
    assert!(matches!(syn.options, Options::Syn(options) if !options.sack_permitted));
    world.arrived(false);
    world.acknowledge(1, 0);
    world.reports();
    // The buffer holds 100 packets, and one more is being transmitted.
    for number in 0..103 {
        world.data(1, number * MSS);
    }
    let dropped = |number: u32| SwitchReport::Dropped {
        flow: flow(1),
        sequence: FIRST + 1 + number * MSS,
    };
    let reports = world.reports();
    assert!(
        reports.contains(&dropped(101)) && reports.contains(&dropped(102)),
        "{reports:?}"
    );
    world.arrived(false);
    for number in [101, 102] {
        world.order(WindowOrder::Retransmit {
            flow: flow(1),
            sequence: FIRST + 1 + number * MSS,
        });
    }
    world.acknowledge(1, 100 * MSS);
    assert_eq!(world.arrived(false).len(), 1);
    world.acknowledge(1, 101 * MSS);
    let acks = world.arrived(false);
    assert_eq!(acks.len(), 4);
    assert!(acks.iter().all(|ack| *ack == acks[0]), "{acks:?}");
    // The sender repairs the rest of the window by itself.
    world.acknowledge(1, 102 * MSS);
    assert_eq!(world.arrived(false).len(), 1);
    assert_eq!(world.agent().counters().repeats, 1);
}

#[test]
fn a_flow_to_a_busy_port_begins_with_one_segment() {
    let config = AgentConfig {
        single_segment_above: Some(2),
        ..AgentConfig::paper()
    };
    let mut world = World::new(config, 7);
    for port in 1..=3 {
        world.connect(port);
    }
    let windows: Vec<_> = world
        .arrived(false)
        .iter()
        .map(|answer| answer.window)
        .collect();
    assert_eq!(windows, [u16::MAX, u16::MAX, MSS as u16]);
}

#[test]
fn a_connection_without_observed_syn_passes_and_is_counted() {
    let mut world = world();
    world.allow(1, 0);
    world.data(9, 0);
    world.acknowledge(9, MSS);
    assert_eq!(world.arrived(false)[0].window, 500);
    assert_eq!(world.agent().counters().connections.unknown, 2);
    world.allow(9, 0);
    world.acknowledge(9, MSS);
    assert_eq!(world.arrived(false)[0].window, 500);
}

#[test]
fn a_new_controller_receives_all_state() {
    let mut world = world();
    world.data(1, 0);
    world.acknowledge(1, MSS);
    world.order(WindowOrder::Describe);
    let reports = world.reports();
    assert!(
        matches!(
            reports[..],
            [
                SwitchReport::Opened { .. },
                SwitchReport::Accepted { .. },
                SwitchReport::Counters { .. }
            ]
        ),
        "{reports:?}"
    );
}

#[test]
fn orders_of_the_previous_controller_expire_after_one_lease() {
    let mut world = world();
    world.connect(2);
    world.allow(1, 2);
    world.allow(2, 2);
    world.order(WindowOrder::Describe);
    world.allow(2, 3);
    // The new controller stays alive, and has ordered nothing for the first flow.
    for _ in 0..30 {
        world.pass(Duration::from_millis(100));
        world.order(WindowOrder::Renew);
    }
    assert_eq!(world.agent().allowed(&flow(1)), None);
    assert_eq!(world.agent().allowed(&flow(2)), Some(3 * MSS));
}

#[test]
fn a_new_controller_learns_the_demands_of_the_previous_one() {
    let mut world = world();
    let demand = Demand {
        size: ByteSize::from_bytes(5000),
        within: Duration::from_millis(20),
    };
    for flow in [flow(1), flow(1).reversed(), flow(99)] {
        world.order(WindowOrder::Remember { flow, demand });
    }
    world.pass(Duration::from_millis(7));
    world.order(WindowOrder::Describe);
    let reports = world.reports();
    let opened = |flow: FlowKey| {
        reports.iter().find_map(|report| match report {
            SwitchReport::Opened {
                flow: reported,
                age,
                demand,
                ..
            } if *reported == flow => Some((*age, *demand)),
            _ => None,
        })
    };
    for flow in [flow(1), flow(1).reversed()] {
        let (age, reported) = opened(flow).unwrap();
        assert_eq!(reported, Some(demand));
        assert!(age >= Duration::from_millis(7), "{age}");
    }
    assert_eq!(opened(flow(99)), None);
}

#[derive(Clone, Debug)]
enum Step {
    Connect(u16),
    Data(u16, u32),
    Acknowledge(u16, u32),
    Any(u16, bool, u8, u32, u32),
    Allow(u16, u32),
    Release(u16),
    Retransmit(u16, u32),
    Describe,
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let port = 1_u16..4;
    prop_oneof![
        port.clone().prop_map(Step::Connect),
        (port.clone(), 0_u32..300).prop_map(|(port, number)| Step::Data(port, number * MSS)),
        (port.clone(), 0_u32..300).prop_map(|(port, number)| Step::Acknowledge(port, number * MSS)),
        (
            port.clone(),
            any::<bool>(),
            any::<u8>(),
            any::<u32>(),
            any::<u32>()
        )
            .prop_map(|(port, forth, flags, one, other)| Step::Any(port, forth, flags, one, other)),
        (port.clone(), 0_u32..50).prop_map(|(port, segments)| Step::Allow(port, segments)),
        port.clone().prop_map(Step::Release),
        (port, 0_u32..300).prop_map(|(port, number)| Step::Retransmit(port, number * MSS)),
        Just(Step::Describe),
        (0_u64..3_000_000).prop_map(Step::Wait),
    ]
}

proptest! {
    /// With any input: no packet is lost or held, no window exceeds the receiver's offer, and no
    /// timeout stays due.
    #[test]
    fn packets_pass_and_windows_are_only_reduced(
        steps in prop::collection::vec(step(), 0..150),
        scale in 0_u8..=14,
        retransmit: bool,
        never_stops: bool,
    ) {
        let config = AgentConfig { retransmit, never_stops, single_segment_above: Some(1), ..AgentConfig::paper() };
        let mut world = World::new(config, scale);
        for step in steps {
            match step {
                Step::Connect(port) => world.connect(port),
                Step::Data(port, from) => world.data(port, from),
                Step::Acknowledge(port, bytes) => world.acknowledge(port, bytes),
                Step::Any(port, forth, flags, sequence, acknowledgment) => world.send(port, forth, Segment {
                    sequence: Sequence::new(sequence),
                    acknowledgment: Sequence::new(acknowledgment),
                    flags: Flags::from_bits(flags),
                    window: 500,
                    ..Segment::default()
                }),
                Step::Allow(port, segments) => world.allow(port, segments),
                Step::Release(port) => world.order(WindowOrder::Release { flow: flow(port) }),
                Step::Retransmit(port, from) => world.order(WindowOrder::Retransmit {
                    flow: flow(port),
                    sequence: FIRST + 1 + from,
                }),
                Step::Describe => world.order(WindowOrder::Describe),
                Step::Wait(micros) => world.pass(Duration::from_micros(micros)),
            }
            prop_assert!(world.switch.counters().balance(world.switch.inside()));
        }
        for segment in world.arrived(false) {
            let offered = if segment.flags.contains(Flags::SYN) { u16::MAX } else { 500 };
            prop_assert!(segment.window <= offered);
        }
    }
}

#[test]
fn the_idle_time_of_a_link_is_reported_while_something_is_in_flight() {
    let config = AgentConfig {
        never_stops: true,
        ..AgentConfig::paper()
    };
    let mut world = World::new(config, 7);
    world.connect(1);
    // Windows are in force.
    world.allow(1, 3);
    world.pass(Duration::from_millis(1));
    let idle = |world: &mut World, span| {
        world.reports();
        world.pass(span);
        let reports = world.reports();
        let queues = reports.iter().filter_map(|report| match report {
            SwitchReport::Progress { queues, .. } => Some(queues.iter().map(|queue| queue.idle)),
            _ => None,
        });
        queues.flatten().collect::<Vec<_>>()
    };
    let interval = Duration::from_millis(1);
    world.data(1, 0);
    // There is no earlier report that this one could count from.
    assert_eq!(idle(&mut world, interval), [Duration::ZERO]);
    assert_eq!(idle(&mut world, interval), [interval]);
    for number in 1..3 {
        world.data(1, number * MSS);
    }
    // Two packets of 1500 bytes at 1 Gbit/s.
    let sending = Duration::from_micros(24);
    assert_eq!(idle(&mut world, interval), [interval - sending]);
    world.acknowledge(1, 3 * MSS);
    // Nothing is in flight, which is no lack of windows, and is not counted later.
    assert_eq!(idle(&mut world, interval * 5), []);
    world.data(1, 3 * MSS);
    assert_eq!(idle(&mut world, interval), [Duration::ZERO]);
}
