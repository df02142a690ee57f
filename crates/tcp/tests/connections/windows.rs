//! The receive window: closing, opening, probing, and silly windows.

use weir_tcp::{Config, Ending};
use weir_units::{ByteSize, Duration, Rate};

use crate::world::{Opening, Path, Side, World};

fn slow_reader(buffer: u64) -> World {
    let reader = Config {
        receive_buffer: Some(ByteSize::from_bytes(buffer)),
        read_automatically: false,
        delayed_acks: None,
        ..Config::default()
    };
    let isn = weir_wire::tcp::Sequence::new(u32::MAX - 5_000);
    let mut world = World::with(
        &Config::default(),
        &reader,
        "cubic",
        Opening::Established,
        &Path::default(),
        isn,
    );
    world.record = true;
    world
}

#[test]
fn a_closed_window_is_probed_with_back_off_and_opens_by_an_update() {
    let mut world = slow_reader(7 * 1448);
    world.client.write(ByteSize::from_bytes(100_000));
    world.run_for(Duration::from_millis(100));
    let received = world.server.received().bytes();
    assert_eq!(received, 7 * 1448);
    let (probing, start) = (world.sent.len(), world.now);
    world.run_for(Duration::from_secs(20));
    let probes: Vec<u64> = world.sent[probing..]
        .iter()
        .filter(|(_, side, _)| *side == Side::Client)
        .map(|(at, ..)| at.since(start).as_millis() / 100)
        .collect();
    // 200 ms after the window closed, then twice as long each time.
    assert_eq!(probes, [1, 5, 13, 29, 61, 125]);
    assert_eq!(world.client.counters().window_probes, 6);
    assert_eq!(world.server.received().bytes(), received);
    // A small read does not open the window, a large one does at once.
    world.server.read(ByteSize::from_bytes(1_000));
    world.run_for(Duration::from_millis(2));
    assert_eq!(world.server.received().bytes(), received);
    world.server.read(ByteSize::from_bytes(9_000));
    world.run_for(Duration::from_millis(2));
    assert!(world.server.received().bytes() >= received + 8_000);
    while world.server.unread() > ByteSize::ZERO {
        let unread = world.server.unread();
        world.server.read(unread);
        world.run_for(Duration::from_millis(5));
    }
    assert_eq!(world.server.received().bytes(), 100_000);
    assert_eq!(world.client.counters().retransmitted_segments, 0);
}

#[test]
fn unanswered_window_probes_time_the_connection_out() {
    let mut world = slow_reader(10_000);
    world.client.write(ByteSize::from_bytes(100_000));
    world.run_for(Duration::from_millis(100));
    let faults = weir_fabric::FaultSettings {
        down: true,
        ..weir_fabric::FaultSettings::default()
    };
    world.to_client.set_faults(world.now, faults);
    world.run_for(Duration::from_secs(2_000));
    assert_eq!(world.client.ending(), Some(Ending::TimedOut));
}

/// RFC 9293, section 3.8.6.2: reading a few bytes at a time does not cause small segments.
#[test]
fn a_slow_reader_causes_no_silly_window_syndrome() {
    let mut world = slow_reader(20_000);
    world.client.write_endlessly();
    world.run_for(Duration::from_millis(20));
    let before = world.sent.len();
    for _ in 0..2_000 {
        world.server.read(ByteSize::from_bytes(100));
        world.run_for(Duration::from_micros(100));
    }
    let data: Vec<u32> = world.sent[before..]
        .iter()
        .filter(|(_, side, _)| *side == Side::Client)
        .map(|(.., datagram)| datagram.segment.payload)
        .filter(|&payload| payload > 0)
        .collect();
    assert!(data.len() > 100 && data.len() < 160, "{}", data.len());
}

/// A window below one segment still moves data.
#[test]
fn a_window_below_a_segment_works() {
    let reader = Config {
        receive_buffer: Some(ByteSize::from_bytes(500)),
        window_scale: None,
        ..Config::default()
    };
    let isn = weir_wire::tcp::Sequence::new(7);
    let config = Config::default();
    let path = Path::default();
    let mut world = World::with(&config, &reader, "cubic", Opening::Handshake, &path, isn);
    world.client.write(ByteSize::from_bytes(50_000));
    world.run_for(Duration::from_secs(10));
    assert_eq!(world.server.received(), ByteSize::from_bytes(50_000));
    assert_eq!(world.client.counters().timeouts, 0);
}

#[test]
fn the_send_buffer_limits_the_flight() {
    let config = Config {
        send_buffer: Some(ByteSize::from_bytes(20_000)),
        ..Config::default()
    };
    let path = Path {
        rate: Rate::from_gbps(10),
        ..Path::default()
    };
    let mut world = World::new(&config, "cubic", Opening::Established, &path);
    world.client.write_endlessly();
    let mut most = 0;
    world.run_until(2_000, |world| {
        most = most.max(world.client.snapshot().in_flight.bytes());
        false
    });
    assert!(most <= 20_000 && most > 18_000, "{most}");
    // The application was the limit: the window has not grown beyond its use.
    assert!(world.client.snapshot().congestion_window.bytes() < 40_000);
}
