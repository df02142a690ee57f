//! The sending half: what leaves, when, and what acknowledgments make of it.
//!
//! The stream is counted in 64-bit offsets from its first byte; FIN is the byte after its last.
//! [`crate::connection`] turns offsets into sequence numbers.

mod acknowledgment;
mod loss;
mod pacer;
mod rate_reduction;
mod recovery;
mod tail_probe;
mod timeout;
mod transmit;

use weir_congestion::Controller;
use weir_units::{ByteSize, Duration, Time};

use crate::rtt::RttEstimator;
use crate::scoreboard::Scoreboard;
use crate::{Config, EcnMode, LossDetection};

pub(crate) use acknowledgment::Acknowledgment;
use loss::Reordering;
use pacer::Pacer;
use rate_reduction::RateReduction;
use recovery::{Recovery, Undo};
use tail_probe::TailProbe;
pub(crate) use timeout::Expiry;
pub(crate) use transmit::OutgoingSegment;

/// How losses are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detection {
    /// Duplicate ACKs without SACK (RFC 6582).
    DuplicateAcks,
    /// RFC 6675.
    Threshold,
    /// RFC 8985.
    Rack,
}

/// What the early timer is for, which expires before the retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EarlyTimer {
    /// A tail loss probe (RFC 8985, section 7.2).
    Probe,
    /// A segment becomes overdue (RFC 8985, section 6.3).
    Overdue,
}

/// The sending half of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    /// The first byte that has not been acknowledged.
    pub(crate) una: u64,
    /// The first byte that has not been sent.
    pub(crate) nxt: u64,
    /// The peer accepts what is below.
    pub(crate) edge: u64,
    /// What the application has handed over.
    written: u64,
    /// Whether FIN follows what was handed over.
    pub(crate) fin: bool,
    /// How much data fits into a segment.
    pub(crate) mss: u64,
    /// The controller's window.
    cwnd: u64,
    pub(crate) board: Scoreboard,
    pub(crate) rtt: RttEstimator,
    controller: Box<dyn Controller>,

    /// The retransmission timer; with nothing outstanding, the persist timer.
    rto_at: Time,
    early_at: Time,
    early: EarlyTimer,
    pacer: Pacer,
    last_sent: Option<Time>,
    /// When the congestion window last was the limit.
    limited_at: Option<Time>,
    /// What was sent from here on ends the round trip.
    round_started: Time,

    recovery: Option<Recovery>,
    reduction: Option<RateReduction>,
    undo: Option<Undo>,
    tail_probe: Option<TailProbe>,
    reordering: Reordering,
    /// Duplicate ACKs since the last new one, where there is no SACK.
    duplicates: u64,
    /// ECE up to here belongs to a reduction that was made (RFC 3168, section 6.1.2).
    reduced_up_to: u64,
    cwr_due: bool,

    /// How often the data at `una` has timed out.
    retries: u32,
    /// Probes of a closed window since it closed.
    window_probes: u32,
    /// Of these, those since the peer was last heard of.
    unanswered_probes: u32,
    window_probe_due: bool,
    /// A segment below the size that silly window avoidance asks for may go.
    small_segment_due: bool,
    /// The largest window that the peer has offered.
    pub(crate) largest_window: u64,

    detection: Detection,
    pub(crate) ecn: EcnMode,
    send_buffer: u64,
    burst: u64,
    nagle: bool,
    limited_transmit: bool,
    idle_restart: bool,
    reduce_proportionally: bool,
    max_retries: u32,
    min_rto: Duration,
}

impl Sender {
    /// A sender with nothing to send. `controller` must count packets of at most `mss`.
    pub(crate) fn new(config: &Config, mut controller: Box<dyn Controller>, mss: u64) -> Self {
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
            board: Scoreboard::new(mss, wants_delivery),
            rtt: RttEstimator::new(config),
            controller,
            rto_at: Time::MAX,
            early_at: Time::MAX,
            early: EarlyTimer::Probe,
            pacer: Pacer::new(config.pacing, mss),
            last_sent: None,
            limited_at: None,
            round_started: Time::ZERO,
            recovery: None,
            reduction: None,
            undo: None,
            tail_probe: None,
            reordering: Reordering::default(),
            duplicates: 0,
            reduced_up_to: 0,
            cwr_due: false,
            retries: 0,
            window_probes: 0,
            unanswered_probes: 0,
            window_probe_due: false,
            small_segment_due: false,
            largest_window: 0,
            detection: Detection::DuplicateAcks,
            ecn: config.ecn,
            send_buffer: config.send_buffer.map_or(u64::MAX, ByteSize::bytes),
            burst: u64::from(config.burst_segments),
            nagle: config.nagle,
            limited_transmit: config.limited_transmit,
            idle_restart: config.idle_restart,
            reduce_proportionally: config.proportional_rate_reduction,
            max_retries: config.max_retries,
            min_rto: config.min_rto,
        };
        sender.set_sack(config.sack, config.loss_detection);
        sender.follow_controller();
        sender
    }

    /// What the handshake has settled: whether the peer sends SACKs.
    pub(crate) fn set_sack(&mut self, sack: bool, detection: LossDetection) {
        self.detection = match (sack, detection) {
            (false, _) => Detection::DuplicateAcks,
            (true, LossDetection::DuplicateThreshold) => Detection::Threshold,
            (true, LossDetection::RackTlp) => Detection::Rack,
        };
    }

    /// What the handshake has settled: how much data fits into a segment.
    pub(crate) fn set_mss(&mut self, mss: u64) {
        self.mss = mss;
        self.board.set_mss(mss);
        self.controller.on_packet_size(ByteSize::from_bytes(mss));
        self.follow_controller();
    }

    /// What the handshake has settled: whether ECN is in use.
    pub(crate) fn disable_ecn(&mut self) {
        self.ecn = EcnMode::Off;
    }

    /// The handshake took this long, or cannot tell.
    pub(crate) fn on_handshake(&mut self, rtt: Option<Duration>) {
        match rtt {
            Some(rtt) => {
                self.rtt.on_sample(rtt);
                self.rtt.on_min_sample(rtt);
                self.board.set_shortest_rtt(rtt);
            }
            None => self.rtt.on_syn_timeouts(),
        }
    }

    /// When something was sent, as the controller is told: a segment leaves after the event that
    /// released it. Here that takes no time, but what leaves at the time of a reduction must not seem
    /// to have been on its way then.
    #[inline]
    fn told(sent: Time) -> Time {
        sent + Duration::from_nanos(1)
    }

    /// Takes over what the controller decided.
    #[inline]
    fn follow_controller(&mut self) {
        self.cwnd = self.controller.window().bytes();
        self.pacer
            .follow(self.controller.as_ref(), &self.rtt, self.cwnd);
    }

    /// The application hands over more.
    pub(crate) fn write(&mut self, bytes: u64) {
        if !self.fin {
            self.written = self.written.saturating_add(bytes).min(ENDLESS);
        }
    }

    /// The application will never stop handing over data.
    pub(crate) fn write_endlessly(&mut self) {
        self.write(ENDLESS);
    }

    /// FIN follows what was handed over.
    pub(crate) fn finish(&mut self) {
        self.fin = true;
    }

    /// Whether FIN has been acknowledged.
    pub(crate) fn is_fin_acknowledged(&self) -> bool {
        self.fin && self.una > self.written
    }

    /// Data that the peer has acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.una.min(self.written)
    }

    /// Data that was handed over and has not been acknowledged.
    pub(crate) fn remaining(&self) -> u64 {
        self.written - self.acknowledged()
    }

    /// The window that the peer offers, beyond what it has acknowledged.
    pub(crate) fn offered(&self) -> u64 {
        self.edge.saturating_sub(self.una)
    }

    pub(crate) fn controller(&self) -> &dyn Controller {
        self.controller.as_ref()
    }

    pub(crate) fn controller_mut(&mut self) -> &mut dyn Controller {
        self.controller.as_mut()
    }

    /// The limits that the controller is told about changed: its window may have, too.
    pub(crate) fn on_controller_changed(&mut self) {
        self.follow_controller();
    }

    pub(crate) fn is_recovering(&self) -> bool {
        self.recovery.is_some()
    }

    /// The window that is in force.
    #[inline]
    pub(crate) fn window(&self) -> u64 {
        match &self.reduction {
            None => self.cwnd,
            Some(reduction) => reduction.window,
        }
    }

    /// When [`Sender::handle_timeout`] has something to do.
    #[inline]
    pub(crate) fn timeout(&self) -> Time {
        self.rto_at.min(self.early_at).min(self.pacer.wake_at)
    }

    /// The peer accepts what is below `edge`; `window` is the size that it said.
    #[inline]
    pub(crate) fn on_window(&mut self, edge: u64, window: u64) {
        self.largest_window = self.largest_window.max(window);
        if edge > self.edge && self.board.records.is_empty() {
            // The persist timer, if it was that.
            self.rto_at = Time::MAX;
            self.window_probes = 0;
        }
        self.edge = edge;
    }

    /// The peer was heard of, whatever it said.
    #[inline]
    pub(crate) fn on_heard(&mut self) {
        self.unanswered_probes = 0;
    }

    pub(crate) fn stop(&mut self) {
        self.rto_at = Time::MAX;
        self.early_at = Time::MAX;
        self.pacer.sleep();
        self.window_probe_due = false;
    }
}

/// More than any connection sends: three years at 400 Gbit/s.
const ENDLESS: u64 = u64::MAX >> 2;
