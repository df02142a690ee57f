//! Processing of arriving segments (RFC 9293, section 3.10.7; RFC 5961).

use weir_units::{Duration, Time};
use weir_wire::Ecn;
use weir_wire::tcp::{Flags, Options, Segment};

use super::clock::TimestampClock;
use super::handshake::reset_for;
use super::{Connection, Ending, State};
use crate::receiver::{Arrival, InOrderData};
use crate::scoreboard::SackRange;
use crate::sender::{Acknowledgment, Sender};

/// The shortest interval between ACKs for unacceptable segments without data. It keeps two ends in
/// disagreement from answering each other forever (RFC 5961, section 7; Linux:
/// `tcp_invalid_ratelimit`).
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(500);

/// The most SACK blocks per segment.
const BLOCKS: usize = weir_wire::tcp::SackBlocks::CAPACITY;

impl Connection {
    /// Processes a segment that arrived in an IP packet with this ECN codepoint.
    pub fn receive(&mut self, now: Time, segment: &Segment, ecn: Ecn) {
        let reply = if segment.payload > 0 {
            self.take_data(now, segment, ecn, false)
        } else {
            self.take_acknowledgment(now, segment, false)
        };
        if reply.is_none() {
            self.counters.segments_received += 1;
            self.receive_general(now, segment, ecn);
        }
    }

    #[inline(never)]
    fn receive_general(&mut self, now: Time, segment: &Segment, ecn: Ecn) {
        if !self.receive_predicted(now, segment, ecn) {
            self.receive_slow_path(now, segment, ecn);
        }
        self.refresh();
    }

    /// Header prediction (Jacobson; RFC 1323, appendix): a fast path for in-order data and for
    /// acknowledgments of outstanding data in an established connection without disorder. Returns
    /// whether it handled the segment.
    #[inline]
    fn receive_predicted(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> bool {
        let next = self.receiver.next;
        let plain = segment.flags.without(Flags::PSH | Flags::ECE | Flags::CWR) == Flags::ACK
            && segment.sequence == self.remote + next as u32
            && self.state == State::Established
            && matches!(segment.options, Options::None);
        if !plain {
            return false;
        }
        let una = self.sender.una();
        let ahead = segment.acknowledgment.distance_from(self.sequence(una));
        let data = segment.payload > 0;
        let expected = if data {
            ahead == 0 && self.receiver.expects(segment.payload)
        } else {
            ahead > 0
                && u64::from(ahead.unsigned_abs()) <= self.sender.nxt() - una
                && self.sender.built().is_some_and(Sender::is_plain)
        };
        if !expected || !self.take_predicted_timestamps(now, segment) {
            return false;
        }
        self.on_heard(now);
        let upto = una + u64::from(ahead.unsigned_abs());
        self.update_window(segment.window, 0, upto);
        self.sender.on_peer_segment();
        let ece = segment.flags.contains(Flags::ECE);
        self.counters.ece_received += u64::from(ece);
        if data {
            let cwr = segment.flags.contains(Flags::CWR);
            let data = self.in_order_data(now, segment);
            self.receiver
                .on_expected(now, &data, cwr, ecn, &mut self.counters);
        } else if let Some(sender) = self.sender.built_mut() {
            sender.on_plain_ack(now, upto, ece);
        }
        true
    }

    /// Checks and stores the timestamp of the next in-order segment. Returns false if it is older
    /// than the last one.
    #[inline]
    pub(super) fn take_predicted_timestamps(&mut self, now: Time, segment: &Segment) -> bool {
        let is_answered = self.last_acknowledged == self.receiver.next;
        TimestampClock::take_in_order(&mut self.clock, now, segment.timestamps, is_answered)
    }

    /// Processes a segment on the slow path.
    fn receive_slow_path(&mut self, now: Time, segment: &Segment, ecn: Ecn) {
        if self.state != State::Established {
            match self.state {
                State::Closed => return self.receive_in_closed(segment),
                State::Listen => return self.receive_in_listen(now, segment),
                State::SynSent => return self.receive_in_syn_sent(now, segment),
                _ => {}
            }
        }
        // The distance of its start from the next expected byte.
        let distance = i64::from(
            segment
                .sequence
                .distance_from(self.remote + self.receiver.next as u32),
        );
        if !self.check_timestamps(now, segment, distance)
            || !self.is_acceptable(now, segment, distance)
            || !self.check_control(now, segment, distance)
        {
            return;
        }
        self.on_heard(now);
        if !self.process_acknowledgment(now, segment, distance) {
            return;
        }
        if segment.payload > 0 || segment.flags.contains(Flags::FIN) {
            self.process_data(now, segment, distance, ecn);
        }
        if self.state != State::Established || self.receiver.is_finished() {
            self.update_state(now);
        }
    }

    fn receive_in_closed(&mut self, segment: &Segment) {
        if !segment.flags.contains(Flags::RST) {
            self.rare.reset_due = Some(Box::new(reset_for(segment)));
        }
    }

    /// Protection against wrapped sequence numbers (RFC 7323, section 5.3), and selection of the
    /// timestamp to echo (section 4.3).
    #[inline]
    fn check_timestamps(&mut self, now: Time, segment: &Segment, distance: i64) -> bool {
        let Some(clock) = &mut self.clock else {
            return true;
        };
        if segment.flags.contains(Flags::RST) {
            return true;
        }
        let Some(timestamps) = segment.timestamps else {
            // RFC 7323, section 3.2: silently dropped.
            return false;
        };
        if clock.is_old(now, timestamps.value) {
            self.counters.rare().unacceptable_segments += 1;
            self.send_challenge_ack(now, segment.payload > 0);
            return false;
        }
        let next = self.receiver.next;
        // The timestamp of the oldest unacknowledged segment is echoed.
        let unacknowledged = (next - self.last_acknowledged.min(next)) as i64;
        if distance <= -unacknowledged {
            clock.take(now, timestamps.value);
        }
        true
    }

    /// RFC 9293, section 3.10.7.4, first step. An unacceptable segment is answered with an ACK.
    #[inline]
    fn is_acceptable(&mut self, now: Time, segment: &Segment, distance: i64) -> bool {
        let window = self.receiver.edge().saturating_sub(self.receiver.next) as i64;
        let length = i64::from(segment.payload)
            + i64::from(segment.flags.contains(Flags::SYN))
            + i64::from(segment.flags.contains(Flags::FIN));
        let acceptable = if length == 0 {
            distance == 0 || (distance > 0 && distance < window)
        } else {
            // Acceptable if some of it lies in the window.
            distance < window && distance + length > 0
        };
        if !acceptable {
            self.on_unacceptable(now, segment, distance, length);
        }
        acceptable
    }

    #[cold]
    fn on_unacceptable(&mut self, now: Time, segment: &Segment, distance: i64, length: i64) {
        self.counters.rare().unacceptable_segments += 1;
        if segment.flags.contains(Flags::RST) {
            return;
        }
        // The peer has not received the SYN-ACK.
        if segment.flags.contains(Flags::SYN) && self.awaits_acknowledgment_of_syn() {
            self.repeat_answer();
            return;
        }
        if self.state == State::TimeWait && segment.flags.contains(Flags::FIN) {
            self.rare.state_at = now + self.config.time_wait;
        }
        if distance < 0 && segment.payload > 0 && distance + length <= 0 {
            self.counters.rare().duplicate_segments += 1;
            self.receiver
                .on_old_data(distance, segment.payload, self.config.delayed_acks);
        }
        // Window probes and keep-alive probes must be answered: they carry data, or the sequence
        // number before the next one.
        self.send_challenge_ack(now, length > 0 || distance == -1);
    }

    /// Sends an ACK with the current state of this end, rate-limited unless `always`.
    fn send_challenge_ack(&mut self, now: Time, always: bool) {
        let recently = self
            .rare
            .challenged_at
            .is_some_and(|at| now.since(at) < CHALLENGE_INTERVAL);
        if always || !recently {
            if !always {
                self.rare.challenged_at = Some(now);
            }
            self.receiver.acks.ack_now();
        }
    }

    /// RST and SYN (RFC 9293, section 3.10.7.4, second to fourth step; RFC 5961, sections 3 and 4).
    #[inline]
    fn check_control(&mut self, now: Time, segment: &Segment, distance: i64) -> bool {
        if segment.flags.contains(Flags::ACK) && !segment.flags.intersects(Flags::RST | Flags::SYN)
        {
            return true;
        }
        if segment.flags.contains(Flags::RST) {
            if distance == 0 {
                self.end(Ending::Reset);
            } else {
                self.send_challenge_ack(now, false);
            }
        } else if segment.flags.contains(Flags::SYN) {
            self.send_challenge_ack(now, false);
        }
        // A segment without ACK is ignored.
        false
    }

    /// The acknowledgment field (RFC 9293, section 3.10.7.4, fifth step; RFC 5961, section 5).
    #[inline]
    fn process_acknowledgment(&mut self, now: Time, segment: &Segment, distance: i64) -> bool {
        let (una, nxt) = (self.sender.una(), self.sender.nxt());
        let ahead = i64::from(segment.acknowledgment.distance_from(self.sequence(una)));
        if self.awaits_acknowledgment_of_syn() {
            if ahead < 0 || ahead.unsigned_abs() > nxt - una {
                self.rare.reset_due = Some(Box::new(reset_for(segment)));
                return false;
            }
            self.establish(now);
        }
        if ahead < 0 {
            // An old acknowledgment, but its data may be new.
            return ahead.unsigned_abs() <= self.sender.largest_window();
        }
        if ahead.unsigned_abs() > nxt - una {
            self.send_challenge_ack(now, segment.payload > 0);
            return false;
        }
        let upto = una + ahead.unsigned_abs();
        let previous = self.sender.edge();
        self.update_window(segment.window, distance, upto);
        let repeats = ahead == 0
            && segment.payload == 0
            && !segment.flags.contains(Flags::FIN)
            && self.sender.edge() == previous;
        let ece = segment.flags.contains(Flags::ECE);
        self.counters.ece_received += u64::from(ece);
        self.sender.on_peer_segment();
        let mut ack = Acknowledgment {
            upto,
            ece,
            repeats,
            ..Acknowledgment::default()
        };
        let mut tick = Duration::ZERO;
        if let (Some(clock), Some(timestamps)) = (&mut self.clock, segment.timestamps) {
            ack.echoed = clock.sent_at(now, timestamps.echo);
            tick = clock.tick();
        }
        match segment.options {
            Options::Sack(_) if self.sack => self.process_sack(now, segment, &ack, tick),
            _ if ahead > 0 || repeats => self.on_ack(now, &ack, tick),
            _ => {}
        }
        true
    }

    fn process_sack(
        &mut self,
        now: Time,
        segment: &Segment,
        ack: &Acknowledgment<'_>,
        tick: Duration,
    ) {
        let Options::Sack(sacks) = segment.options else {
            return;
        };
        let nxt = self.sender.nxt();
        let mut blocks = [SackRange::default(); BLOCKS];
        let (mut count, mut first, mut duplicate) = (0, None, None);
        for (index, sack) in sacks.iter().enumerate() {
            let base = self.sequence(ack.upto);
            let start = i64::from(sack.start.distance_from(base));
            let end = i64::from(sack.end.distance_from(base));
            let offset = |distance: i64| ack.upto.checked_add_signed(distance);
            let (Some(start), Some(end)) = (offset(start), offset(end)) else {
                continue;
            };
            let block = SackRange { start, end };
            if end <= start || end > nxt {
                continue;
            }
            // RFC 2883, section 4: a first block below the acknowledgment, or within the second
            // block, reports duplicate data.
            if index == 0 && end <= ack.upto {
                duplicate = Some(block);
                continue;
            }
            let in_first = |first: &SackRange| block.start <= first.start && first.end <= block.end;
            if let Some(before) = first.take().filter(in_first) {
                duplicate = Some(before);
            }
            if index == 0 {
                first = Some(block);
            }
            if start >= ack.upto
                && let Some(place) = blocks.get_mut(count)
            {
                *place = block;
                count += 1;
            }
        }
        let ack = Acknowledgment {
            blocks: blocks.get(..count).unwrap_or_default(),
            duplicate,
            ..*ack
        };
        self.on_ack(now, &ack, tick);
    }

    /// Processes an acknowledgment. One that never sent has nothing to learn from it.
    fn on_ack(&mut self, now: Time, ack: &Acknowledgment<'_>, tick: Duration) {
        if let Some(sender) = self.sender.built_mut() {
            sender.on_ack(now, ack, tick, &mut self.counters);
        }
    }

    /// Updates the window on an acknowledgment of new data, on a newer segment, or if the same
    /// segment offers more (RFC 9293, section 3.10.7.4; Linux: `tcp_may_update_window`).
    pub(super) fn update_window(&mut self, window: u16, distance: i64, upto: u64) {
        let from = self.receiver.next.saturating_add_signed(distance);
        let window = u64::from(window) << self.peer_scale;
        let edge = upto + window;
        let newer = upto > self.sender.una()
            || from > self.window_from
            || (from == self.window_from && (edge > self.sender.edge() || window == 0));
        if newer {
            self.window_from = from;
            self.sender.on_window(edge, window);
        }
    }

    #[inline]
    pub(super) fn in_order_data(&self, now: Time, segment: &Segment) -> InOrderData {
        let delayed = self.config.delayed_acks;
        InOrderData {
            payload: segment.payload,
            is_pushed: segment.flags.contains(Flags::PSH),
            delayed,
            is_after_idle: delayed.is_some() && self.has_been_idle(now),
        }
    }

    /// Returns whether no data has come for longer than the retransmission time-out.
    #[inline]
    fn has_been_idle(&self, now: Time) -> bool {
        let idle = self.receiver.acks.idle_time(now);
        idle > self.config.least_rto() && idle > self.sender.rto(&self.config)
    }

    #[inline]
    fn process_data(&mut self, now: Time, segment: &Segment, distance: i64, ecn: Ecn) {
        let data = self.in_order_data(now, segment);
        self.receiver.on_arrival(
            now,
            &Arrival {
                distance,
                data,
                fin: segment.flags.contains(Flags::FIN),
                cwr: segment.flags.contains(Flags::CWR),
                ecn,
            },
            &mut self.counters,
        );
    }

    /// Changes the state on acknowledged or received FINs (RFC 9293, section 3.10.7.4).
    fn update_state(&mut self, now: Time) {
        let acknowledged = self.sender.is_fin_acknowledged();
        let finished = self.receiver.is_finished();
        let before = self.state;
        self.state = match (before, acknowledged, finished) {
            (State::Established, _, true) => State::CloseWait,
            (State::FinWait1, true, true) | (State::FinWait2, _, true) => State::TimeWait,
            (State::FinWait1, true, false) => State::FinWait2,
            (State::FinWait1, false, true) => State::Closing,
            (State::Closing, true, _) => State::TimeWait,
            (State::LastAck, true, _) => return self.end(Ending::Closed),
            (state, _, _) => state,
        };
        if self.state == State::TimeWait && before != State::TimeWait {
            self.sender.stop();
            self.rare.keep_alive_at = Time::MAX;
            self.ending = Some(Ending::Closed);
            self.rare.state_at = now + self.config.time_wait;
        }
    }
}
