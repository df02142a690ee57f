//! The data in one direction of a connection, under a controller.

mod acknowledgment;
mod transmit;

use std::collections::VecDeque;

use weir_congestion::Context;
use weir_fabric::{Clamped, Direction, Handshake, Packet, PacketCount, PortIndex, WindowLimit};
use weir_units::{ByteSize, Duration, Rate, Time};
use weir_wire::tcp::{Segment, Sequence, Timestamps};

use crate::advertised_window::AdvertisedWindow;
use crate::counters::{Counters, EnforcementCounters};
use crate::flight::Flight;
use crate::flow_class::{ClassIndex, FlowClasses};
use crate::flow_controller::FlowController;
use crate::flow_policy::FlowPolicy;
use crate::mark_feedback::MarkFeedback;
use crate::memory_budget::MemoryBudget;
use crate::rate_meter::RateMeter;

pub(crate) use acknowledgment::AckVerdict;

/// The state that all streams share.
#[derive(Debug)]
pub(crate) struct StreamContext {
    pub(crate) memory: MemoryBudget,
    pub(crate) counters: Counters,
    pub(crate) classes: FlowClasses<Option<PortIndex>>,
    /// Packets that have arrived and not been forwarded.
    pub(crate) held: PacketCount,
}

/// The data in one direction.
#[derive(Debug)]
pub(crate) struct Stream<P> {
    pub(crate) direction: Direction,
    /// The policy rule that applies.
    pub(crate) rule: u32,
    pub(crate) class: ClassIndex,
    pub(crate) counters: EnforcementCounters,
    pub(crate) meter: RateMeter,
    pub(crate) began: Time,
    /// The highest rate of its policy.
    pub(crate) max_rate: Option<Rate>,
    pub(crate) flow_controller: FlowController,
    flight: Flight<P>,
    /// First sequence numbers of the waiting segments, in the order of arrival.
    waiting: VecDeque<Sequence>,
    pub(crate) marks: MarkFeedback,
    /// The most bytes of packets that may be kept.
    buffer: ByteSize,
    /// Bytes of packets kept.
    pub(crate) kept: ByteSize,
    /// When the next segment may leave.
    pace_at: Time,
    /// Whether a segment waits for that time only.
    is_paced: bool,
    /// When the RTO of the oldest segment expires; `None` while nothing is outstanding.
    overdue_at: Option<Time>,
    last_sent: Option<Time>,
    /// When the newest of the delivered segments was sent, and where it ends.
    newest_delivered: (Time, Sequence),
    /// Duplicate acknowledgments, from a receiver without SACK.
    duplicates: u64,
    /// Without SACK: holes up to here are found by partial acknowledgments (RFC 6582).
    recover_upto: Option<Sequence>,
    /// The window field of the last acknowledgment, as the receiver sent it.
    last_window: Option<u16>,
    /// The last acknowledgment that was forwarded to the sender: number, window field, and right edge.
    last_forwarded_ack: Option<(Sequence, u16, Sequence)>,
    /// Right edges of the windows that were forwarded to the sender.
    advertised: AdvertisedWindow,
    /// The RTT between here and the sender.
    sender_rtt: Duration,
    /// Header fields of the sender's newest segment.
    newest: Option<SegmentHeader>,
    /// The sender has retransmitted acknowledged data: it has not received the acknowledgment.
    answer_due: bool,
    /// The time for which the owner has scheduled it.
    pub(crate) scheduled: Option<Time>,
}

/// A direction of a connection whose handshake is complete.
pub(crate) struct StreamStart<'h> {
    pub(crate) now: Time,
    pub(crate) policy: &'h FlowPolicy,
    pub(crate) egress: Option<PortIndex>,
    pub(crate) handshake: &'h Handshake,
    pub(crate) way: Direction,
    pub(crate) is_marked: bool,
    /// The RTTs to the receiver and to the sender, if the handshake has measured them.
    pub(crate) rtt: Option<Duration>,
    pub(crate) sender_rtt: Option<Duration>,
    pub(crate) seed: u64,
}

impl<P: Packet + Clone + 'static> Stream<P> {
    /// Creates a stream after its handshake.
    pub(crate) fn new(start: &StreamStart<'_>, shared: &mut StreamContext) -> Option<Self> {
        let (policy, handshake, way) = (start.policy, start.handshake, start.way);
        let segment_size = u64::from(handshake.segment_size(way)?);
        let first = handshake.offer(way)?.sequence + 1;
        let congestion = policy.congestion.name();
        let class = shared.classes.begin(start.egress, policy.rule, congestion);
        let context = Context {
            packet_size: ByteSize::from_bytes(segment_size),
            seed: start.seed,
            is_paced: false,
        };
        let flow_controller = FlowController::new(&policy.congestion, &context, start.rtt);
        let counts_marks = flow_controller.counts_marks();
        Some(Self {
            direction: way,
            rule: policy.rule,
            class,
            counters: EnforcementCounters::default(),
            meter: RateMeter::new(start.now),
            began: start.now,
            max_rate: policy.congestion.max_rate(),
            flow_controller,
            flight: Flight::new(first),
            waiting: VecDeque::new(),
            marks: MarkFeedback::new(start.is_marked, counts_marks),
            buffer: policy.buffer,
            kept: ByteSize::ZERO,
            pace_at: Time::ZERO,
            is_paced: false,
            overdue_at: None,
            last_sent: None,
            newest_delivered: (Time::ZERO, first),
            duplicates: 0,
            recover_upto: None,
            last_window: None,
            last_forwarded_ack: None,
            advertised: AdvertisedWindow::new(first),
            sender_rtt: start.sender_rtt.unwrap_or(Duration::ZERO),
            newest: None,
            answer_due: false,
            scheduled: None,
        })
    }

    /// Returns the bytes in flight.
    pub(crate) fn in_flight(&self) -> ByteSize {
        ByteSize::from_bytes(self.network_flight())
    }

    /// Without SACK each duplicate acknowledgment stands for a segment that has arrived.
    fn network_flight(&self) -> u64 {
        let in_flight = self.flight.bytes.in_flight;
        in_flight.saturating_sub(self.duplicates * self.flow_controller.segment_size)
    }

    /// Returns the limit for the sender's bytes in flight. Bytes delivered beyond a hole are added, as
    /// the window begins at the hole.
    pub(crate) fn limit(&self) -> WindowLimit {
        let amounts = self.flight.bytes;
        let arrived = amounts.delivered + amounts.in_flight - self.network_flight();
        let arrived = ByteSize::from_bytes(arrived);
        let window = self.flow_controller.window();
        let allowed = window.checked_add(arrived).unwrap_or(ByteSize::MAX);
        WindowLimit {
            allowed: allowed.min(self.buffer),
            floor: self.flow_controller.smallest_window(),
        }
    }

    /// Lowers the window of a packet that is forwarded to the sender. A duplicate acknowledgment that
    /// the sender is to recognize keeps the window of the one before (RFC 5681, section 2).
    pub(crate) fn clamp(
        &mut self,
        now: Time,
        packet: &mut P,
        answer: AckVerdict,
        handshake: &Handshake,
        shared: &mut StreamContext,
    ) {
        let way = self.direction.reversed();
        if self.limit().clamp(packet, handshake, way) == Clamped::Lowered {
            shared.counters.lowered += 1;
            self.add_counts(shared, |counters| counters.lowered += 1);
        }
        let Some(mut segment) = packet.tcp() else {
            return;
        };
        let Some(scale) = handshake.scale_of(&segment, way) else {
            return;
        };
        if answer == AckVerdict::ForwardUnchanged
            && let Some((number, window, _)) = self.last_forwarded_ack
            && number == segment.acknowledgment
            && window < segment.window
        {
            packet.set_window(window);
            segment.window = window;
        }
        let edge = segment.acknowledgment + (u32::from(segment.window) << scale);
        self.last_forwarded_ack = Some((segment.acknowledgment, segment.window, edge));
        self.advertised.on_forwarded(now, edge);
    }

    /// Counts for this flow and for its class.
    fn add_counts(&mut self, shared: &mut StreamContext, add: impl Fn(&mut EnforcementCounters)) {
        add(&mut self.counters);
        (shared.classes).update(self.class, |class| add(&mut class.counters));
    }

    /// Whether the sender has left room in a window for so long that it must be app-limited. The time
    /// is twice the sender's RTT, plus a quarter of the receiver's, as sending opportunities come in
    /// bursts. A sender whose own window is smaller than the controller's leaves room too, but not the path
    /// idle.
    fn lacks_data(&mut self, now: Time) -> bool {
        let patience = self.sender_rtt * 2 + self.flow_controller.rtt.smoothed() / 4;
        let room = self.advertised.room(now, patience, self.flight.nxt);
        let amounts = self.flight.bytes;
        amounts.waiting == 0
            && amounts.lost == 0
            && room >= 2 * self.flow_controller.segment_size
            && !self.flow_controller.fills_path(self.in_flight())
    }

    /// Notes the header of a sender's segment, with or without data.
    pub(crate) fn note_header(&mut self, segment: &Segment) {
        let header = SegmentHeader::of(segment);
        if self.newest.is_none_or(|known| !header.is_before(&known)) {
            self.newest = Some(header);
        }
    }

    /// Returns the time at which [`Self::handle_timeout`] has work.
    pub(crate) fn timeout(&self) -> Option<Time> {
        let turn = self.next_to_send().map(|_| self.pace_at);
        turn.into_iter().chain(self.overdue_at).min()
    }

    /// Releases the memory of one copy.
    fn release(&mut self, copy: Option<P>, shared: &mut StreamContext) {
        if let Some(copy) = copy {
            self.kept -= copy.length();
            shared.memory.give_back(copy.length());
        }
    }
}

/// Header fields of a segment for which a receiver may reject it as too old.
#[derive(Clone, Copy, Debug)]
struct SegmentHeader {
    acknowledgment: Sequence,
    window: u16,
    timestamps: Option<Timestamps>,
}

impl SegmentHeader {
    fn of(segment: &Segment) -> Self {
        Self {
            acknowledgment: segment.acknowledgment,
            window: segment.window,
            timestamps: segment.timestamps,
        }
    }

    /// Whether it was made before another one.
    fn is_before(&self, other: &Self) -> bool {
        // RFC 7323, section 5.2.
        let older = match (self.timestamps, other.timestamps) {
            (Some(own), Some(other)) => (own.value.wrapping_sub(other.value) as i32) < 0,
            _ => false,
        };
        older || self.acknowledgment.precedes(other.acknowledgment)
    }

    /// Writes these fields into a packet with older ones.
    fn renew<P: Packet>(&self, packet: &mut P) {
        let is_older = |segment: &Segment| Self::of(segment).is_before(self);
        if packet.tcp().as_ref().is_some_and(is_older) {
            packet.set_acknowledgment(self.acknowledgment);
            packet.set_window(self.window);
            if let Some(timestamps) = self.timestamps {
                packet.set_timestamps(timestamps);
            }
        }
    }
}
