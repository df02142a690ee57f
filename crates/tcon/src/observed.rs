//! A flow that is only heard of: somebody else sees its segments, and tells of many at a time.

use std::collections::VecDeque;

use weir_congestion::{AlgorithmSpec, Context, LossCause, PacketDelivery};
use weir_fabric::WindowLimit;
use weir_units::{ByteSize, Duration, Rate, Time};
use weir_wire::tcp::Sequence;

use crate::flight::distance;
use crate::steering::{Delivered, Steering};
use crate::told::Edges;

/// So many segments beyond a hole make it a loss (RFC 5681, section 3.2).
const DUPLICATE_THRESHOLD: u64 = 3;

/// Without spacing, a rate becomes a window by the shortest round trip and this: what Linux puts into
/// one burst at most (`tcp_tso_autosize`), and what delays the acknowledgment of one.
const BURST: Duration = Duration::from_millis(1);

/// In so many parts at most are the acknowledgments of one report told.
const MOST_PARTS: u32 = 64;

/// Losses that are remembered for what was sent before and after them.
const LOSSES: usize = 64;

/// What the handshake of a flow has told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// The number of the first byte of data.
    pub first: Sequence,
    /// The largest data of a segment, in bytes.
    pub segment_size: u32,
    /// Whether both ends speak ECN, so that an echo tells of a mark.
    pub is_marked: bool,
    /// The round trip to the receiver, if it was measured.
    pub rtt: Option<Duration>,
    /// The round trip to the sender: next to nothing where it is on this machine.
    pub sender_rtt: Duration,
}

/// A place in the data: when it was sent, and what had arrived by then. The times and amounts are those
/// of [`PacketDelivery`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Milestone {
    /// When it was sent.
    pub sent_at: Time,
    /// What had been delivered.
    pub delivered: ByteSize,
    /// When.
    pub delivered_at: Time,
    /// When the packet was sent that was delivered then.
    pub first_sent_at: Time,
    /// In flight with it.
    pub in_flight: ByteSize,
}

/// What was seen of a flow since the report before, up to an acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// When the acknowledgment passed.
    pub now: Time,
    /// Bytes that have been delivered, since the flow began: in order, or beyond a hole.
    pub delivered: ByteSize,
    /// The part of them that acknowledgments with an ECN echo told of.
    pub marked: ByteSize,
    /// Bytes that the sender has sent again, since the flow began.
    pub sent_again: ByteSize,
    /// Time-outs of the sender, since the flow began.
    pub timeouts: u64,
    /// When new data was sent last.
    pub sent_at: Time,
    /// The newest round trip that was measured.
    pub rtt: Option<Duration>,
    /// The shortest one, if there were several.
    pub least_rtt: Option<Duration>,
    /// The newest place that has arrived.
    pub passed: Option<Milestone>,
    /// The first number that has not been acknowledged.
    pub una: Sequence,
    /// The number behind the last that was sent.
    pub nxt: Sequence,
    /// Bytes beyond `una` that the receiver has reported, and where they end.
    pub sacked: ByteSize,
    /// Where they end.
    pub sack_end: Sequence,
    /// Acknowledgments that repeated the one before, from a receiver without SACK.
    pub duplicates: u32,
    /// In flight before the acknowledgment.
    pub prior_in_flight: ByteSize,
    /// Where the window ends that the sender was told.
    pub edge: Sequence,
    /// How many acknowledgments have told of something new.
    pub answers: u32,
}

/// A flow whose segments somebody else sees.
///
/// ```
/// use weir_congestion::AlgorithmSpec;
/// use weir_tcon::{Beginning, Observed};
/// use weir_units::{ByteSize, Duration};
/// use weir_wire::tcp::Sequence;
///
/// let beginning = Beginning {
///     first: Sequence::new(1),
///     segment_size: 1448,
///     is_marked: false,
///     rtt: Some(Duration::from_millis(10)),
///     sender_rtt: Duration::ZERO,
/// };
/// let flow = Observed::new(&"cubic".parse::<AlgorithmSpec>()?, &beginning, 1);
/// assert_eq!(flow.limit().allowed, ByteSize::from_bytes(10 * 1448));
/// # Ok::<(), weir_congestion::SpecError>(())
/// ```
#[derive(Debug)]
pub struct Observed {
    steering: Steering,
    is_marked: bool,
    sender_rtt: Duration,
    edges: Edges,
    /// The last report's, or what stands for it before the first.
    una: Sequence,
    nxt: Sequence,
    delivered: ByteSize,
    marked: ByteSize,
    timeouts: u64,
    last_sent: Option<Time>,
    newest_sent: Time,
    /// Bytes of holes that have been declared lost and not been filled, and how much had been sent
    /// again when the first of them was.
    lost: u64,
    sent_again_before: ByteSize,
    sent_again: ByteSize,
    in_flight: u64,
    /// Delivered behind the newest place that has arrived.
    untold: u64,
    /// When how much had been lost in all, the oldest first.
    losses: VecDeque<(Time, ByteSize)>,
    /// From when to when the sender lacked data.
    limited: Option<(Time, Option<Time>)>,
}

impl Observed {
    /// A flow whose handshake is complete; `seed` decides whatever the algorithm randomizes.
    pub fn new(algorithm: &AlgorithmSpec, beginning: &Beginning, seed: u64) -> Self {
        let context = Context {
            packet_size: ByteSize::from_bytes(beginning.segment_size.into()),
            seed,
        };
        Self {
            steering: Steering::new(algorithm, &context, beginning.rtt),
            is_marked: beginning.is_marked,
            sender_rtt: beginning.sender_rtt,
            edges: Edges::new(beginning.first),
            una: beginning.first,
            nxt: beginning.first,
            delivered: ByteSize::ZERO,
            marked: ByteSize::ZERO,
            timeouts: 0,
            last_sent: None,
            newest_sent: Time::ZERO,
            lost: 0,
            sent_again_before: ByteSize::ZERO,
            sent_again: ByteSize::ZERO,
            in_flight: 0,
            untold: 0,
            losses: VecDeque::new(),
            limited: None,
        }
    }

    /// The algorithm.
    pub fn congestion(&self) -> &'static str {
        self.steering.name()
    }

    /// The smoothed round-trip time to the receiver; zero before it is known.
    pub fn rtt(&self) -> Duration {
        self.steering.rtt.smoothed()
    }

    /// The controller's window.
    pub fn window(&self) -> ByteSize {
        self.steering.window()
    }

    /// The rate at which the controller would have segments leave.
    pub fn pacing_rate(&self) -> Option<Rate> {
        self.steering.pacing_rate()
    }

    /// On the way to the receiver.
    pub fn in_flight(&self) -> ByteSize {
        ByteSize::from_bytes(self.in_flight)
    }

    /// What the sender may have outstanding, without what has arrived beyond a hole. Nobody spaces the
    /// segments here: a rate becomes the window that gives it over the shortest round trip.
    pub fn limit(&self) -> WindowLimit {
        let mut allowed = self.steering.window();
        let min_rtt = self.steering.rtt.min();
        if let Some(rate) = self.steering.pacing_rate()
            && min_rtt != Duration::MAX
        {
            allowed = allowed.min(rate.size_in(min_rtt + BURST));
        }
        WindowLimit {
            allowed,
            floor: self.steering.smallest_window(),
        }
    }

    /// Something was seen of the flow.
    pub fn on_report(&mut self, report: &Report) {
        let now = report.now;
        let patience = self.sender_rtt * 2 + self.steering.rtt.smoothed() / 4;
        let room = self.edges.room(now, patience, report.nxt);
        let has_losses = self.lost > 0 || !report.sacked.is_zero();
        if !has_losses && room >= 2 * self.steering.segment_size() {
            // What was sent and is not known to have arrived, as of the report before.
            let outstanding = distance(report.nxt, self.una) + self.untold;
            self.note_lack(now, ByteSize::from_bytes(outstanding));
        }
        let app_limited = self.steering.is_app_limited();
        self.note_sent(report);
        self.find_losses(report);
        self.deliver(report, app_limited);
        self.edges.tell(now, report.edge);
        if !self.steering.is_app_limited()
            && let Some((_, until @ None)) = &mut self.limited
        {
            *until = Some(now);
        }
    }

    fn note_lack(&mut self, now: Time, in_flight: ByteSize) {
        self.steering.set_app_limited(in_flight);
        if !matches!(self.limited, Some((_, None))) {
            self.limited = Some((now, None));
        }
    }

    /// Data that was sent since the last report.
    fn note_sent(&mut self, report: &Report) {
        let news = distance(report.nxt, self.nxt);
        if news == 0 {
            return;
        }
        let was_idle = self.una == self.nxt;
        if was_idle
            && let Some(last) = self.last_sent
            && report.sent_at.since(last) > self.steering.rtt.timeout()
        {
            self.steering.on_idle_restart(report.sent_at);
        }
        let outstanding = match was_idle {
            true => ByteSize::from_bytes(news),
            false => ByteSize::from_bytes(self.in_flight + news),
        };
        self.steering.on_sent(report.sent_at, news, outstanding);
        self.last_sent = Some(report.sent_at);
        self.nxt = report.nxt;
    }

    /// Holes that are newly known, and time-outs.
    fn find_losses(&mut self, report: &Report) {
        let segment = self.steering.segment_size();
        self.una = report.una;
        self.sent_again = report.sent_again;
        let sacked = report.sacked.bytes();
        let holes = match sacked {
            0 => 0,
            _ => distance(report.sack_end, report.una).saturating_sub(sacked),
        };
        let by_sack = sacked > (DUPLICATE_THRESHOLD - 1) * segment;
        let by_repetition = u64::from(report.duplicates) >= DUPLICATE_THRESHOLD;
        let lost = match (by_sack, by_repetition) {
            (true, _) => holes,
            (false, true) => segment.min(distance(report.nxt, report.una)),
            // Holes that have been declared lost are so until they are filled.
            (false, false) => self.lost.min(holes),
        };
        let timed_out = report.timeouts > self.timeouts;
        self.timeouts = report.timeouts;
        let news = lost.saturating_sub(self.lost);
        if self.lost == 0 {
            self.sent_again_before = match lost {
                0 => report.sent_again,
                // What was sent again before the loss was known was sent for it.
                _ => self.sent_again_before,
            };
        }
        self.lost = lost;
        self.in_flight = self.flight_of(report);
        if timed_out {
            let all = distance(report.nxt, report.una).max(segment);
            self.on_loss(report.now, all, LossCause::Timeout);
        } else if news > 0 {
            self.on_loss(report.now, news, LossCause::Acks);
        }
    }

    /// What is neither acknowledged, reported nor lost; what was lost counts again when it was sent again.
    fn flight_of(&self, report: &Report) -> u64 {
        let outstanding = distance(report.nxt, report.una);
        let again =
            self.sent_again.bytes() - self.sent_again_before.bytes().min(self.sent_again.bytes());
        let missing = self.lost.saturating_sub(again);
        let repeated = match report.sacked.is_zero() {
            true => u64::from(report.duplicates) * self.steering.segment_size(),
            false => report.sacked.bytes(),
        };
        outstanding.saturating_sub(repeated + missing)
    }

    fn on_loss(&mut self, now: Time, bytes: u64, cause: LossCause) {
        // What was lost was sent before what told of it.
        let sent = self.newest_sent;
        let in_flight = ByteSize::from_bytes(self.in_flight);
        self.steering.on_loss(now, bytes, sent, cause, in_flight);
        let before = self.losses.back().map_or(ByteSize::ZERO, |(_, all)| *all);
        if self.losses.len() == LOSSES {
            self.losses.pop_front();
        }
        self.losses
            .push_back((now, before + ByteSize::from_bytes(bytes)));
    }

    /// What has arrived since the last report.
    fn deliver(&mut self, report: &Report, app_limited: bool) {
        let news = report.delivered.bytes() - self.delivered.bytes().min(report.delivered.bytes());
        let marked = report.marked.bytes() - self.marked.bytes().min(report.marked.bytes());
        self.delivered = report.delivered;
        self.marked = report.marked;
        if news == 0 {
            return;
        }
        let now = report.now;
        self.untold += news;
        let (news, marked) = self.deliver_first(report, app_limited, news, marked);
        if let Some(passed) = &report.passed {
            let told = std::mem::take(&mut self.untold);
            self.newest_sent = self.newest_sent.max(passed.sent_at);
            let sent = self.remembered(passed);
            self.steering.on_delivered(now, &sent, passed.sent_at, told);
        }
        if let Some(least) = report.least_rtt
            && report.rtt.is_some_and(|newest| least < newest)
        {
            self.steering.rtt.on_sample(least);
        }
        let delivered = Delivered {
            bytes: news,
            marked,
            newest_sent: self.newest_sent,
            rtt: report.rtt,
            app_limited,
            prior_in_flight: report.prior_in_flight,
            in_flight: self.in_flight(),
        };
        self.steering.on_ack(now, &delivered);
    }

    /// All of the acknowledgments but the last, in equal parts, as algorithms count acknowledgments too
    /// (RFC 3465 bounds what one of them may add to a window). Gives what is left for the last.
    fn deliver_first(
        &mut self,
        report: &Report,
        app_limited: bool,
        news: u64,
        marked: u64,
    ) -> (u64, u64) {
        let parts = u64::from(report.answers.clamp(1, MOST_PARTS));
        let marked = if self.is_marked { marked } else { 0 };
        let delivered = Delivered {
            bytes: news / parts,
            marked: marked / parts,
            newest_sent: self.newest_sent,
            rtt: None,
            app_limited,
            prior_in_flight: report.prior_in_flight,
            in_flight: self.in_flight(),
        };
        for _ in 1..parts {
            self.steering.on_ack(report.now, &delivered);
        }
        let others = parts - 1;
        (
            news - delivered.bytes * others,
            marked - delivered.marked * others,
        )
    }

    /// What the estimate of the delivery rate needs of a place in the data.
    fn remembered(&self, place: &Milestone) -> PacketDelivery {
        let is_before = |time: Time| time <= place.sent_at;
        let lost = self.losses.iter().rev().find(|(time, _)| is_before(*time));
        let app_limited = self.limited.is_some_and(|(from, until)| {
            is_before(from) && until.is_none_or(|until| until > place.sent_at)
        });
        PacketDelivery {
            delivered: place.delivered,
            delivered_at: place.delivered_at,
            first_sent_at: place.first_sent_at,
            lost: lost.map_or(ByteSize::ZERO, |(_, all)| *all),
            in_flight: place.in_flight,
            app_limited,
        }
    }
}
