//! The minimum round-trip time and ProbeRTT (sections 4.1.2 and 4.3.5 of the draft).

use weir_units::{Duration, Time};

use super::{Bbr, BbrState, HIGH_GAIN};
use crate::AckSample;
use crate::pacing::initial_rate;
use crate::self_limited::SelfLimit;

impl Bbr {
    pub(super) fn update_min_rtt(&mut self, ack: &AckSample) {
        let first = self.min_rtt == Duration::MAX;
        self.min_rtt_expired = !first && ack.now.since(self.min_rtt_at) > self.probe_rtt_interval;
        let Some(rtt) = ack.rtt else { return };
        if rtt <= self.min_rtt || self.min_rtt_expired {
            self.min_rtt = rtt.max(Duration::from_nanos(1));
            self.min_rtt_at = ack.now;
        }
        if first {
            // As in Linux, the first measurement replaces the initial RTT of one millisecond.
            self.pacing_rate = initial_rate(self.initial_window(), Some(self.min_rtt), HIGH_GAIN);
        }
    }

    /// `BBRCheckProbeRTT` (section 4.3.5 of the draft).
    pub(super) fn check_probe_rtt(&mut self, ack: &AckSample) {
        if self.state != BbrState::ProbeRtt && self.min_rtt_expired && !self.restarting {
            self.save_cwnd();
            self.state = BbrState::ProbeRtt;
            self.self_limited = SelfLimit::Yes;
            self.pacing_gain = 1.0;
            self.cwnd_gain = 1.0;
            self.probe_rtt_until = None;
        }
        if self.state == BbrState::ProbeRtt {
            self.handle_probe_rtt(ack);
        }
        self.restarting = false;
    }

    fn handle_probe_rtt(&mut self, ack: &AckSample) {
        match self.probe_rtt_until {
            None if ack.in_flight <= self.min_window() => {
                self.probe_rtt_until = Some(ack.now + self.probe_rtt_duration);
                self.probe_rtt_round_done = false;
                self.round.restart(ack.now);
            }
            None => {}
            Some(until) => {
                self.probe_rtt_round_done |= self.round.is_start;
                if self.probe_rtt_round_done && ack.now > until {
                    self.leave_probe_rtt(ack.now);
                }
            }
        }
    }

    pub(super) fn leave_probe_rtt(&mut self, now: Time) {
        self.min_rtt_at = now;
        self.self_limited = SelfLimit::Refilling(now);
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        if self.filled_pipe {
            self.enter_probe_bw(now);
        } else {
            self.state = BbrState::Startup;
            self.pacing_gain = HIGH_GAIN;
            self.cwnd_gain = HIGH_GAIN;
        }
    }
}
