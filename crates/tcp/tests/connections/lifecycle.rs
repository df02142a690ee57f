//! Opening, closing and resetting connections.

use weir_fabric::FaultSettings;
use weir_tcp::{Config, Ending, KeepAlive, State};
use weir_units::{ByteSize, Duration};
use weir_wire::Ecn;
use weir_wire::tcp::{Flags, Segment, Sequence, Timestamps};

use crate::world::{Opening, Path, Side, World};

fn world(config: &Config, opening: Opening) -> World {
    let mut world = World::new(config, "cubic", opening, &Path::default());
    world.record = true;
    world
}

fn down(down: bool) -> FaultSettings {
    FaultSettings {
        down,
        ..FaultSettings::default()
    }
}

#[test]
fn the_handshake_takes_a_round_trip_and_a_half() {
    let mut world = world(&Config::default(), Opening::Handshake);
    let start = world.now;
    assert!(world.run_until(100, |world| world.server.state() == State::Established));
    assert_eq!(world.now.since(start).as_micros(), 1_500);
    assert_eq!(world.client.state(), State::Established);
    let flags: Vec<Flags> = world
        .sent
        .iter()
        .map(|(.., sent)| sent.segment.flags)
        .collect();
    assert_eq!(flags, [Flags::SYN, Flags::SYN | Flags::ACK, Flags::ACK]);
    let rtt = world.client.snapshot().smoothed_rtt;
    assert_eq!(rtt.as_micros(), 1_000);
}

#[test]
fn a_lost_syn_is_retransmitted_with_backoff() {
    let mut world = world(&Config::default(), Opening::Handshake);
    let start = world.now;
    world.to_server.set_faults(start, down(true));
    world.run_for(Duration::from_secs(300));
    let times: Vec<u64> = world
        .sent
        .iter()
        .map(|(at, ..)| at.since(start).as_secs_f64() as u64)
        .collect();
    assert_eq!(times, [0, 1, 3, 7, 15, 31, 63]);
    assert_eq!(world.client.ending(), Some(Ending::TimedOut));
}

#[test]
fn a_lost_syn_ack_is_retransmitted() {
    let mut world = world(&Config::default(), Opening::Handshake);
    world.to_client.set_faults(world.now, down(true));
    world.run_for(Duration::from_millis(10));
    assert_eq!(world.server.state(), State::SynReceived);
    world.to_client.set_faults(world.now, down(false));
    assert!(world.run_until(100, |world| world.server.state() == State::Established));
    // Karn: the client cannot know which SYN was answered.
    world.client.write(ByteSize::from_bytes(1));
    world.run_for(Duration::from_millis(100));
    assert_eq!(world.client.remaining(), ByteSize::ZERO);
}

#[test]
fn a_half_closed_connection_carries_data_in_the_open_direction() {
    let mut world = world(&Config::default(), Opening::Established);
    world.client.close();
    world.run_for(Duration::from_millis(10));
    assert_eq!(world.client.state(), State::FinWait2);
    assert_eq!(world.server.state(), State::CloseWait);
    world.client.write(ByteSize::from_bytes(1));
    world.server.write(ByteSize::from_bytes(1_000_000));
    world.run_for(Duration::from_millis(100));
    assert_eq!(world.client.received(), ByteSize::from_bytes(1_000_000));
    assert_eq!(world.server.received(), ByteSize::ZERO);
    world.server.close();
    world.run_for(Duration::from_millis(10));
    assert_eq!(world.client.state(), State::TimeWait);
    assert_eq!(world.server.state(), State::Closed);
    world.run_for(Duration::from_secs(60));
    assert_eq!(world.client.state(), State::Closed);
    assert_eq!(world.client.ending(), Some(Ending::Closed));
}

#[test]
fn both_ends_close_simultaneously() {
    let mut world = world(&Config::default(), Opening::Established);
    world.client.close();
    world.server.close();
    world.run_for(Duration::from_micros(700));
    assert_eq!(world.client.state(), State::Closing);
    assert_eq!(world.server.state(), State::Closing);
    world.run_for(Duration::from_millis(10));
    assert_eq!(world.client.state(), State::TimeWait);
    assert_eq!(world.server.state(), State::TimeWait);
}

#[test]
fn closing_before_the_handshake_ends_delivers_all() {
    let mut world = world(&Config::default(), Opening::Handshake);
    world.client.write(ByteSize::from_bytes(5_000));
    world.client.close();
    world.run_for(Duration::from_millis(10));
    assert_eq!(world.server.received(), ByteSize::from_bytes(5_000));
    assert_eq!(world.server.state(), State::CloseWait);
}

#[test]
fn a_lost_last_acknowledgment_is_repeated_in_time_wait() {
    let mut world = world(&Config::default(), Opening::Established);
    world.client.close();
    world.run_for(Duration::from_millis(10));
    world.server.close();
    world.to_server.set_faults(world.now, down(true));
    world.run_for(Duration::from_millis(50));
    assert_eq!(world.client.state(), State::TimeWait);
    assert_eq!(world.server.state(), State::LastAck);
    world.to_server.set_faults(world.now, down(false));
    world.run_for(Duration::from_secs(2));
    assert_eq!(world.server.state(), State::Closed);
}

#[test]
fn abort_resets_the_peer() {
    for opening in [Opening::Established, Opening::Handshake] {
        let mut world = world(&Config::default(), opening);
        world.client.write_endlessly();
        world.run_for(Duration::from_millis(10));
        world.client.abort();
        world.run_for(Duration::from_millis(10));
        assert_eq!(world.client.ending(), Some(Ending::Aborted));
        assert_eq!(world.server.ending(), Some(Ending::Reset));
        assert!(world.client.timeout().is_none() && world.server.timeout().is_none());
    }
}

#[test]
fn a_closed_server_refuses_connections() {
    let mut world = world(&Config::default(), Opening::Handshake);
    world.server.close();
    world.run_for(Duration::from_millis(10));
    assert_eq!(world.client.ending(), Some(Ending::Refused));
}

/// RFC 5961: a reset is only accepted with exactly the next sequence number.
#[test]
fn blind_resets_and_syns_are_challenged() {
    let forge = |sequence: u32, flags: Flags| Segment {
        sequence: Sequence::new(sequence),
        flags,
        timestamps: Some(Timestamps {
            value: 5_000,
            echo: 0,
        }),
        ..Segment::default()
    };
    let next = 1_001;
    for (sequence, flags, survives, answered) in [
        (next, Flags::RST, false, false),
        (next + 1, Flags::RST, true, true),
        (next - 1, Flags::RST, true, false),
        (next + 100_000_000, Flags::RST, true, false),
        (next, Flags::SYN, true, true),
        (next + 5, Flags::SYN | Flags::ACK, true, true),
    ] {
        let mut world = world(&Config::default(), Opening::Established);
        let now = world.now;
        world
            .server
            .receive(now, &forge(sequence, flags), Ecn::NotEct);
        assert_eq!(
            world.server.state() == State::Established,
            survives,
            "{flags:?}"
        );
        let answer = world.server.next_segment(now);
        assert_eq!(answer.is_some(), answered, "{sequence} {flags:?}");
    }
}

/// RFC 7323, section 5: a segment with an older timestamp is dropped and answered.
#[test]
fn segments_with_old_timestamps_are_dropped() {
    let mut world = world(&Config::default(), Opening::Established);
    world.client.write(ByteSize::from_bytes(100));
    world.run_for(Duration::from_millis(10));
    let old = Segment {
        sequence: Sequence::new(1_101),
        acknowledgment: Sequence::new(1_000 + 77_778),
        payload: 10,
        flags: Flags::ACK,
        timestamps: Some(Timestamps { value: 1, echo: 0 }),
        ..Segment::default()
    };
    let now = world.now;
    world.server.receive(now, &old, Ecn::NotEct);
    assert_eq!(world.server.received(), ByteSize::from_bytes(100));
    assert!(world.server.next_segment(now).is_some());
}

#[test]
fn keep_alive_probes_are_answered_or_end_the_connection() {
    let config = Config {
        keep_alive: Some(KeepAlive {
            idle: Duration::from_secs(10),
            interval: Duration::from_secs(1),
            probes: 3,
        }),
        ..Config::default()
    };
    let mut world = world(&config, Opening::Established);
    world.run_for(Duration::from_secs(105));
    assert_eq!(world.client.state(), State::Established);
    assert!(world.client.counters().keep_alive_probes >= 5);
    let (sent, received) = (
        world.client.counters().segments_sent,
        world.client.counters().segments_received,
    );
    assert!(received >= sent - 1);
    world.to_server.set_faults(world.now, down(true));
    world.to_client.set_faults(world.now, down(true));
    let start = world.sent.len();
    world.run_for(Duration::from_secs(30));
    assert_eq!(world.client.ending(), Some(Ending::TimedOut));
    let from_client = world.sent[start..]
        .iter()
        .filter(|(_, side, _)| *side == Side::Client);
    // Three probes and a reset.
    assert_eq!(from_client.count(), 4);
}
