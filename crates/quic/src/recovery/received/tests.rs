use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::frame::{Frame, Frames};
use crate::recovery::precision::EXACT_PACKETS;

const DELAY: Duration = Duration::from_micros(100);

const fn at(micros: u64) -> Time {
    Time::from_nanos(micros * 1_000)
}

fn data() -> ReceivedPackets {
    ReceivedPackets::new(AckPolicy {
        max_ack_delay: DELAY,
        final_delay: Duration::ZERO,
        threshold: 64,
        exponent: 0,
    })
}

/// Receives a batch of ack-eliciting packets at time zero.
fn batch(received: &mut ReceivedPackets, numbers: &[u64], peer_finished: bool) {
    for &number in numbers {
        assert!(!received.is_duplicate(number));
        received.on_received(at(0), number, true, Ecn::Ect0);
    }
    received.end_batch(at(0), 1452, peer_finished, true);
}

/// Writes an ACK; returns its ranges, delay and counts.
fn written(
    received: &mut ReceivedPackets,
    now: Time,
    limit: usize,
) -> Option<(Vec<RangeInclusive<u64>>, u64, Option<EcnCounts>)> {
    let mut out = Vec::new();
    let sent = received.write_ack(now, &mut out, limit)?;
    assert!(out.len() <= limit);
    let Some(Ok(Frame::Ack(ack))) = Frames::new(&out).next() else {
        panic!("not an ACK frame");
    };
    assert_eq!(
        sent,
        SentFrame::Ack {
            largest: ack.largest
        }
    );
    Some((ack.ranges().collect(), ack.delay, ack.ecn))
}

#[test]
fn handshake_packets_are_acknowledged_at_once_and_without_delay() {
    let mut received = ReceivedPackets::new(AckPolicy::IMMEDIATE);
    received.on_received(at(5), 0, true, Ecn::NotEct);
    assert!(received.ack_due(at(5)));
    let (ranges, delay, ecn) = written(&mut received, at(50), 100).unwrap();
    assert_eq!((ranges, delay, ecn), (vec![0..=0], 0, None));
    assert!(!received.ack_due(at(50)) && !received.ack_pending());
}

#[test]
fn a_single_packet_is_acknowledged_after_the_delay() {
    let mut received = data();
    batch(&mut received, &[0], false);
    assert!(received.ack_pending() && !received.ack_due(at(99)));
    assert_eq!(received.deadline, Some(at(100)));
    assert!(received.ack_due(at(100)));
    batch(&mut received, &[1], false);
    assert!(received.ack_due(at(0)));
}

#[test]
fn a_batch_of_two_is_acknowledged_at_its_end() {
    let mut received = data();
    received.on_received(at(0), 0, true, Ecn::Ect0);
    received.on_received(at(0), 1, true, Ecn::Ect0);
    assert!(!received.ack_due(at(0)));
    received.end_batch(at(0), 1452, false, true);
    assert!(received.ack_due(at(0)));
}

#[test]
fn the_ack_is_delayed_when_the_peer_has_finished() {
    let mut received = data();
    batch(&mut received, &[0, 1, 2, 3], true);
    assert!(!received.ack_due(at(99)) && received.ack_due(at(100)));
    // A batch without ack-eliciting packets changes nothing.
    received.on_received(at(1), 4, false, Ecn::Ect0);
    received.end_batch(at(1), 1452, false, true);
    assert!(!received.ack_due(at(99)));
}

/// The ACKs of ends of streams wait for up to 8000 µs.
fn patient() -> ReceivedPackets {
    let mut received = ReceivedPackets::new(AckPolicy {
        max_ack_delay: DELAY,
        final_delay: Duration::from_micros(8_000),
        threshold: 64,
        exponent: 0,
    });
    received.sender_asks = true;
    received
}

/// Receives the last packet of a stream at a time in µs, while timers wait for the tick.
fn end_of_stream(received: &mut ReceivedPackets, now: u64, number: u64) {
    received.on_received(at(now), number, true, Ecn::Ect0);
    received.end_batch(at(now), 1452, true, false);
}

/// Sends the ACK at a time in µs.
fn send_ack(received: &mut ReceivedPackets, now: u64, alone: bool) {
    assert!(!alone || received.ack_due(at(now)));
    written(received, at(now), 100).unwrap();
    received.on_ack_sent(alone);
}

#[test]
fn the_ack_of_a_streams_end_waits_for_the_next_request() {
    let mut received = patient();
    end_of_stream(&mut received, 0, 0);
    assert_eq!(received.deadline, Some(at(8_000)));
    received.on_received(at(50), 1, true, Ecn::Ect0);
    received.end_batch(at(50), 1452, false, false);
    assert_eq!(
        received.deadline,
        Some(at(150)),
        "the stream after it has not ended"
    );
    send_ack(&mut received, 60, false);
    assert_eq!(received.deadline, None);
}

#[test]
fn the_ack_of_a_streams_end_does_not_wait_where_it_must_not() {
    let mut exact = patient();
    exact.on_received(at(0), 0, true, Ecn::Ect0);
    exact.end_batch(at(0), 1452, true, true);
    assert_eq!(exact.deadline, Some(at(100)), "exact timers");
    let mut other = patient();
    other.sender_asks = false;
    end_of_stream(&mut other, 0, 0);
    assert_eq!(other.deadline, Some(at(100)), "a sender that cannot ask");
    let mut gap = patient();
    end_of_stream(&mut gap, 0, 0);
    end_of_stream(&mut gap, 0, 2);
    assert!(gap.ack_due(at(0)), "a gap");
}

#[test]
fn probes_that_come_too_early_again_and_again_show_exact_timers() {
    let mut received = patient();
    received.on_received(at(0), 0, true, Ecn::Ect0);
    received.acknowledge_now(at(0));
    received.end_batch(at(0), 1452, false, false);
    send_ack(&mut received, 0, true);
    let mut waits_after_probe = |now, number, after| {
        end_of_stream(&mut received, now - after, number);
        // A probe has two packets.
        received.acknowledge_now(at(now));
        received.acknowledge_now(at(now));
        send_ack(&mut received, now, true);
        received.end_may_wait()
    };
    assert!(waits_after_probe(10_000, 1, 8_000), "not too early");
    assert!(waits_after_probe(11_000, 2, 500));
    assert!(waits_after_probe(18_999, 3, 500));
    assert!(waits_after_probe(27_500, 4, 8_000));
    assert!(!waits_after_probe(28_000, 5, 500));
    for number in 6..6 + u64::from(EXACT_PACKETS) {
        assert!(!received.end_may_wait());
        end_of_stream(&mut received, 28_000, number);
        send_ack(&mut received, 28_000, false);
    }
    assert!(received.end_may_wait());
}

/// Receives a packet of a stream that goes on, at a time in µs.
fn message(received: &mut ReceivedPackets, now: u64, number: u64) {
    received.on_received(at(now), number, true, Ecn::Ect0);
    received.end_batch(at(now), 1452, false, false);
}

#[test]
fn after_an_ack_that_waited_in_vain_acks_wait_again_where_data_follow_them_soon() {
    let mut received = data();
    message(&mut received, 0, 0);
    send_ack(&mut received, 100, true);
    message(&mut received, 200, 1);
    assert!(received.ack_due(at(200)), "nothing would carry it");
    send_ack(&mut received, 200, true);
    received.on_data_sent(at(301));
    message(&mut received, 400, 2);
    assert!(received.ack_due(at(400)), "too late to carry it");
    send_ack(&mut received, 400, true);
    received.on_data_sent(at(500));
    message(&mut received, 600, 3);
    assert_eq!(received.deadline, Some(at(700)));
    assert!(!received.ack_due(at(699)));
}

#[test]
fn a_sender_that_goes_on_only_after_the_ack_is_acknowledged_at_once() {
    let mut received = patient();
    end_of_stream(&mut received, 0, 0);
    send_ack(&mut received, 8_000, true);
    // It answers at once, and we have sent it nothing but the ACK.
    for number in 1..4 {
        end_of_stream(&mut received, 8_050, number);
        send_ack(&mut received, 8_050, true);
    }
    // A response carries the ACK: the next one may wait again.
    end_of_stream(&mut received, 8_100, 4);
    send_ack(&mut received, 8_100, false);
    end_of_stream(&mut received, 8_200, 5);
    assert_eq!(received.deadline, Some(at(16_200)));
}

#[test]
fn answers_to_a_request_do_not_wait_for_acks() {
    let mut received = patient();
    end_of_stream(&mut received, 0, 0);
    send_ack(&mut received, 8_000, true);
    received.on_eliciting_sent();
    end_of_stream(&mut received, 8_050, 1);
    assert_eq!(received.deadline, Some(at(16_050)));
    // Nor does a sender that comes later by itself.
    send_ack(&mut received, 16_050, true);
    end_of_stream(&mut received, 24_051, 2);
    assert_eq!(received.deadline, Some(at(32_051)));
    // Later ends of streams do not put the ACK off.
    end_of_stream(&mut received, 30_000, 3);
    assert_eq!(received.deadline, Some(at(32_051)));
}

#[test]
fn the_ack_threshold_applies_within_a_batch() {
    let mut received = data();
    for number in 0..63 {
        received.on_received(at(0), number, true, Ecn::Ect0);
    }
    assert!(!received.ack_due(at(0)));
    received.on_received(at(0), 63, true, Ecn::Ect0);
    assert!(received.ack_due(at(0)));
}

#[test]
fn gaps_and_reordered_packets_are_acknowledged_at_once() {
    let mut received = data();
    batch(&mut received, &[0], true);
    assert!(!received.ack_due(at(0)));
    batch(&mut received, &[2], true);
    assert!(received.ack_due(at(0)));
    written(&mut received, at(0), 100);
    batch(&mut received, &[3], true);
    assert!(!received.ack_due(at(0)));
    batch(&mut received, &[1], true);
    assert!(received.ack_due(at(0)));
}

#[test]
fn the_first_mark_is_acknowledged_at_once() {
    let mut received = data();
    let mut take = |number, ecn| {
        received.on_received(at(0), number, true, ecn);
        received.end_batch(at(0), 1452, true, true);
        let due = received.ack_due(at(0));
        written(&mut received, at(0), 100);
        due
    };
    assert!(!take(0, Ecn::Ect0));
    assert!(take(1, Ecn::Ce));
    assert!(!take(2, Ecn::Ce));
    assert!(!take(3, Ecn::Ect0));
    assert!(take(4, Ecn::Ce));
}

#[test]
fn non_ack_eliciting_packets_never_make_an_ack_due() {
    let mut received = data();
    received.on_received(at(0), 0, false, Ecn::NotEct);
    received.end_batch(at(0), 1452, false, true);
    assert!(received.ack_pending() && !received.ack_due(at(1_000_000)));
    assert_eq!(received.deadline, None);
}

#[test]
fn the_ack_carries_the_correct_delay_and_ecn_counts() {
    let mut received = ReceivedPackets::new(AckPolicy {
        exponent: 2,
        ..data().policy
    });
    received.on_received(at(10), 0, true, Ecn::Ect0);
    received.on_received(at(20), 2, true, Ecn::Ce);
    received.on_received(at(30), 1, true, Ecn::Ect1);
    let (ranges, delay, ecn) = written(&mut received, at(60), 100).unwrap();
    assert_eq!((ranges, delay), (vec![0..=2], 10));
    let counts = EcnCounts {
        ect0: 1,
        ect1: 1,
        ce: 1,
    };
    assert_eq!(ecn, Some(counts));
}

#[test]
fn ranges_the_peer_has_acknowledged_are_not_repeated() {
    let mut received = data();
    batch(&mut received, &[0, 1, 4, 5], false);
    received.on_ack_acked(4);
    let (ranges, ..) = written(&mut received, at(0), 100).unwrap();
    assert_eq!(ranges, [5..=5]);
    // The largest number is always included, and so is a late packet.
    received.on_ack_acked(5);
    let (ranges, ..) = written(&mut received, at(0), 100).unwrap();
    assert_eq!(ranges, [5..=5]);
    batch(&mut received, &[3], false);
    let (ranges, ..) = written(&mut received, at(0), 100).unwrap();
    assert_eq!(ranges, [3..=5]);
    assert!(received.is_duplicate(0));
}

#[test]
fn a_frame_that_does_not_fit_is_not_written() {
    let mut received = data();
    assert_eq!(written(&mut received, at(0), 100), None);
    batch(&mut received, &[0, 2, 4, 6], false);
    assert_eq!(written(&mut received, at(0), 3), None);
    assert!(received.ack_pending());
    let (ranges, ..) = written(&mut received, at(0), 12).unwrap();
    assert_eq!(ranges.first(), Some(&(6..=6)));
}

#[test]
fn the_largest_packet_numbers_do_not_overflow() {
    let mut received = data();
    let largest = (1 << 62) - 1;
    batch(&mut received, &[0, largest], false);
    received.on_ack_acked(u64::MAX);
    let (ranges, ..) = written(&mut received, at(0), 100).unwrap();
    assert_eq!(ranges, [largest..=largest]);
}

proptest! {
    /// Compares with a set: no packet is accepted twice, no missing packet is acknowledged, and the
    /// newest ranges are complete.
    #[test]
    fn acks_cover_exactly_the_received_packets(numbers in prop::collection::vec(0u64..400, 1..400), trim in 0u64..400) {
        let mut received = data();
        let mut model = BTreeSet::new();
        for number in numbers {
            if received.is_duplicate(number) {
                prop_assert!(model.contains(&number) || number < received.floor);
                continue;
            }
            received.on_received(at(0), number, true, Ecn::NotEct);
            prop_assert!(model.insert(number));
            prop_assert!(received.ranges.len() <= MAX_RANGES);
            prop_assert!(received.ranges.windows(2).all(|pair| pair[0].end + 1 < pair[1].start));
        }
        received.on_ack_acked(trim);
        let largest = *model.last().unwrap();
        prop_assert_eq!(received.largest(), Some(largest));
        let (ranges, ..) = written(&mut received, at(0), 4_000).unwrap();
        let named: BTreeSet<u64> = ranges.into_iter().flatten().collect();
        prop_assert!(named.is_subset(&model));
        prop_assert!(named.contains(&largest));
        let from = received.floor.max(trim + 1);
        prop_assert!(model.range(from..).all(|number| named.contains(number)));
    }
}

/// A peer's request: `threshold`, 80 µs and `reordering`.
fn request(sequence: u64, threshold: u64, reordering: u64) -> AckFrequency {
    AckFrequency {
        sequence,
        threshold,
        max_ack_delay: 80,
        reordering_threshold: reordering,
    }
}

#[test]
fn a_request_overrides_batching_and_the_policy() {
    let mut received = data();
    assert!(received.on_request(&request(0, 9, 1)));
    batch(&mut received, &[0, 1, 2, 3, 4, 5, 6, 7, 8], false);
    assert!(!received.ack_due(at(79)));
    assert_eq!(received.deadline, Some(at(80)));
    batch(&mut received, &[9], false);
    assert!(received.ack_due(at(0)));
    written(&mut received, at(0), 100);
    // Zero acknowledges every packet.
    assert!(received.on_request(&request(1, 0, 1)));
    batch(&mut received, &[10], true);
    assert!(received.ack_due(at(0)));
}

#[test]
fn only_the_newest_request_counts() {
    let mut received = data();
    assert!(received.on_request(&request(5, 0, 1)));
    assert!(!received.on_request(&request(5, 9, 1)));
    assert!(!received.on_request(&request(4, 9, 1)));
    batch(&mut received, &[0], false);
    assert!(received.ack_due(at(0)));
    written(&mut received, at(0), 100);
    assert!(received.on_request(&request(6, u64::MAX, 1)));
    batch(&mut received, &[1, 2], false);
    assert!(!received.ack_due(at(79)));
}

#[test]
fn an_immediate_ack_request_applies_once() {
    let mut received = data();
    received.on_request(&request(0, 100, 0));
    received.acknowledge_now(at(0));
    batch(&mut received, &[0], true);
    assert!(received.ack_due(at(0)));
    written(&mut received, at(0), 100);
    batch(&mut received, &[1], true);
    assert!(!received.ack_due(at(0)));
}

/// Returns the packets, each in its own batch, that are acknowledged at once.
fn acknowledged_at_once(threshold: u64, numbers: &[u64]) -> Vec<u64> {
    let mut received = data();
    received.on_request(&request(0, 1_000, threshold));
    let due = numbers.iter().copied().filter(|number| {
        batch(&mut received, &[*number], true);
        let due = received.ack_due(at(0));
        if due {
            written(&mut received, at(0), 1_000);
        }
        due
    });
    due.collect()
}

#[test]
fn the_examples_of_section_6_2_1_of_the_ack_frequency_draft() {
    assert_eq!(
        acknowledged_at_once(3, &[0, 1, 3, 4, 5, 8, 9, 10]),
        [5, 9, 10]
    );
    assert_eq!(acknowledged_at_once(5, &[0, 1, 3, 5, 6, 7, 8, 9]), [7, 9]);
    assert_eq!(acknowledged_at_once(1, &[0, 1, 3, 4, 2]), [3, 2]);
    assert_eq!(acknowledged_at_once(0, &[0, 1, 9, 20, 2]), []);
    // So late that the sender has declared it lost.
    assert_eq!(acknowledged_at_once(3, &[0, 1, 3, 4, 5, 2]), [5, 2]);
}

#[test]
fn every_mark_is_acknowledged_at_threshold_one() {
    for (threshold, due) in [(1, [true, true]), (9, [true, false])] {
        let mut received = data();
        received.on_request(&request(0, threshold, 1));
        for (number, due) in (0..).zip(due) {
            received.on_received(at(0), number, true, Ecn::Ce);
            assert_eq!(received.ack_due(at(0)), due, "{threshold} {number}");
            if due {
                written(&mut received, at(0), 100);
            }
        }
    }
}

proptest! {
    /// Compares with the definitions of the draft, computed by brute force.
    #[test]
    fn the_reordering_threshold_follows_the_draft(
        numbers in prop::collection::vec(0u64..60, 1..60),
        threshold in 2u64..8,
    ) {
        let mut received = data();
        received.on_request(&request(0, 1_000, threshold));
        let mut came = BTreeSet::new();
        let mut largest_acked: Option<u64> = None;
        for number in numbers {
            if received.is_duplicate(number) {
                continue;
            }
            received.on_received(at(0), number, true, Ecn::NotEct);
            came.insert(number);
            let largest = *came.last().unwrap();
            let reported = largest_acked.and_then(|acked| acked.checked_sub(threshold));
            let missing = (reported.map_or(0, |reported| reported + 1)..largest)
                .find(|number| !came.contains(number));
            let expected = missing.is_some_and(|missing| largest - missing >= threshold)
                || reported.is_some_and(|reported| number <= reported);
            prop_assert_eq!(received.ack_due(at(0)), expected, "{} after {:?}", number, came);
            if expected {
                written(&mut received, at(0), 4_000);
                largest_acked = Some(largest);
            }
        }
    }
}
