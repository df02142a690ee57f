//! Drops and marks against the pseudocode of RFC 8289, section 5.

use proptest::prelude::*;

use super::*;

const SETTINGS: CodelSettings = CodelSettings {
    target: Duration::from_millis(5),
    interval: Duration::from_millis(100),
    mtu: ByteSize::from_bytes(1500),
    mark: false,
};

fn micros(time: u64) -> Time {
    Time::ZERO + Duration::from_micros(time)
}

/// One packet a microsecond leaves a standing queue of 20 ms, and after a drop the next at once. Returns when
/// CoDel dropped or marked, in microseconds.
fn verdicts(codel: &mut Codel, span: std::ops::Range<u64>, ecn: Ecn) -> Vec<(u64, CodelVerdict)> {
    let mut found = Vec::new();
    for time in span {
        loop {
            let sojourn = Duration::from_millis(20);
            let backlog = ByteSize::from_bytes(100_000);
            let verdict = codel.on_dequeue(micros(time), sojourn, backlog, ecn);
            if verdict != CodelVerdict::Pass {
                found.push((time, verdict));
            }
            if verdict != CodelVerdict::Drop {
                break;
            }
        }
    }
    found
}

/// One interval until the first, then `interval / sqrt(n)`.
fn expected(count: u32) -> Vec<f64> {
    let gaps = (1..count).map(|n| 100_000.0 / f64::from(n).sqrt());
    let times = gaps.scan(100_000.0, |time, gap| {
        *time += gap;
        Some(*time)
    });
    [100_000.0].into_iter().chain(times).collect()
}

fn assert_times(found: &[(u64, CodelVerdict)], verdict: CodelVerdict) {
    let expected = expected(8);
    assert!(found.len() >= expected.len(), "{found:?}");
    for ((time, kind), expected) in found.iter().zip(expected) {
        assert_eq!(*kind, verdict);
        // The first packet at or after the time.
        assert!((*time as f64 - expected).abs() <= 2.0, "{found:?}");
    }
}

#[test]
fn a_standing_queue_loses_packets_by_the_control_law() {
    let found = verdicts(&mut Codel::new(SETTINGS), 0..600_000, Ecn::NotEct);
    assert_times(&found, CodelVerdict::Drop);
}

#[test]
fn ect_packets_are_marked_at_the_same_times() {
    let settings = CodelSettings {
        mark: true,
        ..SETTINGS
    };
    let found = verdicts(&mut Codel::new(settings), 0..600_000, Ecn::Ect0);
    assert_times(&found, CodelVerdict::Mark);
    let found = verdicts(&mut Codel::new(settings), 0..600_000, Ecn::NotEct);
    assert_times(&found, CodelVerdict::Drop);
}

#[test]
fn one_short_wait_or_a_short_queue_ends_the_drops() {
    let long = Duration::from_millis(20);
    let backlog = ByteSize::from_bytes(100_000);
    for (sojourn, backlog) in [
        (Duration::from_nanos(4_999_999), backlog),
        (long, SETTINGS.mtu),
    ] {
        let mut codel = Codel::new(SETTINGS);
        assert_eq!(verdicts(&mut codel, 0..250_000, Ecn::NotEct).len(), 2);
        let verdict = codel.on_dequeue(micros(250_000), sojourn, backlog, Ecn::NotEct);
        assert_eq!(verdict, CodelVerdict::Pass);
        // It takes a whole interval above the target again.
        let found = verdicts(&mut codel, 250_001..360_000, Ecn::NotEct);
        assert_eq!(found, [(350_001, CodelVerdict::Drop)]);
    }
}

/// RFC 8289, section 5.5: within 16 intervals of the last drop, the rate of drops is taken up again.
#[test]
fn the_rate_of_drops_is_resumed_soon_but_not_late() {
    let restart = |after: u64| {
        let mut codel = Codel::new(SETTINGS);
        verdicts(&mut codel, 0..1_000_000, Ecn::NotEct);
        let small = ByteSize::ZERO;
        codel.on_dequeue(micros(1_000_000), Duration::ZERO, small, Ecn::NotEct);
        let found = verdicts(&mut codel, after..after + 300_000, Ecn::NotEct);
        found[1].0 - found[0].0
    };
    assert!(restart(1_100_000) < 40_000);
    assert_eq!(restart(4_000_000), 100_000);
}

/// The pseudocode of RFC 8289, section 5, word by word, with a queue of waits.
#[derive(Default)]
struct Pseudocode {
    queue: std::collections::VecDeque<(u64, u64)>,
    first_above_time: u64,
    drop_next: u64,
    count: u64,
    lastcount: u64,
    dropping: bool,
}

impl Pseudocode {
    fn dodeque(&mut self, now: u64) -> (Option<(u64, u64)>, bool) {
        let packet = self.queue.pop_front();
        let Some((sojourn, _)) = packet else {
            self.first_above_time = 0;
            return (None, false);
        };
        let mut ok_to_drop = false;
        if sojourn < 5_000_000 || self.bytes() <= 1500 {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + 100_000_000;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (packet, ok_to_drop)
    }

    fn bytes(&self) -> u64 {
        self.queue.iter().map(|(_, length)| length).sum()
    }

    fn control_law(&self, time: u64) -> u64 {
        let interval = Duration::from_millis(100);
        time + interval
            .mul_f64(1.0 / (self.count as f64).sqrt())
            .as_nanos()
    }

    /// Returns how many packets it drops, and whether it sends one.
    fn deque(&mut self, now: u64) -> (u64, bool) {
        let (mut packet, mut ok_to_drop) = self.dodeque(now);
        let mut drops = 0;
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                drops += 1;
                self.count += 1;
                (packet, ok_to_drop) = self.dodeque(now);
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            drops += 1;
            packet = self.dodeque(now).0;
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && now.saturating_sub(self.drop_next) < 16 * 100_000_000 {
                self.count = delta;
            }
            self.drop_next = self.control_law(now);
            self.lastcount = self.count;
        }
        (drops, packet.is_some())
    }
}

proptest! {
    #[test]
    fn the_decisions_are_those_of_the_pseudocode(
        phases in prop::collection::vec((1u64..40, 1u64..30_000_000, 0u64..10_000_000), 1..40),
    ) {
        let (mut reference, mut codel) = (Pseudocode::default(), Codel::new(SETTINGS));
        let mut now = 0;
        for (packets, gap, sojourn) in phases {
            for _ in 0..packets {
                now += gap;
                // Both see the same queue, whose packets are replaced as they leave.
                while reference.queue.len() < 40 {
                    reference.queue.push_back((0, 1000));
                }
                reference.queue.iter_mut().for_each(|(wait, _)| *wait = sojourn);
                let mut backlog = reference.bytes();
                let expected = reference.deque(now);
                let mut drops = 0;
                let sent = loop {
                    let Some(rest) = backlog.checked_sub(1000) else {
                        break false;
                    };
                    backlog = rest;
                    let (now, sojourn) = (Time::from_nanos(now), Duration::from_nanos(sojourn));
                    let backlog = ByteSize::from_bytes(backlog);
                    match codel.on_dequeue(now, sojourn, backlog, Ecn::NotEct) {
                        CodelVerdict::Drop => drops += 1,
                        _ => break true,
                    }
                };
                prop_assert_eq!((drops, sent), expected);
            }
        }
    }
}
