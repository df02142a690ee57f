//! Transmission to the receiver: the sender's segments in their turn, and copies of lost ones.

use weir_congestion::LossCause;
use weir_fabric::{Output, Packet, PortIndex};
use weir_units::{ByteSize, Duration, Time};
use weir_wire::Ecn;
use weir_wire::tcp::{Flags, Segment, Sequence};

use super::{Stream, StreamContext};
use crate::flight::{SegmentState, SentSegment, distance};

/// A timer may be this late without a loss of rate: Linux lets a flow send at once what its rate yields
/// in as much time (`sk_pacing_shift`).
const LATEST: Duration = Duration::from_millis(1);

/// A segment further ahead of nxt is not of this connection: the largest window is 2^30 (RFC 7323,
/// section 2.3).
const FURTHEST: u64 = 1 << 30;

impl<P: Packet + Clone + 'static> Stream<P> {
    /// Handles data or a FIN of the sender.
    pub(crate) fn on_data(
        &mut self,
        now: Time,
        ingress: PortIndex,
        packet: P,
        segment: &Segment,
        shared: &mut StreamContext,
        out: &mut Output<'_, P>,
    ) {
        let (start, end) = (segment.sequence, segment.end());
        let (una, nxt) = (self.flight.una, self.flight.nxt);
        if !una.precedes(end) {
            // The acknowledgment was lost on its way to the sender, or this probes the connection.
            self.answer_due = true;
            return out.forward(ingress, packet);
        }
        if distance(start, nxt) > FURTHEST {
            shared.counters.unkept += 1;
            return out.forward(ingress, packet);
        }
        if start.precedes(una) {
            shared.counters.unkept += 1;
            self.flight.extend_to(end);
            return out.forward(ingress, packet);
        }
        let known = self.flight.positions(start, end);
        if known.is_empty() {
            self.on_new_data(now, ingress, packet, (start, end), shared, out);
        } else {
            self.on_repeated_data(now, ingress, packet, (start, end), known, shared, out);
        }
        self.pump(now, shared, out);
    }

    fn on_new_data(
        &mut self,
        now: Time,
        ingress: PortIndex,
        packet: P,
        (start, end): (Sequence, Sequence),
        shared: &mut StreamContext,
        out: &mut Output<'_, P>,
    ) {
        shared.counters.segments += 1;
        self.note_idleness(now);
        let mut record = SentSegment {
            start,
            end,
            ingress,
            copy: None,
            sent_at: now,
            transmissions: 0,
            delivery: self
                .flow_controller
                .delivery_state(now, 0, self.in_flight()),
            state: SegmentState::Waiting,
        };
        let length = packet.length();
        if self.kept + length <= self.buffer && shared.memory.take(length) {
            self.kept += length;
            shared.held.record(length);
            record.copy = Some(packet);
            self.waiting.push_back(start);
            self.flight.insert(record);
            return;
        }
        // Without room for a copy, repair is left to the sender; the segment is only measured.
        shared.counters.unkept += 1;
        record.state = SegmentState::InFlight;
        let position = self.flight.insert(record);
        self.note_sent(now, position);
        out.forward(ingress, self.prepared(packet, true));
    }

    /// Handles a retransmission by the sender.
    #[expect(clippy::too_many_arguments)]
    fn on_repeated_data(
        &mut self,
        now: Time,
        ingress: PortIndex,
        packet: P,
        (start, end): (Sequence, Sequence),
        known: std::ops::Range<usize>,
        shared: &mut StreamContext,
        out: &mut Output<'_, P>,
    ) {
        let again = ByteSize::from_bytes(distance(end, start));
        self.add_counts(shared, |counters| counters.sent_again += again);
        shared.counters.sent_again += again;
        let (mut reached, mut all_kept) = (start, true);
        for position in known.clone() {
            if let Some(record) = self.flight.record(position) {
                all_kept &= record.copy.is_some() && !reached.precedes(record.start);
                reached = record.end;
            }
        }
        if all_kept && !reached.precedes(end) {
            shared.counters.repeated += 1;
            for position in known {
                self.mark_late_lost(now, position);
            }
            return out.absorb(packet);
        }
        // It overlaps data without a copy, or is split differently: it is forwarded, and no longer
        // measures RTTs.
        shared.counters.unkept += 1;
        // The sender may have detected a loss before it is known here.
        let is_known = self.flight.bytes.delivered > 0;
        let (mut lost, mut newest) = (0, Time::ZERO);
        for position in known {
            if let Some(record) = self.flight.record_mut(position) {
                if is_known && record.state == SegmentState::InFlight && record.copy.is_none() {
                    lost += record.length();
                    newest = newest.max(record.sent_at);
                }
                record.transmissions += 1;
                record.sent_at = now;
                if record.copy.is_none() {
                    self.flight.move_to(position, SegmentState::InFlight);
                }
            }
        }
        if lost > 0 {
            let (in_flight, cause) = (self.in_flight(), LossCause::Acks);
            (self.flow_controller).on_loss(now, lost, newest, cause, in_flight);
        }
        self.flight.extend_to(end);
        out.forward(ingress, self.prepared(packet, false));
    }

    /// Marks a segment as lost that has been in flight for an RTT, as its sender asks for it.
    fn mark_late_lost(&mut self, now: Time, position: usize) {
        let patience = self.flow_controller.rtt.smoothed();
        let is_late = |record: &SentSegment<P>| {
            record.state == SegmentState::InFlight && now.since(record.sent_at) > patience
        };
        if self.flight.record(position).is_some_and(is_late) {
            self.flight.move_to(position, SegmentState::Lost);
        }
    }

    /// Restarts the controller if the sender was idle for longer than the RTO, as its state may be
    /// stale.
    fn note_idleness(&mut self, now: Time) {
        if self.flight.una == self.flight.nxt
            && let Some(last_sent) = self.last_sent
            && now.since(last_sent) > self.flow_controller.rtt.rto()
        {
            self.flow_controller.on_idle_restart(now);
        }
    }

    /// Returns the segment that would be sent next once pacing allows: lost ones before new ones.
    pub(super) fn next_to_send(&self) -> Option<usize> {
        let amounts = self.flight.bytes;
        let position = if amounts.lost > 0 {
            let lost = |record: &SentSegment<P>| {
                record.state == SegmentState::Lost && record.copy.is_some()
            };
            self.flight.position(lost)
        } else {
            None
        };
        let position = position.or_else(|| {
            let start = *self.waiting.front()?;
            let position = self.flight.positions(start, start + 1).start;
            let record = self.flight.record(position)?;
            (record.state == SegmentState::Waiting).then_some(position)
        })?;
        let length = self.flight.record(position)?.length();
        let in_flight = self.network_flight();
        let window = self
            .flow_controller
            .window()
            .max(self.flow_controller.smallest_window());
        (in_flight == 0 || in_flight + length <= window.bytes()).then_some(position)
    }

    /// Sends the segments that are due. If the call is late for a waiting segment, those that became
    /// due since are sent too: timers cannot wake for every segment of a rate.
    pub(crate) fn pump(&mut self, now: Time, shared: &mut StreamContext, out: &mut Output<'_, P>) {
        let earliest = if self.is_paced { now - LATEST } else { now };
        self.pace_at = self.pace_at.max(earliest);
        self.is_paced = false;
        while let Some(position) = self.next_to_send() {
            if self.pace_at > now {
                self.is_paced = true;
                break;
            }
            self.transmit(now, position, shared, out);
        }
    }

    fn transmit(
        &mut self,
        now: Time,
        position: usize,
        shared: &mut StreamContext,
        out: &mut Output<'_, P>,
    ) {
        let Some(record) = self.flight.record(position) else {
            return;
        };
        let (ingress, length, first) = (record.ingress, record.length(), record.transmissions == 0);
        let was_waiting = record.state == SegmentState::Waiting;
        let Some(copy) = record.copy.clone() else {
            return;
        };
        let packet = self.prepared(copy, first);
        self.flight.move_to(position, SegmentState::InFlight);
        self.note_sent(now, position);
        if let Some(rate) = self.flow_controller.pacing_rate() {
            self.pace_at += rate.time_for(ByteSize::from_bytes(length));
        }
        if was_waiting {
            self.waiting.pop_front();
            shared.held.remove(packet.length());
            out.forward(ingress, packet);
        } else {
            shared.counters.retransmissions += 1;
            let masked = ByteSize::from_bytes(length);
            shared.counters.masked += masked;
            self.add_counts(shared, |counters| counters.masked += masked);
            out.inject(ingress, packet);
        }
    }

    /// Notes that a segment is in flight now.
    fn note_sent(&mut self, now: Time, position: usize) {
        let in_flight = self.network_flight();
        let Some(record) = self.flight.record_mut(position) else {
            return;
        };
        let size = record.length();
        let before = ByteSize::from_bytes(in_flight) - ByteSize::from_bytes(size);
        record.delivery = self.flow_controller.delivery_state(now, size, before);
        record.sent_at = now;
        record.transmissions += 1;
        self.last_sent = Some(now);
        (self.flow_controller).on_sent(now, size, ByteSize::from_bytes(in_flight));
        // While the oldest segment is being repaired its acknowledgment cannot come sooner.
        if self.overdue_at.is_none() || position == 0 {
            self.overdue_at = Some(now + self.flow_controller.rtt.rto());
        }
    }

    /// Prepares a sender's packet for the receiver. New data carries CWR, so that an echo covers what
    /// follows it. A packet that has waited gets the sender's latest acknowledgment and time stamp, as
    /// receivers reject old time stamps (RFC 7323, section 5) and old acknowledgments (RFC 5961,
    /// section 5).
    fn prepared(&self, mut packet: P, is_new: bool) -> P {
        if let Some(newest) = &self.newest {
            newest.renew(&mut packet);
        }
        if self.is_marked {
            if packet.ecn() == Ecn::NotEct {
                packet.set_ecn(Ecn::Ect0);
            }
            if let Some(segment) = packet.tcp().filter(|_| is_new) {
                packet.set_flags(segment.flags | Flags::CWR);
            }
        }
        packet
    }

    /// Handles the time that [`Self::timeout`] returned.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Time,
        shared: &mut StreamContext,
        out: &mut Output<'_, P>,
    ) {
        if self.overdue_at.is_some_and(|time| time <= now) {
            if self.flow_controller.rtt.has_given_up() {
                self.abandon(shared, out)
            } else {
                self.on_retransmission_timeout(now, shared)
            }
        }
        self.pump(now, shared, out);
    }

    /// Handles an RTO: all segments in flight are lost.
    fn on_retransmission_timeout(&mut self, now: Time, shared: &mut StreamContext) {
        self.duplicates = 0;
        self.recover_upto = None;
        let (mut lost, mut newest) = (0, Time::ZERO);
        for position in 0..self.flight.records().count() {
            if let Some(record) = self.flight.record(position)
                && record.state == SegmentState::InFlight
            {
                lost += record.length();
                newest = newest.max(record.sent_at);
                self.flight.move_to(position, SegmentState::Lost);
            }
        }
        if lost == 0 && self.flight.bytes.lost == 0 {
            self.overdue_at = None;
            return;
        }
        shared.counters.timeouts += 1;
        self.flow_controller.rtt.back_off();
        self.overdue_at = Some(now + self.flow_controller.rtt.rto());
        self.pace_at = self.pace_at.min(now);
        if lost > 0 {
            let in_flight = self.in_flight();
            let cause = LossCause::Timeout;
            (self.flow_controller).on_loss(now, lost, newest, cause, in_flight);
        }
    }

    /// Ends the stream when its connection is forgotten: see [`Self::abandon`].
    pub(crate) fn dissolve(mut self, shared: &mut StreamContext, out: &mut Output<'_, P>) {
        self.abandon(shared, out);
    }

    /// Forwards the waiting segments, and drops all copies.
    fn abandon(&mut self, shared: &mut StreamContext, out: &mut Output<'_, P>) {
        self.overdue_at = None;
        self.waiting.clear();
        let records: Vec<_> = self.flight.drain().collect();
        for record in records {
            let waited = record.state == SegmentState::Waiting;
            if let Some(packet) = record.copy.clone().filter(|_| waited) {
                shared.held.remove(packet.length());
                out.forward(record.ingress, packet);
            }
            self.release(record.copy, shared);
        }
    }
}
