//! Compares connections with fast paths, whose sending halves are built at the first write, to the same
//! connections without: every segment, every timeout, the counters and the state, over a network that loses,
//! delays, reorders, duplicates and marks at random.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use weir_congestion::Controller;
use weir_tcp::{
    Config, ConfigError, Connection, ControllerFactory, ControllerSource, DelayedAcks, EcnMode,
    KeepAlive, LossDetection, Pacing, QuickNext,
};
use weir_units::{ByteSize, Duration, Time};
use weir_wire::Ecn;
use weir_wire::tcp::{Segment, Sequence};

use super::world::{Opening, controller};

/// One end twice: with fast paths and without.
struct Twins {
    fast: Connection,
    general: Connection,
    /// What both have built in reply to the last segment.
    reply: Option<(Segment, Ecn)>,
    /// Whether the first one says that it has nothing more to send.
    has_sent_all: bool,
}

/// The controllers of a case.
#[derive(Debug)]
struct Factory {
    algorithm: &'static str,
    config: Arc<Config>,
}

impl ControllerFactory for Factory {
    fn build(&self, _: u64) -> Box<dyn Controller> {
        controller(self.algorithm, &self.config)
    }
}

impl Factory {
    /// Returns the latest source that the algorithm allows.
    fn late(self: &Arc<Self>) -> ControllerSource {
        let controller = self.build(0);
        if controller.wants_delivery() {
            return controller.into();
        }
        ControllerSource::AtFirstWrite {
            factory: Arc::clone(self) as Arc<dyn ControllerFactory>,
            seed: 0,
        }
    }
}

impl Twins {
    fn new(
        factory: &Arc<Factory>,
        end: impl Fn(ControllerSource) -> Result<Connection, ConfigError>,
    ) -> Self {
        let general = end(factory.build(0).into()).unwrap();
        Self {
            general: general.without_fast_paths(),
            fast: end(factory.late()).unwrap(),
            reply: None,
            has_sent_all: false,
        }
    }

    fn both(&mut self, mut act: impl FnMut(&mut Connection)) {
        self.has_sent_all = false;
        act(&mut self.fast);
        act(&mut self.general);
    }

    fn receive(&mut self, now: Time, segment: &Segment, ecn: Ecn) {
        // Also without a reply, which is then asked for.
        let may_send = !segment.acknowledgment.number().is_multiple_of(5);
        let has_data = segment.payload > 0;
        let next = if has_data {
            self.fast.take_data(now, segment, ecn, may_send)
        } else {
            self.fast.take_acknowledgment(now, segment, may_send)
        };
        let Some(next) = next else {
            self.fast.receive(now, segment, ecn);
            self.general.receive(now, segment, ecn);
            return;
        };
        self.general.receive(now, segment, ecn);
        match next {
            _ if !may_send => assert_eq!(next, QuickNext::Nothing),
            QuickNext::Nothing => assert_eq!(self.general.next_segment(now), None),
            QuickNext::Segment => {
                let reply = if has_data {
                    self.fast.quick_acknowledgment(now)
                } else {
                    self.fast.quick_data(now)
                };
                self.reply = Some(reply);
                assert_eq!(self.reply, self.general.next_segment(now), "at {now}");
                self.has_sent_all = !self.fast.may_send_more(now);
            }
            QuickNext::Unknown => {}
        }
        let due = self.fast.quick_timeout();
        assert_eq!((due != Time::MAX).then_some(due), self.fast.timeout());
    }

    fn next_segment(&mut self, now: Time) -> Option<(Segment, Ecn)> {
        if let Some(reply) = self.reply.take() {
            return Some(reply);
        }
        let had_sent_all = std::mem::take(&mut self.has_sent_all);
        let next = self.fast.next_segment(now);
        assert_eq!(next, self.general.next_segment(now), "at {now}");
        assert!(next.is_none() || !had_sent_all, "at {now}");
        next
    }

    fn timeout(&self) -> Option<Time> {
        let timeout = self.fast.timeout();
        assert_eq!(timeout, self.general.timeout());
        timeout
    }

    /// Compares all that can be seen from outside.
    fn compare(&self) {
        let (fast, general) = (&self.fast, &self.general);
        assert_eq!(fast.counters(), general.counters());
        assert_eq!(fast.snapshot(), general.snapshot());
        assert_eq!(fast.state(), general.state());
        assert_eq!(fast.ending(), general.ending());
        assert_eq!(fast.received(), general.received());
        assert_eq!(fast.unread(), general.unread());
        assert_eq!(fast.acknowledged(), general.acknowledged());
        assert_eq!(fast.remaining(), general.remaining());
        self.timeout();
    }
}

/// How often, of 1,000 packets or events, something happens to one.
#[derive(Clone, Debug)]
struct Odds {
    loss: u64,
    duplicate: u64,
    late: u64,
    mark: u64,
    write: u64,
    close: u64,
    early_timer: u64,
    read: u64,
}

#[derive(Clone, Debug)]
struct Case {
    config: Config,
    algorithm: &'static str,
    opening: Opening,
    odds: Odds,
    /// The time between two segments that arrive, at least.
    spacing: Duration,
    delay: Duration,
    /// Which ends send endlessly.
    endless: [bool; 2],
    seed: u64,
}

/// Numbers from a seed (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn happens(&mut self, of_1000: u64) -> bool {
        self.below(1000) < of_1000
    }
}

struct Arena {
    now: Time,
    /// The client and the server.
    ends: [Twins; 2],
    /// The packets on the way to each end, by arrival.
    ways: [BTreeMap<(Time, u64), (Segment, Ecn)>; 2],
    sent: u64,
    dice: Dice,
}

impl Arena {
    fn new(case: &Case) -> Self {
        let now = Time::ZERO + Duration::from_secs(1);
        let config = &Arc::new(case.config.clone());
        let factory = Arc::new(Factory {
            algorithm: case.algorithm,
            config: Arc::clone(config),
        });
        let twins = |end: &dyn Fn(ControllerSource) -> _| Twins::new(&factory, end);
        let (ours, theirs) = (Sequence::new(u32::MAX - 40_000), Sequence::new(77));
        let ends = match case.opening {
            Opening::Handshake => [
                twins(&|source| Connection::client(now, config, source, ours)),
                twins(&|source| Connection::server(config, source, theirs)),
            ],
            Opening::Established => [
                twins(&|source| Connection::established(now, config, config, source, ours, theirs)),
                twins(&|source| Connection::established(now, config, config, source, theirs, ours)),
            ],
        };
        Self {
            now,
            ends,
            ways: [BTreeMap::new(), BTreeMap::new()],
            sent: 0,
            dice: Dice(case.seed | 1),
        }
    }

    /// Sends what an end has to send, and compares the twins.
    fn flush(&mut self, side: usize, case: &Case) {
        while let Some((segment, ecn)) = self.ends[side].next_segment(self.now) {
            let size = self.ends[side].fast.segment_size().bytes() as u32;
            for piece in segment.segments(size) {
                self.launch(1 - side, piece, ecn, case);
            }
        }
        self.ends[side].compare();
    }

    fn launch(&mut self, to: usize, segment: Segment, ecn: Ecn, case: &Case) {
        let odds = &case.odds;
        if self.dice.happens(odds.loss) {
            return;
        }
        let copies = 1 + u64::from(self.dice.happens(odds.duplicate));
        for _ in 0..copies {
            let ecn = if ecn == Ecn::Ect0 && self.dice.happens(odds.mark) {
                Ecn::Ce
            } else {
                ecn
            };
            let mut at = self.now + case.delay;
            if self.dice.happens(odds.late) {
                at += case.delay * self.dice.below(4) / 2;
            } else if let Some((&(last, _), _)) = self.ways[to].last_key_value() {
                at = at.max(last + case.spacing);
            }
            self.sent += 1;
            self.ways[to].insert((at, self.sent), (segment, ecn));
        }
    }

    /// Handles the next event. Returns false if there is none.
    fn step(&mut self, case: &Case) -> bool {
        let arrivals = [0, 1].map(|side| {
            let way = &self.ways[side];
            way.first_key_value().map(|(&(at, _), _)| at)
        });
        let timers = [0, 1].map(|side| self.ends[side].timeout());
        let Some(next) = arrivals.into_iter().chain(timers).flatten().min() else {
            return false;
        };
        self.now = self.now.max(next);
        let now = self.now;
        for side in [0, 1] {
            if arrivals[side].is_some_and(|at| at <= now) {
                if let Some((_, (segment, ecn))) = self.ways[side].pop_first() {
                    self.ends[side].receive(now, &segment, ecn);
                }
            } else if timers[side].is_some_and(|at| at <= now)
                || self.dice.happens(case.odds.early_timer)
            {
                self.ends[side].both(|end| end.handle_timeout(now));
            } else {
                continue;
            }
            self.act(side, case);
            self.flush(side, case);
        }
        true
    }

    /// Lets the application of an end do something.
    fn act(&mut self, side: usize, case: &Case) {
        if self.dice.happens(case.odds.write) {
            let size = ByteSize::from_bytes(1 + self.dice.below(20_000));
            self.ends[side].both(|end| end.write(size));
        }
        if self.dice.happens(case.odds.close) {
            self.ends[side].both(Connection::close);
        }
        if self.dice.happens(case.odds.read) {
            let size = ByteSize::from_bytes(self.dice.below(50_000));
            self.ends[side].both(|end| end.read(size));
        }
    }
}

fn run(case: &Case) {
    let mut arena = Arena::new(case);
    arena.ends[0].both(|end| end.write(ByteSize::from_bytes(100_000)));
    for (twins, endless) in arena.ends.iter_mut().zip(case.endless) {
        if endless {
            twins.both(Connection::write_endlessly);
        }
    }
    for side in [0, 1] {
        arena.flush(side, case);
    }
    for _ in 0..4_000 {
        if !arena.step(case) {
            break;
        }
    }
}

fn odds() -> impl Strategy<Value = Odds> {
    let seldom = || prop_oneof![3 => Just(0), 2 => Just(3), 1 => 0_u64..60];
    (
        seldom(),
        seldom(),
        seldom(),
        prop_oneof![Just(0), Just(50), 0_u64..600],
        prop_oneof![Just(0), Just(20), Just(300)],
        prop_oneof![4 => Just(0), 1 => Just(1)],
        prop_oneof![Just(0), Just(20)],
        prop_oneof![Just(0), Just(200)],
    )
        .prop_map(
            |(loss, duplicate, late, mark, write, close, early_timer, read)| Odds {
                loss,
                duplicate,
                late,
                mark,
                write,
                close,
                early_timer,
                read,
            },
        )
}

fn config() -> impl Strategy<Value = Config> {
    let delayed = || {
        prop_oneof![
            Just(None),
            (2_u32..4, 0_u32..20).prop_map(|(segments, quick_segments)| Some(DelayedAcks {
                segments,
                timeout: Duration::from_millis(1),
                quick_segments,
            })),
        ]
    };
    let ecn = prop_oneof![
        Just(EcnMode::Off),
        Just(EcnMode::Classic),
        Just(EcnMode::Dctcp)
    ];
    let paced = Pacing::Window {
        slow_start: 2.0,
        avoidance: 1.2,
    };
    let choices = (
        any::<bool>(),
        prop_oneof![3 => Just(1_u32), 1 => Just(4)],
        prop_oneof![4 => Just(Pacing::Controller), 1 => Just(paced)],
        prop_oneof![4 => Just(true), 1 => Just(false)],
        prop_oneof![4 => Just(true), 1 => Just(false)],
        prop_oneof![3 => Just(LossDetection::RackTlp), 1 => Just(LossDetection::DuplicateThreshold)],
    );
    let more = (
        any::<bool>(),
        any::<bool>(),
        prop_oneof![3 => Just(None), 1 => Just(Some(ByteSize::from_bytes(30_000)))],
        prop_oneof![6 => Just(None), 1 => Just(Some(KeepAlive::default()))],
        any::<bool>(),
        prop_oneof![Just(15_u32), 1_u32..4],
    );
    (delayed(), ecn, choices, more).prop_map(|(delayed_acks, ecn, choices, more)| {
        let (timestamps, burst_segments, pacing, sack, read_automatically, loss_detection) =
            choices;
        let (limited_transmit, proportional, buffer, keep_alive, frto, max_retries) = more;
        Config {
            timestamps: timestamps.then_some(Duration::from_millis(1)),
            ecn,
            sack,
            delayed_acks,
            burst_segments,
            pacing,
            read_automatically,
            loss_detection,
            limited_transmit,
            proportional_rate_reduction: proportional,
            receive_buffer: buffer.or(Config::default().receive_buffer),
            keep_alive,
            frto,
            max_retries,
            min_rto: Duration::from_millis(5),
            early_timer_margin: Duration::from_micros(200),
            ..Config::default()
        }
    })
}

fn case() -> impl Strategy<Value = Case> {
    (
        config(),
        prop_oneof![
            3 => Just("dctcp"),
            2 => Just("cubic"),
            1 => Just("newreno"),
            1 => Just("dctcp,min_window=0.1"),
            1 => Just("bbr3"),
            1 => Just("swift"),
            1 => Just("cubic,max_window=40KB"),
        ],
        prop_oneof![Just(Opening::Established), Just(Opening::Handshake)],
        odds(),
        (0_u64..3_000, 1_u64..600),
        any::<[bool; 2]>(),
        any::<u64>(),
    )
        .prop_map(
            |(config, algorithm, opening, odds, (spacing, delay), endless, seed)| Case {
                config,
                algorithm,
                opening,
                odds,
                spacing: Duration::from_nanos(spacing),
                delay: Duration::from_micros(delay),
                endless,
                seed,
            },
        )
}

proptest! {
    #[test]
    fn fast_paths_change_nothing(case in case()) {
        run(&case);
    }
}
