//! A path: an address pair and all that belongs to it, from the round-trip time to the congestion
//! controller.
//!
//! [`Recovery`](crate::recovery::Recovery) tells the path what was sent, acknowledged and lost; the
//! connection asks it whether a packet may be sent ([`Path::can_send`]), when
//! ([`Path::pacing_delay`]) and with which ECN codepoint ([`EcnState::codepoint`]).

mod ecn;
mod event;
mod mtu;
mod pacer;
mod rtt;
mod validation;

use std::net::SocketAddr;

use weir_congestion::{Controller, DeliveryRate};
use weir_units::{ByteSize, Duration, Time};

use crate::PathId;

pub(crate) use ecn::{EcnPhase, EcnState};
pub use event::{MoveCause, PathError, PathEvent};
pub use mtu::MtuPhase;
pub(crate) use mtu::{MtuDiscovery, MtuPlan};
pub(crate) use pacer::Pacer;
pub(crate) use rtt::Rtt;
pub(crate) use validation::{Validation, Verdict};

/// So many round trips in a row that contradict what is known of a path replace it.
const CONTRADICTIONS: u32 = 3;

/// What a new path starts with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathConfig {
    /// The largest UDP payload to send, in bytes.
    pub(crate) mtu: usize,
    /// The round-trip time to assume before the first sample (RFC 9002, section 6.2.2).
    pub(crate) initial_rtt: Duration,
    /// The shortest time that is worth a timer.
    pub(crate) granularity: Duration,
    /// Whether to send ECN-capable packets, as long as the path carries them.
    pub(crate) ecn: bool,
    /// Whether the peer's address counts as validated from the start (a client's server does).
    pub(crate) validated: bool,
}

/// What has happened on a path, for people to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathStats {
    /// UDP datagrams sent.
    pub(crate) datagrams_sent: u64,
    /// UDP datagrams received.
    pub(crate) datagrams_received: u64,
    /// QUIC packets sent.
    pub(crate) packets_sent: u64,
    /// QUIC packets received.
    pub(crate) packets_received: u64,
    /// QUIC packets declared lost, the spurious losses included.
    pub(crate) packets_lost: u64,
    /// QUIC packets acknowledged.
    pub(crate) packets_acked: u64,
    /// Bytes of UDP payload sent in packets that recovery knows of.
    pub(crate) bytes_sent: u64,
    /// Bytes of UDP payload received.
    pub(crate) bytes_received: u64,
    /// Bytes of UDP payload declared lost.
    pub(crate) bytes_lost: u64,
    /// Packets of ours that the peer received with a CE mark.
    pub(crate) ce_marks: u64,
    /// Acknowledged packets that were sent with ECT(0).
    pub(crate) ect_acked: u64,
    /// How often the controller was told of losses or CE marks.
    pub(crate) congestion_events: u64,
    /// How often the controller was told of persistent congestion.
    pub(crate) persistent_congestion: u64,
    /// Packets that were acknowledged after they had been declared lost.
    pub(crate) spurious_losses: u64,
    /// Probe time-outs.
    pub(crate) probe_timeouts: u64,
}

/// A path that is not in use: whether it is kept fresh, and how well it answers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Standby {
    /// When the peer last answered on it.
    pub(crate) answered_at: Option<Time>,
    /// When it is to be asked again.
    pub(crate) ask_at: Option<Time>,
    /// Attempts in a row that nobody answered.
    pub(crate) failures: u32,
    /// The share of challenges that are not answered, over the last eight attempts or so.
    pub(crate) loss: f64,
    /// Round trips in a row that contradict what was known of the path.
    pub(crate) contradictions: u32,
}

impl Standby {
    /// The peer answered after so many challenges.
    pub(crate) fn on_answer(&mut self, asked: usize) {
        let asked = asked.max(1) as f64;
        self.note_loss((asked - 1.0) / asked);
    }

    /// Nobody answered.
    pub(crate) fn on_failure(&mut self) {
        self.failures += 1;
        self.note_loss(1.0);
    }

    fn note_loss(&mut self, sample: f64) {
        self.loss += (sample - self.loss) / 8.0;
    }
}

/// An address pair and what is known of the way between.
#[derive(Debug)]
pub(crate) struct Path {
    /// Which of the connection's paths this is.
    pub(crate) id: PathId,
    /// The peer's address.
    pub(crate) remote: SocketAddr,
    /// The address of ours that the peer sends to, where it is known.
    pub(crate) local: Option<SocketAddr>,
    /// The round-trip time.
    pub(crate) rtt: Rtt,
    /// Whether the path carries ECN.
    pub(crate) ecn: EcnState,
    /// The largest UDP payload that may be sent, in bytes; see [`Path::set_mtu`].
    pub(crate) mtu: usize,
    /// What the path carries.
    pub(crate) discovery: MtuDiscovery,
    /// The congestion controller.
    pub(crate) controller: Box<dyn Controller>,
    /// What somebody else lets be on its way at most, whatever the controller says.
    cap: Option<ByteSize>,
    /// What spreads packets over time.
    pub(crate) pacer: Pacer,
    /// The delivery rate.
    pub(crate) delivery: DeliveryRate,
    /// Bytes sent that count against the window and are neither acknowledged nor lost.
    pub(crate) in_flight: u64,
    /// Whether the peer has shown that it receives at this address (RFC 9000, section 8).
    pub(crate) validated: bool,
    /// Whether little may be sent before it has: a server must not be used against others.
    pub(crate) limited: bool,
    /// The attempt to find that out, or to find out again.
    pub(crate) validation: Validation,
    /// An answer to the peer's latest PATH_CHALLENGE on this path, to be sent over it.
    pub(crate) response: Option<[u8; 8]>,
    /// Whether the path is held ready, and how well it answers.
    pub(crate) standby: Standby,
    /// Bytes of UDP payload received from this address.
    pub(crate) received: u64,
    /// Bytes of UDP payload sent to it.
    pub(crate) sent: u64,
    /// What has happened.
    pub(crate) stats: PathStats,
    /// When the window or the pacer last held the sender back.
    limited_at: Option<Time>,
    /// When the running round trip started.
    round_started: Time,
    /// When a packet that counts against the window was last sent.
    last_sent: Option<Time>,
}

impl Path {
    /// A path over which nothing has been sent.
    pub(crate) fn new(
        id: PathId,
        remote: SocketAddr,
        local: Option<SocketAddr>,
        controller: Box<dyn Controller>,
        config: &PathConfig,
    ) -> Self {
        Self {
            id,
            remote,
            local,
            rtt: Rtt::new(config.initial_rtt),
            ecn: EcnState::new(config.ecn),
            mtu: config.mtu,
            discovery: MtuDiscovery::new(),
            controller,
            cap: None,
            pacer: Pacer::new(config.granularity, config.mtu as u64),
            delivery: DeliveryRate::new(),
            in_flight: 0,
            validated: config.validated,
            limited: !config.validated,
            validation: Validation::default(),
            response: None,
            standby: Standby::default(),
            received: 0,
            sent: 0,
            stats: PathStats::default(),
            limited_at: None,
            round_started: Time::ZERO,
            last_sent: None,
        }
    }

    /// The same with a cap on its window.
    pub(crate) fn with_cap(self, cap: Option<ByteSize>) -> Self {
        Self { cap, ..self }
    }

    /// Whether datagrams between these addresses belong to the path. An address of ours that is not
    /// known matches any.
    pub(crate) fn joins(&self, remote: SocketAddr, local: Option<SocketAddr>) -> bool {
        self.remote == remote
            && match (self.local, local) {
                (Some(ours), Some(theirs)) => ours == theirs,
                _ => true,
            }
    }

    /// Two paths change places in the network: each keeps what it knows of congestion and goes on
    /// between the other's addresses.
    pub(crate) fn swap_addresses(&mut self, other: &mut Self) {
        use std::mem::swap;
        swap(&mut self.remote, &mut other.remote);
        swap(&mut self.local, &mut other.local);
        swap(&mut self.validated, &mut other.validated);
        swap(&mut self.validation, &mut other.validation);
        swap(&mut self.response, &mut other.response);
        swap(&mut self.standby, &mut other.standby);
        swap(&mut self.received, &mut other.received);
        swap(&mut self.sent, &mut other.sent);
    }

    /// What the peer accepts is known: packets get the plan's first size, or `cap` where that is
    /// less, and larger ones are searched for.
    pub(crate) fn begin_discovery(&mut self, now: Time, plan: MtuPlan, cap: usize) {
        self.discovery.begin(plan);
        // Even where it is the same size: the controller may have expected another one.
        self.set_mtu(now, self.discovery.current.min(cap));
    }

    /// Takes the size that discovery allows, or `cap` where that is less.
    pub(crate) fn update_mtu(&mut self, now: Time, cap: usize) {
        let mtu = self.discovery.current.min(cap);
        if mtu != self.mtu {
            tracing::debug!(remote = %self.remote, from = self.mtu, to = mtu, "packet size");
            self.set_mtu(now, mtu);
        }
    }

    /// The largest UDP payload changed.
    fn set_mtu(&mut self, now: Time, mtu: usize) {
        self.mtu = mtu;
        self.controller
            .on_packet_size(ByteSize::from_bytes(mtu as u64));
        self.update_pacing(now);
    }

    /// A datagram of `bytes` came in from the peer's address, whatever it holds.
    pub(crate) fn on_datagram_received(&mut self, bytes: usize) {
        self.received += bytes as u64;
        self.stats.datagrams_received += 1;
        self.stats.bytes_received += bytes as u64;
    }

    /// The peer answered after `rtt` while the path was held ready. Such round trips are so far apart
    /// that an average of them is old news: one that contradicts it by more than `least` leaves doubts,
    /// which this tells, and when a few in a row do the path counts as what the last one says.
    pub(crate) fn on_standby_round_trip(
        &mut self,
        now: Time,
        rtt: Duration,
        least: Duration,
    ) -> bool {
        let standby = &mut self.standby;
        standby.contradictions = if self.rtt.is_contradicted_by(rtt, least) {
            standby.contradictions + 1
        } else {
            0
        };
        if standby.contradictions == CONTRADICTIONS {
            standby.contradictions = 0;
            self.rtt.restart(now, rtt);
        } else {
            self.rtt.on_sample(now, rtt, Duration::ZERO);
        }
        self.standby.contradictions > 0
    }

    /// A datagram of `bytes` goes out.
    pub(crate) fn on_datagram_sent(&mut self, bytes: usize) {
        self.sent += bytes as u64;
        self.stats.datagrams_sent += 1;
    }

    /// How many more bytes may be sent before the peer's address is validated: three times what
    /// came from there (RFC 9000, section 8.1).
    pub(crate) fn amplification_budget(&self) -> u64 {
        if self.validated || !self.limited {
            return u64::MAX;
        }
        self.received.saturating_mul(3).saturating_sub(self.sent)
    }

    /// The window: the controller's, or the cap where that is smaller.
    pub(crate) fn window(&self) -> ByteSize {
        let window = self.controller.window();
        self.cap.map_or(window, |cap| cap.min(window))
    }

    /// Caps the window from now on, or no longer. A cap of zero stops the sender.
    pub(crate) fn set_cap(&mut self, now: Time, cap: Option<ByteSize>) {
        self.cap = cap;
        self.update_pacing(now);
    }

    /// Whether the cap, and not the controller's window, is the limit: that must not grow behind it and
    /// break out when the cap is lifted.
    fn is_capped(&self) -> bool {
        self.cap.is_some_and(|cap| cap <= self.controller.window())
    }

    /// Whether the window lets a packet of `size` bytes go. A window of zero lets none go; one below one
    /// packet lets one packet go at a time, and the pacer spaces them.
    pub(crate) fn can_send(&self, size: u64) -> bool {
        let window = self.window().bytes();
        if window == 0 {
            return false;
        }
        if window < size || window < self.mtu as u64 {
            return self.in_flight == 0;
        }
        self.in_flight.saturating_add(size) <= window
    }

    /// How many bytes the window lets go now: one packet at least, where [`Path::can_send`] does.
    pub(crate) fn window_room(&self) -> u64 {
        let window = self.window().bytes();
        window.saturating_sub(self.in_flight).max(self.mtu as u64)
    }

    /// When `batch` bytes, which are ready and which the window lets go, may leave; `None` for now.
    pub(crate) fn pacing_delay(&mut self, now: Time, batch: u64) -> Option<Time> {
        let until = self.pacer.delay(now, batch)?;
        // A sender that only pacing holds back makes full use of its window (RFC 9002, section 7.8).
        self.limited_at = Some(now);
        Some(until)
    }

    /// There is nothing to send. Where the window would have let a packet go, what is sent until
    /// this flight has been delivered says nothing about the path's rate.
    pub(crate) fn on_nothing_to_send(&mut self) {
        if self.can_send(self.mtu as u64) {
            self.delivery
                .set_app_limited(ByteSize::from_bytes(self.in_flight));
        }
    }

    /// A packet that counts against the window has been sent and is part of `in_flight` already.
    pub(crate) fn on_in_flight(&mut self, now: Time, size: u64) {
        self.pacer.on_sent(now, size);
        self.last_sent = Some(now);
        let window = self.window().bytes();
        if self.in_flight.saturating_add(self.mtu as u64) > window {
            self.limited_at = Some(now);
        }
    }

    /// Since when nothing has been sent, if nothing is in flight.
    pub(crate) fn idle_since(&self) -> Option<Time> {
        self.last_sent.filter(|_| self.in_flight == 0)
    }

    /// Whether the window was not the limit while a packet that was sent at `sent_at` was on its
    /// way, so that its acknowledgment is no reason for a larger window (RFC 9002, section 7.8).
    ///
    /// The window is the limit at a moment when, after a packet has been sent, there is no room
    /// for another full one, or when the pacer has the sender wait. One such moment between the
    /// packet's sending and now is enough: a full flight that is acknowledged packet by packet
    /// lets the window grow for each of them.
    pub(crate) fn is_app_limited(&self, sent_at: Time) -> bool {
        self.is_capped() || self.limited_at.is_none_or(|limited| limited < sent_at)
    }

    /// Whether the acknowledgment of a packet that was sent at `sent_at` ends a round trip; the
    /// next one starts then.
    pub(crate) fn ends_round(&mut self, now: Time, sent_at: Time) -> bool {
        let ended = sent_at >= self.round_started;
        if ended {
            self.round_started = now;
        }
        ended
    }

    /// The controller's window, its rate or the round-trip time changed.
    pub(crate) fn update_pacing(&mut self, now: Time) {
        let srtt = self.rtt.has_sample().then_some(self.rtt.smoothed);
        let (controller, window) = (self.controller.as_ref(), self.window());
        self.pacer
            .update(now, controller, window, srtt, self.mtu as u64);
    }
}
