//! The sending half of a connection: modes, rate, losses, and requests for feedback.

use weir_congestion::{
    AckSample, AlgorithmSpec, Context, Controller, DeliveryRate, LossCause, LossSample, PacketSent,
};
use weir_counters::FlowCounters;
use weir_units::{ByteSize, Duration, Rate, Time};

use crate::config::{AckInterval, Feedback, LARGEST_WINDOW, TransportConfig};
use crate::error::Violation;
use crate::flight::Flight;
use crate::mode::{Mode, SwitchGuard};
use crate::pacer::Pacer;
use crate::packet::{Ack, HEADER_LENGTH, LossRanges};
use crate::rtt::Rtt;
use crate::send_buffer::{RecentlySent, SendBuffer};
use crate::sequence::SequenceNumber;

/// The most doublings of the request interval.
const MOST_DOUBLINGS: u32 = 6;
/// The same where ACKs come all the time: silence must be noticed soon.
const FEW_DOUBLINGS: u32 = 1;
/// How many windows the pacer allows in a round trip in slow start, where the window doubles.
const SLOW_START_GAIN: f64 = 2.0;
/// How many it allows afterwards: beside TCP in a short queue, packets that are spaced evenly find the free places
/// one by one, and TCP's bursts lose; packets that are hardly spaced overflow it themselves.
const PACING_GAIN: f64 = 1.5;
/// With short ACK intervals, one ACK2 is sent per this many data packets: one per ACK would take a
/// fortieth of a link that many senders share.
const PACKETS_PER_ACK2: u64 = 8;

/// Requests for keep-alive packets: they free the send buffer in UDP Mode, and detect a lost tail
/// in both modes.
#[derive(Debug, Default)]
struct Requests {
    /// A request is due.
    due: bool,
    /// The unanswered request, and its send time.
    open: Option<(u64, Time)>,
    /// When to repeat the request without progress.
    at: Option<Time>,
    doublings: u32,
    /// Packets sent since the last request.
    packets: u64,
    bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) buffer: SendBuffer,
    pub(crate) mode: Mode,
    guard: SwitchGuard,
    /// The controller's state at the start of a congestion.
    initial_controller: Box<dyn Controller>,
    controller: Box<dyn Controller>,
    estimator: Option<DeliveryRate>,
    feedback: Feedback,
    ack_interval: AckInterval,
    /// Data packets sent since the last ACK2.
    since_ack2: u64,
    /// The rate of UDP Mode, and the upper limit.
    full_rate: Rate,
    /// The packets under way, where the sender has no UDP Mode.
    flight: Option<Flight>,
    pacer: Pacer,
    /// The first packet beyond the peer's window.
    limit: u64,
    /// An OBS-change packet is due.
    pub(crate) change_due: bool,
    /// The next data packet carries CWR.
    reduced: bool,
    /// The counters of the newest ACK, and bytes marked but not acknowledged yet.
    received: u32,
    marked: u32,
    marked_bytes: ByteSize,
    request_interval: Duration,
    requests: Requests,
    /// When data in flight last made progress or was first sent.
    progress_at: Time,
    stall_timeout: Duration,
    pub(crate) switches: u64,
    /// Marks are packets reported by the peer with CE. Losses are reported or requested; nothing is
    /// retransmitted on suspicion, so there are no timeouts.
    pub(crate) counters: FlowCounters,
}

impl Sender {
    pub(crate) fn new(config: &TransportConfig, first: u64) -> Self {
        let fresh = config.congestion.build(&Context {
            packet_size: config.packet_size,
            seed: config.seed,
            is_paced: true,
        });
        let mut buffer = SendBuffer::new(config.send_buffer, first);
        // The size if the peer agrees; data written earlier is cut for it.
        buffer.set_packet_size(config.packet_size.as_usize(), HEADER_LENGTH);
        Self {
            buffer,
            mode: if config.udp_mode {
                Mode::Udp
            } else {
                Mode::Congestion
            },
            guard: SwitchGuard::default(),
            controller: fresh.clone(),
            estimator: fresh.wants_delivery().then(DeliveryRate::new),
            initial_controller: fresh,
            feedback: config.feedback,
            ack_interval: config.ack_interval,
            since_ack2: 0,
            full_rate: config.rate,
            flight: (!config.udp_mode).then(|| Flight::new(first)),
            pacer: Pacer::new(config.pacing_slack, config.pacing_quantum),
            limit: first,
            change_due: false,
            reduced: false,
            received: 0,
            marked: 0,
            marked_bytes: ByteSize::ZERO,
            request_interval: config.request_interval,
            requests: Requests::default(),
            progress_at: Time::ZERO,
            stall_timeout: config.stall_timeout,
            switches: 0,
            counters: FlowCounters::ZERO,
        }
    }

    /// Applies the packet size and the peer's window after the handshake.
    pub(crate) fn begin(&mut self, packet: ByteSize, overhead: usize, window: u32) {
        self.buffer.set_packet_size(packet.as_usize(), overhead);
        self.initial_controller.on_packet_size(packet);
        self.controller.on_packet_size(packet);
        self.limit = self.buffer.base + u64::from(window.min(LARGEST_WINDOW));
    }

    /// Takes over parameters of the rate control, for this congestion and those to come.
    pub(crate) fn set_congestion_parameters(&mut self, spec: &AlgorithmSpec) {
        self.initial_controller.set_parameters(spec);
        self.controller.set_parameters(spec);
    }

    pub(crate) fn controller(&self) -> &dyn Controller {
        &*self.controller
    }

    /// Returns the current sending rate.
    pub(crate) fn rate(&self, rtt: &Rtt) -> Rate {
        if self.mode == Mode::Udp {
            return self.full_rate;
        }
        let rate = self.controller.pacing_rate().unwrap_or_else(|| {
            let is_slow_start = self.controller.snapshot().phase == "slow-start";
            let gain = if is_slow_start {
                SLOW_START_GAIN
            } else {
                PACING_GAIN
            };
            Rate::from_size_over(self.controller.window(), rtt.smoothed).mul_f64(gain)
        });
        // Never zero: a connection that cannot send receives no feedback.
        rate.clamp(Rate::from_bits_per_second(1), self.full_rate)
    }

    fn has_room(&self) -> bool {
        let outstanding = self.buffer.next() - self.buffer.base;
        self.buffer.next() < self.limit && outstanding < u64::from(LARGEST_WINDOW)
    }

    /// Returns the UDP payload in flight, as far as known.
    pub(crate) fn in_flight(&self) -> ByteSize {
        let arrived = self.flight.as_ref().map_or(0, |flight| {
            let candidates = self.buffer.not_lost();
            flight.arrived(candidates)
        });
        self.buffer.in_flight - ByteSize::from_bytes(self.buffer.packet_size() as u64) * arrived
    }

    /// Returns whether a packet could be sent if the pacer permitted it.
    fn has_sendable(&self) -> bool {
        let in_flight = self.in_flight();
        let after = in_flight + ByteSize::from_bytes(self.next_size() as u64);
        let window = in_flight.is_zero() || after <= self.controller.window();
        let allowed = self.mode == Mode::Udp || window;
        allowed && (self.buffer.has_lost() || (self.buffer.has_new() && self.has_room()))
    }

    /// Returns the next data packet to send at `now`, lost ones first.
    pub(crate) fn next_packet(&mut self, now: Time) -> Option<u64> {
        if !self.has_sendable() {
            if self.pacer.allows(now) {
                self.pacer.on_idle();
            }
            return None;
        }
        if !self.pacer.allows(now) {
            return None;
        }
        match self.buffer.first_lost() {
            Some(count) => {
                let payload = self.buffer.packet(count)?.payload_length();
                self.counters.retransmits += 1;
                self.counters.retransmitted += ByteSize::from_bytes(payload as u64);
                Some(count)
            }
            None => {
                if !self.buffer.has_outstanding() {
                    self.progress_at = now;
                }
                self.buffer.cut()
            }
        }
    }

    /// Returns the UDP payload of the packet that [`Self::next_packet`] would return.
    pub(crate) fn next_size(&self) -> usize {
        let lost = self.buffer.first_lost();
        match lost.and_then(|count| self.buffer.packet(count)) {
            Some(packet) => self.buffer.size_of(packet).as_usize(),
            None => self.buffer.next_size(),
        }
    }

    /// Records that the packet is sent. Returns whether it carries CWR.
    pub(crate) fn on_sent(&mut self, now: Time, count: u64, rtt: &Rtt) -> bool {
        let Some(size) = self
            .buffer
            .packet(count)
            .map(|packet| self.buffer.size_of(packet))
        else {
            return false;
        };
        let prior = self.in_flight();
        if let Some(flight) = &mut self.flight
            && flight.on_sent(now, prior.is_zero(), rtt.loss_timeout())
        {
            self.controller.on_idle_restart(now);
        }
        let estimator = self.estimator.as_mut();
        let delivery = estimator.map(|estimator| estimator.on_sent(now, size, prior));
        self.buffer
            .on_sent(now, count, delivery.unwrap_or_default());
        if self.mode == Mode::Congestion {
            let in_flight = self.in_flight();
            self.controller.on_sent(&PacketSent {
                now,
                size,
                in_flight,
            });
        }
        self.pacer.on_sent(now, size, self.rate(rtt));
        self.guard.on_sent();
        self.since_ack2 = self.since_ack2.saturating_add(1);
        self.requests.packets += 1;
        self.requests.bytes += size.bytes();
        if self.requests.at.is_none() {
            self.arm(now, rtt);
        }
        std::mem::take(&mut self.reduced)
    }

    /// Requests feedback after a batch if no other packet would bring it.
    pub(crate) fn after_batch(&mut self, now: Time, rtt: &Rtt) {
        let blocked = self.buffer.has_new() && !self.has_room();
        if blocked && self.requests.at.is_none() {
            self.arm(now, rtt);
        }
        if self.mode == Mode::Congestion || self.requests.open.is_some() {
            return;
        }
        let is_tail = !self.buffer.has_new() && !self.buffer.has_lost();
        let room = self.limit - self.buffer.base.min(self.limit);
        let much = self.requests.bytes * 4 >= self.buffer.capacity as u64
            || self.requests.packets * 4 >= room.max(1);
        if (is_tail || blocked || much) && self.requests.packets > 0 {
            self.requests.due = true;
        }
    }

    fn arm(&mut self, now: Time, rtt: &Rtt) {
        let interval = self.request_interval.max(rtt.answer_timeout() * 2);
        self.requests.at = Some(now + interval * (1 << self.requests.doublings));
    }

    fn waits_for_feedback(&self) -> bool {
        self.buffer.has_outstanding() || (self.buffer.has_new() && !self.has_room())
    }

    pub(crate) fn request_is_due(&self) -> bool {
        self.requests.due
    }

    /// Records that a request with this number is sent.
    pub(crate) fn on_request_sent(&mut self, now: Time, number: u64, rtt: &Rtt) {
        self.requests.due = false;
        self.requests.open = Some((number, now));
        (self.requests.packets, self.requests.bytes) = (0, 0);
        self.arm(now, rtt);
    }

    /// Processes the answer to a request. Returns the RTT if it was the newest request.
    pub(crate) fn on_answer(&mut self, now: Time, answered: SequenceNumber) -> Option<Duration> {
        let (number, sent_at) = self.requests.open?;
        if SequenceNumber::of(number) != answered {
            return None;
        }
        self.requests.open = None;
        Some(now.since(sent_at))
    }

    /// Processes the peer's progress: it has everything before `expected`, and room for `window`
    /// packets from there on.
    pub(crate) fn on_progress(
        &mut self,
        now: Time,
        expected: SequenceNumber,
        window: u32,
        rtt: &Rtt,
    ) -> Result<Progress, Violation> {
        let expected = expected.expand(self.buffer.base);
        let prior_in_flight = self.in_flight();
        let estimator = &mut self.estimator;
        let batch = self.buffer.acknowledge(expected, |packet, size| {
            if let Some(estimator) = estimator {
                estimator.on_acked(now, &packet.delivery, packet.sent_at, size);
            }
        });
        let batch = batch.ok_or(Violation::AckOfUnsent)?;
        if let Some(flight) = &mut self.flight {
            flight.on_progress(batch.packets);
        }
        let limit = expected.saturating_add(window.min(LARGEST_WINDOW).into());
        let opened = limit > self.limit;
        self.limit = self.limit.max(limit);
        if batch.packets > 0 || opened {
            self.requests.doublings = 0;
            self.requests.at = None;
        }
        if batch.packets > 0 {
            self.progress_at = now;
        }
        if self.waits_for_feedback() && self.requests.at.is_none() {
            self.arm(now, rtt);
        } else if !self.waits_for_feedback() {
            self.requests.at = None;
            self.requests.open = None;
        }
        Ok(Progress {
            batch,
            prior_in_flight,
        })
    }

    /// Processes the mode requested by the newest control packet. Returns whether the mode changed.
    pub(crate) fn on_requested_mode(
        &mut self,
        now: Time,
        observe: bool,
        rtt: &Rtt,
    ) -> Result<bool, Violation> {
        let wanted = if observe { Mode::Congestion } else { Mode::Udp };
        // Without UDP Mode the peer cannot change anything.
        if wanted == self.mode || self.flight.is_some() {
            return Ok(false);
        }
        if !self.guard.on_switch(now) {
            return Err(Violation::ModeFlapping);
        }
        self.switches += 1;
        self.since_ack2 = u64::MAX;
        let before = self.rate(rtt);
        self.mode = wanted;
        match wanted {
            Mode::Congestion => {
                self.controller = self.initial_controller.clone();
                self.change_due = false;
            }
            Mode::Udp => {
                self.change_due = true;
                self.reduced = false;
            }
        }
        self.pacer.on_rate(now, before, self.rate(rtt));
        Ok(true)
    }

    /// Returns whether to answer an ACK, so that the receiver can measure the RTT.
    pub(crate) fn answers_ack(&mut self) -> bool {
        let is_due = match self.ack_interval {
            AckInterval::RoundTrip => true,
            AckInterval::IdleRoundTrip | AckInterval::Frequent => {
                self.since_ack2 >= PACKETS_PER_ACK2
            }
        };
        if is_due {
            self.since_ack2 = 0;
        }
        is_due
    }

    /// Processes an ACK and reports it to the controller in Congestion Mode.
    pub(crate) fn on_ack(
        &mut self,
        now: Time,
        ack: &Ack,
        echo: bool,
        progress: Progress,
        rtt: &Rtt,
    ) {
        let Progress {
            batch,
            prior_in_flight,
        } = progress;
        let marked = ack.marked.wrapping_sub(self.marked);
        let received = ack.received.wrapping_sub(self.received);
        let mean = self.buffer.packet_size() as u64;
        let mut acked = batch.bytes;
        // Counters that run backwards belong to an older ACK.
        if marked <= received && received < 1 << 31 {
            self.marked_bytes += ByteSize::from_bytes(mean.saturating_mul(marked.into()));
            self.counters.marks += u64::from(marked);
            (self.marked, self.received) = (ack.marked, ack.received);
            if let Some(flight) = &mut self.flight {
                flight.on_received(now, received);
                // What the cumulative number covers at once when a gap is filled has arrived one by one.
                acked = ByteSize::from_bytes(mean.saturating_mul(received.into()));
            }
        }
        if self.mode != Mode::Congestion {
            self.marked_bytes = ByteSize::ZERO;
            return;
        }
        self.reduced |= echo;
        let ce_marked = self.marked_bytes.min(acked);
        self.marked_bytes -= ce_marked;
        let counts = self.feedback == Feedback::Counts;
        let before = self.rate(rtt);
        let mut app_limited = !self.has_more();
        let mut round_ended = true;
        let mut sample = rtt.smoothed;
        if let Some(flight) = &mut self.flight {
            round_ended = flight.ends_round(self.buffer.base, self.buffer.next());
            // Neither the application nor the peer's window nor the limit of the rate may be what
            // limits.
            app_limited |= prior_in_flight * 2 < self.controller.window();
            sample = batch.rtt(now).unwrap_or(sample);
        }
        let in_flight = self.in_flight();
        let estimator = self.estimator.as_mut();
        self.controller.on_ack(&AckSample {
            now,
            acked,
            ce_marked: if counts { ce_marked } else { ByteSize::ZERO },
            ece: echo && !counts,
            rtt: Some(sample),
            smoothed_rtt: rtt.smoothed,
            min_rtt: rtt.idle(),
            prior_in_flight,
            in_flight,
            newest_sent: batch.newest_sent,
            delivery: estimator.and_then(|estimator| estimator.sample(rtt.idle())),
            app_limited,
            is_recovering: false,
            round_ended,
        });
        self.pacer.on_rate(now, before, self.rate(rtt));
    }

    /// Returns whether there is more to send; if not, the rate is not the limit.
    fn has_more(&self) -> bool {
        self.buffer.has_new() || self.buffer.has_lost()
    }

    /// Processes a NAK: the receiver misses these packets.
    pub(crate) fn on_nak(
        &mut self,
        now: Time,
        ranges: &LossRanges<'_>,
        rtt: &Rtt,
    ) -> Result<(), Violation> {
        let recent = match self.flight {
            // Behind a queue that only losses limit, a retransmission arrives a whole round trip later,
            // and a second loss of it would reduce the window again.
            Some(_) => RecentlySent {
                once: Duration::ZERO,
                again: rtt.answer_timeout() * 2,
            },
            None => {
                let recent = rtt.idle().max(rtt.smoothed / 2);
                RecentlySent {
                    once: recent,
                    again: recent,
                }
            }
        };
        let base = self.buffer.base;
        let (mut lost, mut newest_sent) = (ByteSize::ZERO, Time::ZERO);
        for range in ranges.iter() {
            let first = range.first.expand(base);
            let last = first + u64::from(range.last.ahead_of(range.first));
            let batch = self.buffer.mark_lost(now, recent, first, last);
            let batch = batch.ok_or(Violation::NakOfUnsent)?;
            lost += batch.bytes;
            newest_sent = newest_sent.max(batch.newest_sent);
            if let Some(flight) = &mut self.flight {
                flight.on_lost(batch.packets);
            }
        }
        if lost.is_zero() {
            return Ok(());
        }
        if let Some(estimator) = &mut self.estimator {
            estimator.on_lost(lost);
        }
        if self.mode == Mode::Congestion {
            let before = self.rate(rtt);
            self.controller.on_loss(&LossSample {
                now,
                lost,
                newest_sent,
                cause: LossCause::Nak,
                in_flight: self.in_flight(),
            });
            self.pacer.on_rate(now, before, self.rate(rtt));
        }
        Ok(())
    }

    /// Returns when data in flight counts as stalled.
    pub(crate) fn stalled_at(&self) -> Option<Time> {
        let waits = self.buffer.has_outstanding();
        waits.then(|| self.progress_at + self.stall_timeout)
    }

    /// Returns when the next data packets are sent.
    pub(crate) fn next_data_time(&self) -> Option<Time> {
        self.has_sendable().then(|| self.pacer.next_batch())
    }

    pub(crate) fn timeout(&self) -> Option<Time> {
        let paced = self.next_data_time();
        let requested = self.requests.at.filter(|_| self.waits_for_feedback());
        [paced, requested].into_iter().flatten().min()
    }

    /// Reacts where no ACK has come for two round trips: all packets under way may be lost, and the
    /// ACKs that would release the next ones. Corresponds to TCP's timeout (RFC 6298).
    fn on_silence(&mut self, now: Time, rtt: &Rtt) {
        let lost = self.in_flight();
        let candidates = self.buffer.not_lost();
        let Some(flight) = &mut self.flight else {
            return;
        };
        if lost.is_zero() || !flight.is_silent(now, rtt.loss_timeout()) {
            return;
        }
        flight.give_up(now, candidates);
        let before = self.rate(rtt);
        self.controller.on_loss(&LossSample {
            now,
            lost,
            newest_sent: self.buffer.newest_sent(),
            cause: LossCause::Timeout,
            in_flight: ByteSize::ZERO,
        });
        self.pacer.on_rate(now, before, self.rate(rtt));
    }

    /// Handles an expired request timer.
    pub(crate) fn handle_timeout(&mut self, now: Time, rtt: &Rtt) {
        if self.requests.at.is_none_or(|at| now < at) {
            return;
        }
        self.requests.at = None;
        self.on_silence(now, rtt);
        if self.waits_for_feedback() {
            let most = match self.flight {
                Some(_) => FEW_DOUBLINGS,
                None => MOST_DOUBLINGS,
            };
            self.requests.doublings = (self.requests.doublings + 1).min(most);
            self.requests.due = true;
        }
    }

    /// Drops all data and requests.
    pub(crate) fn clear(&mut self) {
        self.buffer.clear();
        self.requests = Requests::default();
        self.change_due = false;
    }
}

/// The progress reported by an acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) batch: crate::send_buffer::PacketBatch,
    pub(crate) prior_in_flight: ByteSize,
}
