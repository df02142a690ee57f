//! Compares the scoreboard with a naive model that always searches everything.

use proptest::prelude::*;

use super::*;

const MSS: u64 = 100;

#[derive(Clone, Debug)]
enum Step {
    Send(u32),
    /// A segment arrives, chosen as a fraction of those sent.
    Arrive(prop::sample::Index),
    /// Whether the peer's acknowledgments get lost.
    Mute(bool),
    Detect,
    Resend,
    Timeout,
    /// The records are dropped, if nothing is noted in them.
    Settle,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => prop_oneof![3 => Just(MSS as u32), 1 => 1..=MSS as u32].prop_map(Step::Send),
        8 => any::<prop::sample::Index>().prop_map(Step::Arrive),
        1 => any::<bool>().prop_map(Step::Mute),
        3 => Just(Step::Detect),
        3 => Just(Step::Resend),
        1 => Just(Step::Timeout),
        4 => Just(Step::Settle),
    ]
}

#[derive(Clone, Copy, Debug, Default)]
struct Plain {
    start: u64,
    end: u64,
    arrived: bool,
    sacked: bool,
    lost: bool,
    resent: bool,
}

impl Plain {
    fn length(&self) -> u64 {
        self.end - self.start
    }
}

#[derive(Default)]
struct Model {
    segments: Vec<Plain>,
    una: u64,
    /// The blocks last reported by the peer, the newest first.
    blocks: Vec<SackRange>,
}

impl Model {
    fn outstanding(&self) -> impl Iterator<Item = &Plain> {
        self.segments
            .iter()
            .filter(|segment| segment.end > self.una)
    }

    fn sum(&self, which: impl Fn(&Plain) -> bool) -> u64 {
        self.outstanding()
            .filter(|&segment| which(segment))
            .map(Plain::length)
            .sum()
    }

    /// Returns the peer's answer to the arrival of a segment.
    fn arrive(&mut self, index: usize) -> (u64, Vec<SackRange>) {
        self.segments[index].arrived = true;
        let arrived = self.segments[index];
        let next = self
            .segments
            .iter()
            .find(|segment| !segment.arrived)
            .map_or(self.segments.last().map_or(0, |last| last.end), |first| {
                first.start
            });
        let mut newest = SackRange {
            start: arrived.start,
            end: arrived.end,
        };
        for segment in self.segments[index..]
            .iter()
            .take_while(|segment| segment.arrived)
        {
            newest.end = segment.end;
        }
        for segment in self.segments[..index]
            .iter()
            .rev()
            .take_while(|segment| segment.arrived)
        {
            newest.start = segment.start;
        }
        self.blocks
            .retain(|block| block.end < newest.start || block.start > newest.end);
        self.blocks.insert(0, newest);
        self.blocks.retain(|block| block.start > next);
        self.blocks.truncate(3);
        (next, self.blocks.clone())
    }

    fn apply_ack(&mut self, next: u64, blocks: &[SackRange]) {
        self.una = self.una.max(next);
        for segment in &mut self.segments {
            let within =
                |block: &SackRange| block.start <= segment.start && segment.end <= block.end;
            if segment.end > self.una && blocks.iter().any(within) {
                segment.sacked = true;
                segment.lost = false;
            }
        }
    }

    /// RFC 6675, section 4, `IsLost`.
    fn is_lost(&self, segment: &Plain) -> bool {
        let (mut bytes, mut runs, mut in_run) = (0, 0, false);
        for above in self
            .outstanding()
            .filter(|above| above.start >= segment.end)
        {
            if above.sacked {
                bytes += above.length();
                runs += u64::from(!in_run);
            }
            in_run = above.sacked;
        }
        bytes > 2 * MSS || runs >= 3
    }
}

proptest! {
    #[test]
    fn the_scoreboard_matches_an_exhaustive_model(
        steps in prop::collection::vec(step(), 1..150),
        with_rates: bool,
    ) {
        let (mut board, mut model) = (Scoreboard::new(MSS, with_rates), Model::default());
        let (mut now, mut nxt, mut mute) = (Time::ZERO, 0, false);
        for step in &steps {
            now += Duration::from_micros(10);
            match step {
                Step::Send(length) => {
                    board.on_sent(now, nxt, *length);
                    let end = nxt + u64::from(*length);
                    model.segments.push(Plain { start: nxt, end, ..Plain::default() });
                    nxt = end;
                }
                Step::Arrive(index) if !model.segments.is_empty() => {
                    let (next, blocks) = model.arrive(index.index(model.segments.len()));
                    if mute {
                        continue;
                    }
                    let before = model.una;
                    let delivered = model.sum(|segment| segment.end > before && !segment.sacked);
                    model.apply_ack(next, &blocks);
                    let left = model.sum(|segment| !segment.sacked);
                    let mut summary = board.new_summary(Duration::MAX);
                    if !blocks.is_empty() {
                        board.sack(now, &blocks, &mut summary);
                    }
                    board.acknowledge(now, next, &mut summary);
                    prop_assert_eq!(summary.delivered, delivered - left);
                }
                Step::Arrive(_) => {}
                Step::Mute(on) => mute = *on,
                Step::Detect => {
                    let expected: Vec<bool> = model
                        .segments
                        .iter()
                        .map(|segment| {
                            segment.end > model.una
                                && !segment.sacked
                                && !segment.resent
                                && (segment.lost || model.is_lost(segment))
                        })
                        .collect();
                    let mut found = DetectedLosses::default();
                    let before = board.lost();
                    board.find_lost_by_threshold(&mut found);
                    prop_assert_eq!(board.lost(), before + found.bytes);
                    for (segment, lost) in model.segments.iter_mut().zip(expected) {
                        segment.lost |= lost;
                    }
                }
                Step::Resend => {
                    let first = model.outstanding().find(|segment| segment.lost).copied();
                    let record = board.next_lost();
                    prop_assert_eq!(record.map(|record| record.start), first.map(|first| first.start));
                    if let Some(first) = first {
                        board.on_resent(now, first.start);
                        for segment in &mut model.segments {
                            if segment.start == first.start {
                                segment.lost = false;
                                segment.resent = true;
                            }
                        }
                    }
                }
                Step::Settle => {
                    let is_clear = model.outstanding().all(|segment| {
                        !segment.sacked && !segment.lost && !segment.resent
                    });
                    prop_assert_eq!(board.drop_records(), is_clear && !with_rates);
                }
                Step::Timeout => {
                    board.mark_all_lost(&mut DetectedLosses::default());
                    let una = model.una;
                    for segment in &mut model.segments {
                        segment.lost |= segment.end > una && !segment.sacked;
                    }
                }
            }
            prop_assert_eq!(board.in_flight(), model.sum(|segment| !segment.sacked && !segment.lost));
            prop_assert_eq!(board.sacked(), model.sum(|segment| segment.sacked));
            prop_assert_eq!(board.lost(), model.sum(|segment| segment.lost));
            prop_assert_eq!(board.is_empty(), model.una == nxt);
        }
    }
}

fn at(micros: u64) -> Time {
    Time::ZERO + Duration::from_micros(micros)
}

fn block(start: u64, end: u64) -> SackRange {
    SackRange { start, end }
}

/// Segments of one MSS, one per 10 µs.
fn sent(count: u64) -> Scoreboard {
    let mut board = Scoreboard::new(MSS, false);
    for number in 0..count {
        board.on_sent(at(10 * number), MSS * number, MSS as u32);
    }
    board
}

#[test]
fn a_segment_is_overdue_a_reordering_window_after_later_ones_arrived() {
    let mut board = sent(4);
    let mut summary = board.new_summary(Duration::MAX);
    // The third, sent at 20 µs, arrives first, after 100 µs.
    board.sack(at(120), &[block(200, 300)], &mut summary);
    let find = |board: &mut Scoreboard, now: u64| {
        let mut found = DetectedLosses::default();
        let rules = RackRules {
            now: at(now),
            reordering_window: Duration::from_micros(25),
        };
        board.find_overdue(&rules, &mut found);
        (found.bytes, found.next_overdue)
    };
    // The first was sent at 0: overdue at 0 + 100 + 25, the second at 135.
    assert_eq!(find(&mut board, 120), (0, Some(at(125))));
    assert_eq!(find(&mut board, 125), (MSS, Some(at(135))));
    assert_eq!(find(&mut board, 135), (MSS, None));
    // The fourth was sent after the newest arrived segment.
    assert_eq!(find(&mut board, 10_000), (0, None));
    // After the second's retransmission has arrived, the fourth is overdue, and the first's
    // retransmission will be.
    for (start, time) in [(0, 136), (100, 140)] {
        board.on_resent(at(time), start);
    }
    let mut summary = board.new_summary(Duration::from_micros(90));
    board.sack(at(240), &[block(100, 300)], &mut summary);
    assert_eq!(find(&mut board, 240), (MSS, Some(at(261))));
    assert_eq!(board.next_lost().map(|record| record.start), Some(300));
    assert_eq!(find(&mut board, 261), (MSS, None));
    assert_eq!(board.next_lost().map(|record| record.start), Some(0));
}

#[test]
fn a_sack_sooner_than_the_minimum_rtt_acknowledges_the_original() {
    let mut board = sent(2);
    board.on_resent(at(95), 100);
    let mut summary = board.new_summary(Duration::from_micros(100));
    board.sack(at(110), &[block(100, 200)], &mut summary);
    let mut found = DetectedLosses::default();
    let rules = RackRules {
        now: at(500),
        reordering_window: Duration::ZERO,
    };
    board.find_overdue(&rules, &mut found);
    assert_eq!(found.bytes, 0);
}

#[test]
fn reneged_sacks_return_to_flight() {
    let mut board = sent(3);
    let mut summary = board.new_summary(Duration::MAX);
    board.sack(at(100), &[block(100, 200)], &mut summary);
    assert!(!board.has_reneged());
    board.acknowledge(at(110), 100, &mut summary);
    assert!(board.has_reneged());
    board.forget_sacks();
    assert_eq!((board.in_flight(), board.sacked()), (200, 0));
    board.sack(at(120), &[block(100, 200)], &mut summary);
    assert_eq!((board.in_flight(), board.sacked()), (100, 100));
}

/// Without SACK, the time that the second one has waited for the first is unknown.
#[test]
fn segments_acknowledged_with_a_retransmission_give_no_rtt_sample() {
    let mut board = sent(3);
    board.on_resent(at(200_000), 0);
    let mut summary = board.new_summary(Duration::MAX);
    board.acknowledge(at(200_100), 200, &mut summary);
    assert_eq!(summary.delivered, 200);
    assert_eq!(summary.once_sent, None);
    let mut summary = board.new_summary(Duration::MAX);
    board.acknowledge(at(200_110), 300, &mut summary);
    assert_eq!(summary.once_sent, Some((at(20), at(20))));
}
