//! ProbeBW: Down, Cruise, Refill, Up (section 5.3.3 of the draft).

use rand_core::Rng;
use weir_units::{ByteSize, Duration, Time};

use super::model::Sample;
use super::{Bbr3, Bbr3State, FullPipe};
use crate::AckSample;

/// `BBR.Headroom`: the fraction of the long-term bound that is left to other flows.
const HEADROOM: f64 = 0.15;
/// The most round trips between probes; a Reno flow of this many packets would probe as often.
const RENO_ROUNDS: u64 = 63;
/// How often the growth of the bound doubles while probing, once per round trip.
const MAX_GROWTH_ROUNDS: u32 = 30;

/// The probing stage to which the arriving acknowledgments belong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AckPhase {
    #[default]
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Cycle {
    pub(super) ack_phase: AckPhase,
    pub(super) start: Time,
    /// The time until the next probe.
    pub(super) wait: Duration,
    pub(super) rounds_since_probe: u64,
    /// Whether losses belong to a probe: `BBR.is_bw_probe_sample`.
    pub(super) probing_samples: bool,
    /// The last probe caused too much loss.
    pub(super) previous_too_high: bool,
    /// The last probe stopped early because the one before had caused too much loss.
    precautionary: bool,
    growth_rounds: u32,
    acked: ByteSize,
    /// Acknowledged bytes per packet of growth of the long-term bound; zero without growth.
    acked_per_packet: ByteSize,
}

impl Bbr3 {
    pub(super) fn start_probe_down(&mut self, now: Time) {
        self.bounds.reset_congestion_signals();
        let cycle = &mut self.cycle;
        cycle.acked_per_packet = ByteSize::ZERO;
        cycle.rounds_since_probe = u64::from(self.random.next_u32() % 2);
        cycle.wait = Duration::from_secs(2)
            + Duration::from_micros(u64::from(self.random.next_u32() % 1_000_000));
        cycle.start = now;
        cycle.ack_phase = AckPhase::ProbeStopping;
        self.round.restart(now);
        self.state = Bbr3State::ProbeDown;
    }

    pub(super) fn start_probe_cruise(&mut self) {
        self.state = Bbr3State::ProbeCruise;
    }

    pub(super) fn start_probe_refill(&mut self, now: Time) {
        self.bounds.reset_shortterm();
        self.cycle.growth_rounds = 0;
        self.cycle.acked = ByteSize::ZERO;
        self.cycle.precautionary = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        self.round.restart(now);
        self.state = Bbr3State::ProbeRefill;
    }

    fn start_probe_up(&mut self, now: Time, sample: &Sample) {
        self.cycle.probing_samples = true;
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.round.restart(now);
        self.full_pipe = FullPipe {
            bandwidth: sample.rate,
            ..FullPipe::default()
        };
        self.state = Bbr3State::ProbeUp;
        self.raise_slope();
    }

    /// `UpdateProbeBWCyclePhase`.
    pub(super) fn update_cycle(&mut self, ack: &AckSample, sample: &Sample) {
        if !self.filled_pipe || self.adapt_longterm_model(ack, sample) {
            return;
        }
        match self.state {
            Bbr3State::ProbeDown | Bbr3State::ProbeCruise if self.is_time_to_probe(ack.now) => {
                self.start_probe_refill(ack.now);
            }
            Bbr3State::ProbeDown if self.is_time_to_cruise(ack) => self.start_probe_cruise(),
            Bbr3State::ProbeRefill if self.round.is_start => self.start_probe_up(ack.now, sample),
            Bbr3State::ProbeUp => self.probe_up_or_go_down(ack, sample),
            _ => {}
        }
    }

    fn probe_up_or_go_down(&mut self, ack: &AckSample, sample: &Sample) {
        if self.is_time_to_go_down(ack, sample) {
            self.cycle.previous_too_high = false;
            self.start_probe_down(ack.now);
        }
    }

    fn is_time_to_probe(&self, now: Time) -> bool {
        let reno_rounds = (self.reno_target() / self.packet).min(RENO_ROUNDS);
        now.since(self.cycle.start) > self.cycle.wait
            || self.cycle.rounds_since_probe >= reno_rounds
    }

    fn is_time_to_cruise(&self, ack: &AckSample) -> bool {
        ack.in_flight <= self.in_flight_with_headroom()
            && ack.in_flight <= self.target_in_flight(1.0)
    }

    fn is_time_to_go_down(&mut self, ack: &AckSample, sample: &Sample) -> bool {
        if self.cycle.previous_too_high && ack.in_flight >= self.bounds.inflight_longterm {
            self.cycle.precautionary = true;
            return true;
        }
        if !ack.app_limited && self.cwnd >= self.bounds.inflight_longterm {
            // The bound, not the network, limits the bandwidth.
            self.full_pipe = FullPipe {
                bandwidth: sample.rate,
                ..FullPipe::default()
            };
            return false;
        }
        self.full_pipe.now
    }

    /// Returns the long-term bound minus a margin for other flows.
    pub(super) fn in_flight_with_headroom(&self) -> ByteSize {
        let bound = self.bounds.inflight_longterm;
        if bound == ByteSize::MAX {
            return bound;
        }
        (bound - bound.mul_f64(HEADROOM).max(self.packet)).max(self.min_window())
    }

    /// `AdaptLongTermModel`. Returns whether it changed the state.
    fn adapt_longterm_model(&mut self, ack: &AckSample, sample: &Sample) -> bool {
        if self.cycle.ack_phase == AckPhase::ProbeStarting && self.round.is_start {
            self.cycle.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.cycle.ack_phase == AckPhase::ProbeStopping && self.round.is_start {
            self.cycle.probing_samples = false;
            self.cycle.ack_phase = AckPhase::Init;
            if self.state.is_probe_bw() && !sample.app_limited {
                self.advance_max_bandwidth();
            }
            let safe = self.cycle.precautionary && !self.cycle.previous_too_high;
            if self.state.is_probe_bw() && safe {
                self.start_probe_refill(ack.now);
                return true;
            }
        }
        let unbounded = self.bounds.inflight_longterm == ByteSize::MAX;
        if !unbounded && !self.is_too_high(sample.lost, sample.in_flight_at_send) {
            self.bounds.inflight_longterm =
                self.bounds.inflight_longterm.max(sample.in_flight_at_send);
            if self.state == Bbr3State::ProbeUp {
                self.probe_upward(ack);
            }
        }
        false
    }

    /// `RaiseInflightLongtermSlope`: 1, 2, 4, … packets per round trip.
    fn raise_slope(&mut self) {
        let growth = 1_u64 << self.cycle.growth_rounds;
        self.cycle.growth_rounds = (self.cycle.growth_rounds + 1).min(MAX_GROWTH_ROUNDS);
        self.cycle.acked_per_packet = (self.cwnd / growth).max(self.packet);
    }

    /// `ProbeInflightLongtermUpward`.
    fn probe_upward(&mut self, ack: &AckSample) {
        if ack.app_limited || self.cwnd < self.bounds.inflight_longterm {
            return;
        }
        let per_packet = self.cycle.acked_per_packet;
        self.cycle.acked += ack.acked;
        if !per_packet.is_zero() && self.cycle.acked >= per_packet {
            let packets = self.cycle.acked / per_packet;
            self.cycle.acked -= per_packet * packets;
            self.bounds.inflight_longterm += self.packet * packets;
        }
        if self.round.is_start {
            self.raise_slope();
        }
    }
}
