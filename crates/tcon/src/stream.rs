//! The data that goes one way of a connection, under a controller.

mod acknowledgment;
mod transmit;

use std::collections::VecDeque;

use weir_congestion::Context;
use weir_fabric::{Clamped, Direction, Handshake, Packet, PacketCount, WindowLimit};
use weir_units::{ByteSize, Duration, Time};
use weir_wire::tcp::{Segment, Sequence, Timestamps};

use crate::advertised_window::AdvertisedWindow;
use crate::counters::{Counters, EnforcementCounters};
use crate::flight::Flight;
use crate::flow_controller::FlowController;
use crate::flow_policy::FlowPolicy;
use crate::memory_budget::MemoryBudget;

pub(crate) use acknowledgment::AckVerdict;

/// What all streams share.
#[derive(Debug)]
pub(crate) struct StreamContext {
    pub(crate) memory: MemoryBudget,
    pub(crate) counters: Counters,
    /// Packets that came in and have not been sent on.
    pub(crate) held: PacketCount,
}

/// The data that goes one way.
#[derive(Debug)]
pub(crate) struct Stream<P> {
    pub(crate) way: Direction,
    /// By which rule it is treated.
    pub(crate) rule: u32,
    pub(crate) counters: EnforcementCounters,
    pub(crate) steering: FlowController,
    flight: Flight<P>,
    /// The first numbers of the segments that wait for their turn, in the order in which they came.
    waiting: VecDeque<Sequence>,
    /// Whether data is sent as ECN-capable.
    pub(crate) is_marked: bool,
    /// How much may be kept, and is.
    buffer: ByteSize,
    /// What is kept of it.
    pub(crate) kept: ByteSize,
    /// When the next segment may leave.
    pace_at: Time,
    /// Whether one waits for nothing but that.
    is_paced: bool,
    /// When the oldest segment is overdue; `None` while nothing is outstanding.
    overdue_at: Option<Time>,
    last_sent: Option<Time>,
    /// When and up to where the newest of the segments was sent that have arrived.
    newest_delivered: (Time, Sequence),
    /// Acknowledgments that repeated the one before, from a receiver without SACK.
    duplicates: u64,
    /// Without SACK: holes up to here are found by partial acknowledgments (RFC 6582).
    recover_upto: Option<Sequence>,
    /// The window field of the last acknowledgment, as the receiver sent it.
    last_window: Option<u16>,
    /// The last acknowledgment that the sender was shown: number, window field, and where it ends.
    told: Option<(Sequence, u16, Sequence)>,
    /// Where the windows ended that the sender was shown.
    advertised: AdvertisedWindow,
    /// The round-trip time between here and the sender.
    sender_rtt: Duration,
    /// What the sender's newest segment says beside its data.
    newest: Option<SegmentHeader>,
    /// The sender has sent what was acknowledged: it has not heard of it.
    answer_due: bool,
    /// When the owner looks after it next.
    pub(crate) scheduled: Option<Time>,
}

impl<P: Packet + Clone + 'static> Stream<P> {
    /// A stream whose handshake is complete. `rtts` are the round-trip times to the receiver and to the
    /// sender that it has measured.
    pub(crate) fn new(
        policy: &FlowPolicy,
        handshake: &Handshake,
        way: Direction,
        is_marked: bool,
        (rtt, sender_rtt): (Option<Duration>, Option<Duration>),
        seed: u64,
    ) -> Option<Self> {
        let segment_size = u64::from(handshake.segment_size(way)?);
        let first = handshake.offer(way)?.sequence + 1;
        let context = Context {
            packet_size: ByteSize::from_bytes(segment_size),
            seed,
        };
        Some(Self {
            way,
            rule: policy.rule,
            counters: EnforcementCounters::default(),
            steering: FlowController::new(&policy.congestion, &context, rtt),
            flight: Flight::new(first),
            waiting: VecDeque::new(),
            is_marked,
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
            told: None,
            advertised: AdvertisedWindow::new(first),
            sender_rtt: sender_rtt.unwrap_or(Duration::ZERO),
            newest: None,
            answer_due: false,
            scheduled: None,
        })
    }

    /// Bytes on their way.
    pub(crate) fn in_flight(&self) -> ByteSize {
        ByteSize::from_bytes(self.network_flight())
    }

    /// Without SACK each repeated acknowledgment stands for a segment that has arrived.
    fn network_flight(&self) -> u64 {
        let in_flight = self.flight.amounts.in_flight;
        in_flight.saturating_sub(self.duplicates * self.steering.segment_size)
    }

    /// What the sender may have outstanding. What has arrived beyond a hole counts on top: the window
    /// begins at the hole.
    pub(crate) fn limit(&self) -> WindowLimit {
        let amounts = self.flight.amounts;
        let arrived = amounts.delivered + amounts.in_flight - self.network_flight();
        let arrived = ByteSize::from_bytes(arrived);
        let window = self.steering.window();
        let allowed = window.checked_add(arrived).unwrap_or(ByteSize::MAX);
        WindowLimit {
            allowed: allowed.min(self.buffer),
            floor: self.steering.smallest_window(),
        }
    }

    /// Lowers the window of a packet that the sender is about to be shown. A repeated acknowledgment that
    /// the sender hears as such keeps the window of the one before (RFC 5681, section 2).
    pub(crate) fn clamp(
        &mut self,
        now: Time,
        packet: &mut P,
        answer: AckVerdict,
        handshake: &Handshake,
        counters: &mut Counters,
    ) {
        let way = self.way.reversed();
        if self.limit().clamp(packet, handshake, way) == Clamped::Lowered {
            counters.lowered += 1;
            self.counters.lowered += 1;
        }
        let Some(mut segment) = packet.tcp() else {
            return;
        };
        let Some(scale) = handshake.scale_of(&segment, way) else {
            return;
        };
        if answer == AckVerdict::Whole
            && let Some((number, window, _)) = self.told
            && number == segment.acknowledgment
            && window < segment.window
        {
            packet.set_window(window);
            segment.window = window;
        }
        let edge = segment.acknowledgment + (u32::from(segment.window) << scale);
        self.told = Some((segment.acknowledgment, segment.window, edge));
        self.advertised.tell(now, edge);
    }

    /// Whether the sender has left room in a window for so long that it must lack data: for the time that
    /// its answer takes, twice, and a quarter of the other round trip, as what it may send comes in
    /// bursts.
    fn lacks_data(&mut self, now: Time) -> bool {
        let patience = self.sender_rtt * 2 + self.steering.rtt.smoothed() / 4;
        let room = self.advertised.room(now, patience, self.flight.nxt);
        let amounts = self.flight.amounts;
        amounts.waiting == 0 && amounts.lost == 0 && room >= 2 * self.steering.segment_size
    }

    /// A segment of the sender's, with data or without, as the receiver gets it.
    pub(crate) fn note_header(&mut self, segment: &Segment) {
        let header = SegmentHeader::of(segment);
        if self.newest.is_none_or(|known| !header.is_before(&known)) {
            self.newest = Some(header);
        }
    }

    /// When [`Self::handle_timeout`] has something to do.
    pub(crate) fn timeout(&self) -> Option<Time> {
        let turn = self.next_to_send().map(|_| self.pace_at);
        turn.into_iter().chain(self.overdue_at).min()
    }

    /// Puts one copy back into the memory.
    fn release(&mut self, copy: Option<P>, shared: &mut StreamContext) {
        if let Some(copy) = copy {
            self.kept -= copy.length();
            shared.memory.give_back(copy.length());
        }
    }
}

/// What a segment says beside its data, and what a receiver holds against it if it is too old.
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

    /// Takes the place of an older one.
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
