//! The sending half of a connection: transmission, timers, and the processing of acknowledgments.
//!
//! The stream is counted in 64-bit offsets from its first byte; FIN is the byte after its last.
//! [`crate::connection`] turns offsets into sequence numbers.

mod acknowledgment;
mod loss;
mod pacer;
mod plain;
mod rate_reduction;
mod recovery;
mod tail_probe;
mod timeout;
mod transmit;

use std::sync::Arc;

use weir_congestion::{Controller, DirectController};
use weir_units::{ByteSize, Duration, Time};

use crate::cold::{Cold, Initial};
use crate::counters::SentCounters;
use crate::rtt::RttEstimator;
use crate::scoreboard::Scoreboard;
use crate::{Config, EcnMode, LossDetection};

pub(crate) use acknowledgment::Acknowledgment;
use loss::Reordering;
use pacer::Pacer;
pub(crate) use plain::PlainNext;
use rate_reduction::Reduction;
use recovery::{Recovery, Undo};
use tail_probe::TailProbe;
pub(crate) use timeout::Expiry;
pub(crate) use transmit::OutgoingSegment;

/// The loss detection in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detection {
    /// Duplicate ACKs without SACK (RFC 6582).
    DuplicateAcks,
    /// RFC 6675.
    Threshold,
    /// RFC 8985.
    Rack,
}

/// The purpose of the early timer, which expires before the retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EarlyTimer {
    /// A tail loss probe (RFC 8985, section 7.2).
    Probe,
    /// A segment becomes overdue (RFC 8985, section 6.3).
    Overdue,
}

/// What only a sender needs that has lost data, or waits for its peer in vain.
#[derive(Clone, Debug)]
struct LossState {
    recovery: Option<Recovery>,
    undo: Option<Undo>,
    tail_probe: Option<TailProbe>,
    reordering: Reordering,
    /// Duplicate ACKs since the last new one, without SACK.
    duplicates: u64,
    /// Number of timeouts of the data at `una`.
    retries: u32,
    /// Probes sent since the peer's window closed.
    window_probes: u32,
    /// Of these, the probes since the last segment from the peer.
    unanswered_probes: u32,
    window_probe_due: bool,
    /// A segment below the size of silly window avoidance may be sent.
    small_segment_due: bool,
}

static INITIAL_LOSS_STATE: LossState = LossState {
    recovery: None,
    undo: None,
    tail_probe: None,
    reordering: Reordering::INITIAL,
    duplicates: 0,
    retries: 0,
    window_probes: 0,
    unanswered_probes: 0,
    window_probe_due: false,
    small_segment_due: false,
};

impl Initial for LossState {
    fn initial() -> &'static Self {
        &INITIAL_LOSS_STATE
    }
}

/// The sending half of a connection. What every ACK reads lies in front.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Sender {
    /// The first byte that has not been acknowledged.
    pub(crate) una: u64,
    /// The first byte that has not been sent.
    pub(crate) nxt: u64,
    /// Bytes written by the application.
    written: u64,
    /// The right edge of the peer's window.
    pub(crate) edge: u64,
    pub(crate) ecn: EcnMode,
    detection: Detection,
    /// Whether FIN follows the written data.
    pub(crate) fin: bool,
    early: EarlyTimer,
    cwr_due: bool,
    /// Whether the window has held fewer than two segments.
    had_small_window: bool,
    /// The retransmission timer; with nothing outstanding, the persist timer.
    rto_at: Time,
    early_at: Time,
    pacer: Pacer,

    /// Data size of a full segment.
    pub(crate) mss: u64,
    /// The controller's window (cwnd).
    cwnd: u64,
    /// Shared with the connections of the same settings.
    pub(crate) config: Arc<Config>,
    /// When the last segment was sent; [`Time::MAX`] before the first.
    last_sent: Time,
    /// A segment sent before this time was sent while cwnd was the limit, or before such a time.
    unlimited_from: Time,
    /// An acknowledged segment sent from this time on ends the round trip.
    round_started: Time,
    /// The largest window that the peer has announced.
    pub(crate) largest_window: u64,
    pub(crate) scoreboard: Scoreboard,
    pub(crate) rtt: RttEstimator,
    controller: DirectController,
    reduction: Reduction,
    loss_state: Cold<LossState>,
    /// ECE up to this offset belongs to a reduction already made (RFC 3168, section 6.1.2).
    reduced_up_to: u64,
    pub(crate) sent: SentCounters,
}

impl Sender {
    /// Creates a sender without data. `controller` must count packets of at most `mss`.
    pub(crate) fn new(config: &Arc<Config>, mut controller: Box<dyn Controller>, mss: u64) -> Self {
        controller.on_packet_size(ByteSize::from_bytes(mss));
        let wants_delivery = controller.wants_delivery();
        let mut sender = Self {
            una: 0,
            nxt: 0,
            edge: 0,
            written: 0,
            fin: false,
            mss,
            cwnd: 0,
            scoreboard: Scoreboard::new(mss, wants_delivery),
            rtt: RttEstimator::new(config),
            controller: controller.into(),
            rto_at: Time::MAX,
            early_at: Time::MAX,
            early: EarlyTimer::Probe,
            pacer: Pacer::default(),
            last_sent: Time::MAX,
            unlimited_from: Time::ZERO,
            round_started: Time::ZERO,
            reduction: Reduction::default(),
            loss_state: Cold::new(),
            reduced_up_to: 0,
            sent: SentCounters::default(),
            cwr_due: false,
            largest_window: 0,
            detection: Detection::DuplicateAcks,
            ecn: config.ecn,
            config: Arc::clone(config),
            had_small_window: false,
        };
        sender.set_sack(config.sack, config.loss_detection);
        sender.follow_controller();
        sender
    }

    /// Applies the negotiated use of SACK.
    pub(crate) fn set_sack(&mut self, sack: bool, detection: LossDetection) {
        self.detection = match (sack, detection) {
            (false, _) => Detection::DuplicateAcks,
            (true, LossDetection::DuplicateThreshold) => Detection::Threshold,
            (true, LossDetection::RackTlp) => Detection::Rack,
        };
    }

    /// Applies the negotiated MSS.
    pub(crate) fn set_mss(&mut self, mss: u64) {
        self.mss = mss;
        self.scoreboard.set_mss(mss);
        self.controller
            .as_dyn_mut()
            .on_packet_size(ByteSize::from_bytes(mss));
        self.follow_controller();
    }

    /// Disables ECN after the negotiation.
    pub(crate) fn disable_ecn(&mut self) {
        self.ecn = EcnMode::Off;
    }

    /// Processes the RTT of the handshake; `None` if it yields no sample.
    pub(crate) fn on_handshake(&mut self, rtt: Option<Duration>) {
        self.rtt.on_handshake(rtt, &self.config);
    }

    /// Returns a send time as reported to the controller, 1 ns late. A segment leaves after the
    /// event that released it. Here this takes no time, but a segment sent at the time of a
    /// reduction must not seem to have been in flight before it.
    #[inline]
    fn reported_send_time(sent: Time) -> Time {
        sent + Duration::from_nanos(1)
    }

    /// Reads the controller's window and rate.
    #[inline]
    fn follow_controller(&mut self) {
        let controller = self.controller.as_dyn();
        self.cwnd = controller.window().bytes();
        self.pacer
            .follow(controller, &self.rtt, self.cwnd, &self.config);
    }

    /// Adds data to the send buffer.
    pub(crate) fn write(&mut self, bytes: u64) {
        if !self.fin {
            self.written = self.written.saturating_add(bytes).min(ENDLESS);
        }
    }

    /// Keeps the send buffer filled forever.
    pub(crate) fn write_endlessly(&mut self) {
        self.write(ENDLESS);
    }

    /// FIN follows the written data.
    pub(crate) fn finish(&mut self) {
        self.fin = true;
    }

    /// Returns whether FIN has been acknowledged.
    pub(crate) fn is_fin_acknowledged(&self) -> bool {
        self.fin && self.una > self.written
    }

    /// Returns the bytes that the peer has acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.una.min(self.written)
    }

    /// Returns the bytes written and not acknowledged yet.
    pub(crate) fn remaining(&self) -> u64 {
        self.written - self.acknowledged()
    }

    /// Returns the window that the peer announces, beyond the acknowledged data.
    pub(crate) fn offered(&self) -> u64 {
        self.edge.saturating_sub(self.una)
    }

    pub(crate) fn controller(&self) -> &dyn Controller {
        self.controller.as_dyn()
    }

    pub(crate) fn controller_mut(&mut self) -> &mut dyn Controller {
        self.controller.as_dyn_mut()
    }

    /// Rereads the window after the controller's limits have changed.
    pub(crate) fn on_controller_changed(&mut self) {
        self.follow_controller();
    }

    /// Returns the controller's window (cwnd).
    pub(crate) fn controller_window(&self) -> u64 {
        self.cwnd
    }

    /// Returns where the controller's window lies.
    #[inline]
    pub(crate) fn window_address(&self) -> *const u8 {
        std::ptr::from_ref(&self.cwnd).cast()
    }

    pub(crate) fn is_recovering(&self) -> bool {
        self.loss_state.recovery.is_some()
    }

    /// Returns the size of the send buffer.
    #[inline]
    fn send_buffer(&self) -> u64 {
        self.config.send_buffer.map_or(u64::MAX, ByteSize::bytes)
    }

    /// Returns the most segments of a burst.
    #[inline]
    fn burst(&self) -> u64 {
        u64::from(self.config.burst_segments)
    }

    /// Returns the window in force.
    #[inline]
    pub(crate) fn window(&self) -> u64 {
        self.reduction.window_or(self.cwnd)
    }

    /// Returns whether every segment asks for its ACK, since the window holds fewer than two, or may do so
    /// after the next reduction: a receiver that waits for the second one would wait for its timer.
    #[inline(always)]
    pub(crate) fn pushes_every_segment(&mut self) -> bool {
        if !self.config.push_small_windows {
            return false;
        }
        // In recovery every segment is acknowledged at once, whatever the reduction lets out.
        let window = self.cwnd.min(self.offered());
        if window >= 4 * self.mss {
            return false;
        }
        self.had_small_window |= window < 2 * self.mss;
        self.had_small_window
    }

    /// Records that cwnd is the limit.
    #[inline]
    fn note_limit(&mut self, now: Time) {
        self.unlimited_from = now + Duration::from_nanos(1);
    }

    /// Returns the same as [`Sender::timeout`], quickly if nothing has ever been paced.
    #[inline]
    pub(crate) fn plain_timeout(&self) -> Time {
        let next = self.rto_at.min(self.early_at);
        if self.pacer.is_idle() {
            return next;
        }
        next.min(self.pacer.wake_at())
    }

    /// Returns the next expiry of a timer.
    #[inline]
    pub(crate) fn timeout(&self) -> Time {
        self.rto_at.min(self.early_at).min(self.pacer.wake_at())
    }

    /// Sets the right edge of the peer's window; `window` is the announced size.
    #[inline]
    pub(crate) fn on_window(&mut self, edge: u64, window: u64) {
        self.largest_window = self.largest_window.max(window);
        if edge > self.edge && self.scoreboard.is_empty() {
            // Stops the persist timer, if it was that.
            self.rto_at = Time::MAX;
            if let Some(loss_state) = self.loss_state.changed() {
                loss_state.window_probes = 0;
            }
        }
        self.edge = edge;
    }

    /// Sets the right edge of the peer's window while data is outstanding.
    #[inline(always)]
    pub(crate) fn set_edge(&mut self, edge: u64, window: u64) {
        self.largest_window = self.largest_window.max(window);
        self.edge = edge;
    }

    /// Records that a segment from the peer has arrived.
    #[inline]
    pub(crate) fn on_peer_segment(&mut self) {
        if let Some(loss_state) = self.loss_state.changed() {
            loss_state.unanswered_probes = 0;
        }
    }

    pub(crate) fn stop(&mut self) {
        self.rto_at = Time::MAX;
        self.early_at = Time::MAX;
        self.pacer.sleep();
        if let Some(loss_state) = self.loss_state.changed() {
            loss_state.window_probe_due = false;
        }
    }
}

/// More bytes than any connection sends: three years at 400 Gbit/s.
const ENDLESS: u64 = u64::MAX >> 2;
