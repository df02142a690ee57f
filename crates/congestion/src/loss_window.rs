//! The congestion window of the Reno family: slow start, additive increase, at most one reduction
//! per round trip, collapse on a timeout, and undo (RFC 9002 section 7, RFC 6582). NewReno, DCTCP
//! and D2TCP differ in their reduction factor; CUBIC also differs in its growth.

use weir_units::{ByteSize, Duration, Time};

use crate::algorithm::Typed;
use crate::{AckSample, AlgorithmSpec, Context, LossCause, LossSample, SpuriousLoss};

/// The initial window. It is counted in packets because a window fixed in bytes (RFC 9002 section
/// 7.2) would start a connection with jumbo frames at one or two packets.
pub(crate) const INITIAL_WINDOW: Typed<u64> = Typed {
    name: "initial_window",
    doc: "the window at the start, in packets",
    default: 10,
    min: 1,
    max: 10_000,
};

/// RFC 9002 section 7.2: `kMinimumWindow`, two packets.
pub(crate) const MIN_WINDOW: Typed<u64> = Typed {
    name: "min_window",
    doc: "the window never falls below this, in packets",
    default: 2,
    min: 1,
    max: 10_000,
};

/// RFC 9002 section 7.6.2 collapses the window to `kMinimumWindow`, RFC 5681 section 3.1 to one
/// segment.
pub(crate) const LOSS_WINDOW: Typed<u64> = Typed {
    name: "loss_window",
    doc: "the window after a time-out, in packets; RFC 5681 has 1",
    default: 2,
    min: 1,
    max: 10_000,
};

/// Linux counts windows in packets. In bytes, a window of 3.9 packets sends 3 packets per round
/// trip but grows only after 3.9 have been acknowledged.
pub(crate) const WHOLE_PACKETS: Typed<bool> = Typed {
    name: "whole_packets",
    doc: "growth counts in whole packets, as in Linux",
    default: false,
    min: false,
    max: true,
};

/// The effect of a loss on the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// Nothing: the window has been reduced already in this round trip.
    None,
    /// Multiplied by the factor.
    Reduced,
    /// Fell to the loss window after a timeout.
    Collapsed {
        /// Whether the window had not yet been reduced for these packets.
        new_episode: bool,
    },
}

/// The window before a reduction, for the case that the loss turns out spurious.
#[derive(Clone, Copy, Debug)]
struct Undo {
    cwnd: ByteSize,
    ssthresh: ByteSize,
    /// Bytes declared lost in this episode and not yet shown to have arrived.
    lost: ByteSize,
}

#[derive(Clone, Debug)]
pub(crate) struct LossWindow {
    cwnd: ByteSize,
    /// [`ByteSize::MAX`] until the first reduction.
    ssthresh: ByteSize,
    pub(crate) packet: ByteSize,
    min_packets: f64,
    initial_packets: u32,
    /// The window after a timeout.
    loss_packets: u32,
    whole_packets: bool,
    /// Bytes acknowledged towards the next additive increase.
    credit: ByteSize,
    /// Packets sent before this time cause no further reduction: just after the last one.
    reduced_until: Time,
    /// Whether the last acknowledgment was for packets sent before the last reduction.
    recovering: bool,
    /// Whether an acknowledgment or a loss has been seen.
    used: bool,
    undo: Option<Undo>,
}

impl LossWindow {
    /// Creates a window that never falls below `min_packets`.
    pub(crate) fn new(spec: &AlgorithmSpec, context: &Context, min_packets: f64) -> Self {
        let packet = context.packet_size.max(ByteSize::from_bytes(1));
        let least_whole = min_packets.ceil() as u64;
        let initial_packets = spec.get(&INITIAL_WINDOW).max(least_whole);
        Self {
            cwnd: packet * initial_packets,
            ssthresh: ByteSize::MAX,
            packet,
            min_packets,
            // They are at most 10,000.
            initial_packets: initial_packets as u32,
            loss_packets: loss_packets(spec, min_packets),
            whole_packets: spec.get(&WHOLE_PACKETS),
            credit: ByteSize::ZERO,
            reduced_until: Time::ZERO,
            recovering: false,
            used: false,
            undo: None,
        }
    }

    /// Takes over the smallest window and that after a time-out. A smaller window grows to the smallest at once.
    pub(crate) fn set_parameters(&mut self, spec: &AlgorithmSpec, min_packets: f64) {
        self.min_packets = min_packets;
        self.loss_packets = loss_packets(spec, min_packets);
        self.cwnd = self.cwnd.max(self.minimum());
    }

    #[inline(always)]
    pub(crate) fn size(&self) -> ByteSize {
        self.cwnd
    }

    /// Returns the slow-start threshold, if it is set.
    pub(crate) fn ssthresh(&self) -> Option<ByteSize> {
        (self.ssthresh != ByteSize::MAX).then_some(self.ssthresh)
    }

    #[inline]
    pub(crate) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    pub(crate) fn phase(&self) -> &'static str {
        if self.recovering {
            "recovery"
        } else if self.in_slow_start() {
            "slow-start"
        } else {
            "congestion-avoidance"
        }
    }

    fn minimum(&self) -> ByteSize {
        let whole = self.min_packets as u64;
        self.packet * whole + self.packet.mul_f64(self.min_packets.fract())
    }

    /// Returns whether a packet was sent before the last reduction (RFC 9002 section 7.3.2).
    #[inline(always)]
    fn sent_before_reduction(&self, sent: Time) -> bool {
        sent < self.reduced_until
    }

    /// Records an acknowledgment. Returns whether it may grow the window: not while the application
    /// is the limit (RFC 9002 section 7.8), and not in recovery.
    #[inline(always)]
    pub(crate) fn admits_growth(&mut self, ack: &AckSample) -> bool {
        self.used = true;
        self.recovering = self.sent_before_reduction(ack.newest_sent);
        !self.recovering && !ack.app_limited
    }

    /// Slow start: grows by the bytes acknowledged, up to ssthresh. Returns the part of `acked`
    /// that is left for congestion avoidance.
    #[inline(always)]
    pub(crate) fn grow_exponentially(&mut self, acked: ByteSize) -> ByteSize {
        let step = acked.min(self.ssthresh - self.cwnd);
        self.cwnd += step;
        acked - step
    }

    /// Congestion avoidance: one packet per window acknowledged (RFC 9002 section 7.3.3).
    #[inline(always)]
    fn grow_additively(&mut self, acked: ByteSize) {
        self.credit += acked;
        let window = if self.whole_packets {
            self.packet * (self.cwnd / self.packet).max(1)
        } else {
            // Below one packet, each one that arrives counts as a window.
            self.cwnd.max(self.packet)
        };
        if self.credit >= window {
            let windows = self.credit / window;
            self.credit -= window * windows;
            self.cwnd += self.packet * windows;
        }
    }

    /// Reno's growth on an acknowledgment.
    #[inline(always)]
    pub(crate) fn grow(&mut self, ack: &AckSample) {
        if self.admits_growth(ack) {
            let rest = self.grow_exponentially(ack.acked);
            if !rest.is_zero() {
                self.grow_additively(rest);
            }
        }
    }

    /// Raises the window, for algorithms with their own growth function.
    pub(crate) fn grow_by(&mut self, bytes: ByteSize) {
        self.cwnd += bytes;
    }

    /// Rounds a reduced window down to whole packets.
    pub(crate) fn round_down(&mut self) {
        self.cwnd = self.packet * (self.cwnd / self.packet);
        self.ssthresh = self.cwnd;
    }

    /// Ends slow start at the current window.
    pub(crate) fn end_slow_start(&mut self) {
        self.ssthresh = self.cwnd;
    }

    /// Multiplies the window once per round trip, on a congestion mark in an acknowledgment whose
    /// newest packet was sent at `newest_sent`.
    pub(crate) fn on_mark(&mut self, now: Time, newest_sent: Time, factor: f64) -> bool {
        if self.sent_before_reduction(newest_sent) {
            return false;
        }
        // A mark is never spurious.
        self.undo = None;
        self.reduce(now, factor);
        true
    }

    /// Reacts to a loss: multiplies the window, or ssthresh after a timeout.
    pub(crate) fn on_loss(&mut self, loss: &LossSample, factor: f64) -> Reaction {
        self.used = true;
        let known = self.sent_before_reduction(loss.newest_sent);
        self.save_undo(loss.lost, known);
        if loss.cause == LossCause::Timeout {
            self.collapse(loss.now, known, factor);
            return Reaction::Collapsed {
                new_episode: !known,
            };
        }
        if known {
            return Reaction::None;
        }
        self.reduce(loss.now, factor);
        Reaction::Reduced
    }

    /// Saves the state that undo restores: the window before the first loss of an episode.
    fn save_undo(&mut self, lost: ByteSize, same_episode: bool) {
        match &mut self.undo {
            Some(undo) if same_episode => undo.lost += lost,
            // The episode began with a mark, which justifies the reduction regardless of losses.
            None if same_episode => {}
            undo => {
                *undo = Some(Undo {
                    cwnd: self.cwnd,
                    ssthresh: self.ssthresh,
                    lost,
                })
            }
        }
    }

    fn reduce(&mut self, now: Time, factor: f64) {
        self.cwnd = self.cwnd.mul_f64(factor).max(self.minimum()).min(self.cwnd);
        self.ssthresh = self.cwnd;
        self.credit = ByteSize::ZERO;
        self.reduced_until = now + Duration::from_nanos(1);
        self.recovering = true;
    }

    /// RFC 9002 section 7.6.2 and RFC 5681 section 3.1: ssthresh becomes the reduced window (for
    /// CUBIC too: RFC 9438 section 4.8). It does not shrink again while the same data keeps timing
    /// out.
    fn collapse(&mut self, now: Time, known: bool, factor: f64) {
        if !known {
            let reduced = self.cwnd.mul_f64(factor);
            self.ssthresh = reduced.max(self.minimum()).min(self.ssthresh);
        }
        self.cwnd = (self.packet * u64::from(self.loss_packets)).min(self.cwnd);
        self.credit = ByteSize::ZERO;
        self.reduced_until = now + Duration::from_nanos(1);
        self.recovering = true;
    }

    /// Undoes the last reduction once all of its losses turned out spurious (RFC 9438 section 4.9,
    /// RFC 4015). Returns whether it did.
    pub(crate) fn on_spurious_loss(&mut self, spurious: &SpuriousLoss) -> bool {
        let known = self.sent_before_reduction(spurious.newest_sent);
        let Some(undo) = self.undo.as_mut().filter(|_| known) else {
            return false;
        };
        undo.lost -= spurious.bytes;
        if !undo.lost.is_zero() {
            return false;
        }
        self.cwnd = self.cwnd.max(undo.cwnd);
        self.ssthresh = self.ssthresh.max(undo.ssthresh);
        self.undo = None;
        true
    }

    /// Limits the window to the initial window after an idle period. Slow start then leads back to
    /// most of the old window (RFC 5681 section 4.1, RFC 2861).
    pub(crate) fn on_idle_restart(&mut self) {
        let initial = self.packet * u64::from(self.initial_packets);
        if self.cwnd <= initial {
            return;
        }
        self.ssthresh = match self.ssthresh {
            ByteSize::MAX => ByteSize::MAX,
            ssthresh => ssthresh.max(self.cwnd - self.cwnd / 4),
        };
        self.cwnd = initial;
        self.credit = ByteSize::ZERO;
    }

    /// Sets the packet size. An unused window is the initial window of that size. One that nothing has
    /// reduced, nor ended its slow start, is at least that (RFC 9002 section 7.2: the initial window is
    /// calculated again when the packet size changes during the connection); any other stays above its
    /// minimum.
    pub(crate) fn on_packet_size(&mut self, size: ByteSize) {
        self.packet = size.max(ByteSize::from_bytes(1));
        let initial = self.packet * u64::from(self.initial_packets);
        let is_reduced = self.reduced_until > Time::ZERO || self.ssthresh != ByteSize::MAX;
        self.cwnd = if !self.used {
            initial
        } else if is_reduced {
            self.cwnd.max(self.minimum())
        } else {
            self.cwnd.max(initial)
        };
    }
}

/// Returns the window after a time-out, in packets: at most the smallest one.
fn loss_packets(spec: &AlgorithmSpec, min_packets: f64) -> u32 {
    // They are at most 10,000.
    spec.get(&LOSS_WINDOW).min(min_packets.ceil() as u64) as u32
}
