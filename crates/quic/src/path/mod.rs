//! A path: an address pair and its state, from the RTT to the congestion controller.
//!
//! [`Recovery`](crate::recovery::Recovery) reports sent, acknowledged and lost packets to the path.
//! The connection asks it whether a packet may be sent ([`Path::can_send`]), when
//! ([`Path::pacing_delay`]) and with which ECN codepoint ([`EcnState::codepoint`]).

mod ecn;
mod event;
mod mtu;
mod pacer;
mod receive_bound;
mod rtt;
mod validation;

use std::net::SocketAddr;

use weir_congestion::{Controller, DeliveryRate, DeliverySample};
use weir_units::{ByteSize, Duration, Time};

use crate::PathId;

pub(crate) use ecn::{EcnPhase, EcnState};
pub use event::{MoveCause, PathError, PathEvent};
pub use mtu::MtuPhase;
pub(crate) use mtu::{MtuDiscovery, MtuPlan};
pub(crate) use pacer::Pacer;
pub(crate) use receive_bound::ReceiveBound;
pub(crate) use rtt::Rtt;
pub(crate) use validation::{Validation, ValidationStatus};

/// This many consecutive RTT samples that contradict the estimate of a path replace it.
const CONTRADICTIONS: u32 = 3;

/// The initial settings of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathConfig {
    /// The largest UDP payload, in bytes.
    pub(crate) mtu: usize,
    /// The RTT before the first sample (RFC 9002, section 6.2.2).
    pub(crate) initial_rtt: Duration,
    /// The timer granularity.
    pub(crate) granularity: Duration,
    /// Whether to send ECN-capable packets, as long as the path carries them.
    pub(crate) ecn: bool,
    /// Whether the peer's address is validated from the start (for a client it is).
    pub(crate) validated: bool,
}

/// Statistics of a path.
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
    /// Bytes of UDP payload sent in packets that recovery tracks.
    pub(crate) bytes_sent: u64,
    /// Bytes of UDP payload received.
    pub(crate) bytes_received: u64,
    /// Bytes of UDP payload declared lost.
    pub(crate) bytes_lost: u64,
    /// Packets of ours that the peer received with a CE mark.
    pub(crate) ce_marks: u64,
    /// Acknowledged packets that were sent with ECT(0).
    pub(crate) ect_acked: u64,
    /// Congestion events (losses or CE marks) passed to the controller.
    pub(crate) congestion_events: u64,
    /// Persistent congestion events passed to the controller.
    pub(crate) persistent_congestion: u64,
    /// Packets that were acknowledged after they had been declared lost.
    pub(crate) spurious_losses: u64,
    /// Probe time-outs.
    pub(crate) probe_timeouts: u64,
}

/// The standby state of a path: when it is probed, and how well the peer answers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Standby {
    /// When the peer last answered on it.
    pub(crate) answered_at: Option<Time>,
    /// When it is to be probed again.
    pub(crate) probe_at: Option<Time>,
    /// Consecutive failed attempts.
    pub(crate) failures: u32,
    /// The share of unanswered challenges, over about the last eight attempts.
    pub(crate) loss: f64,
    /// Consecutive round trips that contradict the estimate of the path.
    pub(crate) contradictions: u32,
}

impl Standby {
    /// Records an answer after this many challenges.
    pub(crate) fn on_answer(&mut self, asked: usize) {
        let asked = asked.max(1) as f64;
        self.note_loss((asked - 1.0) / asked);
    }

    /// Records an attempt without an answer.
    pub(crate) fn on_failure(&mut self) {
        self.failures += 1;
        self.note_loss(1.0);
    }

    fn note_loss(&mut self, sample: f64) {
        self.loss += (sample - self.loss) / 8.0;
    }
}

/// An address pair and the state of the network path between them.
#[derive(Debug)]
pub(crate) struct Path {
    /// The path's ID in the connection.
    pub(crate) id: PathId,
    /// The peer's address.
    pub(crate) remote: SocketAddr,
    /// The local address that the peer sends to, if known.
    pub(crate) local: Option<SocketAddr>,
    /// The round-trip time.
    pub(crate) rtt: Rtt,
    /// The state of ECN validation.
    pub(crate) ecn: EcnState,
    /// The largest UDP payload that may be sent, in bytes; see [`Path::set_mtu`].
    pub(crate) mtu: usize,
    /// MTU discovery.
    pub(crate) discovery: MtuDiscovery,
    /// The congestion controller.
    pub(crate) controller: Box<dyn Controller>,
    /// An external cap on bytes in flight, in addition to the congestion window.
    cap: Option<ByteSize>,
    /// The bound by the peer's receive buffer.
    receive_bound: ReceiveBound,
    /// The pacer.
    pub(crate) pacer: Pacer,
    /// The delivery-rate estimator.
    pub(crate) delivery: DeliveryRate,
    /// Bytes sent that count against the window and are neither acknowledged nor lost.
    pub(crate) in_flight: u64,
    /// Whether the peer's address is validated (RFC 9000, section 8).
    pub(crate) validated: bool,
    /// Whether the amplification limit applies until then: a server must not be used to attack
    /// others.
    pub(crate) limited: bool,
    /// The current attempt to validate the address, for the first time or again.
    pub(crate) validation: Validation,
    /// The response to the peer's latest PATH_CHALLENGE on this path, to be sent over it.
    pub(crate) response: Option<[u8; 8]>,
    /// The standby state.
    pub(crate) standby: Standby,
    /// Bytes of UDP payload received from this address.
    pub(crate) received: u64,
    /// Bytes of UDP payload sent to it.
    pub(crate) sent: u64,
    /// Statistics.
    pub(crate) stats: PathStats,
    /// When the window or the pacer last held the sender back.
    limited_at: Option<Time>,
    /// When the current round trip started.
    round_started: Time,
    /// When a packet that counts as in flight was last sent.
    last_sent: Option<Time>,
}

impl Path {
    /// Creates a path over which nothing has been sent.
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
            receive_bound: ReceiveBound::default(),
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

    /// Adds a cap on the window.
    pub(crate) fn with_cap(self, cap: Option<ByteSize>) -> Self {
        Self { cap, ..self }
    }

    /// Bounds what is in flight by a peer's receive buffer.
    pub(crate) fn set_receive_buffer(&mut self, buffer: Option<u64>) {
        self.receive_bound = ReceiveBound::of(buffer);
    }

    /// Takes a sample of the delivery rate.
    pub(crate) fn on_delivery(&mut self, sample: &DeliverySample) {
        self.receive_bound.on_delivery(sample.rate, self.rtt.min);
    }

    /// Whether datagrams between these addresses belong to the path. An unknown local address
    /// matches any.
    pub(crate) fn joins(&self, remote: SocketAddr, local: Option<SocketAddr>) -> bool {
        self.remote == remote
            && match (self.local, local) {
                (Some(ours), Some(theirs)) => ours == theirs,
                _ => true,
            }
    }

    /// Swaps the addresses of two paths: each keeps its congestion state and continues between the
    /// other's addresses.
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

    /// Starts MTU discovery once the peer's limit is known. Packets get the first size of the plan,
    /// or `cap` if that is less, and larger sizes are searched for.
    pub(crate) fn begin_discovery(&mut self, now: Time, plan: MtuPlan, cap: usize) {
        self.discovery.begin(now, plan);
        // Even if the size is the same: the controller may have expected another one.
        self.set_mtu(now, self.discovery.current.min(cap));
    }

    /// Applies the size that discovery allows, or `cap` if that is less.
    pub(crate) fn update_mtu(&mut self, now: Time, cap: usize) {
        let mtu = self.discovery.current.min(cap);
        if mtu != self.mtu {
            tracing::debug!(remote = %self.remote, from = self.mtu, to = mtu, "packet size");
            self.set_mtu(now, mtu);
        }
    }

    /// Sets the largest UDP payload.
    fn set_mtu(&mut self, now: Time, mtu: usize) {
        self.mtu = mtu;
        self.controller
            .on_packet_size(ByteSize::from_bytes(mtu as u64));
        self.update_pacing(now);
    }

    /// Records a datagram of `bytes` received from the peer's address, whatever it contains.
    pub(crate) fn on_datagram_received(&mut self, bytes: usize) {
        self.received += bytes as u64;
        self.stats.datagrams_received += 1;
        self.stats.bytes_received += bytes as u64;
    }

    /// Records an answer after `rtt` on a standby path. These samples are so far apart that their
    /// average is outdated. Returns `true` if a sample contradicts the average by more than
    /// `least`; after `CONTRADICTIONS` such samples in a row the last one replaces the average.
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

    /// Records a sent datagram of `bytes`.
    pub(crate) fn on_datagram_sent(&mut self, bytes: usize) {
        self.sent += bytes as u64;
        self.stats.datagrams_sent += 1;
    }

    /// Returns how many more bytes may be sent before the peer's address is validated: three times
    /// the bytes received from it (RFC 9000, section 8.1).
    pub(crate) fn amplification_budget(&self) -> u64 {
        if self.validated || !self.limited {
            return u64::MAX;
        }
        self.received.saturating_mul(3).saturating_sub(self.sent)
    }

    /// Returns the window: the controller's, or the cap or the peer's receive buffer if that is smaller.
    pub(crate) fn window(&self) -> ByteSize {
        let window = self.controller.window();
        self.limit().map_or(window, |limit| limit.min(window))
    }

    /// Returns the limit besides the controller's window.
    fn limit(&self) -> Option<ByteSize> {
        match (self.cap, self.receive_bound.limit()) {
            (Some(cap), Some(bound)) => Some(cap.min(bound)),
            (cap, bound) => cap.or(bound),
        }
    }

    /// Sets or removes the cap on the window. A cap of zero stops the sender.
    pub(crate) fn set_cap(&mut self, now: Time, cap: Option<ByteSize>) {
        self.cap = cap;
        self.update_pacing(now);
    }

    /// Whether something else than the controller's window is the limit. The window must not grow
    /// meanwhile and burst out when a cap is removed.
    fn is_capped(&self) -> bool {
        self.limit()
            .is_some_and(|limit| limit <= self.controller.window())
    }

    /// Whether the window allows a packet of `size` bytes. A window of zero allows none. A window
    /// below one packet allows one packet at a time, spaced by the pacer.
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

    /// Returns how many bytes the window allows now: at least one packet if [`Path::can_send`]
    /// does.
    pub(crate) fn window_room(&self) -> u64 {
        let window = self.window().bytes();
        window.saturating_sub(self.in_flight).max(self.mtu as u64)
    }

    /// Returns when `batch` bytes that are ready and that the window allows may leave; `None` for
    /// now.
    pub(crate) fn pacing_delay(&mut self, now: Time, batch: u64) -> Option<Time> {
        let until = self.pacer.delay(now, batch)?;
        // A sender that only pacing holds back fully uses its window (RFC 9002, section 7.8).
        self.limited_at = Some(now);
        Some(until)
    }

    /// Records that there is nothing to send. If the window would have allowed a packet, the path
    /// is application-limited: rate samples do not count until this flight has been delivered.
    pub(crate) fn on_nothing_to_send(&mut self) {
        if self.can_send(self.mtu as u64) {
            self.delivery
                .set_app_limited(ByteSize::from_bytes(self.in_flight));
        }
    }

    /// Records a sent packet that counts as in flight and is already part of `in_flight`.
    pub(crate) fn on_in_flight(&mut self, now: Time, size: u64) {
        self.pacer.on_sent(now, size);
        self.last_sent = Some(now);
        let window = self.window().bytes();
        if self.in_flight.saturating_add(self.mtu as u64) > window {
            self.limited_at = Some(now);
        }
    }

    /// Returns since when nothing has been sent, if nothing is in flight.
    pub(crate) fn idle_since(&self) -> Option<Time> {
        self.last_sent.filter(|_| self.in_flight == 0)
    }

    /// Whether the window was not the limit while a packet sent at `sent_at` was in flight, so that
    /// its ACK must not grow the window (RFC 9002, section 7.8).
    ///
    /// The window is the limit when, after a packet has been sent, there is no room for another
    /// full one, or when the pacer makes the sender wait. One such time between the sending of the
    /// packet and now is enough: a full flight that is acknowledged packet by packet grows the
    /// window for each of them.
    pub(crate) fn is_app_limited(&self, sent_at: Time) -> bool {
        self.is_capped() || self.limited_at.is_none_or(|limited| limited < sent_at)
    }

    /// Whether the ACK of a packet sent at `sent_at` ends a round trip; the next one starts then.
    pub(crate) fn ends_round(&mut self, now: Time, sent_at: Time) -> bool {
        let ended = sent_at >= self.round_started;
        if ended {
            self.round_started = now;
        }
        ended
    }

    /// Updates the pacer after a change of the controller's window or rate, or of the RTT.
    pub(crate) fn update_pacing(&mut self, now: Time) {
        let rtt = self.rtt.for_pacing();
        let (controller, window) = (self.controller.as_ref(), self.window());
        self.pacer
            .update(now, controller, window, rtt, self.mtu as u64);
    }
}
