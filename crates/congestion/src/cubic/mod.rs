//! CUBIC, RFC 9438, with Linux's HyStart or HyStart++ (RFC 9406).
//!
//! After a reduction the window follows a cubic function of time. It flattens out near the window
//! of the last congestion and then probes beyond it. Where Reno would be faster (short round trips,
//! as in a data center), it follows Reno's window.

mod curve;
mod hystart;
mod hystart_plus_plus;
mod parameters;
mod slow_start;
#[cfg(test)]
mod tests;
mod whole_segments;

use weir_units::{ByteSize, Time};

use crate::algorithm::Algorithm;
use crate::loss_window::{
    INITIAL_WINDOW, LOSS_WINDOW, LossWindow, MIN_WINDOW, Reaction, WHOLE_PACKETS,
};
use crate::{AckSample, AlgorithmSpec, Controller, LossSample, Snapshot, SpuriousLoss};
use curve::{BETA, CubicEpoch};
use parameters::{
    AGGRESSIVENESS, FAST_CONVERGENCE, HYSTART, HYSTART_ACK_DELTA, HYSTART_LOW_WINDOW, HYSTART_MAX,
    HYSTART_MIN, HYSTART_PLUS_PLUS, KEEP_COUNT, RENO_FRIENDLY,
};
use slow_start::{SlowStartAction, SlowStartExit};
use whole_segments::WholeSegments;

pub(crate) static ALGORITHM: Algorithm = Algorithm {
    name: "cubic",
    summary: "cubic growth towards and past the last congested window (RFC 9438, HyStart)",
    own_parameters: &[
        INITIAL_WINDOW.parameter(),
        MIN_WINDOW.parameter(),
        AGGRESSIVENESS.parameter(),
        FAST_CONVERGENCE.parameter(),
        RENO_FRIENDLY.parameter(),
        WHOLE_PACKETS.parameter(),
        KEEP_COUNT.parameter(),
        LOSS_WINDOW.parameter(),
        HYSTART.parameter(),
        HYSTART_PLUS_PLUS.parameter(),
        HYSTART_MIN.parameter(),
        HYSTART_MAX.parameter(),
        HYSTART_LOW_WINDOW.parameter(),
        HYSTART_ACK_DELTA.parameter(),
    ],
    build: |spec, context| {
        Box::new(Cubic {
            window: LossWindow::new(spec, context, spec.get(&MIN_WINDOW) as f64),
            exit: SlowStartExit::new(spec, context),
            fast_convergence: spec.get(&FAST_CONVERGENCE),
            reno_friendly: spec.get(&RENO_FRIENDLY),
            steps: spec
                .get(&WHOLE_PACKETS)
                .then(|| WholeSegments::new(spec.get(&KEEP_COUNT))),
            c: spec.get(&AGGRESSIVENESS),
            history: CubicState::default(),
            before_loss: CubicState::default(),
            epoch: None,
            last_ack: Time::ZERO,
            remainder: 0.0,
        })
    },
};

#[derive(Clone, Debug)]
pub(crate) struct Cubic {
    window: LossWindow,
    exit: SlowStartExit,
    fast_convergence: bool,
    reno_friendly: bool,
    /// Growth in whole packets, if configured.
    steps: Option<WholeSegments>,
    c: f64,
    history: CubicState,
    /// The state before the episode that undo would revert.
    before_loss: CubicState,
    /// The congestion avoidance stage and its start time, once it has begun.
    epoch: Option<(Time, CubicEpoch)>,
    last_ack: Time,
    /// Growth that does not yet amount to a whole byte.
    remainder: f64,
}

/// The state left by past congestion, in packets; zero before the first.
#[derive(Clone, Copy, Debug, Default)]
struct CubicState {
    w_max: f64,
    prior: f64,
}

impl Cubic {
    fn packets(&self) -> f64 {
        let packets = self.window.size().bytes() as f64 / self.window.packet.bytes() as f64;
        self.counted(packets)
    }

    /// Returns `packets` as counted: rounded down to whole packets if configured.
    fn counted(&self, packets: f64) -> f64 {
        if self.steps.is_some() {
            packets.floor()
        } else {
            packets
        }
    }

    /// Handles a reduction from `cwnd` packets (RFC 9438 sections 4.6 and 4.7).
    fn on_congestion(&mut self, cwnd: f64) {
        let shrinking = self.fast_convergence && cwnd < self.history.w_max;
        let w_max = if shrinking {
            self.counted(cwnd * (1.0 + BETA) / 2.0)
        } else {
            cwnd
        };
        self.history = CubicState { w_max, prior: cwnd };
        self.epoch = None;
        if let Some(steps) = &mut self.steps {
            steps.on_reduction();
            self.window.round_down();
        }
    }

    fn slow_start(&mut self, ack: &AckSample) -> ByteSize {
        let action = self
            .exit
            .on_ack(ack, self.window.size(), self.window.packet);
        match action {
            SlowStartAction::Grow(acked) => self.window.grow_exponentially(acked),
            SlowStartAction::Leave => {
                self.window.end_slow_start();
                ack.acked
            }
        }
    }

    fn avoid_congestion(&mut self, ack: &AckSample, acked: ByteSize) {
        let (cwnd, packet) = (self.packets(), self.window.packet.bytes() as f64);
        let (start, curve) = self.epoch.get_or_insert_with(|| {
            let curve = CubicEpoch::new(self.c, cwnd, self.history.w_max, self.history.prior);
            let curve = if self.reno_friendly {
                curve
            } else {
                curve.without_reno()
            };
            (ack.now, curve)
        });
        let t = ack.now.since(*start).as_secs_f64();
        let acked = acked.bytes() as f64 / packet;
        if let Some(steps) = &mut self.steps {
            let target = curve.whole_target(t + ack.min_rtt.as_secs_f64(), cwnd, acked);
            let grown = steps.grow(cwnd, target, acked, self.history.w_max > 0.0);
            self.window.grow_by(self.window.packet * grown);
            return;
        }
        let grown = curve.grow(t, ack.smoothed_rtt.as_secs_f64(), cwnd, acked);
        let growth = (grown - cwnd) * packet + self.remainder;
        self.remainder = growth.fract();
        self.window.grow_by(ByteSize::from_bytes(growth as u64));
    }
}

impl Controller for Cubic {
    fn name(&self) -> &'static str {
        ALGORITHM.name
    }

    fn wants_delivery(&self) -> bool {
        false
    }

    fn on_ack(&mut self, ack: &AckSample) {
        let cwnd = self.packets();
        let marked = ack.ece || !ack.ce_marked.is_zero();
        if marked && !ack.is_recovering && self.window.on_mark(ack.now, ack.newest_sent, BETA) {
            self.on_congestion(cwnd);
        }
        let elapsed = ack
            .now
            .since(std::mem::replace(&mut self.last_ack, ack.now));
        if !self.window.admits_growth(ack) {
            // Time in which the window could not grow does not advance the curve (RFC 9438 section
            // 5.8).
            if let Some((start, _)) = &mut self.epoch {
                *start += elapsed;
            }
            return;
        }
        let mut rest = ack.acked;
        if self.window.in_slow_start() {
            rest = self.slow_start(ack);
        }
        if !rest.is_zero() && !self.window.in_slow_start() {
            self.avoid_congestion(ack, rest);
        }
    }

    fn on_loss(&mut self, loss: &LossSample) {
        let cwnd = self.packets();
        match self.window.on_loss(loss, BETA) {
            Reaction::None => {}
            Reaction::Reduced => {
                self.before_loss = self.history;
                self.on_congestion(cwnd);
            }
            // RFC 9438 section 4.8: slow start follows, and the next stage starts on its own
            // plateau.
            Reaction::Collapsed { new_episode } => {
                if new_episode {
                    self.before_loss = self.history;
                }
                self.history = CubicState::default();
                self.epoch = None;
                self.exit.on_timeout();
            }
        }
    }

    fn on_spurious_loss(&mut self, spurious: &SpuriousLoss) {
        if self.window.on_spurious_loss(spurious) {
            self.history = self.before_loss;
            self.epoch = None;
        }
    }

    fn on_idle_restart(&mut self, _now: Time) {
        self.window.on_idle_restart();
        self.epoch = None;
        self.exit.on_idle_restart();
    }

    fn on_packet_size(&mut self, size: ByteSize) {
        let before = self.window.packet.bytes() as f64;
        self.window.on_packet_size(size);
        let ratio = before / self.window.packet.bytes() as f64;
        self.history.w_max *= ratio;
        self.history.prior *= ratio;
        self.epoch = None;
    }

    fn adjustable(&self) -> &'static [&'static str] {
        &[
            MIN_WINDOW.name,
            AGGRESSIVENESS.name,
            FAST_CONVERGENCE.name,
            RENO_FRIENDLY.name,
            LOSS_WINDOW.name,
        ]
    }

    /// The curve in use ends: the next one begins at the window of now, with the new parameters.
    fn set_parameters(&mut self, spec: &AlgorithmSpec) {
        let (c, is_friendly) = (spec.get(&AGGRESSIVENESS), spec.get(&RENO_FRIENDLY));
        if (c, is_friendly) != (self.c, self.reno_friendly) {
            self.epoch = None;
        }
        (self.c, self.reno_friendly) = (c, is_friendly);
        self.fast_convergence = spec.get(&FAST_CONVERGENCE);
        self.window
            .set_parameters(spec, spec.get(&MIN_WINDOW) as f64);
    }

    #[inline]
    fn window(&self) -> ByteSize {
        self.window.size()
    }

    fn snapshot(&self) -> Snapshot {
        let phase = match self.window.phase() {
            "slow-start" if self.exit.is_cautious() => "conservative-slow-start",
            phase => phase,
        };
        Snapshot {
            ssthresh: self.window.ssthresh(),
            phase,
            ..Snapshot::default()
        }
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}
