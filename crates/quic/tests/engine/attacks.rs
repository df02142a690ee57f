//! Hostile peers with the right keys, and floods: see `attack`.
//!
//! The memory bounds are in bytes for two connections with their endpoint's tables, which take
//! 70,000 to 96,000 at rest.

use crate::attack::{Arena, Hostile, Number, Script, Seal, Step, Wrong, run};
use arbitrary::{Arbitrary, Unstructured};
use proptest::prelude::*;
use weir_quic::{Code, Side};

fn script() -> impl Strategy<Value = Script> {
    prop::collection::vec(any::<u8>(), 0..2000).prop_filter_map("too short", |bytes| {
        Script::arbitrary_take_rest(Unstructured::new(&bytes)).ok()
    })
}

#[test]
fn arenas_without_attacks_stay_healthy() {
    for seed in 0..=255 {
        for role in [Side::Server, Side::Client] {
            let mut arena = Arena::new(role, seed, true);
            assert_eq!(arena.is_established(), seed & 0x80 == 0, "{role:?} {seed}");
            arena.finish();
        }
    }
}

/// Plays the steps in both roles, with an application that reads and with one that does not.
/// Returns the close code of the attacker's connection, if any, and the peak memory of each.
fn play(steps: &[Step]) -> Vec<Outcome> {
    let roles = [Side::Server, Side::Client].into_iter();
    roles
        .flat_map(|role| [true, false].map(|reads| (role, reads)))
        .map(|(role, reads)| play_against(role, reads, steps))
        .collect()
}

struct Outcome {
    closed: Option<Code>,
    peak: i64,
}

fn play_against(role: Side, reads: bool, steps: &[Step]) -> Outcome {
    let mut arena = Arena::new(role, 3, reads);
    steps.iter().for_each(|step| arena.play(step));
    let outcome = Outcome {
        closed: arena.closed_with(),
        peak: arena.peak,
    };
    arena.finish();
    outcome
}

fn packet(frames: Vec<Hostile>) -> Step {
    Step::Packet {
        seal: Seal::OneRtt,
        number: Number::Near(0),
        frames,
        from: 0,
        wrong: Wrong::Nothing,
    }
}

fn flood(frame: Hostile, packets: u8, per_packet: u8) -> Step {
    Step::Flood {
        frame,
        packets,
        per_packet,
        new_addresses: false,
    }
}

#[test]
fn single_bytes_with_gaps_on_all_streams_use_bounded_memory() {
    let pieces = |stream| Hostile::Pieces {
        stream,
        start: 1,
        stride: 2,
        length: 1,
        count: 128,
    };
    let steps: Vec<_> = (0..8).map(|stream| flood(pieces(stream), 1, 63)).collect();
    for outcome in play(&steps) {
        assert_eq!(outcome.closed, None);
        assert!(outcome.peak < 600_000, "{}", outcome.peak);
    }
}

#[test]
fn a_byte_on_every_stream_uses_little_memory() {
    let byte = |stream| Hostile::Data {
        stream,
        length: 1,
        fin: false,
    };
    let steps = [packet((0..8).map(byte).collect())];
    for outcome in play(&steps) {
        assert_eq!(outcome.closed, None);
        assert!(outcome.peak < 130_000, "{}", outcome.peak);
    }
}

#[test]
fn retiring_an_id_before_it_was_sent_is_a_violation() {
    let retire = (1..30).map(|sequence| Hostile::Retire(Number::Small(sequence)));
    for outcome in play(&[packet(retire.collect())]) {
        assert_eq!(outcome.closed, Some(Code::PROTOCOL_VIOLATION));
    }
}

#[test]
fn endless_id_issue_and_retirement_is_an_id_limit_error() {
    let issue = Hostile::NewId {
        sequence: Number::Small(1),
        retire_prior_to: Number::Near(0),
        id: 1,
    };
    for outcome in play(&[flood(issue, 200, 7)]) {
        assert_eq!(outcome.closed, Some(Code::CONNECTION_ID_LIMIT_ERROR));
    }
}

#[test]
fn pings_without_acknowledgments_use_bounded_memory() {
    let steps = vec![flood(Hostile::Ping, 255, 0); 100];
    for outcome in play(&steps) {
        assert_eq!(outcome.closed, None);
        assert!(outcome.peak < 300_000, "{}", outcome.peak);
    }
}

#[test]
fn endless_challenges_use_bounded_memory() {
    let steps = vec![flood(Hostile::Challenge(1), 255, 63); 10];
    for outcome in play(&steps) {
        assert_eq!(outcome.closed, None);
        assert!(outcome.peak < 300_000, "{}", outcome.peak);
    }
}

#[test]
fn packets_from_ever_new_addresses_use_bounded_memory() {
    let frames = [Hostile::Ping, Hostile::Challenge(1), Hostile::Response(2)];
    let steps: Vec<_> = frames
        .into_iter()
        .map(|frame| Step::Flood {
            frame,
            packets: 255,
            per_packet: 0,
            new_addresses: true,
        })
        .collect();
    for outcome in play(&steps) {
        assert_eq!(outcome.closed, None);
        assert!(outcome.peak < 300_000, "{}", outcome.peak);
    }
}

#[test]
fn copied_packets_from_new_addresses_use_bounded_memory() {
    for flip in [false, true] {
        let steps = vec![Step::Honest { copies: 15, flip }; 20];
        for outcome in play(&steps) {
            assert_eq!(outcome.closed, None);
            assert!(outcome.peak < 150_000, "{}", outcome.peak);
        }
    }
}

#[test]
fn abandoned_handshakes_time_out() {
    let steps = vec![Step::Initials { count: 255 }; 10];
    for outcome in play(&steps) {
        assert!(outcome.peak < 150_000, "{}", outcome.peak);
    }
}

#[test]
fn replayed_early_data_use_bounded_memory() {
    let mut steps = vec![
        Step::Behave { from: 0 },
        Step::Begin {
            early: true,
            stalls: true,
        },
    ];
    for index in 0..64 {
        steps.push(Step::Replay {
            index,
            from: index,
            flip: None,
        });
    }
    for outcome in play(&steps) {
        assert!(outcome.peak < 200_000, "{}", outcome.peak);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_client_attacks_are_survived(script in script()) {
        run(Side::Server, &script);
    }

    #[test]
    fn arbitrary_server_attacks_are_survived(script in script()) {
        run(Side::Client, &script);
    }
}

/// Plays a script saved by a fuzzer: `WEIR_SCRIPT=FILE WEIR_ROLE=client|server`.
#[test]
#[ignore = "needs a file"]
fn replay_an_attack_script_from_a_file() {
    let Ok(path) = std::env::var("WEIR_SCRIPT") else {
        return;
    };
    let role = match std::env::var("WEIR_ROLE").as_deref() {
        Ok("client") => Side::Client,
        _ => Side::Server,
    };
    let bytes = std::fs::read(path).unwrap();
    let script = Script::arbitrary_take_rest(Unstructured::new(&bytes)).unwrap();
    println!("{script:#?}");
    run(role, &script);
}
