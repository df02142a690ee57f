//! The receiving half of a connection: gaps and NAKs, marks and ACKs, and the end of congestion.

use std::collections::VecDeque;

use bytes::Bytes;
use weir_units::{Duration, Time};

use crate::config::{AckInterval, EchoRule, TransportConfig};
use crate::error::Violation;
use crate::jitter::InterarrivalJitter;
use crate::loss_persistence::LossPersistence;
use crate::observer::{CongestionObserver, QuitConfig, RttSource, Verdict};
use crate::packet::DataHeader;
use crate::receive_buffer::ReceiveBuffer;
use crate::rtt::Rtt;

/// Limit of ACKs whose ACK2 may still arrive.
const MOST_OPEN_ACKS: usize = 256;
/// Limit of gaps that wait for their first report. Further gaps wait for the repetition.
const MOST_FRESH_GAPS: usize = 64;
const MOST_DOUBLINGS: u32 = 6;
/// The most doublings of the interval of repeated reports to a sender without UDP Mode.
const FEW_DOUBLINGS: u32 = 1;
/// At least every second packet is acknowledged (RFC 9293, section 3.8.6.3), for an ACK clock and for
/// HyStart's samples in each round trip.
const PACKETS_PER_ACK: u32 = 2;
/// A single packet waits for a second one for this part of an RTT through empty queues.
const DELAYS_PER_ROUND_TRIP: u64 = 16;

/// The mode that the receiver requests (section IV).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestedMode {
    /// UDP Mode: no ACKs.
    Quiet,
    /// Congestion Mode: ACKs with OBS set.
    Congested,
    /// The congestion is over: ACKs with OBS clear until the sender confirms the change.
    Quitting,
}

#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) buffer: ReceiveBuffer,
    phase: RequestedMode,
    observer: CongestionObserver,
    quit: QuitConfig,
    echo_rule: EchoRule,
    ack_interval: AckInterval,
    /// Whether the peer's sender has UDP Mode. If not, it is congested for good.
    peer_udp_mode: bool,
    /// The losses of unmarked packets, where they count as congestion.
    losses: Option<LossPersistence>,
    pub(crate) jitter: InterarrivalJitter,
    pub(crate) echo: bool,
    pub(crate) received: u32,
    pub(crate) marked: u32,
    min_ack_interval: Duration,
    open_acks: VecDeque<(u64, Time)>,
    last_ack: Time,
    ack_at: Option<Time>,
    pub(crate) ack_due: bool,
    doublings: u32,
    data_since_ack: u32,
    last_data: Time,
    unreported_gaps: VecDeque<(u64, u64)>,
    nak_at: Option<Time>,
    /// The end of the range to repeat: gaps below it existed at the previous repetition.
    repeat_end: u64,
    /// The position at which the current repetition continues.
    repeat_from: Option<u64>,
    repeats: u32,
    /// The limit last announced to the peer.
    advertised: u64,
    pub(crate) update_due: bool,
}

impl Receiver {
    /// `peer_udp_mode`: whether the peer's sender has UDP Mode.
    pub(crate) fn new(
        config: &TransportConfig,
        messages: bool,
        first: u64,
        peer_udp_mode: bool,
    ) -> Self {
        let buffer = ReceiveBuffer::new(config.receive_window, messages, first);
        Self {
            advertised: buffer.limit(),
            buffer,
            phase: if peer_udp_mode {
                RequestedMode::Quiet
            } else {
                RequestedMode::Congested
            },
            observer: CongestionObserver::new(config.quit),
            quit: config.quit,
            echo_rule: config.echo,
            ack_interval: if peer_udp_mode {
                config.ack_interval
            } else {
                AckInterval::Frequent
            },
            peer_udp_mode,
            losses: config.congestion_on_loss.then(LossPersistence::default),
            jitter: InterarrivalJitter::default(),
            echo: false,
            received: 0,
            marked: 0,
            min_ack_interval: config.min_ack_interval,
            open_acks: VecDeque::new(),
            last_ack: Time::ZERO,
            ack_at: None,
            ack_due: false,
            doublings: 0,
            data_since_ack: 0,
            last_data: Time::ZERO,
            unreported_gaps: VecDeque::new(),
            nak_at: None,
            repeat_end: first,
            repeat_from: None,
            repeats: 0,
            update_due: false,
        }
    }

    /// Returns the OBS bit: whether the receiver requests Congestion Mode.
    pub(crate) fn requests_congestion_mode(&self) -> bool {
        self.phase == RequestedMode::Congested
    }

    /// Returns the room in packets, from the first missing one on.
    pub(crate) fn room(&self) -> u32 {
        let room = self.buffer.limit() - self.buffer.expected;
        u32::try_from(room).unwrap_or(u32::MAX)
    }

    /// Processes a data packet.
    pub(crate) fn on_data(
        &mut self,
        now: Time,
        header: &DataHeader,
        payload: Bytes,
        is_marked: bool,
        rtt: &Rtt,
    ) -> Result<bool, Violation> {
        let count = header.sequence.expand(self.buffer.expected);
        let before = self.buffer.expected;
        let accepted = self.buffer.accept(count, header, payload)?;
        // The sender derives from the counter what is under way: duplicates would seem to be other packets.
        if accepted.is_new {
            self.received = self.received.wrapping_add(1);
            self.marked = self.marked.wrapping_add(is_marked.into());
        }
        self.data_since_ack = self.data_since_ack.saturating_add(1);
        self.last_data = now;
        self.jitter.on_packet(now, header.timestamp);
        if let Some(gap) = accepted.gap {
            self.on_gap(now, gap, rtt);
        }
        self.on_marks(now, header, is_marked, accepted.gap.is_some(), rtt);
        if self.buffer.expected > before {
            self.repeats = 0;
        }
        if !self.buffer.has_missing() {
            self.nak_at = None;
            self.repeat_from = None;
        }
        Ok(accepted.is_new)
    }

    fn on_marks(
        &mut self,
        now: Time,
        header: &DataHeader,
        is_marked: bool,
        is_gap: bool,
        rtt: &Rtt,
    ) {
        if header.flags.cwr && self.echo_rule == EchoRule::UntilReduced {
            self.echo = false;
        }
        self.echo |= is_marked;
        let goes_on = |losses: &mut LossPersistence| losses.on_gap(now, rtt.smoothed);
        let keeps_losing = is_gap && self.losses.as_mut().is_some_and(goes_on);
        let congested = is_marked || keeps_losing;
        self.observer.on_data(congested);
        match self.phase {
            RequestedMode::Quiet | RequestedMode::Quitting if congested => self.enter(),
            // The sender has missed the end of the congestion, or its OBS-change arrived early.
            RequestedMode::Quiet if header.flags.obs => {
                self.ack_due |= now >= self.last_ack + self.interval(rtt);
            }
            RequestedMode::Quitting if !header.flags.obs => self.leave(),
            RequestedMode::Congested => {
                let due = self.last_ack + self.interval(rtt);
                self.ack_due |= now >= due;
                self.ack_at = Some(self.ack_at.map_or(due, |at| at.min(due)));
            }
            RequestedMode::Quiet | RequestedMode::Quitting => {}
        }
    }

    /// Starts Congestion Mode and reports it to the sender at once.
    fn enter(&mut self) {
        self.observer.clear();
        self.phase = RequestedMode::Congested;
        self.ack_due = true;
        self.doublings = 0;
    }

    /// The sender has returned to UDP Mode.
    fn leave(&mut self) {
        self.phase = RequestedMode::Quiet;
        self.ack_due = false;
        self.ack_at = None;
        self.echo = false;
        self.open_acks.clear();
    }

    /// Returns the ACK interval: RTT, or β RTT_idle once Condition 1 holds.
    fn interval(&self, rtt: &Rtt) -> Duration {
        let interval = match self.ack_interval {
            AckInterval::RoundTrip if self.observer.is_easing() => {
                rtt.idle().mul_f64(self.quit.beta)
            }
            AckInterval::RoundTrip => rtt.smoothed,
            AckInterval::IdleRoundTrip => rtt.idle(),
            AckInterval::Frequent if self.data_since_ack >= PACKETS_PER_ACK => Duration::ZERO,
            AckInterval::Frequent => rtt.idle() / DELAYS_PER_ROUND_TRIP,
        };
        interval.max(self.min_ack_interval)
    }

    /// Returns the idle time that ends congestion: without data the windows would take this long to
    /// fill.
    fn idle_quit(&self, rtt: &Rtt) -> Duration {
        let windows = f64::from(self.quit.window) * self.quit.beta;
        rtt.smoothed.mul_f64(windows).max(Duration::from_millis(1))
    }

    fn on_gap(&mut self, now: Time, gap: (u64, u64), rtt: &Rtt) {
        if self.unreported_gaps.len() < MOST_FRESH_GAPS {
            self.unreported_gaps.push_back(gap);
        }
        if self.nak_at.is_none() {
            self.repeat_end = gap.1;
            self.nak_at = Some(now + self.nak_interval(rtt));
        }
    }

    /// Processes the peer's announcement that it has sent everything before `next`.
    pub(crate) fn on_announced(
        &mut self,
        now: Time,
        next: crate::SequenceNumber,
        rtt: &Rtt,
    ) -> Result<(), Violation> {
        let next = next.expand(self.buffer.end);
        if let Some(gap) = self.buffer.announce(next)? {
            self.on_gap(now, gap, rtt);
        }
        Ok(())
    }

    fn nak_interval(&self, rtt: &Rtt) -> Duration {
        let interval = rtt.answer_timeout() * 2 + self.min_ack_interval;
        interval * (1 << self.repeats)
    }

    pub(crate) fn nak_is_due(&self) -> bool {
        !self.unreported_gaps.is_empty() || self.repeat_from.is_some()
    }

    /// Returns the next missing range, without its end. Packets that have arrived meanwhile are
    /// left out.
    pub(crate) fn next_loss(&mut self) -> Option<(u64, u64)> {
        while let Some(gap) = self.unreported_gaps.front_mut() {
            if let Some(missing) = self.buffer.next_missing(gap.0, gap.1) {
                gap.0 = missing.1;
                return Some(missing);
            }
            self.unreported_gaps.pop_front();
        }
        let from = self.repeat_from?;
        let missing = self.buffer.next_missing(from, self.repeat_end);
        self.repeat_from = missing.map(|missing| missing.1);
        if missing.is_none() {
            self.repeat_end = self.buffer.end;
        }
        missing
    }

    /// Puts back a range that did not fit into the packet; it comes first in the next one.
    pub(crate) fn put_back(&mut self, range: (u64, u64)) {
        self.unreported_gaps.push_front(range);
    }

    /// Records that an ACK with this number is sent.
    pub(crate) fn on_ack_sent(&mut self, now: Time, number: u64, rtt: &Rtt) {
        if self.open_acks.len() == MOST_OPEN_ACKS {
            self.open_acks.pop_front();
        }
        self.open_acks.push_back((number, now));
        self.last_ack = now;
        self.ack_due = false;
        self.data_since_ack = 0;
        if self.echo_rule == EchoRule::SinceLastAck {
            self.echo = false;
        }
        let interval = self.interval(rtt);
        self.ack_at = match self.phase {
            RequestedMode::Quiet => None,
            RequestedMode::Congested => Some(now + interval),
            RequestedMode::Quitting => {
                let wait = interval * (1 << self.doublings);
                self.doublings = (self.doublings + 1).min(MOST_DOUBLINGS);
                Some(now + wait)
            }
        };
        self.on_advertised();
    }

    /// Records that the room was announced to the peer.
    pub(crate) fn on_advertised(&mut self) {
        self.advertised = self.buffer.limit();
        self.update_due = false;
    }

    /// Announces the room once it exceeds the announced limit considerably.
    pub(crate) fn on_read(&mut self) {
        if self.buffer.limit() - self.advertised >= self.buffer.window / 2 {
            self.update_due = true;
        }
    }

    /// Processes an ACK2 for the ACK of this number.
    pub(crate) fn on_ack2(&mut self, now: Time, number: u64, rtt: &mut Rtt) {
        let position = self.open_acks.iter().position(|(open, _)| *open == number);
        let Some((_, sent_at)) = position.and_then(|position| self.open_acks.remove(position))
        else {
            return;
        };
        let sample = now.since(sent_at);
        rtt.on_sample(sample);
        if self.phase != RequestedMode::Congested {
            return;
        }
        let kept = match self.quit.rtt {
            RttSource::Smoothed => rtt.smoothed,
            RttSource::Current => sample,
        };
        if self.observer.on_rtt(kept) == Verdict::Ended && self.peer_udp_mode {
            self.phase = RequestedMode::Quitting;
            self.doublings = 0;
        }
    }

    /// Processes the sender's report of a mode change.
    pub(crate) fn on_change(&mut self, now: Time, observe: bool) {
        match self.phase {
            RequestedMode::Quitting if !observe => self.leave(),
            // The sender changed upon an older ACK: a newer one switches it back.
            RequestedMode::Congested if !observe => {
                self.ack_due |= now >= self.last_ack + self.min_ack_interval;
            }
            _ => {}
        }
    }

    pub(crate) fn timeout(&self) -> Option<Time> {
        [self.ack_at, self.nak_at].into_iter().flatten().min()
    }

    /// Handles expired timers.
    pub(crate) fn handle_timeout(&mut self, now: Time, rtt: &Rtt) {
        if self.nak_at.is_some_and(|at| now >= at) {
            self.repeat_from = Some(self.buffer.expected);
            // A sender without UDP Mode retransmits no faster than its window allows.
            let most = if self.peer_udp_mode {
                MOST_DOUBLINGS
            } else {
                FEW_DOUBLINGS
            };
            self.repeats = (self.repeats + 1).min(most);
            self.nak_at = Some(now + self.nak_interval(rtt));
        }
        if self.ack_at.is_none_or(|at| now < at) {
            return;
        }
        match self.phase {
            RequestedMode::Quiet => self.ack_at = None,
            RequestedMode::Quitting => self.ack_due = true,
            RequestedMode::Congested if self.data_since_ack > 0 => self.ack_due = true,
            RequestedMode::Congested if !self.peer_udp_mode => self.ack_at = None,
            RequestedMode::Congested => {
                let quit_at = self.last_data + self.idle_quit(rtt);
                if now >= quit_at {
                    self.phase = RequestedMode::Quitting;
                    self.doublings = 0;
                    self.ack_due = true;
                } else {
                    self.ack_at = Some(quit_at);
                }
            }
        }
        if self.ack_due {
            self.ack_at = None;
        }
    }
}
