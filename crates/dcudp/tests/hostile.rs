//! Hostile peers and dead networks: bounded work, a typed error, and an end.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "hostile/peer.rs"]
mod peer;
mod world;

use std::net::SocketAddr;

use peer::{Step, Victim};
use proptest::prelude::*;
use weir_dcudp::packet::{HEADER_LENGTH, Handshake};
use weir_dcudp::{ConnectionError, DataKind, Event, Violation};
use weir_fabric::{FaultSettings, PortChange, Probability};
use weir_units::{Duration, Rate};
use weir_wire::Ecn;
use world::{CLIENT, Plan, SERVER, World};

const DATA: u8 = 0;
const KEEP_ALIVE: u8 = 1;
const ACK: u8 = 2;
const NAK: u8 = 3;
const ACK2: u8 = 6;
const OBSERVE: u8 = 4;

fn send_packet(kind: u8, words: [u32; 5]) -> Step {
    Step::Say {
        kind,
        marks: 0,
        words,
        ce: false,
    }
}

/// Returns the error that the application receives after these steps.
fn outcome(messages: bool, steps: Vec<Step>) -> Option<ConnectionError> {
    let mut victim = Victim::new(messages);
    for step in steps {
        victim.apply(step);
    }
    victim.apply(Step::Wait(1));
    let closed = victim.events.iter().find_map(|event| match event {
        Event::Closed(error) => Some(*error),
        _ => None,
    });
    victim.assert_ends_once_peer_is_silent();
    closed.flatten()
}

#[test]
fn protocol_violations_close_the_connection() {
    let cases = [
        (
            vec![send_packet(ACK, [5, 64, 1000, 0, 0])],
            Violation::AckOfUnsent,
        ),
        (
            vec![send_packet(KEEP_ALIVE, [5, 64, 0, 0, 0])],
            Violation::AckOfUnsent,
        ),
        (
            vec![Step::Write(500), send_packet(NAK, [0, 3, 0, 0, 0])],
            Violation::NakOfUnsent,
        ),
        (
            vec![send_packet(ACK2, [9, 0, 0, 0, 0])],
            Violation::Ack2OfUnsent,
        ),
        (
            vec![send_packet(DATA, [64, 1, 0, 0, 9])],
            Violation::FlowControl,
        ),
        (
            vec![send_packet(KEEP_ALIVE, [0, 64, 65, 0, 0])],
            Violation::FlowControl,
        ),
        (
            vec![send_packet(DATA, [0, 1, 0, 0, 1499])],
            Violation::PacketTooLarge,
        ),
        (
            vec![send_packet(DATA, [0, 1, 0, 0, 0])],
            Violation::NotAStream,
        ),
        // An end at the second packet, with data behind it.
        (
            vec![
                send_packet(DATA, [1, 0, 0, 0, 0]),
                send_packet(DATA, [2, 1, 0, 0, 9]),
            ],
            Violation::DataAfterEnd,
        ),
        (
            vec![
                send_packet(DATA, [2, 1, 0, 0, 9]),
                send_packet(DATA, [1, 0, 0, 0, 0]),
            ],
            Violation::DataAfterEnd,
        ),
    ];
    for (steps, violation) in cases {
        let description = format!("{steps:?}");
        let error = outcome(false, steps);
        assert_eq!(error, Some(violation.into()), "{description}");
    }
}

#[test]
fn inconsistent_messages_close_the_connection() {
    const LAST: u32 = 2;
    const FIRST: u32 = 1;
    const IN_ORDER: u32 = 4;
    for steps in [
        // A middle without a first; a first within a message; an end within a message.
        vec![send_packet(DATA, [0, IN_ORDER | LAST, 0, 0, 9])],
        vec![
            send_packet(DATA, [0, IN_ORDER | FIRST, 0, 0, 9]),
            send_packet(DATA, [1, IN_ORDER | FIRST, 1, 0, 9]),
        ],
        vec![
            send_packet(DATA, [0, IN_ORDER | FIRST, 0, 0, 9]),
            send_packet(DATA, [1, IN_ORDER, 0, 0, 0]),
        ],
        // Two firsts of one unordered message, and a number that no correct peer has reached.
        vec![
            send_packet(DATA, [5, FIRST, 3, 0, 9]),
            send_packet(DATA, [7, FIRST, 3, 0, 9]),
        ],
        vec![send_packet(DATA, [5, FIRST | LAST, 900, 0, 9])],
        // A message larger than any buffer.
        (0..64)
            .map(|index| send_packet(DATA, [index, IN_ORDER | u32::from(index == 0), 0, 0, 9]))
            .collect(),
    ] {
        let description = format!("{steps:?}");
        let error = outcome(true, steps);
        assert_eq!(error, Some(Violation::Message.into()), "{description}");
    }
}

#[test]
fn a_peer_that_flaps_between_modes_is_disconnected() {
    let steps = (0..1000).map(|index| Step::Say {
        kind: ACK,
        marks: if index % 2 == 0 { OBSERVE } else { 0 },
        words: [0, 64, 1000, 0, 0],
        ce: false,
    });
    let error = outcome(false, steps.collect());
    assert_eq!(error, Some(Violation::ModeFlapping.into()));
}

#[test]
fn datagrams_from_another_address_are_ignored() {
    let mut world = World::new(Plan::default());
    world.hosts[CLIENT].flow.to_send = 1_000_000;
    world.service(CLIENT);
    // Every datagram arrives twice: first from another address.
    world.run_until(Duration::from_secs(60), |world| {
        let source = SocketAddr::from(([10, 0, 0, 66], 9000));
        if let Some((_, connection)) = &world.hosts[SERVER].connection
            && connection.is_established()
        {
            let socket = [0x80, 5, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
            let mut bytes = socket.to_vec();
            bytes.extend_from_slice(&[0; 16]);
            world.inject(SERVER, source, Ecn::Ect0, &bytes);
        }
        world.hosts[SERVER].flow.received == 1_000_000
    });
    assert_eq!(world.hosts[SERVER].flow.received, 1_000_000);
    assert_eq!(world.hosts[SERVER].closed(), None);
}

#[test]
fn packets_rewritten_to_another_source_address_are_rejected() {
    let mut world = World::new(Plan::default());
    let other = SocketAddr::from(([10, 0, 0, 66], 9000));
    world.tap = Some(Box::new(move |_, host, datagram| {
        if host == SERVER && world::kind_of(&datagram.bytes) == "data" {
            datagram.source = other;
        }
        true
    }));
    world.hosts[CLIENT].flow.to_send = 100_000;
    world.service(CLIENT);
    world.run_until(Duration::from_secs(60), |world| {
        world.hosts[CLIENT].closed().is_some()
    });
    let error = world.hosts[CLIENT].closed().flatten();
    assert!(
        matches!(error, Some(ConnectionError::Stalled(_))),
        "{error:?}"
    );
    assert!(world.hosts[SERVER].connection().stats().foreign > 10);
}

#[test]
fn cookieless_requests_keep_no_state_and_are_not_amplified() {
    let mut world = World::new(Plan::default());
    // Requests with spoofed sources: the client's own request with other addresses and socket ids.
    let mut request = Vec::new();
    let _ = world.hosts[CLIENT]
        .connection()
        .poll_transmit(world.now, &mut request, 1);
    world.tap = None;
    let mut bytes = vec![0; HEADER_LENGTH + Handshake::LENGTH];
    bytes[0] = 0x80;
    bytes[HEADER_LENGTH + 3] = 1;
    bytes[HEADER_LENGTH + 5] = 1;
    for spoofed in 0..10_000_u32 {
        let source = SocketAddr::from((spoofed.to_be_bytes(), 80));
        bytes[HEADER_LENGTH + 24..HEADER_LENGTH + 28].copy_from_slice(&(spoofed + 1).to_be_bytes());
        world.inject(SERVER, source, Ecn::NotEct, &bytes);
    }
    assert_eq!(world.hosts[SERVER].endpoint.connections(), 0);
    assert_eq!(world.hosts[SERVER].endpoint.counters().challenges, 10_000);
}

#[test]
fn an_unanswered_handshake_times_out() {
    let faults = FaultSettings {
        down: true,
        ..FaultSettings::default()
    };
    let mut world = World::new(Plan {
        faults,
        ..Plan::default()
    });
    world.run(Duration::from_secs(60));
    let error = world.hosts[CLIENT].closed().flatten();
    let timeout = Duration::from_secs(3);
    assert_eq!(error, Some(ConnectionError::HandshakeTimeout(timeout)));
}

#[test]
fn a_data_kind_mismatch_is_refused() {
    let mut plan = Plan::default();
    plan.server.data = DataKind::Messages;
    let mut world = World::new(plan);
    world.run_until(Duration::from_secs(60), |world| {
        world.hosts[CLIENT].closed().is_some()
    });
    let error = world.hosts[CLIENT].closed().flatten();
    assert!(
        matches!(error, Some(ConnectionError::Refused(_))),
        "{error:?}"
    );
}

fn word() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0_u32..8, 4 => 0_u32..80, 1 => any::<u32>(), 1 => Just(u32::MAX)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (any::<u8>(), any::<u8>(), [word(), word(), word(), word(), word()], any::<bool>())
            .prop_map(|(kind, marks, words, ce)| Step::Say { kind, marks, words, ce }),
        1 => prop::collection::vec(any::<u8>(), 0..100).prop_map(Step::Bytes),
        4 => (0_u32..5000).prop_map(Step::Wait),
        3 => (0_u16..20_000).prop_map(Step::Write),
        1 => Just(Step::Close),
    ]
}

/// A network fault: time, port and change.
fn fault() -> impl Strategy<Value = (u64, usize, PortChange)> {
    let chance = |value: f64| Probability::new(value).unwrap();
    let change = prop_oneof![
        3 => any::<bool>().prop_map(PortChange::Down),
        3 => (0.0..1.0_f64).prop_map(move |value| PortChange::Loss(chance(value))),
        1 => (0.0..0.5_f64).prop_map(move |value| PortChange::Duplication(chance(value))),
        1 => (0.0..0.5_f64).prop_map(move |value| PortChange::Corruption(chance(value))),
        1 => (0_u64..20_000).prop_map(|micros| PortChange::Jitter(Duration::from_micros(micros))),
        1 => (1_u64..2000).prop_map(|mbps| PortChange::Rate(Rate::from_mbps(mbps))),
    ];
    (0_u64..30_000, 0_usize..2, change)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_hostile_peer_causes_bounded_work_and_the_connection_ends(
        messages: bool,
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut victim = Victim::new(messages);
        for step in steps {
            victim.apply(step);
        }
        victim.assert_ends_once_peer_is_silent();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn both_ends_terminate_within_their_timers_on_a_faulty_network(
        seed: u64,
        messages: bool,
        amounts in (0_u64..300_000, 0_u64..300_000),
        faults in prop::collection::vec(fault(), 0..8),
        close_after in prop::option::of(0_u64..40_000),
        congested: bool,
    ) {
        let plan = Plan {
            seed,
            rules: if congested {
                vec![weir_fabric::Rule::mark_above(weir_units::ByteSize::from_bytes(3_000))]
            } else {
                Vec::new()
            },
            ..Plan::default()
        };
        let plan = if messages { world::messages(plan) } else { plan };
        let plan = plan.both(|config| config.quit.window = 2);
        let scale = if messages { 2000 } else { 1 };
        let mut world = World::new(plan);
        let begun = world.now;
        for (host, amount) in world.hosts.iter_mut().zip([amounts.0, amounts.1]) {
            host.flow.to_send = amount / scale;
            host.flow.finishes = true;
        }
        world.service(CLIENT);
        let mut faults = faults;
        faults.sort_by_key(|(micros, ..)| *micros);
        for (micros, pipe, change) in faults {
            let at = begun + Duration::from_micros(micros);
            world.run_until(at - world.now, |_| false);
            let now = world.now;
            world.pipes[pipe].apply(now, change);
        }
        if let Some(micros) = close_after {
            let at = begun + Duration::from_micros(micros);
            world.run_until(at - world.now, |_| false);
            let now = world.now;
            if world.hosts[CLIENT].connection.is_some() {
                world.hosts[CLIENT].connection().close(now);
                // The closing application has no more to write.
                let flow = &mut world.hosts[CLIENT].flow;
                flow.to_send = flow.sent;
                world.service(CLIENT);
            }
        }
        // A stall is followed by an idle timeout at the latest, and that by the linger time.
        world.run(Duration::from_secs(120));
        for (index, host) in world.hosts.iter_mut().enumerate() {
            let closed = host.events.iter().filter(|event| matches!(event, Event::Closed(_)));
            if host.connection.is_some() {
                prop_assert_eq!(closed.count(), 1, "{}: {:?}", index, host.events);
                prop_assert!(host.connection().is_drained());
            }
        }
        // Data closed in order at the sender has been received completely.
        if world.hosts[CLIENT].closed() == Some(None) && world.hosts[CLIENT].flow.finishes {
            let sent = world.hosts[CLIENT].flow.sent;
            prop_assert_eq!(world.hosts[SERVER].flow.received, sent);
        }
    }
}
