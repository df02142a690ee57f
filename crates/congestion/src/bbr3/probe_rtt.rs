//! The minimum RTT, ProbeRTT, and restarts after idle periods (sections 5.3.4 and 5.4 of the
//! draft).

use weir_units::{ByteSize, Duration, Time};

use super::{AckPhase, Bbr3, Bbr3State, STARTUP_PACING_GAIN};
use crate::AckSample;
use crate::pacing::initial_rate;
use crate::self_limited::SelfLimit;

impl Bbr3 {
    pub(super) fn update_min_rtt(&mut self, ack: &AckSample) {
        let first = self.min_rtt == Duration::MAX;
        self.min_rtt_expired = !first && ack.now.since(self.min_rtt_at) > self.probe_rtt_interval;
        if self.min_rtt_expired && self.state != Bbr3State::ProbeRtt {
            // Uses the expiring estimate, because the next one may contain queueing delay.
            self.probe_rtt_cwnd = self
                .bdp_multiple(Bbr3State::ProbeRtt.cwnd_gain())
                .max(self.min_window());
        }
        let Some(rtt) = ack.rtt else { return };
        if rtt < self.min_rtt || self.min_rtt_expired {
            self.min_rtt = rtt.max(Duration::from_nanos(1));
            self.min_rtt_at = ack.now;
        }
        if first {
            // The first measurement replaces the initial RTT of one millisecond.
            self.pacing_rate = initial_rate(
                self.initial_window(),
                Some(self.min_rtt),
                STARTUP_PACING_GAIN,
            );
        }
    }

    pub(super) fn check_probe_rtt(&mut self, ack: &AckSample) {
        if self.state != Bbr3State::ProbeRtt && self.min_rtt_expired && !self.restarting {
            self.save_cwnd();
            self.state = Bbr3State::ProbeRtt;
            self.self_limited = SelfLimit::Yes;
            self.probe_rtt_until = None;
            self.cycle.ack_phase = AckPhase::ProbeStopping;
            self.round.restart(ack.now);
        }
        if self.state == Bbr3State::ProbeRtt {
            self.handle_probe_rtt(ack);
        }
        self.restarting = false;
    }

    fn handle_probe_rtt(&mut self, ack: &AckSample) {
        match self.probe_rtt_until {
            None if ack.in_flight <= self.probe_rtt_cwnd => {
                self.probe_rtt_until = Some(ack.now + self.probe_rtt_duration);
                self.probe_rtt_round_done = false;
                self.round.restart(ack.now);
            }
            None => {}
            Some(_) => {
                self.probe_rtt_round_done |= self.round.is_start;
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done(ack.now);
                }
            }
        }
    }

    fn check_probe_rtt_done(&mut self, now: Time) {
        if self.probe_rtt_until.is_none_or(|until| now <= until) {
            return;
        }
        self.min_rtt_at = now;
        self.self_limited = SelfLimit::Refilling(now);
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        self.bounds.reset_shortterm();
        if self.filled_pipe {
            // Raising the bytes in flight may cause loss, so the next probe has to wait.
            self.start_probe_down(now);
            self.start_probe_cruise();
        } else {
            self.state = Bbr3State::Startup;
        }
    }

    /// `HandleRestartFromIdle`.
    pub(super) fn restart_from_idle(&mut self, now: Time) {
        self.restarting = true;
        self.extra_acked_start = now;
        self.extra_acked_delivered = ByteSize::ZERO;
        if self.state.is_probe_bw() {
            self.set_pacing_rate(1.0);
        } else if self.state == Bbr3State::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
    }
}
