//! BBR, version 3: draft-ietf-ccwg-bbr.
//!
//! Like version 1, it follows a model of the path, but losses bound the model. The long-term bound
//! is the number of bytes in flight when losses passed 2 % while probing. The short-term bound is
//! the number of bytes delivered in a lossy round trip. ProbeBW cycles through Down, Cruise, Refill
//! and Up. It probes about as often as a Reno flow of the same window would meet congestion. Marks
//! are ignored, as in the draft.
//!
//! `model` holds the path model, `cycle` the ProbeBW states, `probe_rtt` the minimum RTT, `control`
//! the pacing rate and the window.

mod control;
mod cycle;
mod model;
mod packet_states;
mod probe_rtt;
#[cfg(test)]
mod tests;

use rand_core::SeedableRng;
use rand_pcg::Pcg32;
use weir_units::{ByteSize, Duration, Rate, Time};

use crate::algorithm::{Algorithm, Typed};
use crate::bbr::{MIN_WINDOW, PROBE_RTT_DURATION, PROBE_RTT_INTERVAL, SEND_QUANTUM};
use crate::filter::MaxFilter;
use crate::loss_window::INITIAL_WINDOW;
use crate::pacing::initial_rate;
use crate::round::RoundTripCounter;
use crate::self_limited::SelfLimit;
use crate::{
    AckSample, AlgorithmSpec, Context, Controller, LossSample, PacketSent, Snapshot, SpuriousLoss,
};
use cycle::{AckPhase, Cycle};
use model::{Bounds, Sample};
use packet_states::PacketStates;

pub(crate) static ALGORITHM: Algorithm = Algorithm {
    name: "bbr3",
    summary: "paces at the measured bandwidth and bounds its flight by loss (draft-ietf-ccwg-bbr)",
    own_parameters: &[
        INITIAL_WINDOW.parameter(),
        MIN_WINDOW.parameter(),
        SEND_QUANTUM.parameter(),
        PROBE_RTT_INTERVAL.parameter(),
        PROBE_RTT_DURATION.parameter(),
        LOSS_THRESHOLD.parameter(),
    ],
    build: |spec, context| Box::new(Bbr3::new(spec, context)),
};

/// `BBR.LossThresh`.
const LOSS_THRESHOLD: Typed<f64> = Typed {
    name: "loss_threshold",
    doc: "the fraction of lost bytes that tells that too much was in flight",
    default: 0.02,
    min: 0.0,
    max: 0.999,
};

/// `BBR.StartupPacingGain`: 4 ln 2.
const STARTUP_PACING_GAIN: f64 = 2.77;
/// `BBR.DrainPacingGain`.
const DRAIN_PACING_GAIN: f64 = 0.5;
/// `BBR.DefaultCwndGain`.
const CWND_GAIN: f64 = 2.0;
/// Drain ends after this many round trips even if the bytes in flight stay above the estimate.
const DRAIN_ROUNDS: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bbr3State {
    Startup,
    Drain,
    ProbeDown,
    ProbeCruise,
    ProbeRefill,
    ProbeUp,
    ProbeRtt,
}

impl Bbr3State {
    fn is_probe_bw(self) -> bool {
        matches!(
            self,
            Self::ProbeDown | Self::ProbeCruise | Self::ProbeRefill | Self::ProbeUp
        )
    }

    /// Returns whether the sender probes for more bandwidth.
    fn is_accelerating(self) -> bool {
        matches!(self, Self::Startup | Self::ProbeRefill | Self::ProbeUp)
    }

    fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => STARTUP_PACING_GAIN,
            Self::Drain => DRAIN_PACING_GAIN,
            Self::ProbeDown => 0.9,
            Self::ProbeUp => 1.25,
            Self::ProbeCruise | Self::ProbeRefill | Self::ProbeRtt => 1.0,
        }
    }

    fn cwnd_gain(self) -> f64 {
        match self {
            Self::ProbeUp => 2.25,
            Self::ProbeRtt => 0.5,
            _ => CWND_GAIN,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Drain => "drain",
            Self::ProbeDown => "probe-bw-down",
            Self::ProbeCruise => "probe-bw-cruise",
            Self::ProbeRefill => "probe-bw-refill",
            Self::ProbeUp => "probe-bw-up",
            Self::ProbeRtt => "probe-rtt",
        }
    }
}

/// The full-pipe estimator (section 5.3.1.2 of the draft).
#[derive(Clone, Copy, Debug, Default)]
struct FullPipe {
    bandwidth: Rate,
    rounds: u32,
    /// Whether the current acceleration has filled the pipe.
    now: bool,
}

#[derive(Clone, Debug)]
struct Bbr3 {
    packet: ByteSize,
    initial_packets: u64,
    min_packets: u64,
    max_quantum: ByteSize,
    loss_threshold: f64,
    probe_rtt_interval: Duration,
    probe_rtt_duration: Duration,
    random: Pcg32,

    state: Bbr3State,
    round: RoundTripCounter,
    loss_round: RoundTripCounter,
    drain_start_round: u64,
    full_pipe: FullPipe,
    /// Whether the pipe has ever been filled.
    filled_pipe: bool,

    /// `BBR.max_bw`: the maxima of the last ProbeBW cycle and of the current one.
    max_bandwidths: [Rate; 2],
    /// `BBR.bw`.
    bandwidth: Rate,
    bounds: Bounds,
    cycle: Cycle,
    packet_states: PacketStates,
    latest: Sample,

    /// [`Duration::MAX`] before the first sample.
    min_rtt: Duration,
    min_rtt_at: Time,
    min_rtt_expired: bool,
    probe_rtt_cwnd: ByteSize,
    /// The earliest end of ProbeRTT; `None` while too much is in flight.
    probe_rtt_until: Option<Time>,
    probe_rtt_round_done: bool,
    self_limited: SelfLimit,
    restarting: bool,

    extra_acked: MaxFilter,
    extra_acked_start: Time,
    extra_acked_delivered: ByteSize,

    cwnd: ByteSize,
    /// The last window that was not reduced by ProbeRTT.
    prior_cwnd: ByteSize,
    pacing_rate: Rate,
    delivered: ByteSize,
    lost: ByteSize,
    used: bool,
}

impl Bbr3 {
    fn new(spec: &AlgorithmSpec, context: &Context) -> Self {
        let packet = context.packet_size.max(ByteSize::from_bytes(1));
        let min_packets = spec.get(&MIN_WINDOW);
        let initial_packets = spec.get(&INITIAL_WINDOW).max(min_packets);
        let cwnd = packet * initial_packets;
        Self {
            packet,
            initial_packets,
            min_packets,
            max_quantum: spec.get(&SEND_QUANTUM),
            loss_threshold: spec.get(&LOSS_THRESHOLD),
            probe_rtt_interval: spec.get(&PROBE_RTT_INTERVAL),
            probe_rtt_duration: spec.get(&PROBE_RTT_DURATION),
            random: Pcg32::seed_from_u64(context.seed),
            state: Bbr3State::Startup,
            round: RoundTripCounter::default(),
            loss_round: RoundTripCounter::default(),
            drain_start_round: 0,
            full_pipe: FullPipe::default(),
            filled_pipe: false,
            max_bandwidths: [Rate::ZERO; 2],
            bandwidth: Rate::ZERO,
            bounds: Bounds::default(),
            cycle: Cycle::default(),
            packet_states: PacketStates::default(),
            latest: Sample::default(),
            min_rtt: Duration::MAX,
            min_rtt_at: Time::ZERO,
            min_rtt_expired: false,
            probe_rtt_cwnd: cwnd,
            probe_rtt_until: None,
            probe_rtt_round_done: false,
            self_limited: SelfLimit::default(),
            restarting: false,
            extra_acked: MaxFilter::new(1),
            extra_acked_start: Time::ZERO,
            extra_acked_delivered: ByteSize::ZERO,
            cwnd,
            prior_cwnd: cwnd,
            pacing_rate: initial_rate(cwnd, None, STARTUP_PACING_GAIN),
            delivered: ByteSize::ZERO,
            lost: ByteSize::ZERO,
            used: false,
        }
    }

    fn initial_window(&self) -> ByteSize {
        self.packet * self.initial_packets
    }

    /// `BBR.MinPipeCwnd`.
    fn min_window(&self) -> ByteSize {
        self.packet * self.min_packets
    }

    /// `UpdateModelAndState` (section 5.2.3 of the draft), in its order.
    fn update_model_and_state(&mut self, ack: &AckSample) {
        let sample = Sample::of(ack, self.self_limited.on_ack(ack));
        self.update_latest_delivery_signals(ack, &sample);
        self.update_congestion_signals(ack, &sample);
        self.update_ack_aggregation(ack);
        self.check_full_pipe(&sample);
        self.check_startup_done(ack, &sample);
        self.check_drain_done(ack);
        self.update_cycle(ack, &sample);
        self.update_min_rtt(ack);
        self.check_probe_rtt(ack);
        if self.loss_round.is_start {
            self.bounds.restart_latest(&sample);
        }
        self.bandwidth = self.max_bandwidth().min(self.bounds.bandwidth_shortterm);
        self.latest = sample;
    }

    fn check_full_pipe(&mut self, sample: &Sample) {
        if self.full_pipe.now || !self.round.is_start || sample.app_limited {
            return;
        }
        if sample.rate >= self.full_pipe.bandwidth.mul_f64(1.25) {
            self.full_pipe = FullPipe {
                bandwidth: sample.rate,
                ..FullPipe::default()
            };
            return;
        }
        self.full_pipe.rounds += 1;
        self.full_pipe.now = self.full_pipe.rounds >= 3;
        self.filled_pipe |= self.full_pipe.now;
    }

    fn check_startup_done(&mut self, ack: &AckSample, sample: &Sample) {
        if self.state != Bbr3State::Startup {
            return;
        }
        self.check_startup_high_loss(sample);
        if self.filled_pipe {
            self.state = Bbr3State::Drain;
            self.drain_start_round = self.round.count;
            self.check_drain_done(ack);
        }
    }

    fn check_drain_done(&mut self, ack: &AckSample) {
        let late = self.round.count > self.drain_start_round + DRAIN_ROUNDS;
        if self.state == Bbr3State::Drain && (late || ack.in_flight <= self.target_in_flight(1.0)) {
            self.start_probe_down(ack.now);
        }
    }
}

impl Controller for Bbr3 {
    fn name(&self) -> &'static str {
        ALGORITHM.name
    }

    fn on_sent(&mut self, sent: &PacketSent) {
        if self.used && sent.in_flight <= sent.size {
            self.restart_from_idle(sent.now);
        }
        self.packet_states.on_sent(sent, self.lost, self.min_rtt);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.used = true;
        self.delivered += ack.acked;
        self.update_model_and_state(ack);
        self.set_pacing_rate(self.state.pacing_gain());
        self.set_cwnd(ack);
    }

    fn on_loss(&mut self, loss: &LossSample) {
        self.used = true;
        self.react_to_loss(loss);
    }

    fn on_spurious_loss(&mut self, spurious: &SpuriousLoss) {
        self.undo_loss(spurious);
    }

    fn adjustable(&self) -> &'static [&'static str] {
        &[
            MIN_WINDOW.name,
            SEND_QUANTUM.name,
            PROBE_RTT_INTERVAL.name,
            PROBE_RTT_DURATION.name,
            LOSS_THRESHOLD.name,
        ]
    }

    fn set_parameters(&mut self, spec: &AlgorithmSpec) {
        self.min_packets = spec.get(&MIN_WINDOW);
        self.max_quantum = spec.get(&SEND_QUANTUM);
        self.probe_rtt_interval = spec.get(&PROBE_RTT_INTERVAL);
        self.probe_rtt_duration = spec.get(&PROBE_RTT_DURATION);
        self.loss_threshold = spec.get(&LOSS_THRESHOLD);
    }

    fn on_packet_size(&mut self, size: ByteSize) {
        self.packet = size.max(ByteSize::from_bytes(1));
        if self.used {
            self.cwnd = self.cwnd.max(self.min_window());
        } else {
            self.cwnd = self.initial_window();
            self.prior_cwnd = self.cwnd;
            self.pacing_rate = initial_rate(self.cwnd, None, STARTUP_PACING_GAIN);
        }
    }

    fn window(&self) -> ByteSize {
        self.cwnd
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.pacing_rate)
    }

    fn snapshot(&self) -> Snapshot {
        let bandwidth = self.max_bandwidth();
        Snapshot {
            ssthresh: None,
            phase: self.state.name(),
            ce_fraction: None,
            bandwidth: (!bandwidth.is_zero()).then_some(bandwidth),
        }
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}
