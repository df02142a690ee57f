//! Any sequence of events keeps the counters consistent.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Op {
    Send {
        space: Space,
        size: u32,
        eliciting: bool,
        padded: bool,
        ect: bool,
    },
    Skip(Space),
    /// Lengths of alternating acknowledged and missing runs, downwards from `newest` numbers below
    /// the next one.
    Ack {
        space: Space,
        newest: u64,
        runs: Vec<u64>,
        counts: Option<EcnCounts>,
        delay: u64,
    },
    Wait(u64),
    Timeout,
    Probe(Space, usize),
    Discard(Space),
    RejectEarlyData,
    Confirm,
    Limit(bool),
}

fn space() -> impl Strategy<Value = Space> {
    prop_oneof![1 => Just(Space::Initial), 1 => Just(Space::Handshake), 4 => Just(Space::Data)]
}

fn counts() -> impl Strategy<Value = EcnCounts> {
    (
        0u64..60,
        prop_oneof![5 => Just(0u64), 1 => 0u64..3],
        0u64..30,
    )
        .prop_map(|(ect0, ect1, ce)| EcnCounts { ect0, ect1, ce })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (space(), 20u32..1_500, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
            |(space, size, eliciting, padded, ect)| Op::Send { space, size, eliciting, padded, ect }
        ),
        1 => space().prop_map(Op::Skip),
        8 => (
            space(),
            prop_oneof![20 => 1u64..8, 1 => 0u64..2],
            prop::collection::vec(1u64..5, 1..8),
            prop::option::of(counts()),
            0u64..500,
        ).prop_map(|(space, newest, runs, counts, delay)| Op::Ack { space, newest, runs, counts, delay }),
        5 => (0u64..2_000).prop_map(Op::Wait),
        4 => Just(Op::Timeout),
        1 => (space(), 1usize..3).prop_map(|(space, packets)| Op::Probe(space, packets)),
        1 => prop_oneof![Just(Space::Initial), Just(Space::Handshake)].prop_map(Op::Discard),
        1 => Just(Op::RejectEarlyData),
        1 => Just(Op::Confirm),
        1 => any::<bool>().prop_map(Op::Limit),
    ]
}

/// Returns the runs as ranges, newest first.
fn ranges(next: u64, newest: u64, runs: &[u64]) -> Vec<RangeInclusive<u64>> {
    let mut ranges = Vec::new();
    let Some(mut end) = next.checked_sub(newest) else {
        return ranges;
    };
    for (index, &run) in runs.iter().enumerate() {
        let Some(start) = (end + 1).checked_sub(run) else {
            break;
        };
        if index % 2 == 0 {
            ranges.push(start..=end);
        }
        let Some(below) = start.checked_sub(1) else {
            break;
        };
        end = below;
    }
    ranges
}

/// The packets in flight according to the reports to the sink.
#[derive(Default)]
struct Model {
    /// Packets in flight: size, by space and number.
    in_flight: std::collections::BTreeMap<(Space, u64), u64>,
    acked: HashSet<(Space, u64)>,
    lost: HashSet<(Space, u64)>,
}

impl Model {
    /// Applies the reports to the sink.
    fn apply_reports(&mut self, fates: &mut Fates) -> Result<(), TestCaseError> {
        for frame in fates.acked.drain(..) {
            prop_assert!(self.acked.insert(frame), "{frame:?} acknowledged twice");
            self.in_flight.remove(&frame);
        }
        for frame in fates.lost.drain(..) {
            prop_assert!(self.lost.insert(frame), "{frame:?} lost twice");
            prop_assert!(
                !self.acked.contains(&frame),
                "{frame:?} acknowledged, then lost"
            );
            self.in_flight.remove(&frame);
        }
        Ok(())
    }

    fn discard(&mut self, space: Space) {
        self.in_flight.retain(|&(in_space, _), _| in_space != space);
    }
}

/// Returns whether the connection continues.
fn apply(sender: &mut Sender, model: &mut Model, op: &Op) -> bool {
    match op {
        Op::Send {
            space,
            size,
            eliciting,
            padded,
            ect,
        } => {
            let number = sender.send_as(*space, |packet| {
                packet.size = *size;
                packet.ack_eliciting = *eliciting;
                packet.in_flight = *eliciting || *padded;
                packet.ecn = if *ect { Ecn::Ect0 } else { Ecn::NotEct };
            });
            if *eliciting || *padded {
                model.in_flight.insert((*space, number), u64::from(*size));
            }
        }
        Op::Skip(space) => sender.recovery.skip_number(*space),
        Op::Ack {
            space,
            newest,
            runs,
            counts,
            delay,
        } => {
            let ranges = ranges(sender.recovery.next_number(*space), *newest, runs);
            if !ranges.is_empty() {
                return sender
                    .ack_with(*space, &ranges, us(*delay), *counts)
                    .is_ok();
            }
        }
        Op::Wait(micros) => sender.wait(us(*micros)),
        Op::Timeout => {
            if sender.timeout().is_some() {
                sender.fire();
            }
        }
        Op::Probe(space, packets) => {
            let mut copies = Fates::default();
            sender
                .recovery
                .oldest_unacked_frames(*space, *packets, &mut copies);
            for copy in copies.lost {
                assert!(model.in_flight.contains_key(&copy));
            }
        }
        Op::Discard(space) => {
            sender.recovery.discard(*space, &mut sender.path);
            model.discard(*space);
        }
        Op::RejectEarlyData => sender
            .recovery
            .on_early_data_rejected(&mut sender.path, &mut sender.fates),
        Op::Confirm => sender.handshake.confirmed = true,
        Op::Limit(limited) => sender.handshake.amplification_limited = *limited,
    }
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// The bytes in flight are the sum of sent packets that are neither acknowledged, lost nor
    /// discarded. A frame is acknowledged at most once, lost at most once, and never lost after its
    /// ACK. Outstanding ack-eliciting packets have a timer.
    #[test]
    fn counters_stay_consistent(
        client in any::<bool>(),
        ops in prop::collection::vec(op(), 1..150),
    ) {
        let mut sender = Sender::unconfirmed(if client { Side::Client } else { Side::Server });
        let mut model = Model::default();
        for op in &ops {
            let goes_on = apply(&mut sender, &mut model, op);
            model.apply_reports(&mut sender.fates)?;
            if !goes_on {
                break;
            }
            prop_assert_eq!(sender.path.in_flight, model.in_flight.values().sum::<u64>());
            let outstanding = Space::ALL
                .into_iter()
                .any(|space| sender.recovery.has_eliciting_outstanding(space));
            let HandshakeState { confirmed, amplification_limited, .. } = sender.handshake;
            if outstanding && confirmed && !amplification_limited {
                prop_assert!(sender.timeout().is_some());
            }
        }
        // The controller never receives more marked than acknowledged bytes.
        for ack in &sender.controller.log().acks {
            prop_assert!(ack.ce_marked <= ack.acked && !ack.acked.is_zero());
        }
    }

    /// An expiring timer makes progress: a packet is lost, or the next timer is due later.
    #[test]
    fn a_timer_that_fires_makes_progress(ops in prop::collection::vec(op(), 1..80)) {
        let mut sender = Sender::unconfirmed(Side::Client);
        let mut model = Model::default();
        for op in &ops {
            if !apply(&mut sender, &mut model, op) {
                return Ok(());
            }
        }
        for _ in 0..10 {
            // Time ends after 584 years; a round trip of minutes backs off beyond that.
            let Some(due) = sender.timeout().filter(|due| *due < at(1 << 50)) else { break };
            let lost_before = sender.fates.lost.len();
            let stats = sender.path.stats;
            match sender.fire() {
                // An RTT sample of another space may have moved the timer since it was set.
                TimeoutAction::Lost => prop_assert!(
                    sender.fates.lost.len() > lost_before
                        || sender.path.stats != stats
                        || sender.timeout().is_none_or(|next| next > due)
                ),
                TimeoutAction::Probe { packets, .. } => {
                    prop_assert!((1..=2).contains(&packets));
                    prop_assert!(sender.timeout().is_none_or(|next| next > due));
                }
            }
        }
    }
}
