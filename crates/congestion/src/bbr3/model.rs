//! The path model: bandwidth, ACK aggregation, and the bounds set by losses (sections 5.5.1 to
//! 5.5.11 of the draft).

use weir_units::{ByteSize, Rate};

use super::{Bbr3, Bbr3State};
use crate::{AckSample, LossCause, LossSample, SpuriousLoss};

/// `BBR.Beta`: no bound falls faster than CUBIC's window.
const BETA: f64 = 0.7;
/// `BBR.StartupFullLossCnt`: losses in a round trip that Startup takes for a full pipe. Each loss
/// event counts as one discontiguous range.
const STARTUP_LOSSES: u32 = 6;
/// `BBR.ExtraAckedFilterLen`, in round trips.
const EXTRA_ACKED_ROUNDS: u64 = 10;

/// The measurement of an acknowledgment (the draft's `RS`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    /// Zero without a measurement.
    pub(super) rate: Rate,
    pub(super) delivered: ByteSize,
    pub(super) in_flight_at_send: ByteSize,
    pub(super) lost: ByteSize,
    pub(super) app_limited: bool,
}

impl Sample {
    pub(super) fn of(ack: &AckSample, self_limited: bool) -> Self {
        match &ack.delivery {
            Some(delivery) => Self {
                rate: delivery.rate,
                delivered: delivery.delivered,
                in_flight_at_send: delivery.in_flight_at_send,
                lost: delivery.lost,
                app_limited: delivery.app_limited || self_limited,
            },
            None => Self {
                app_limited: true,
                ..Self::default()
            },
        }
    }
}

/// The bounds that losses set.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    /// The most that may be in flight without causing loss; `MAX` while unknown.
    pub(super) inflight_longterm: ByteSize,
    /// Bounds from the last lossy round trips; `MAX` while there are none.
    pub(super) inflight_shortterm: ByteSize,
    pub(super) bandwidth_shortterm: Rate,
    /// Maxima of the current round trip.
    bandwidth_latest: Rate,
    inflight_latest: ByteSize,
    loss_in_round: bool,
    losses_in_round: u32,
    undo: Option<Undo>,
}

#[derive(Clone, Copy, Debug)]
struct Undo {
    inflight_longterm: ByteSize,
    inflight_shortterm: ByteSize,
    bandwidth_shortterm: Rate,
    /// The state that the losses ended: Startup or ProbeUp.
    state: Option<Bbr3State>,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            inflight_longterm: ByteSize::MAX,
            inflight_shortterm: ByteSize::MAX,
            bandwidth_shortterm: Rate::MAX,
            bandwidth_latest: Rate::ZERO,
            inflight_latest: ByteSize::ZERO,
            loss_in_round: false,
            losses_in_round: 0,
            undo: None,
        }
    }
}

impl Bounds {
    pub(super) fn restart_latest(&mut self, sample: &Sample) {
        self.bandwidth_latest = sample.rate;
        self.inflight_latest = sample.delivered;
    }

    pub(super) fn reset_congestion_signals(&mut self) {
        self.loss_in_round = false;
        self.losses_in_round = 0;
        self.bandwidth_latest = Rate::ZERO;
        self.inflight_latest = ByteSize::ZERO;
    }

    pub(super) fn reset_shortterm(&mut self) {
        self.bandwidth_shortterm = Rate::MAX;
        self.inflight_shortterm = ByteSize::MAX;
    }
}

impl Bbr3 {
    pub(super) fn max_bandwidth(&self) -> Rate {
        self.max_bandwidths[0].max(self.max_bandwidths[1])
    }

    /// Drops the maximum of the ProbeBW cycle before the last.
    pub(super) fn advance_max_bandwidth(&mut self) {
        self.max_bandwidths = [self.max_bandwidths[1], Rate::ZERO];
    }

    pub(super) fn update_latest_delivery_signals(&mut self, ack: &AckSample, sample: &Sample) {
        self.loss_round.on_ack(ack);
        let bounds = &mut self.bounds;
        bounds.bandwidth_latest = bounds.bandwidth_latest.max(sample.rate);
        bounds.inflight_latest = bounds.inflight_latest.max(sample.delivered);
    }

    pub(super) fn update_congestion_signals(&mut self, ack: &AckSample, sample: &Sample) {
        self.round.on_ack(ack);
        if self.round.is_start {
            self.cycle.rounds_since_probe += 1;
        }
        if sample.rate >= self.max_bandwidth() || !sample.app_limited {
            self.max_bandwidths[1] = self.max_bandwidths[1].max(sample.rate);
        }
        if self.loss_round.is_start {
            self.adapt_lower_bounds();
        }
    }

    /// Lowers the short-term bounds once per round trip, if it was lossy and not probing.
    fn adapt_lower_bounds(&mut self) {
        let lossy = self.bounds.loss_in_round;
        if lossy && !self.state.is_accelerating() {
            let (max_bandwidth, cwnd) = (self.max_bandwidth(), self.cwnd);
            let bounds = &mut self.bounds;
            if bounds.bandwidth_shortterm == Rate::MAX {
                bounds.bandwidth_shortterm = max_bandwidth;
            }
            if bounds.inflight_shortterm == ByteSize::MAX {
                bounds.inflight_shortterm = cwnd;
            }
            bounds.bandwidth_shortterm = bounds
                .bandwidth_latest
                .max(bounds.bandwidth_shortterm.mul_f64(BETA));
            bounds.inflight_shortterm = bounds
                .inflight_latest
                .max(bounds.inflight_shortterm.mul_f64(BETA));
        }
        // Startup still needs the losses of the round, later in the same acknowledgment.
        if self.state != Bbr3State::Startup {
            self.bounds.loss_in_round = false;
            self.bounds.losses_in_round = 0;
        }
    }

    /// `CheckStartupHighLoss`: a round trip with many losses ends Startup.
    pub(super) fn check_startup_high_loss(&mut self, sample: &Sample) {
        if !self.loss_round.is_start {
            return;
        }
        let many = self.bounds.losses_in_round >= STARTUP_LOSSES;
        if many && self.is_too_high(sample.lost, sample.in_flight_at_send) {
            self.filled_pipe = true;
            if let Some(undo) = &mut self.bounds.undo {
                undo.state = Some(Bbr3State::Startup);
            }
            self.bounds.inflight_longterm = self
                .bdp_multiple(1.0)
                .max(self.bounds.inflight_latest)
                .max(self.min_window());
        }
        self.bounds.loss_in_round = false;
        self.bounds.losses_in_round = 0;
    }

    pub(super) fn update_ack_aggregation(&mut self, ack: &AckSample) {
        let interval = ack.now.since(self.extra_acked_start);
        let mut expected = self.bandwidth.size_in(interval);
        if self.extra_acked_delivered <= expected {
            self.extra_acked_delivered = ByteSize::ZERO;
            self.extra_acked_start = ack.now;
            expected = ByteSize::ZERO;
        }
        self.extra_acked_delivered += ack.acked;
        let extra = (self.extra_acked_delivered - expected).min(self.cwnd);
        self.extra_acked.set_length(if self.filled_pipe {
            EXTRA_ACKED_ROUNDS
        } else {
            1
        });
        self.extra_acked.update(self.round.count, extra.bytes());
    }

    /// `IsInflightTooHigh`.
    pub(super) fn is_too_high(&self, lost: ByteSize, in_flight: ByteSize) -> bool {
        lost > in_flight.mul_f64(self.loss_threshold)
    }

    /// `OnEnterRTO` and `HandleLostPacket`.
    pub(super) fn react_to_loss(&mut self, loss: &LossSample) {
        self.note_loss(loss);
        if loss.cause == LossCause::Timeout {
            self.save_cwnd();
            self.cwnd = self.min_window();
            return;
        }
        if !self.cycle.probing_samples {
            return;
        }
        let Some(flight) = self.packet_states.at(loss.newest_sent) else {
            return;
        };
        let lost = self.lost - flight.lost;
        if self.is_too_high(lost, flight.in_flight) {
            let in_flight = self.in_flight_at_loss(loss.lost, lost, flight.in_flight);
            self.handle_too_high(loss, in_flight);
        }
    }

    fn note_loss(&mut self, loss: &LossSample) {
        self.lost += loss.lost;
        if !self.bounds.loss_in_round {
            self.loss_round.restart(loss.now);
            self.bounds.undo = Some(Undo {
                inflight_longterm: self.bounds.inflight_longterm,
                inflight_shortterm: self.bounds.inflight_shortterm,
                bandwidth_shortterm: self.bounds.bandwidth_shortterm,
                state: None,
            });
            self.save_cwnd();
        }
        self.bounds.loss_in_round = true;
        self.bounds.losses_in_round = self.bounds.losses_in_round.saturating_add(1);
    }

    /// `InflightAtLoss`: returns the bytes in flight, within the lost burst of `size` bytes, at
    /// which the losses passed the threshold.
    fn in_flight_at_loss(&self, size: ByteSize, lost: ByteSize, in_flight: ByteSize) -> ByteSize {
        let (prior_flight, prior_lost) = (in_flight - size, lost - size);
        let prefix = (prior_flight.mul_f64(self.loss_threshold) - prior_lost)
            .mul_f64(1.0 / (1.0 - self.loss_threshold));
        prior_flight + prefix
    }

    /// `HandleInflightTooHigh`: sets the long-term bound to the bytes in flight, once per probe.
    fn handle_too_high(&mut self, loss: &LossSample, in_flight: ByteSize) {
        self.cycle.previous_too_high = true;
        self.cycle.probing_samples = false;
        if !self.latest.app_limited {
            self.bounds.inflight_longterm = in_flight
                .max(self.reno_target().mul_f64(BETA))
                .max(self.min_window());
        }
        if self.state == Bbr3State::ProbeUp {
            if let Some(undo) = &mut self.bounds.undo {
                undo.state = Some(Bbr3State::ProbeUp);
            }
            self.start_probe_down(loss.now);
        }
        self.bound_cwnd_for_model();
    }

    /// `HandleSpuriousLossDetection`.
    pub(super) fn undo_loss(&mut self, spurious: &SpuriousLoss) {
        let Some(undo) = self.bounds.undo.take() else {
            return;
        };
        let bounds = &mut self.bounds;
        bounds.loss_in_round = false;
        bounds.losses_in_round = 0;
        bounds.bandwidth_shortterm = bounds.bandwidth_shortterm.max(undo.bandwidth_shortterm);
        bounds.inflight_shortterm = bounds.inflight_shortterm.max(undo.inflight_shortterm);
        bounds.inflight_longterm = bounds.inflight_longterm.max(undo.inflight_longterm);
        self.full_pipe = super::FullPipe::default();
        match undo.state {
            Some(Bbr3State::Startup) if self.state != Bbr3State::Startup => {
                self.filled_pipe = false;
                if self.state != Bbr3State::ProbeRtt {
                    self.state = Bbr3State::Startup;
                }
            }
            Some(Bbr3State::ProbeUp)
                if self.state != Bbr3State::ProbeUp && self.state != Bbr3State::ProbeRtt =>
            {
                self.start_probe_refill(spurious.now);
            }
            _ => {}
        }
        if self.state != Bbr3State::ProbeRtt {
            self.cwnd = self.cwnd.max(self.prior_cwnd);
        }
    }
}
