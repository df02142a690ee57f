//! Outgoing segments and their headers.

use weir_units::Time;
use weir_wire::Ecn;
use weir_wire::tcp::{Flags, Options, SackBlock, SackBlocks, Segment};

use super::{Connection, State};
use crate::EcnMode;
use crate::sender::{OutgoingSegment, Sender};

impl Connection {
    /// Returns the next segment to send now and the ECN codepoint of its packet. After every event,
    /// call it until it returns `None`.
    #[inline(always)]
    pub fn next_segment(&mut self, now: Time) -> Option<(Segment, Ecn)> {
        if self.is_plain
            && let Ok(next) = self.next_plain(now)
        {
            return next;
        }
        self.next_in_general(now)
    }

    /// Whether there is nothing to send before the next event. `true` is certain.
    #[inline]
    pub fn has_sent_all(&self) -> bool {
        self.is_plain
            && !self.receiver.acks.is_due()
            && self.sender.built().is_none_or(Sender::has_sent_data)
    }

    #[inline(never)]
    fn next_in_general(&mut self, now: Time) -> Option<(Segment, Ecn)> {
        if self.is_plain
            && let Some(prior) = self.receiver.echo.take_prior()
        {
            return Some(self.prior_acknowledgment(now, prior));
        }
        let next = self.next_predicted(now);
        self.refresh();
        next
    }

    fn next_predicted(&mut self, now: Time) -> Option<(Segment, Ecn)> {
        if self.state == State::Established && !self.rare.keep_alive_due {
            let acks = &self.receiver.acks;
            let (is_ack_due, has_blocks) = (acks.is_due(), acks.has_blocks());
            if self.sender.is_quiet() {
                if !is_ack_due {
                    return None;
                }
                if !has_blocks && !self.receiver.echo.has_prior() {
                    return Some(self.plain_acknowledgment(now));
                }
            } else if !is_ack_due
                && let Some(sender) = self.sender.built_mut()
                && sender.waits_for_window(now)
            {
                return None;
            }
        }
        self.next_of_any_kind(now)
    }

    fn next_of_any_kind(&mut self, now: Time) -> Option<(Segment, Ecn)> {
        if self.state != State::Established
            && let Some(early) = self.next_control_segment(now)
        {
            return early;
        }
        if self.receiver.echo.has_prior()
            && let Some(prior) = self.receiver.echo.take_prior()
        {
            return Some(self.prior_acknowledgment(now, prior));
        }
        // SACK blocks would not fit beside a full segment.
        let apart = self.receiver.acks.is_due() && self.receiver.acks.has_blocks();
        if !apart
            && !self.sender.is_quiet()
            && let Some(sender) = self.sender.built_mut()
            && let Some(outgoing) = sender.next(now, &mut self.counters)
        {
            return Some(self.data_segment(now, outgoing));
        }
        if self.receiver.acks.is_due() {
            return Some(self.acknowledgment(now));
        }
        if (self.sender.built_mut()).is_some_and(Sender::take_window_probe) {
            self.counters.rare().window_probes += 1;
            return Some(self.probe(now));
        }
        if self.rare.keep_alive_due {
            self.rare.keep_alive_due = false;
            self.counters.rare().keep_alive_probes += 1;
            return Some(self.probe(now));
        }
        None
    }

    /// Handles the states outside of ESTABLISHED: resets, SYNs, and states in which nothing else is
    /// sent. Returns `None` if data may be sent.
    fn next_control_segment(&mut self, now: Time) -> Option<Option<(Segment, Ecn)>> {
        let rare = self.rare.changed();
        if let Some(reset) = rare.and_then(|rare| rare.reset_due.take()) {
            self.counters.other_segments_sent += 1;
            return Some(Some((*reset, Ecn::NotEct)));
        }
        if let Some(syn) = self.next_syn(now) {
            return Some(Some(syn));
        }
        let silent = matches!(self.state, State::Closed | State::Listen | State::SynSent)
            || self.awaits_acknowledgment_of_syn();
        silent.then_some(None)
    }

    /// Builds a header that acknowledges all received data.
    fn header(&mut self, now: Time, offset: u64) -> Segment {
        let mut segment = Segment::default();
        self.write_header(now, offset, &mut segment);
        segment
    }

    /// Writes a header that acknowledges all received data.
    #[inline(always)]
    fn write_header(&mut self, now: Time, offset: u64, segment: &mut Segment) {
        let next = self.receiver.next;
        self.last_acknowledged = next;
        let mut flags = Flags::ACK;
        if self.receiver.echo.echoes() {
            flags |= Flags::ECE;
        }
        segment.sequence = self.sequence(offset);
        segment.acknowledgment = self.remote + next as u32;
        segment.payload = 0;
        segment.window = self.receiver.advertise();
        segment.flags = flags;
        segment.timestamps = self.clock.as_mut().map(|clock| clock.stamp(now));
        segment.options = Options::None;
    }

    #[inline(always)]
    pub(super) fn data_segment(
        &mut self,
        now: Time,
        mut outgoing: OutgoingSegment,
    ) -> (Segment, Ecn) {
        let sender = self.sender.built_mut();
        outgoing.push = outgoing.push || sender.is_some_and(|sender| sender.pushes_every_segment());
        self.pushed_segment(now, outgoing)
    }

    /// Builds a segment of which it is known whether it asks for its ACK.
    #[inline(always)]
    pub(super) fn pushed_segment(
        &mut self,
        now: Time,
        outgoing: OutgoingSegment,
    ) -> (Segment, Ecn) {
        let mut segment = Segment::default();
        let ecn = self.write_data(now, outgoing, &mut segment);
        (segment, ecn)
    }

    #[inline(always)]
    fn write_data(&mut self, now: Time, outgoing: OutgoingSegment, segment: &mut Segment) -> Ecn {
        self.write_header(now, outgoing.start, segment);
        self.receiver.acks.on_sent();
        self.receiver
            .acks
            .on_data_sent(now, self.config.delayed_acks.as_ref());
        segment.payload = outgoing.payload;
        if outgoing.push {
            segment.flags |= Flags::PSH;
        }
        if outgoing.fin {
            segment.flags |= Flags::FIN;
        }
        if outgoing.cwr {
            segment.flags |= Flags::CWR;
        }
        match self.ecn {
            EcnMode::Dctcp => Ecn::Ect0,
            // RFC 3168, section 6.1.5: not on retransmissions.
            EcnMode::Classic if outgoing.new && outgoing.payload > 0 => Ecn::Ect0,
            _ => Ecn::NotEct,
        }
    }

    /// RFC 3168, section 6.1.4: not on pure ACKs. DCTCP in Linux does.
    #[inline]
    fn codepoint_without_data(&self) -> Ecn {
        if self.ecn == EcnMode::Dctcp {
            Ecn::Ect0
        } else {
            Ecn::NotEct
        }
    }

    fn acknowledgment(&mut self, now: Time) -> (Segment, Ecn) {
        let (mut segment, ecn) = self.plain_acknowledgment(now);
        if self.sack && self.receiver.acks.has_blocks() {
            segment.options = Options::Sack(self.sack_blocks());
        }
        (segment, ecn)
    }

    /// Builds an acknowledgment without SACK blocks.
    #[inline(always)]
    pub(super) fn plain_acknowledgment(&mut self, now: Time) -> (Segment, Ecn) {
        let mut segment = Segment::default();
        let ecn = self.write_plain_acknowledgment(now, &mut segment);
        (segment, ecn)
    }

    /// Writes an acknowledgment without SACK blocks.
    #[inline(always)]
    fn write_plain_acknowledgment(&mut self, now: Time, segment: &mut Segment) -> Ecn {
        self.counters.acks_sent += 1;
        self.write_header(now, self.sender.nxt(), segment);
        self.receiver.acks.on_sent();
        self.codepoint_without_data()
    }

    fn sack_blocks(&mut self) -> SackBlocks {
        let remote = self.remote;
        self.receiver
            .acks
            .take_blocks()
            .map(|block| SackBlock {
                start: remote + block.start as u32,
                end: remote + block.end as u32,
            })
            .collect()
    }

    /// Builds DCTCP's acknowledgment of the data before the mark changed (RFC 8257, section 3.2).
    /// The window's right edge stays in place.
    fn prior_acknowledgment(
        &mut self,
        now: Time,
        prior: crate::receiver::PriorAck,
    ) -> (Segment, Ecn) {
        self.counters.acks_sent += 1;
        let mut segment = self.header(now, self.sender.nxt());
        segment.acknowledgment = self.remote + prior.next as u32;
        segment.window = self.receiver.advertise_from(prior.next);
        segment.flags = segment.flags.without(Flags::ECE);
        if prior.ece {
            segment.flags |= Flags::ECE;
        }
        (segment, self.codepoint_without_data())
    }

    /// Builds a segment that the peer has to answer: its sequence number is the one before the
    /// first unacknowledged byte (RFC 9293, section 3.8.4).
    fn probe(&mut self, now: Time) -> (Segment, Ecn) {
        self.counters.other_segments_sent += 1;
        let mut segment = self.header(now, self.sender.una());
        segment.sequence = segment.sequence - 1;
        (segment, self.codepoint_without_data())
    }

    /// Builds a reset that the peer must accept (RFC 5961, section 3: exactly the next number).
    pub(super) fn reset_at_next(&self) -> Segment {
        Segment {
            sequence: self.sequence(self.sender.nxt()),
            acknowledgment: self.remote + self.receiver.next as u32,
            flags: Flags::RST | Flags::ACK,
            ..Segment::default()
        }
    }
}
