//! Exact data transfer under any network faults and mode switches.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod world;

use weir_dcudp::packet::Packet;
use weir_dcudp::{ConnectionError, Event, Feedback, Mode, SequenceNumber, TransportConfig};
use weir_fabric::{FaultSettings, Probability, Reordering, Rule};
use weir_units::{ByteSize, Duration, Rate};
use world::{CLIENT, Plan, SERVER, World, decode, messages};

const MINUTE: Duration = Duration::from_secs(60);

fn probability(value: f64) -> Probability {
    Probability::new(value).unwrap()
}

/// All faults at once, with this loss rate.
fn faults(loss: f64) -> FaultSettings {
    FaultSettings {
        loss: probability(loss),
        duplication: probability(0.02),
        corruption: probability(0.02),
        reordering: Reordering {
            probability: probability(0.05),
            delay: Duration::from_micros(120),
        },
        jitter: Duration::from_micros(20),
        ..FaultSettings::default()
    }
}

/// Both ends send these amounts, finish, and close.
fn exchange(plan: Plan, amounts: [u64; 2]) -> World {
    let description = format!("{plan:?}");
    let mut world = World::new(plan);
    for (host, amount) in world.hosts.iter_mut().zip(amounts) {
        host.flow.to_send = amount;
        host.flow.finishes = true;
    }
    world.service(CLIENT);
    world.run(MINUTE * 10);
    for (index, host) in world.hosts.iter_mut().enumerate() {
        let stats = host
            .connection
            .as_ref()
            .map(|(_, connection)| connection.stats());
        let what = format!("{index}: {:?} {stats:?} {description}", host.events);
        assert_eq!(host.closed(), Some(None), "{what}");
        assert_eq!(host.flow.received, amounts[1 - index], "{what}");
        assert!(host.flow.ended, "{what}");
        assert!(host.connection().is_drained(), "{what}");
        assert_eq!(host.endpoint.connections(), 0, "{what}");
    }
    world
}

#[test]
fn no_acks_are_sent_on_a_clean_network() {
    let mut world = exchange(Plan::default(), [4_000_000, 0]);
    let stats = world.hosts[CLIENT].connection().stats();
    let kinds = &world.hosts[CLIENT].kinds;
    assert_eq!((stats.flow.retransmits, stats.mode), (0, Mode::Udp));
    assert!(
        !kinds.contains_key("ack") && !kinds.contains_key("nak"),
        "{kinds:?}"
    );
    // Few requests: one per quarter of the buffer, and one for the tail.
    assert!(stats.requests_sent < 40, "{stats:?}");
    // 4 MB at 1 Gbit/s.
    let spent = world.now.as_nanos() - 1_000_000_000;
    assert!(spent < 45_000_000 + 500_000_000, "{spent}");
}

#[test]
fn batched_transfers_complete() {
    let plan = Plan {
        batch: 64,
        ..Plan::default()
    };
    exchange(plan, [3_000_000, 3_000_000]);
}

#[test]
fn a_stream_survives_loss_reordering_duplication_and_corruption() {
    for (seed, loss) in [(1, 0.01), (2, 0.05), (3, 0.2)] {
        let plan = Plan {
            seed,
            faults: faults(loss),
            ..Plan::default()
        };
        let mut world = exchange(plan, [3_000_000, 1_000_000]);
        let stats = world.hosts[CLIENT].connection().stats();
        assert!(stats.flow.retransmits > 10);
        let of_each = stats.flow.retransmitted / stats.flow.retransmits;
        assert!(!of_each.is_zero() && of_each < stats.packet_size);
    }
}

#[test]
fn messages_survive_loss_and_some_arrive_out_of_order() {
    for (seed, loss) in [(1, 0.0), (2, 0.05), (3, 0.2)] {
        let plan = Plan {
            seed,
            faults: faults(loss),
            ..Plan::default()
        };
        let plan = messages(plan).both(|config| config.packet_size = ByteSize::from_bytes(500));
        let world = exchange(plan, [3_000, 500]);
        assert!(world.hosts[SERVER].flow.overtaken > 0);
    }
}

/// A switch that marks from the first packet on, as the paper's does.
fn marking(packets: u64) -> Vec<Rule> {
    let size = |packets| ByteSize::from_bytes(1500 * packets);
    vec![Rule::mark_above(size(packets)), Rule::tail_drop(size(200))]
}

#[test]
fn ce_marks_enter_congestion_mode_and_their_end_leaves_it() {
    for feedback in [Feedback::Echo, Feedback::Counts] {
        // Faster than the link: the queue grows until packets are marked.
        let plan = Plan {
            rules: marking(15),
            rate: Rate::from_mbps(500),
            ..Plan::default()
        };
        let plan = plan.both(|config| {
            config.feedback = feedback;
            config.congestion = "dcudp,capacity=500Mbps".parse().unwrap();
        });
        let mut world = exchange(plan, [20_000_000, 0]);
        let events = &world.hosts[CLIENT].events;
        assert!(
            events.contains(&Event::Mode(Mode::Congestion)),
            "{events:?}"
        );
        assert!(events.contains(&Event::Mode(Mode::Udp)), "{events:?}");
        let kinds = &world.hosts[SERVER].kinds;
        assert!(kinds["ack2"] > 10 && kinds["obs-change"] > 0, "{kinds:?}");
        // A marked packet has been delivered.
        assert!(world.hosts[SERVER].connection().stats().ce_marked > 0);
    }
}

#[test]
fn modes_switch_under_loss_and_reordering() {
    for seed in 1..=6 {
        let plan = Plan {
            seed,
            rules: marking(8),
            rate: Rate::from_mbps(400),
            faults: faults(0.1),
            ..Plan::default()
        };
        let plan = plan.both(|config| {
            config.quit.window = 3;
            config.quit.rtt_tolerance = Duration::from_micros(200);
            config.congestion = "dcudp,capacity=400Mbps".parse().unwrap();
        });
        let mut world = exchange(plan, [3_000_000, 1_500_000]);
        let stats = world.hosts[CLIENT].connection().stats();
        assert!(stats.mode_switches >= 2, "{stats:?}");
    }
}

#[test]
fn other_algorithms_drive_congestion_mode() {
    for algorithm in ["dctcp", "newreno", "cubic", "swift", "bbr", "bbr3"] {
        let plan = Plan {
            rules: marking(15),
            rate: Rate::from_mbps(500),
            ..Plan::default()
        };
        let plan = plan.both(|config| {
            config.congestion = algorithm.parse().unwrap();
            config.feedback = Feedback::Counts;
        });
        exchange(plan, [3_000_000, 0]);
    }
}

#[test]
fn sequence_numbers_wrap() {
    for is_message in [false, true] {
        let plan = Plan {
            faults: faults(0.1),
            rules: marking(8),
            ..Plan::default()
        };
        let plan = plan.both(|config| {
            config.first_sequence = Some(SequenceNumber::new(0x7fff_ffff - 1_000));
        });
        if is_message {
            exchange(messages(plan), [2_000, 2_000]);
        } else {
            exchange(plan, [4_000_000, 4_000_000]);
        }
    }
}

#[test]
fn a_lost_tail_is_retransmitted_promptly() {
    // Ten packets; the last three are lost the first time.
    let mut world = World::new(Plan::default());
    let mut seen = 0;
    world.tap = Some(Box::new(move |_, host, datagram| {
        let is_data = host == SERVER && matches!(decode(&datagram.bytes), Packet::Data(..));
        seen += u64::from(is_data);
        !(is_data && (8..=10).contains(&seen))
    }));
    world.hosts[CLIENT].flow.to_send = 10 * 1456;
    world.service(CLIENT);
    let begun = world.now;
    let came = world.run_until(MINUTE, |world| {
        world.hosts[SERVER].flow.received == 10 * 1456
    });
    assert!(came);
    // Handshake, data, request, NAK, repair: no millisecond timer is involved.
    assert!(
        (world.now - begun) < Duration::from_millis(1),
        "{}",
        world.now - begun
    );
    let freed = world.run_until(MINUTE, |world| {
        let connection = world.hosts[CLIENT].connection();
        connection.stats().unacknowledged.is_zero()
    });
    assert!(freed && world.hosts[CLIENT].kinds["nak"] == 1);
}

#[test]
fn a_stalled_reader_blocks_the_sender_until_it_reads_again() {
    let plan = Plan::default().both(|config| config.receive_window = 64);
    let mut world = World::new(plan);
    world.hosts[SERVER].flow.reads = false;
    world.hosts[CLIENT].flow.to_send = 1_000_000;
    world.service(CLIENT);
    world.run_until(Duration::from_secs(30), |_| false);
    let sent = world.hosts[CLIENT].connection().stats();
    assert_eq!(sent.data_packets_sent, 64, "{sent:?}");
    assert_eq!(world.hosts[CLIENT].closed(), None);
    world.hosts[SERVER].flow.reads = true;
    world.service(SERVER);
    let came = world.run_until(MINUTE, |world| {
        world.hosts[SERVER].flow.received == 1_000_000
    });
    assert!(came);
}

#[test]
fn an_orderly_close_delivers_all_data_first() {
    let plan = Plan {
        faults: faults(0.1),
        ..Plan::default()
    };
    let mut world = World::new(plan);
    world.hosts[CLIENT].flow.to_send = 500_000;
    world.service(CLIENT);
    world.run_until(MINUTE, |world| world.hosts[CLIENT].flow.sent == 500_000);
    let now = world.now;
    world.hosts[CLIENT].connection().close(now);
    world.service(CLIENT);
    world.run(MINUTE);
    assert_eq!(world.hosts[SERVER].flow.received, 500_000);
    assert!(world.hosts[SERVER].flow.ended);
    assert_eq!(world.hosts[CLIENT].closed(), Some(None));
    assert_eq!(world.hosts[SERVER].closed(), Some(None));
}

#[test]
fn an_abort_reports_its_code_to_the_peer() {
    let mut world = World::new(Plan::default());
    world.hosts[CLIENT].flow.to_send = 5_000_000;
    world.service(CLIENT);
    world.run_until(MINUTE, |world| world.hosts[SERVER].flow.received > 0);
    let now = world.now;
    world.hosts[SERVER].connection().abort(now, 77);
    world.service(SERVER);
    world.run(MINUTE);
    let error = Some(Some(ConnectionError::PeerAborted(77)));
    assert_eq!(world.hosts[CLIENT].closed(), error);
    let ours = Some(Some(ConnectionError::Aborted));
    assert_eq!(world.hosts[SERVER].closed(), ours);
}

#[test]
fn a_close_with_undelivered_data_is_reported_to_the_sender() {
    let mut world = World::new(Plan::default());
    world.hosts[SERVER].flow.to_send = 50_000_000;
    world.service(CLIENT);
    world.run_until(MINUTE, |world| world.hosts[CLIENT].flow.received > 0);
    let now = world.now;
    world.hosts[CLIENT].connection().close(now);
    world.service(CLIENT);
    world.run(MINUTE);
    let error = Some(Some(ConnectionError::PeerClosed));
    assert_eq!(world.hosts[SERVER].closed(), error);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let digest = || {
        let plan = Plan {
            seed: 9,
            faults: faults(0.1),
            rules: marking(8),
            ..Plan::default()
        };
        let mut world = exchange(plan, [1_000_000, 300_000]);
        let now = world.now;
        let stats = world.hosts.each_mut().map(|host| host.connection().stats());
        (now, stats)
    };
    assert_eq!(digest(), digest());
}

/// Every run uses the default size; `make long` runs the ignored test.
fn many_packets(packets: u64) {
    let small = ByteSize::from_bytes(128);
    for (seed, loss) in [(1, 0.2), (2, 0.05)] {
        let plan = Plan {
            seed,
            faults: faults(loss),
            rules: vec![
                Rule::mark_above(ByteSize::from_bytes(156 * 12)),
                Rule::tail_drop(ByteSize::from_bytes(156 * 400)),
            ],
            rate: Rate::from_mbps(800),
            ..Plan::default()
        };
        let plan = plan.both(|config| {
            config.packet_size = small;
            config.first_sequence = Some(SequenceNumber::new(0x7fff_ffff - 10_000));
            config.quit.window = 4;
            config.quit.rtt_tolerance = Duration::from_micros(100);
            config.congestion = "dcudp,capacity=800Mbps".parse().unwrap();
        });
        let mut world = exchange(plan, [packets / 2 * 112, 0]);
        let stats = world.hosts[CLIENT].connection().stats();
        assert!(stats.data_packets_sent >= packets / 2, "{stats:?}");
        assert!(stats.mode_switches >= 2, "{stats:?}");
    }
}

#[test]
fn sixty_thousand_packets_are_transferred() {
    many_packets(60_000);
}

#[test]
#[ignore = "ten million packets take minutes"]
fn ten_million_packets_are_transferred() {
    many_packets(10_000_000);
}

#[test]
fn an_idle_connection_stays_open() {
    let mut world = World::new(Plan::default());
    world.run_until(MINUTE, |_| false);
    assert_eq!(world.hosts[CLIENT].closed(), None);
    assert_eq!(world.hosts[SERVER].closed(), None);
    let keep_alives = world.hosts[CLIENT].kinds["keep-alive"];
    assert!((55..=65).contains(&keep_alives), "{keep_alives}");
}

/// Early data follow a request before anything has measured the round trip, whose handshake packets a longer one
/// repeats. That is no silence, and does not end slow start.
#[test]
fn a_long_round_trip_does_not_end_slow_start() {
    for millis in [1, 4, 5, 6, 9, 10, 11, 15, 20, 40, 100] {
        let shared = |config: &mut TransportConfig| {
            *config = TransportConfig::shared(Rate::from_gbps(1));
        };
        let delay = Duration::from_millis(millis);
        let plan = Plan {
            delay,
            ..Plan::default()
        };
        let mut world = World::new(plan.both(shared));
        world.hosts[CLIENT].flow.to_send = 2_000_000;
        world.hosts[CLIENT].flow.finishes = true;
        world.service(CLIENT);
        // Two for the handshake, and eight in which ten packets double to 2,560; Reno needs 44 for as many.
        let limit = delay * 2 * 14 + Duration::from_millis(40);
        let is_done = world.run_until(limit, |world| {
            world.hosts[SERVER].flow.received == 2_000_000
        });
        let host = &mut world.hosts[SERVER];
        assert!(is_done, "{delay:?}: {}", host.flow.received);
    }
}
