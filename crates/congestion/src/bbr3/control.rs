//! Pacing rate and window from the model (section 5.6 of the draft).

use weir_units::{ByteSize, Duration};

use super::{Bbr3, Bbr3State};
use crate::AckSample;
use crate::pacing::at_least_per_second;

/// `BBR.PacingMarginPercent`: pace one percent below the estimate.
const PACING_MARGIN: f64 = 0.99;

impl Bbr3 {
    pub(super) fn set_pacing_rate(&mut self, gain: f64) {
        if self.bandwidth.is_zero() {
            return;
        }
        let rate = self.bandwidth.mul_f64(gain * PACING_MARGIN);
        if self.filled_pipe || rate > self.pacing_rate {
            self.pacing_rate = at_least_per_second(rate, self.packet);
        }
    }

    fn send_quantum(&self) -> ByteSize {
        let millisecond = self.pacing_rate.size_in(Duration::from_millis(1));
        millisecond.min(self.max_quantum).max(self.packet * 2)
    }

    /// `BDPMultiple`.
    pub(super) fn bdp_multiple(&self, gain: f64) -> ByteSize {
        if self.min_rtt == Duration::MAX {
            return self.initial_window();
        }
        self.bandwidth.size_in(self.min_rtt).mul_f64(gain)
    }

    /// `QuantizationBudget`, with QUIC's offload budget of one send quantum.
    fn quantize(&self, in_flight: ByteSize) -> ByteSize {
        let floor = in_flight.max(self.send_quantum()).max(self.min_window());
        if self.state == Bbr3State::ProbeUp {
            floor + self.packet * 2
        } else {
            floor
        }
    }

    /// `Inflight`.
    pub(super) fn target_in_flight(&self, gain: f64) -> ByteSize {
        self.quantize(self.bdp_multiple(gain))
    }

    /// `TargetInflight`: the bandwidth-delay product, unless congestion cut the window below it.
    pub(super) fn reno_target(&self) -> ByteSize {
        self.bdp_multiple(1.0).min(self.cwnd)
    }

    pub(super) fn save_cwnd(&mut self) {
        self.prior_cwnd = if self.bounds_untouched() && self.state != Bbr3State::ProbeRtt {
            self.cwnd
        } else {
            self.prior_cwnd.max(self.cwnd)
        };
    }

    /// Returns whether no loss has reduced the window.
    fn bounds_untouched(&self) -> bool {
        self.bounds.inflight_shortterm == ByteSize::MAX
    }

    /// `SetCwnd`. A window that is not the limit does not grow.
    pub(super) fn set_cwnd(&mut self, ack: &AckSample) {
        let extra = ByteSize::from_bytes(self.extra_acked.get());
        let max_in_flight = self.quantize(self.bdp_multiple(self.state.cwnd_gain()) + extra);
        let growth = if ack.app_limited {
            ByteSize::ZERO
        } else {
            ack.acked
        };
        if self.filled_pipe {
            self.cwnd = (self.cwnd + growth).min(max_in_flight);
        } else if self.cwnd < max_in_flight || self.delivered < self.initial_window() {
            self.cwnd += growth;
        }
        self.cwnd = self.cwnd.max(self.min_window());
        if self.state == Bbr3State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd.max(self.min_window()));
        }
        self.bound_cwnd_for_model();
    }

    /// `BoundCwndForModel`.
    pub(super) fn bound_cwnd_for_model(&mut self) {
        let longterm = match self.state {
            Bbr3State::ProbeRtt | Bbr3State::ProbeCruise => self.in_flight_with_headroom(),
            state if state.is_probe_bw() => self.bounds.inflight_longterm,
            _ => ByteSize::MAX,
        };
        let cap = longterm
            .min(self.bounds.inflight_shortterm)
            .max(self.min_window());
        self.cwnd = self.cwnd.min(cap);
    }
}
