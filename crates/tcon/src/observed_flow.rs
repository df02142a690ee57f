//! A flow that is known from reports only: a data plane sees its segments, and reports many at a time.

use std::collections::VecDeque;

use weir_congestion::{AlgorithmSpec, Context, LossCause, PacketDelivery};
use weir_fabric::WindowLimit;
use weir_units::{ByteSize, Duration, Rate, Time};
use weir_wire::tcp::Sequence;

use crate::ack_replay::AckReplay;
use crate::cap::Cap;
use crate::flight::distance;
use crate::flow_controller::FlowController;
use crate::progress_report::{DeliveryPoint, ProgressReport};
use crate::suspected_loss::{Repeated, SuspectedLoss, Verdict};

/// This many segments beyond a hole make it a loss (RFC 5681, section 3.2).
const DUPLICATE_THRESHOLD: u64 = 3;

/// Without pacing, a rate becomes a window by the shortest RTT plus this: the longest burst of Linux
/// (`tcp_tso_autosize`), which delays the acknowledgment of a segment.
const BURST: Duration = Duration::from_millis(1);

/// The window of a flow with a highest rate covers the RTT plus this. It bounds only bursts: the rate itself is
/// held by the data plane. Senders and receivers on busy machines wake up this late.
const LATENESS: Duration = Duration::from_millis(10);

/// The least window of a flow with a highest rate, in segments: less makes a sender wait for delayed
/// acknowledgments.
const LEAST_SEGMENTS: u64 = 4;

/// Losses that are remembered to tell data sent before them from data sent after them.
const LOSSES: usize = 64;

/// What the handshake of a flow has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowStart {
    /// The sequence number of the first data byte.
    pub first: Sequence,
    /// The largest payload of a segment, in bytes.
    pub segment_size: u32,
    /// Whether both ends negotiated ECN, so that an echo reports a CE mark.
    pub is_marked: bool,
    /// The RTT to the receiver, if it was measured.
    pub rtt: Option<Duration>,
}

/// The controller of a flow whose segments a data plane sees.
///
/// ```
/// use weir_congestion::AlgorithmSpec;
/// use weir_tcon::{FlowStart, ObservedFlow};
/// use weir_units::{ByteSize, Duration};
/// use weir_wire::tcp::Sequence;
///
/// let start = FlowStart {
///     first: Sequence::new(1),
///     segment_size: 1448,
///     is_marked: false,
///     rtt: Some(Duration::from_millis(10)),
/// };
/// let flow = ObservedFlow::new(&"cubic".parse::<AlgorithmSpec>()?, &start, 1);
/// assert_eq!(flow.cap(false).limit.allowed, ByteSize::from_bytes(10 * 1448));
/// # Ok::<(), weir_congestion::SpecError>(())
/// ```
#[derive(Debug)]
pub struct ObservedFlow {
    flow_controller: FlowController,
    max_rate: Option<Rate>,
    is_marked: bool,
    /// From the last report, or the initial value before the first.
    una: Sequence,
    nxt: Sequence,
    delivered: ByteSize,
    marked: ByteSize,
    timeouts: u64,
    last_sent: Option<Time>,
    newest_sent: Time,
    /// The last measured RTT.
    rtt: Option<Duration>,
    /// Bytes of holes that have been declared lost and not filled.
    lost: u64,
    /// Skipped bytes that have been declared lost, or were only reordered.
    skipped: ByteSize,
    /// Retransmitted bytes when the first of the holes was declared lost.
    sent_again_before: ByteSize,
    sent_again: ByteSize,
    in_flight: u64,
    /// Bytes delivered since the newest delivery point.
    delivered_since_point: u64,
    /// When bytes were declared lost, with the running total of lost bytes, the oldest first.
    losses: VecDeque<(Time, ByteSize)>,
    /// A loss that may still turn out spurious.
    suspected: Option<SuspectedLoss>,
    /// As of the last report without a hole.
    repeated: Repeated,
}

impl ObservedFlow {
    /// Creates a flow after its handshake; `seed` randomizes the algorithm.
    pub fn new(algorithm: &AlgorithmSpec, beginning: &FlowStart, seed: u64) -> Self {
        let context = Context {
            packet_size: ByteSize::from_bytes(beginning.segment_size.into()),
            seed,
            is_paced: false,
        };
        Self {
            flow_controller: FlowController::new(algorithm, &context, beginning.rtt),
            max_rate: algorithm.max_rate(),
            is_marked: beginning.is_marked,
            una: beginning.first,
            nxt: beginning.first,
            delivered: ByteSize::ZERO,
            marked: ByteSize::ZERO,
            timeouts: 0,
            last_sent: None,
            newest_sent: Time::ZERO,
            rtt: beginning.rtt,
            lost: 0,
            skipped: ByteSize::ZERO,
            sent_again_before: ByteSize::ZERO,
            sent_again: ByteSize::ZERO,
            in_flight: 0,
            delivered_since_point: 0,
            losses: VecDeque::new(),
            suspected: None,
            repeated: Repeated::default(),
        }
    }

    /// Returns the name of the algorithm.
    pub fn congestion(&self) -> &'static str {
        self.flow_controller.controller.name()
    }

    /// Returns the smoothed RTT to the receiver; zero before it is known.
    pub fn rtt(&self) -> Duration {
        self.flow_controller.rtt.smoothed()
    }

    /// Returns the shortest RTT to the receiver, once one is known.
    pub fn rtt_min(&self) -> Option<Duration> {
        self.flow_controller.rtt.shortest()
    }

    /// Returns the largest payload of a segment.
    pub fn segment_size(&self) -> ByteSize {
        ByteSize::from_bytes(self.flow_controller.segment_size)
    }

    /// Returns the controller's window.
    pub fn window(&self) -> ByteSize {
        self.flow_controller.window()
    }

    /// Returns the controller's pacing rate.
    pub fn pacing_rate(&self) -> Option<Rate> {
        self.flow_controller.pacing_rate()
    }

    /// Returns the highest rate of its payload.
    pub fn max_rate(&self) -> Option<Rate> {
        self.max_rate
    }

    /// Returns the bytes in flight to the receiver.
    pub fn in_flight(&self) -> ByteSize {
        ByteSize::from_bytes(self.in_flight)
    }

    /// Returns the limits for the sender. Where its segments are not paced (`is_paced`), the rate is
    /// converted to the window that yields it over the shortest RTT. A highest rate is left to the data
    /// plane, because it has to hold whatever the RTT is.
    pub fn cap(&self, is_paced: bool) -> Cap {
        let (window, rate) = (
            self.flow_controller.window(),
            self.flow_controller.pacing_rate(),
        );
        let rate = self
            .max_rate
            .map_or(rate, |most| Some(rate.map_or(most, |rate| rate.min(most))));
        let allowed = match (self.max_rate, rate) {
            (Some(most), _) => window.min(self.burst_at(most)),
            (None, Some(rate)) if !is_paced && self.flow_controller.rtt.min != Duration::MAX => {
                window.min(rate.size_in(self.flow_controller.rtt.min + BURST))
            }
            _ => window,
        };
        Cap {
            limit: WindowLimit {
                allowed,
                floor: self.flow_controller.smallest_window(),
            },
            rate: rate.filter(|_| is_paced),
            max_rate: self.max_rate.filter(|_| !is_paced),
            socket_rate: self.max_rate.and(rate),
        }
    }

    /// Returns the window of a flow with this highest rate.
    fn burst_at(&self, most: Rate) -> ByteSize {
        let least = ByteSize::from_bytes(LEAST_SEGMENTS * self.flow_controller.segment_size);
        most.size_in(self.rtt() + LATENESS).max(least)
    }

    /// Processes a report.
    pub fn on_report(&mut self, report: &ProgressReport) {
        let known = self.delivered - ByteSize::from_bytes(self.delivered_since_point);
        if report.limited_until > known {
            // The kernel programs add one byte, so that zero means that there was no limit.
            let outstanding = report.limited_until - known;
            (self.flow_controller).set_app_limited(outstanding - ByteSize::from_bytes(1));
        }
        self.note_sent(report);
        let mut answers = self.answers(report);
        let before = self.delivered.bytes() + self.before_losses(report);
        // Data that arrived in order was acknowledged before anything was missing.
        while answers.left() > 1 && answers.upto < before {
            self.deliver_next(&mut answers);
        }
        self.find_losses(report);
        self.revoke_losses(report);
        while answers.left() > 0 {
            self.deliver_next(&mut answers);
        }
        self.rtt = answers.rtt;
        self.delivered = report.delivered;
        self.marked = report.marked;
        // Senders may retransmit before a loss is certain.
        if report.sacked.is_zero() && report.duplicates == 0 {
            self.repeated = Repeated {
                retransmitted: report.retransmitted,
                duplicated: report.duplicated,
            };
        }
    }

    /// Notes data sent since the last report.
    fn note_sent(&mut self, report: &ProgressReport) {
        let summary = distance(report.nxt, self.nxt);
        if summary == 0 {
            return;
        }
        let was_idle = self.una == self.nxt;
        if was_idle
            && let Some(last) = self.last_sent
            && report.sent_at.since(last) > self.flow_controller.rtt.rto()
        {
            self.flow_controller.on_idle_restart(report.sent_at);
        }
        let outstanding = if was_idle {
            ByteSize::from_bytes(summary)
        } else {
            ByteSize::from_bytes(self.in_flight + summary)
        };
        self.flow_controller
            .on_sent(report.sent_at, summary, outstanding);
        self.last_sent = Some(report.sent_at);
        self.nxt = report.nxt;
    }

    /// Returns the bytes that arrived before the receiver first reported a hole; zero if it did so
    /// earlier.
    fn before_losses(&self, report: &ProgressReport) -> u64 {
        let is_first = self.lost == 0 && !report.sacked.is_zero();
        if is_first {
            distance(report.una, self.una)
        } else {
            0
        }
    }

    /// Detects new holes and RTOs.
    fn find_losses(&mut self, report: &ProgressReport) {
        let segment = self.flow_controller.segment_size;
        self.una = report.una;
        self.sent_again = report.retransmitted;
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
            // Holes that have been declared lost stay lost until they are filled.
            (false, false) => self.lost.min(holes),
        };
        let timed_out = report.timeouts > self.timeouts;
        self.timeouts = report.timeouts;
        let skipped = (report.skipped - self.skipped).bytes();
        let (summary, sent_at) = if by_sack {
            (skipped, report.skipped_at)
        } else if sacked == 0 && skipped > 0 {
            // The holes were filled between two reports: by retransmissions, or late.
            (skipped.min(self.newly_repaired(report)), report.skipped_at)
        } else {
            // The lost segments were sent before the acknowledgments that reported the loss.
            (lost.saturating_sub(self.lost), self.newest_sent)
        };
        if by_sack || sacked == 0 {
            self.skipped = report.skipped;
        }
        if self.lost == 0 {
            self.sent_again_before = match lost {
                0 => report.retransmitted,
                // Retransmissions before the loss was known were made for it.
                _ => self.sent_again_before,
            };
        }
        self.lost = lost;
        self.in_flight = self.flight_of(report);
        if timed_out {
            let all = distance(report.nxt, report.una).max(segment);
            self.on_loss(report.now, all, self.newest_sent, LossCause::Timeout);
            self.suspected = None;
        } else if summary > 0 {
            self.on_loss(report.now, summary, sent_at, LossCause::Acks);
            self.suspect(summary, sent_at, report);
        }
    }

    /// Returns the bytes that were retransmitted since the last report without a hole, but for those that had arrived before.
    fn newly_repaired(&self, report: &ProgressReport) -> u64 {
        let again = report.retransmitted - self.repeated.retransmitted;
        (again - (report.duplicated - self.repeated.duplicated)).bytes()
    }

    /// Notes a loss by acknowledgments, which may have other causes.
    fn suspect(&mut self, bytes: u64, sent_at: Time, report: &ProgressReport) {
        let suspected = self.suspected.as_mut();
        if !suspected.is_some_and(|loss| loss.extend(bytes, sent_at, report)) {
            let loss = SuspectedLoss::new(bytes, sent_at, report, self.repeated);
            self.suspected = Some(loss);
        }
    }

    /// Tells the controller of a loss that turns out spurious.
    fn revoke_losses(&mut self, report: &ProgressReport) {
        let rtt = self.rtt();
        let Some(suspected) = &mut self.suspected else {
            return;
        };
        match suspected.judge(report, rtt) {
            Verdict::Open => return,
            Verdict::Spurious(loss) => self.flow_controller.controller.on_spurious_loss(&loss),
            Verdict::Confirmed => {}
        }
        self.suspected = None;
    }

    /// Returns the bytes that are neither acknowledged, SACKed nor lost. Lost bytes count again once
    /// they have been retransmitted.
    fn flight_of(&self, report: &ProgressReport) -> u64 {
        let outstanding = distance(report.nxt, report.una);
        let again =
            self.sent_again.bytes() - self.sent_again_before.bytes().min(self.sent_again.bytes());
        let missing = self.lost.saturating_sub(again);
        let repeated = if report.sacked.is_zero() {
            u64::from(report.duplicates) * self.flow_controller.segment_size
        } else {
            report.sacked.bytes()
        };
        outstanding.saturating_sub(repeated + missing)
    }

    fn on_loss(&mut self, now: Time, bytes: u64, sent_at: Time, cause: LossCause) {
        let in_flight = ByteSize::from_bytes(self.in_flight);
        (self.flow_controller).on_loss(now, bytes, sent_at, cause, in_flight);
        let before = self.losses.back().map_or(ByteSize::ZERO, |(_, all)| *all);
        if self.losses.len() == LOSSES {
            self.losses.pop_front();
        }
        self.losses
            .push_back((now, before + ByteSize::from_bytes(bytes)));
    }

    /// Returns the acknowledgments that a report covers.
    fn answers<'r>(&self, report: &'r ProgressReport) -> AckReplay<'r> {
        // Karn's rule.
        let is_clear = report.retransmitted == self.sent_again && report.sacked.is_zero();
        let marked = if self.is_marked {
            report.marked - self.marked
        } else {
            ByteSize::ZERO
        };
        let rounds_end_anywhere = !self.flow_controller.controller.wants_delivery();
        AckReplay::new(report, self.delivered, marked)
            .after(self.newest_sent, self.rtt, is_clear)
            .with_rounds(rounds_end_anywhere)
    }

    /// Processes the next acknowledgment.
    fn deliver_next(&mut self, answers: &mut AckReplay<'_>) {
        let answer = answers.next(self.in_flight());
        self.delivered_since_point += answer.delivered.bytes;
        self.newest_sent = self.newest_sent.max(answer.delivered.newest_sent);
        if let Some(point) = answer.point {
            let told = std::mem::take(&mut self.delivered_since_point);
            let sent = self.remembered(&point);
            (self.flow_controller).on_delivered(answer.now, &sent, point.sent_at, told);
        }
        self.flow_controller.on_ack(answer.now, &answer.delivered);
    }

    /// Returns what the delivery rate estimator needs of a delivery point.
    fn remembered(&self, point: &DeliveryPoint) -> PacketDelivery {
        let is_before = |time: Time| time <= point.sent_at;
        let lost = self.losses.iter().rev().find(|(time, _)| is_before(*time));
        PacketDelivery {
            delivered: point.delivered,
            delivered_at: point.delivered_at,
            first_sent_at: point.first_sent_at,
            lost: lost.map_or(ByteSize::ZERO, |(_, all)| *all),
            in_flight: point.in_flight,
            app_limited: point.app_limited,
        }
    }
}
