//! Byte streams through a TCon are exact, whatever happens to the packets.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod replay;
mod world;

use proptest::prelude::*;
use weir_fabric::{ConnectionLimits, FaultSettings, Probability, Reordering};
use weir_tcon::{FlowPolicy, Limits};
use weir_tcp::{Config, EcnMode, State};
use weir_units::{ByteSize, Duration, Rate, Time};

use world::{Setup, World};

fn bytes(count: u64) -> ByteSize {
    ByteSize::from_bytes(count)
}

fn setup(congestion: &str) -> Setup {
    Setup {
        config: Config::default(),
        server_ecn: EcnMode::Off,
        sender: "cubic",
        policy: FlowPolicy::new(congestion.parse().unwrap()),
        both: false,
        limits: Limits::default(),
        link: (Rate::from_mbps(50), Duration::from_millis(5), ByteSize::MAX),
        back: None,
        wide: FaultSettings::default(),
        near: FaultSettings::default(),
        isn: 1000,
        seed: 1,
        echo_every: None,
    }
}

fn loss(probability: f64) -> FaultSettings {
    FaultSettings {
        loss: Probability::new(probability).unwrap(),
        ..FaultSettings::default()
    }
}

/// The server sends `down` bytes and the client `up` bytes; both close, and both have received all of
/// it.
fn exchange(setup: &Setup, down: u64, up: u64) -> World {
    let mut world = World::new(setup);
    let open = |world: &World| world.server.state() == State::Established;
    assert!(world.run_until(100_000, open));
    world.server.write(bytes(down));
    world.server.close();
    world.client.write(bytes(up));
    world.client.close();
    let complete = |world: &World| {
        world.client.received() == bytes(down)
            && world.server.received() == bytes(up)
            && [&world.client, &world.server]
                .iter()
                .all(|end| matches!(end.state(), State::Closed | State::TimeWait))
    };
    let done = world.run_until(3_000_000, complete);
    let ends = [&world.client, &world.server].map(|end| {
        format!(
            "{:?} {:?} {} {:?} {:?}",
            end.state(),
            end.ending(),
            end.received(),
            end.snapshot(),
            end.counters()
        )
    });
    let flows: Vec<_> = world.tcon().flows(world.now).collect();
    assert!(
        done,
        "at {}: {ends:#?} {flows:#?} {:?}",
        world.now,
        world.tcon().counters()
    );
    assert!(world.switch.counters().balance(world.switch.inside()));
    world
}

#[test]
fn losses_are_repaired_and_hidden_from_the_sender() {
    let mut setup = setup("bbr");
    setup.wide = loss(0.02);
    let world = exchange(&setup, 3_000_000, 0);
    let counters = world.tcon().counters();
    assert!(counters.retransmissions > 20, "{counters:?}");
    assert!(
        world.server.counters().retransmitted_segments <= 2,
        "{:?}",
        world.server.counters()
    );
    assert!(counters.lowered > 100 && counters.withheld > 0);
}

#[test]
fn losses_are_repaired_without_sack() {
    let mut setup = setup("cubic");
    setup.config.sack = false;
    setup.wide = loss(0.01);
    let world = exchange(&setup, 1_000_000, 0);
    assert!(world.tcon().counters().retransmissions > 5);
    assert!(
        world.server.counters().retransmitted_segments <= 4,
        "{:?}",
        world.server.counters()
    );
}

#[test]
fn dctcp_needs_ecn_only_at_the_receiver() {
    let mut setup = setup("dctcp");
    setup.config.ecn = EcnMode::Classic;
    let mut world = World::new(&setup);
    world.record = true;
    let open = |world: &World| world.server.state() == State::Established;
    assert!(world.run_until(100_000, open));
    world.server.write(bytes(200_000));
    assert!(world.run_until(100_000, |world| world.client.received() == bytes(200_000)));
    use weir_wire::{Ecn, tcp::Flags};
    let data = world
        .to_client
        .iter()
        .filter(|packet| packet.segment.payload > 0);
    assert!(data.clone().all(|packet| packet.ecn == Ecn::Ect0));
    assert!(
        data.clone()
            .all(|packet| packet.segment.flags.contains(Flags::CWR))
    );
    // The server sees none of it.
    let echo = Flags::ECE | Flags::CWR;
    assert!(
        world
            .to_server
            .iter()
            .all(|packet| !packet.segment.flags.intersects(echo))
    );
}

/// From the first echo on, and until no mark has been echoed for many round trips.
#[test]
fn segments_leave_apart_while_marks_are_echoed() {
    let mut setup = setup("dctcp,max_window=60KB");
    setup.config.ecn = EcnMode::Classic;
    setup.echo_every = Some(9_001);
    let mut world = World::new(&setup);
    world.record = true;
    let open = |world: &World| world.server.state() == State::Established;
    assert!(world.run_until(100_000, open));
    world.server.write(bytes(20_000_000));
    assert!(world.run_until(1_000_000, |world| world.client.received()
        == bytes(20_000_000)));
    let data = world
        .to_client
        .iter()
        .filter(|packet| packet.segment.payload > 0);
    let data: Vec<_> = data.map(|packet| packet.apart).collect();
    let runs: Vec<_> = data.chunk_by(|one, other| one == other).collect();
    let runs: Vec<_> = runs.iter().map(|run| (run[0], run.len())).collect();
    assert!(
        matches!(
            runs[..],
            [(false, 1_000..), (true, 1_000..), (false, 1_000..), ..]
        ),
        "{runs:?}"
    );
}

/// Its own window is smaller than BBR's in start-up, but larger than the path.
#[test]
fn bbr_detects_the_full_path_of_a_sender_with_a_smaller_window() {
    let mut setup = setup("bbr");
    setup.sender = "cubic,max_window=180KB";
    setup.link = (
        Rate::from_mbps(5),
        Duration::from_micros(79_900),
        bytes(128_000),
    );
    let mut world = World::new(&setup);
    let open = |world: &World| world.server.state() == State::Established;
    assert!(world.run_until(100_000, open));
    world.server.write(bytes(10_000_000));
    let until = world.now + Duration::from_secs(5);
    assert!(world.run_until(100_000, |world| world.now >= until));
    let data = world
        .tcon()
        .flows(world.now)
        .find(|flow| flow.flow.source_port == 80);
    // In start-up it is 2.89 times the path's rate, afterwards 1.25 times at most.
    let rate = data.unwrap().pacing_rate.unwrap();
    assert!(rate < Rate::from_mbps(7), "{rate}");
}

/// The ends negotiate ECN themselves, and nothing needs the fraction of marked bytes.
#[test]
fn cwr_answers_an_echo_once_per_round_trip() {
    let mut setup = setup("cubic");
    setup.config.ecn = EcnMode::Classic;
    setup.server_ecn = EcnMode::Classic;
    setup.echo_every = Some(400);
    let mut world = World::new(&setup);
    world.record = true;
    let open = |world: &World| world.server.state() == State::Established;
    assert!(world.run_until(100_000, open));
    world.server.write(bytes(5_000_000));
    assert!(world.run_until(1_000_000, |world| world.client.received()
        == bytes(5_000_000)));
    use weir_wire::tcp::Flags;
    let with = |packets: &[world::Datagram], flag| {
        let has = |packet: &&world::Datagram| {
            packet.segment.payload > 0 && packet.segment.flags.contains(flag)
        };
        packets.iter().filter(has).count() as u64
    };
    let (answers, echoes) = (
        with(&world.to_client, Flags::CWR),
        world.tcon().counters().echoes,
    );
    assert!(answers > 3 && answers <= echoes, "{answers} of {echoes}");
    assert_eq!(
        world.server.counters().cwr_sent,
        0,
        "the server sees no echo"
    );
    assert!(world.to_client.iter().all(|packet| !packet.apart));
}

#[test]
fn the_sender_retransmits_segments_beyond_the_memory_limit() {
    let mut setup = setup("bbr");
    setup.wide = loss(0.02);
    setup.limits.memory = bytes(6_000);
    let world = exchange(&setup, 1_000_000, 0);
    assert!(world.tcon().counters().unkept > 100);
    assert!(world.server.counters().retransmitted_segments > 2);
    assert!(world.tcon().most_kept().size <= bytes(6_000));
}

#[test]
fn unknown_connections_pass_unchanged() {
    let mut setup = setup("bbr");
    setup.limits.connections = ConnectionLimits {
        connections: 0,
        ..ConnectionLimits::default()
    };
    setup.wide = loss(0.01);
    let world = exchange(&setup, 300_000, 1_000);
    assert_eq!(world.tcon().counters().flows, 0);
    assert!(world.tcon().connections().unknown > 200);
}

/// At 5 % loss, repairs of the oldest segment are lost too. Each RTO counts from the retransmission,
/// not from the last acknowledgment: counted from that there are 16 RTOs here.
#[test]
fn each_rto_counts_from_the_retransmission() {
    let timeouts = (0..8).map(|file| {
        let mut setup = setup("bbr");
        setup.link = (
            Rate::from_mbps(5),
            Duration::from_micros(79_900),
            bytes(128_000),
        );
        (setup.seed, setup.wide) = (file * 100, loss(0.05));
        setup.back = Some(FaultSettings::default());
        exchange(&setup, 3_000_000, 0).tcon().counters().timeouts
    });
    let timeouts: u64 = timeouts.sum();
    assert!(timeouts <= 6, "{timeouts}");
}

/// The mean time for a file of 10 MB, in seconds.
fn file_time(
    sender: &'static str,
    treated: bool,
    link: (Rate, Duration, ByteSize),
    losses: f64,
) -> f64 {
    const FILES: u64 = 4;
    let times = (0..FILES).map(|file| {
        let mut setup = setup("bbr");
        (setup.sender, setup.link, setup.seed) = (sender, link, file * 100);
        (setup.wide, setup.back) = (loss(losses), Some(FaultSettings::default()));
        if !treated {
            setup.limits.connections.connections = 0;
        }
        let mut world = World::new(&setup);
        let open = |world: &World| world.server.state() == State::Established;
        assert!(world.run_until(100_000, open));
        world.server.write(bytes(10_000_000));
        let complete = |world: &World| world.client.received() == bytes(10_000_000);
        assert!(world.run_until(10_000_000, complete));
        world
            .now
            .since(Time::ZERO + Duration::from_secs(1))
            .as_secs_f64()
    });
    times.sum::<f64>() / FILES as f64
}

/// The paper's paths, as in `scenarios/tcon-wan.toml`: as fast as BBR itself, faster than CUBIC with
/// losses, and no slower without.
#[test]
fn tcon_with_bbr_is_as_fast_as_bbr() {
    let slow = Rate::from_mbps(5);
    let shanghai = (slow, Duration::from_micros(14_900), bytes(64_000));
    let oregon = (slow, Duration::from_micros(79_900), bytes(128_000));
    let lan = (
        Rate::from_gbps(1),
        Duration::from_micros(100),
        bytes(512_000),
    );
    for (name, link, losses, most) in [
        ("lan", lan, 0.0, 1.02),
        ("shanghai", shanghai, 0.015, 0.9),
        ("oregon", oregon, 0.001, 1.0),
    ] {
        let cubic = file_time("cubic", false, link, losses);
        let bbr = file_time("bbr", false, link, losses);
        let tcon = file_time("cubic", true, link, losses);
        println!("{name}: CUBIC {cubic:.4} s, BBR {bbr:.4} s, TCon {tcon:.4} s");
        assert!(tcon <= 1.05 * bbr, "{name}: {tcon} s against BBR's {bbr} s");
        assert!(
            tcon <= most * cubic,
            "{name}: {tcon} s against CUBIC's {cubic} s"
        );
    }
}

fn faults() -> impl Strategy<Value = FaultSettings> {
    let often = |most: u32| {
        (0..=most).prop_map(|per_mille| Probability::new(f64::from(per_mille) / 1000.0).unwrap())
    };
    (often(60), often(30), often(50), 0_u64..8_000).prop_map(
        |(loss, duplication, probability, micros)| FaultSettings {
            loss,
            duplication,
            reordering: Reordering {
                probability,
                delay: Duration::from_micros(micros),
            },
            ..FaultSettings::default()
        },
    )
}

fn configs() -> impl Strategy<Value = Config> {
    let scale = prop_oneof![Just(None), (0_u8..=14).prop_map(Some)];
    let buffer = prop_oneof![Just(None), (3_000_u64..100_000).prop_map(Some)];
    let ecn = prop_oneof![Just(EcnMode::Off), Just(EcnMode::Classic)];
    (scale, any::<bool>(), any::<bool>(), buffer, ecn).prop_map(
        |(window_scale, sack, timestamps, buffer, ecn)| Config {
            window_scale,
            sack,
            timestamps: timestamps.then_some(Duration::from_millis(1)),
            receive_buffer: buffer.map(bytes).or(Some(ByteSize::from_mib(6))),
            ecn,
            ..Config::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Under losses, reordering and duplication on both sides, with and without SACK, time stamps, ECN
    /// and window scaling, with small buffers at the receiver and in TCon, across the wrap of the
    /// numbers.
    #[test]
    fn streams_are_exact_under_any_faults(
        config in configs(),
        (wide, near) in (faults(), faults()),
        (down, up) in (0_u64..400_000, 0_u64..50_000),
        congestion in prop::sample::select(vec!["bbr", "cubic", "dctcp", "newreno", "bbr3", "swift"]),
        (server_ecn, both) in any::<(bool, bool)>(),
        memory in prop::sample::select(vec![20_000_u64, 100_000, 1 << 28]),
        isn in prop_oneof![any::<u32>(), u32::MAX - 200_000..u32::MAX],
        seed in 0_u64..1_000_000,
    ) {
        let mut setup = setup(congestion);
        setup.server_ecn = if server_ecn { config.ecn } else { EcnMode::Off };
        (setup.config, setup.both) = (config, both);
        (setup.wide, setup.near, setup.isn, setup.seed) = (wide, near, isn, seed);
        setup.limits.memory = bytes(memory);
        let mut world = exchange(&setup, down, up);
        // Nothing is left over.
        while world.step() {}
        prop_assert!(world.tcon().kept().packets <= 2 || world.tcon().flows(world.now).count() > 0);
    }
}
