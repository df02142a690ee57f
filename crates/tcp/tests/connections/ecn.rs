//! ECN: negotiation, echo, and reduction.

use weir_fabric::{Probability, Rule};
use weir_tcp::{Config, DelayedAcks, EcnMode};
use weir_units::{ByteSize, Duration, Rate};
use weir_wire::Ecn;
use weir_wire::tcp::{Flags, Sequence};

use crate::world::{Opening, Path, Side, World};

fn config(ecn: EcnMode) -> Config {
    Config {
        ecn,
        delayed_acks: Some(DelayedAcks {
            quick_segments: 0,
            ..DelayedAcks::default()
        }),
        ..Config::default()
    }
}

fn path(rules: Vec<Rule>) -> Path {
    Path {
        rate: Rate::from_gbps(1),
        rules,
        ..Path::default()
    }
}

#[test]
fn codepoints_follow_the_mode() {
    for ecn in [EcnMode::Off, EcnMode::Classic, EcnMode::Dctcp] {
        let loss = Rule::drop_randomly(Probability::new(0.02).unwrap());
        let mut world = World::new(&config(ecn), "dctcp", Opening::Handshake, &path(vec![loss]));
        world.record = true;
        world.client.write(ByteSize::from_bytes(1_000_000));
        world.run_for(Duration::from_secs(10));
        assert_eq!(world.client.remaining(), ByteSize::ZERO);
        assert!(world.client.counters().retransmitted_segments > 0);
        let mut highest = None;
        for (_, side, datagram) in &world.sent {
            let (segment, capable) = (datagram.segment, datagram.ecn == Ecn::Ect0);
            let syn = segment.flags.contains(Flags::SYN);
            let negotiates = segment.flags.contains(Flags::ECE);
            match ecn {
                EcnMode::Off => assert!(!capable && !negotiates),
                EcnMode::Dctcp => assert!(capable, "{segment:?}"),
                EcnMode::Classic => {
                    let data = *side == Side::Client && segment.payload > 0;
                    let ahead =
                        highest.is_none_or(|highest: Sequence| highest.precedes(segment.end()));
                    assert_eq!(capable, data && ahead, "{segment:?}");
                    if data && ahead {
                        highest = Some(segment.end());
                    }
                }
            }
            assert!(!syn || negotiates == (ecn != EcnMode::Off));
        }
    }
}

#[test]
fn ecn_is_off_unless_both_ends_support_it() {
    let (with, without) = (config(EcnMode::Classic), config(EcnMode::Off));
    for (client, server) in [(&with, &without), (&without, &with)] {
        let isn = Sequence::new(1);
        let path = path(Vec::new());
        let mut world = World::with(client, server, "cubic", Opening::Handshake, &path, isn);
        world.record = true;
        world.client.write(ByteSize::from_bytes(100_000));
        world.run_for(Duration::from_millis(100));
        assert_eq!(world.server.received(), ByteSize::from_bytes(100_000));
        assert!(
            world
                .sent
                .iter()
                .all(|(_, _, datagram)| datagram.ecn == Ecn::NotEct)
        );
    }
}

#[test]
fn classic_echo_reduces_once_per_window_and_ends_with_cwr() {
    let mut world = World::new(
        &config(EcnMode::Classic),
        "newreno,initial_window=20",
        Opening::Established,
        &path(Vec::new()),
    );
    world.record = true;
    world.client.write_endlessly();
    world.run_for(Duration::from_micros(100));
    // The middle of the first flight is marked.
    world
        .to_server
        .set_rules([Rule::mark_randomly(Probability::ALWAYS)]);
    world.run_until(10_000, |world| world.server.counters().ce_received > 0);
    world.to_server.set_rules([]);
    world.run_for(Duration::from_micros(2_500));
    let counters = world.client.counters();
    // Two flights carry marks: the segments sent before the first echo are one window.
    assert_eq!(counters.cwr_sent, 1, "{counters:?}");
    assert!(counters.ece_received > 1);
    let cwrs: Vec<_> = world
        .sent
        .iter()
        .filter(|(_, side, datagram)| {
            *side == Side::Client && datagram.segment.flags.contains(Flags::CWR)
        })
        .collect();
    assert_eq!(cwrs.len(), 1);
    assert!(cwrs[0].2.segment.payload > 0, "CWR goes with new data");
    let echo_ended = world
        .sent
        .iter()
        .rfind(|(_, side, _)| *side == Side::Server)
        .map(|(_, _, datagram)| !datagram.segment.flags.contains(Flags::ECE));
    assert_eq!(echo_ended, Some(true));
}

/// The receiver's state machine of RFC 8257: no acknowledgment covers both marked and unmarked
/// bytes, with any delayed ACKs.
#[test]
fn dctcp_echoes_byte_by_byte() {
    for segments in [1, 2, 3] {
        let config = Config {
            delayed_acks: Some(DelayedAcks {
                segments,
                quick_segments: 0,
                ..DelayedAcks::default()
            }),
            ..config(EcnMode::Dctcp)
        };
        let mark = Rule::mark_randomly(Probability::new(0.3).unwrap());
        let mut world = World::new(&config, "dctcp", Opening::Established, &path(vec![mark]));
        world.client.write(ByteSize::from_bytes(1448 * 1_000));
        world.run_for(Duration::from_secs(20));
        assert_eq!(world.client.remaining(), ByteSize::ZERO);
        let truth = world.server.counters().ce_received * 1448;
        assert_eq!(world.client.counters().ece_acknowledged.bytes(), truth);
        assert!(truth > 200 * 1448);
    }
}
