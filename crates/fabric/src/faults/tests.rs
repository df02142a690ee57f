//! Each fault on its own.

use weir_units::{ByteSize, Duration, Time};
use weir_wire::Ecn;

use super::{FaultSettings, Faults, Reordering, Script, Verdict};
use crate::counters::DropReason;
use crate::packet::testing::NumberedPacket;
use crate::packet::{Packet, flip_byte};
use crate::random::Probability;

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

/// Sends packets 0, 1, 2, … one nanosecond apart and returns (time out, number).
fn pass(faults: &mut Faults<NumberedPacket>, packets: u64) -> Vec<(u64, u64)> {
    for number in 0..packets {
        faults.send(at(number), NumberedPacket::new(number, 100));
    }
    drain(faults)
}

fn drain(faults: &mut Faults<NumberedPacket>) -> Vec<(u64, u64)> {
    let mut out = Vec::new();
    while let Some(time) = faults.timeout() {
        if let Some(packet) = faults.poll_released(time) {
            out.push((time.as_nanos(), packet.number));
        }
    }
    out
}

fn numbers(out: &[(u64, u64)]) -> Vec<u64> {
    out.iter().map(|&(_, number)| number).collect()
}

fn half() -> Probability {
    Probability::new(0.5).unwrap()
}

#[test]
fn without_faults_packets_pass_immediately() {
    let out = pass(&mut Faults::none(), 3);
    assert_eq!(out, [(0, 0), (1, 1), (2, 2)]);
}

#[test]
fn down_drops_all_until_up() {
    let mut faults = Faults::new(
        FaultSettings {
            down: true,
            ..FaultSettings::default()
        },
        1,
    );
    faults.send(at(0), NumberedPacket::new(0, 100));
    faults.set(FaultSettings::default());
    faults.send(at(1), NumberedPacket::new(1, 100));
    assert_eq!(drain(&mut faults), [(1, 1)]);
    assert_eq!(faults.counters().dropped.by(DropReason::Down).packets, 1);
}

#[test]
fn loss_takes_its_fraction() {
    let loss = Probability::new(0.1).unwrap();
    let mut faults = Faults::new(
        FaultSettings {
            loss,
            ..FaultSettings::default()
        },
        1,
    );
    let packets = 100_000;
    let out = pass(&mut faults, packets);
    let lost = faults.counters().dropped.by(DropReason::Loss).packets;
    assert_eq!(out.len() as u64 + lost, packets);
    // Four standard deviations are 380.
    assert!(lost.abs_diff(10_000) < 380, "{lost}");
    assert!(numbers(&out).is_sorted());
}

#[test]
fn duplication_makes_a_copy_right_behind() {
    let settings = FaultSettings {
        duplication: Probability::ALWAYS,
        ..FaultSettings::default()
    };
    let mut faults = Faults::new(settings, 1);
    assert_eq!(numbers(&pass(&mut faults, 3)), [0, 0, 1, 1, 2, 2]);
    assert_eq!(faults.counters().duplicated.packets, 3);
}

#[test]
fn reordered_packets_fall_behind_by_the_delay() {
    let reordering = Reordering {
        probability: half(),
        delay: Duration::from_nanos(1000),
    };
    let mut faults = Faults::new(
        FaultSettings {
            reordering,
            ..FaultSettings::default()
        },
        1,
    );
    let out = pass(&mut faults, 1000);
    let late = out
        .iter()
        .filter(|&&(time, number)| time == number + 1000)
        .count();
    let punctual = out.iter().filter(|&&(time, number)| time == number).count();
    assert_eq!(late + punctual, 1000);
    assert_eq!(late as u64, faults.fault_counters().reordered.packets);
    assert!(late > 400 && punctual > 400 && !numbers(&out).is_sorted());
}

#[test]
fn jitter_delays_up_to_its_limit_and_keeps_the_order() {
    let jitter = Duration::from_nanos(50);
    let mut faults = Faults::new(
        FaultSettings {
            jitter,
            ..FaultSettings::default()
        },
        1,
    );
    let out = pass(&mut faults, 1000);
    let delays: Vec<u64> = out.iter().map(|&(time, number)| time - number).collect();
    assert!(numbers(&out).is_sorted());
    assert!(delays.iter().all(|&delay| delay <= 50));
    assert!(delays.iter().any(|&delay| delay < 40) && delays.contains(&50));
}

#[test]
fn a_described_packet_is_lost_by_corruption() {
    let settings = FaultSettings {
        corruption: Probability::ALWAYS,
        ..FaultSettings::default()
    };
    let mut faults = Faults::new(settings, 1);
    assert!(pass(&mut faults, 3).is_empty());
    assert_eq!(
        faults.counters().dropped.by(DropReason::Corruption).packets,
        3
    );
}

#[test]
fn a_packet_with_bytes_is_damaged_and_its_copy_is_not() {
    #[derive(Clone)]
    struct Frame([u8; 20]);
    impl Packet for Frame {
        fn length(&self) -> ByteSize {
            ByteSize::from_bytes(20)
        }
        fn ecn(&self) -> Ecn {
            Ecn::NotEct
        }
        fn set_ecn(&mut self, _: Ecn) {}
        fn corrupt(&mut self, entropy: u64) -> bool {
            flip_byte(&mut self.0, entropy)
        }
    }
    let always = Probability::ALWAYS;
    let settings = FaultSettings {
        corruption: always,
        duplication: always,
        ..FaultSettings::default()
    };
    let mut faults = Faults::new(settings, 1);
    faults.send(at(0), Frame([7; 20]));
    let damaged = faults.poll_released(at(0)).unwrap().0;
    assert_eq!(damaged.iter().filter(|&&byte| byte != 7).count(), 1);
    assert_eq!(faults.poll_released(at(0)).unwrap().0, [7; 20]);
    assert_eq!(faults.fault_counters().corrupted.packets, 1);
}

#[test]
fn a_script_applies_to_the_packets_it_selects() {
    let mut faults = Faults::none();
    faults.set_script(Some(Script::nth([1, 3], Verdict::Drop)));
    assert_eq!(numbers(&pass(&mut faults, 5)), [0, 2, 4]);
    assert_eq!(faults.counters().dropped.by(DropReason::Script).packets, 2);

    let verdicts = [
        Verdict::HoldBack(Duration::from_nanos(2)),
        Verdict::Duplicate,
        Verdict::Drop,
    ];
    let mut faults = Faults::none();
    faults.set_script(Some(Script::sequence(verdicts)));
    assert_eq!(pass(&mut faults, 4), [(1, 1), (1, 1), (2, 0), (3, 3)]);

    let mut faults = Faults::none();
    let even = |packet: &NumberedPacket| packet.number.is_multiple_of(2);
    faults.set_script(Some(Script::matching(
        even,
        Verdict::RewriteEcn(Ecn::NotEct),
    )));
    faults.send(at(0), NumberedPacket::new(0, 1));
    faults.send(at(0), NumberedPacket::new(1, 1));
    assert_eq!(
        faults.poll_released(at(0)).map(|packet| packet.ecn),
        Some(Ecn::NotEct)
    );
    assert_eq!(
        faults.poll_released(at(0)).map(|packet| packet.ecn),
        Some(Ecn::Ect0)
    );
    assert_eq!(faults.fault_counters().ecn_rewritten.packets, 1);
}

#[test]
fn a_script_can_exempt_a_packet_from_random_faults() {
    let settings = FaultSettings {
        loss: Probability::ALWAYS,
        ..FaultSettings::default()
    };
    let mut faults = Faults::new(settings, 1);
    faults.set_script(Some(Script::sequence([Verdict::Pass])));
    assert_eq!(numbers(&pass(&mut faults, 3)), [0]);
    faults.set_script(None);
    assert!(pass(&mut faults, 1).is_empty());
}

#[test]
fn faults_draw_independently() {
    let lost = |jitter: u64, reordering: Probability| {
        let settings = FaultSettings {
            loss: half(),
            jitter: Duration::from_nanos(jitter),
            reordering: Reordering {
                probability: reordering,
                delay: Duration::from_nanos(9),
            },
            ..FaultSettings::default()
        };
        let mut survivors = numbers(&pass(&mut Faults::new(settings, 5), 1000));
        survivors.sort_unstable();
        survivors
    };
    assert_eq!(lost(0, Probability::NEVER), lost(30, half()));
}
