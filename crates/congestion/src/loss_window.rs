//! The window of the algorithms that descend from Reno: slow start, additive increase, at most
//! one reduction per round trip, collapse on a time-out, and undo (RFC 9002 section 7, RFC 6582).
//! NewReno, DCTCP and D2TCP differ in the factor of their reductions, CUBIC also in its growth.

use weir_units::{ByteSize, Time};

use crate::algorithm::Typed;
use crate::{AckSample, AlgorithmSpec, Context, LossCause, LossSample, SpuriousLoss};

/// How many packets may be in flight before anything is known. Counted in packets, as a window
/// that is fixed in bytes (RFC 9002 section 7.2) starts a jumbo connection with one or two.
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

/// Linux counts windows in packets. In bytes, a window of 3.9 packets lets 3 leave per round trip and
/// waits for 3.9 until it grows.
pub(crate) const WHOLE_PACKETS: Typed<bool> = Typed {
    name: "whole_packets",
    doc: "growth counts in whole packets, as in Linux",
    default: false,
    min: false,
    max: true,
};

/// What a loss did to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// Nothing: the round trip's reduction has been made already.
    None,
    /// It was multiplied by the factor.
    Reduced,
    /// It fell to the loss window: a time-out.
    Collapsed {
        /// Whether the window had not been reduced for these packets before.
        new_episode: bool,
    },
}

/// The window before a reduction, in case that the loss turns out spurious.
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
    initial_packets: u64,
    min_packets: u64,
    /// What a time-out leaves.
    loss_packets: u64,
    whole_packets: bool,
    /// Bytes acknowledged towards the next additive increase.
    credit: ByteSize,
    /// When the last reduction was made: what was sent before causes no other one.
    recovery_start: Option<Time>,
    /// Whether the last acknowledgment was for packets sent before the last reduction.
    recovering: bool,
    /// Whether an acknowledgment or a loss has been seen.
    used: bool,
    undo: Option<Undo>,
}

impl LossWindow {
    pub(crate) fn new(spec: &AlgorithmSpec, context: &Context) -> Self {
        let packet = context.packet_size.max(ByteSize::from_bytes(1));
        let min_packets = spec.get(&MIN_WINDOW);
        let initial_packets = spec.get(&INITIAL_WINDOW).max(min_packets);
        Self {
            cwnd: packet * initial_packets,
            ssthresh: ByteSize::MAX,
            packet,
            initial_packets,
            min_packets,
            loss_packets: spec.get(&LOSS_WINDOW).min(min_packets),
            whole_packets: spec.get(&WHOLE_PACKETS),
            credit: ByteSize::ZERO,
            recovery_start: None,
            recovering: false,
            used: false,
            undo: None,
        }
    }

    pub(crate) fn size(&self) -> ByteSize {
        self.cwnd
    }

    /// The slow-start threshold, once there is one.
    pub(crate) fn ssthresh(&self) -> Option<ByteSize> {
        (self.ssthresh != ByteSize::MAX).then_some(self.ssthresh)
    }

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
        self.packet * self.min_packets
    }

    /// Whether a packet was sent before the last reduction (RFC 9002 section 7.3.2).
    fn sent_before_reduction(&self, sent: Time) -> bool {
        self.recovery_start.is_some_and(|start| sent <= start)
    }

    /// Notes an acknowledgment. Returns whether it may let the window grow: not while the
    /// application is the limit (RFC 9002 section 7.8), and not in recovery.
    pub(crate) fn admits_growth(&mut self, ack: &AckSample) -> bool {
        self.used = true;
        self.recovering = self.sent_before_reduction(ack.newest_sent);
        !self.recovering && !ack.app_limited
    }

    /// Slow start: as many bytes as were acknowledged, up to the threshold. Returns what is left
    /// of `acked` for congestion avoidance.
    pub(crate) fn grow_exponentially(&mut self, acked: ByteSize) -> ByteSize {
        let step = acked.min(self.ssthresh - self.cwnd);
        self.cwnd += step;
        acked - step
    }

    /// Congestion avoidance: one packet per window acknowledged (RFC 9002 section 7.3.3).
    fn grow_additively(&mut self, acked: ByteSize) {
        self.credit += acked;
        let window = if self.whole_packets {
            self.packet * (self.cwnd / self.packet).max(1)
        } else {
            self.cwnd
        };
        if self.credit >= window {
            let windows = self.credit / window;
            self.credit -= window * windows;
            self.cwnd += self.packet * windows;
        }
    }

    /// Reno's growth on an acknowledgment.
    pub(crate) fn grow(&mut self, ack: &AckSample) {
        if self.admits_growth(ack) {
            let rest = self.grow_exponentially(ack.acked);
            if !rest.is_zero() {
                self.grow_additively(rest);
            }
        }
    }

    /// Raises the window, for algorithms with a growth of their own.
    pub(crate) fn grow_by(&mut self, bytes: ByteSize) {
        self.cwnd += bytes;
    }

    /// Rounds a window that has been reduced down to whole packets.
    pub(crate) fn round_down(&mut self) {
        self.cwnd = self.packet * (self.cwnd / self.packet);
        self.ssthresh = self.cwnd;
    }

    /// Ends slow start at the present window.
    pub(crate) fn end_slow_start(&mut self) {
        self.ssthresh = self.cwnd;
    }

    /// Multiplies the window, once per round trip, as an acknowledgment of packets of which the
    /// newest was sent at `newest_sent` carries a congestion mark.
    pub(crate) fn on_mark(&mut self, now: Time, newest_sent: Time, factor: f64) -> bool {
        if self.sent_before_reduction(newest_sent) {
            return false;
        }
        // A mark is never spurious.
        self.undo = None;
        self.reduce(now, factor);
        true
    }

    /// Reacts to a loss, multiplying the window, or the threshold after a time-out.
    pub(crate) fn on_loss(&mut self, loss: &LossSample, factor: f64) -> Reaction {
        self.used = true;
        let known = self.sent_before_reduction(loss.newest_sent);
        self.remember(loss.lost, known);
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

    /// Keeps what undo restores: the window before the first loss of an episode.
    fn remember(&mut self, lost: ByteSize, same_episode: bool) {
        match &mut self.undo {
            Some(undo) if same_episode => undo.lost += lost,
            // The episode began with a mark, which justifies the reduction whatever was lost.
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
        self.recovery_start = Some(now);
        self.recovering = true;
    }

    /// RFC 9002 section 7.6.2 and RFC 5681 section 3.1: the reduced window (of CUBIC too: RFC 9438
    /// section 4.8) is the new threshold, but the threshold does not shrink again while the same
    /// data keeps timing out.
    fn collapse(&mut self, now: Time, known: bool, factor: f64) {
        if !known {
            let reduced = self.cwnd.mul_f64(factor);
            self.ssthresh = reduced.max(self.minimum()).min(self.ssthresh);
        }
        self.cwnd = (self.packet * self.loss_packets).min(self.cwnd);
        self.credit = ByteSize::ZERO;
        self.recovery_start = Some(now);
        self.recovering = true;
    }

    /// Takes the last reduction back once all of its losses turned out spurious (RFC 9438
    /// section 4.9, RFC 4015). Returns whether it did.
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

    /// After idleness the window is at most the initial one, and slow start leads back to most
    /// of what was there (RFC 5681 section 4.1, RFC 2861).
    pub(crate) fn on_idle_restart(&mut self) {
        let initial = self.packet * self.initial_packets;
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

    /// A window that has not been used yet follows the packet size; later it only has to stay
    /// above its minimum.
    pub(crate) fn on_packet_size(&mut self, size: ByteSize) {
        self.packet = size.max(ByteSize::from_bytes(1));
        self.cwnd = if self.used {
            self.cwnd.max(self.minimum())
        } else {
            self.packet * self.initial_packets
        };
    }
}
