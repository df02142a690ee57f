//! BBR, version 1: draft-cardwell-iccrg-bbr-congestion-control-00 (2017), as implemented in Linux.
//!
//! BBR follows a model of the path instead of reacting to loss. The bottleneck bandwidth is the
//! largest delivery rate of the last ten round trips. The propagation delay is the smallest RTT of
//! the last ten seconds. Startup doubles the rate until the bandwidth stops growing, Drain empties
//! the resulting queue, ProbeBW cycles its pacing gain around 1, and ProbeRTT occasionally empties
//! the pipe to measure the propagation delay. Marks are ignored. A loss only affects one round
//! trip, in which the window follows the deliveries.

mod cycle;
mod probe_rtt;
mod recovery;

use rand_core::SeedableRng;
use rand_pcg::Pcg32;
use weir_units::{ByteSize, Duration, Rate, Time};

use crate::algorithm::{Algorithm, Typed};
use crate::filter::MaxFilter;
use crate::loss_window::INITIAL_WINDOW;
use crate::pacing::{at_least_per_second, initial_rate};
use crate::round::RoundTripCounter;
use crate::self_limited::SelfLimit;
use crate::{
    AckSample, AlgorithmSpec, Context, Controller, LossSample, PacketSent, Snapshot, SpuriousLoss,
};
use recovery::Recovery;

pub(crate) static ALGORITHM: Algorithm = Algorithm {
    name: "bbr",
    summary: "paces at the measured bandwidth, version 1 (draft-cardwell-iccrg-bbr-00)",
    own_parameters: &[
        INITIAL_WINDOW.parameter(),
        MIN_WINDOW.parameter(),
        SEND_QUANTUM.parameter(),
        PROBE_RTT_INTERVAL.parameter(),
        PROBE_RTT_DURATION.parameter(),
    ],
    build: |spec, context| Box::new(Bbr::new(spec, context)),
};

/// Section 3.5 of the draft: `BBRMinPipeCwnd`, four packets.
pub(crate) const MIN_WINDOW: Typed<u64> = Typed {
    name: "min_window",
    doc: "the window never falls below this, in packets",
    default: 4,
    min: 1,
    max: 10_000,
};

/// Section 4.2.2 of the draft: the send quantum is at most 64 KB.
pub(crate) const SEND_QUANTUM: Typed<ByteSize> = Typed {
    name: "max_send_quantum",
    doc: "the largest burst that the sender is assumed to hand to the network at once",
    default: ByteSize::from_kib(64),
    min: ByteSize::from_bytes(1),
    max: ByteSize::from_mib(64),
};

/// Section 4.1.2.3 of the draft: `RTpropFilterLen`.
pub(crate) const PROBE_RTT_INTERVAL: Typed<Duration> = Typed {
    name: "probe_rtt_interval",
    doc: "how long a minimum round-trip time is believed",
    default: Duration::from_secs(10),
    min: Duration::from_millis(1),
    max: Duration::from_secs(3_600),
};

/// Section 4.3.5 of the draft: `ProbeRTTDuration`.
pub(crate) const PROBE_RTT_DURATION: Typed<Duration> = Typed {
    name: "probe_rtt_duration",
    doc: "how long the pipe is kept empty to see the minimum round-trip time",
    default: Duration::from_millis(200),
    min: Duration::ZERO,
    max: Duration::from_secs(10),
};

/// Section 3.5 of the draft: 2/ln 2, the smallest gain that doubles the rate each round trip.
const HIGH_GAIN: f64 = 2.885;
const DRAIN_GAIN: f64 = 1.0 / HIGH_GAIN;
/// Section 4.2.3.2 of the draft.
const PROBE_CWND_GAIN: f64 = 2.0;
/// Section 4.1.1.3 of the draft: `BtlBwFilterLen`, in round trips.
const BANDWIDTH_ROUNDS: u64 = 10;
/// Section 4.3.2.2 of the draft: growth that counts, and round trips without it.
const FULL_PIPE_GROWTH: f64 = 1.25;
const FULL_PIPE_ROUNDS: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BbrState {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

#[derive(Clone, Debug)]
struct Bbr {
    packet: ByteSize,
    initial_packets: u64,
    min_packets: u64,
    max_quantum: ByteSize,
    probe_rtt_interval: Duration,
    probe_rtt_duration: Duration,
    random: Pcg32,

    state: BbrState,
    pacing_gain: f64,
    cwnd_gain: f64,
    round: RoundTripCounter,
    bandwidth: MaxFilter,
    /// [`Duration::MAX`] before the first sample.
    min_rtt: Duration,
    min_rtt_at: Time,
    min_rtt_expired: bool,

    full_bandwidth: Rate,
    full_bandwidth_rounds: u32,
    filled_pipe: bool,

    cycle_index: usize,
    cycle_start: Time,
    /// The earliest end of ProbeRTT; `None` while the pipe is not empty yet.
    probe_rtt_until: Option<Time>,
    probe_rtt_round_done: bool,
    self_limited: SelfLimit,
    restarting: bool,

    cwnd: ByteSize,
    /// The last window that was not reduced by recovery or ProbeRTT.
    prior_cwnd: ByteSize,
    pacing_rate: Rate,
    recovery: Recovery,
    /// Total bytes acknowledged; needed until the initial window has been delivered.
    delivered: ByteSize,
    used: bool,
}

impl Bbr {
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
            probe_rtt_interval: spec.get(&PROBE_RTT_INTERVAL),
            probe_rtt_duration: spec.get(&PROBE_RTT_DURATION),
            random: Pcg32::seed_from_u64(context.seed),
            state: BbrState::Startup,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            round: RoundTripCounter::default(),
            bandwidth: MaxFilter::new(BANDWIDTH_ROUNDS),
            min_rtt: Duration::MAX,
            min_rtt_at: Time::ZERO,
            min_rtt_expired: false,
            full_bandwidth: Rate::ZERO,
            full_bandwidth_rounds: 0,
            filled_pipe: false,
            cycle_index: 0,
            cycle_start: Time::ZERO,
            probe_rtt_until: None,
            probe_rtt_round_done: false,
            self_limited: SelfLimit::default(),
            restarting: false,
            cwnd,
            prior_cwnd: cwnd,
            pacing_rate: initial_rate(cwnd, None, HIGH_GAIN),
            recovery: Recovery::default(),
            delivered: ByteSize::ZERO,
            used: false,
        }
    }

    fn bandwidth(&self) -> Rate {
        Rate::from_bits_per_second(self.bandwidth.get())
    }

    fn initial_window(&self) -> ByteSize {
        self.packet * self.initial_packets
    }

    fn min_window(&self) -> ByteSize {
        self.packet * self.min_packets
    }

    /// Section 4.2.2 of the draft: one packet, two, or the bytes sent in a millisecond.
    fn send_quantum(&self) -> ByteSize {
        if self.pacing_rate < Rate::from_bits_per_second(1_200_000) {
            self.packet
        } else if self.pacing_rate < Rate::from_mbps(24) {
            self.packet * 2
        } else {
            self.pacing_rate
                .size_in(Duration::from_millis(1))
                .min(self.max_quantum)
        }
    }

    /// `BBRInflight` (section 4.2.3.2 of the draft): a multiple of the bandwidth-delay product,
    /// plus the bytes that the hosts hold back.
    fn target_in_flight(&self, gain: f64) -> ByteSize {
        if self.min_rtt == Duration::MAX {
            return self.initial_window();
        }
        let bdp = self.bandwidth().size_in(self.min_rtt);
        bdp.mul_f64(gain) + self.send_quantum() * 3
    }

    /// `BBRUpdateModelAndState` (section 4.1 of the draft).
    fn update_model_and_state(&mut self, ack: &AckSample) {
        self.round.on_ack(ack);
        self.update_bandwidth(ack);
        self.check_cycle_phase(ack);
        self.check_full_pipe(ack);
        self.check_drain(ack);
        self.update_min_rtt(ack);
        self.check_probe_rtt(ack);
    }

    fn update_bandwidth(&mut self, ack: &AckSample) {
        let Some(delivery) = &ack.delivery else {
            return;
        };
        let limited = self.self_limited.on_ack(ack) || delivery.app_limited;
        if delivery.rate >= self.bandwidth() || !limited {
            self.bandwidth
                .update(self.round.count, delivery.rate.bits_per_second());
        }
    }

    /// Section 4.3.2.2 of the draft.
    fn check_full_pipe(&mut self, ack: &AckSample) {
        let app_limited = ack
            .delivery
            .as_ref()
            .is_none_or(|delivery| delivery.app_limited);
        if self.filled_pipe || !self.round.is_start || app_limited {
            return;
        }
        if self.bandwidth() >= self.full_bandwidth.mul_f64(FULL_PIPE_GROWTH) {
            self.full_bandwidth = self.bandwidth();
            self.full_bandwidth_rounds = 0;
            return;
        }
        self.full_bandwidth_rounds += 1;
        self.filled_pipe = self.full_bandwidth_rounds >= FULL_PIPE_ROUNDS;
    }

    /// Section 4.3.3 of the draft.
    fn check_drain(&mut self, ack: &AckSample) {
        if self.state == BbrState::Startup && self.filled_pipe {
            self.state = BbrState::Drain;
            self.pacing_gain = DRAIN_GAIN;
            self.cwnd_gain = HIGH_GAIN;
        }
        if self.state == BbrState::Drain && ack.in_flight <= self.target_in_flight(1.0) {
            self.enter_probe_bw(ack.now);
        }
    }

    /// Section 4.2.1 of the draft: until the pipe is full, the rate does not fall.
    fn set_pacing_rate(&mut self, gain: f64) {
        if self.bandwidth().is_zero() {
            return;
        }
        let rate = self.bandwidth().mul_f64(gain);
        if self.filled_pipe || rate > self.pacing_rate {
            self.pacing_rate = at_least_per_second(rate, self.packet);
        }
    }

    /// `BBRSetCwnd` (section 4.2.3.4 of the draft). A window that is not the limit does not grow.
    fn set_cwnd(&mut self, ack: &AckSample) {
        let target = self.target_in_flight(self.cwnd_gain);
        if !self.recovery.bound(ack, &mut self.cwnd) {
            let growth = if ack.app_limited {
                ByteSize::ZERO
            } else {
                ack.acked
            };
            if self.filled_pipe {
                self.cwnd = (self.cwnd + growth).min(target);
            } else if self.cwnd < target || self.delivered < self.initial_window() {
                self.cwnd += growth;
            }
        }
        self.cwnd = self.cwnd.max(self.min_window());
        if self.state == BbrState::ProbeRtt {
            self.cwnd = self.cwnd.min(self.min_window());
        }
    }
}

impl Controller for Bbr {
    fn name(&self) -> &'static str {
        ALGORITHM.name
    }

    /// Section 4.3.4.4 of the draft: after an idle period in ProbeBW, pace at the bandwidth at
    /// once.
    fn on_sent(&mut self, sent: &PacketSent) {
        if !self.used || sent.in_flight > sent.size {
            return;
        }
        self.restarting = true;
        match (self.state, self.probe_rtt_until) {
            (BbrState::ProbeBw, _) => self.set_pacing_rate(1.0),
            (BbrState::ProbeRtt, Some(until)) if sent.now > until => self.leave_probe_rtt(sent.now),
            _ => {}
        }
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.used = true;
        self.delivered += ack.acked;
        self.update_model_and_state(ack);
        self.update_recovery(ack);
        self.set_pacing_rate(self.pacing_gain);
        self.set_cwnd(ack);
    }

    fn on_loss(&mut self, loss: &LossSample) {
        self.used = true;
        self.react_to_loss(loss);
    }

    fn on_spurious_loss(&mut self, _spurious: &SpuriousLoss) {
        self.undo_recovery();
    }

    fn adjustable(&self) -> &'static [&'static str] {
        &[
            MIN_WINDOW.name,
            SEND_QUANTUM.name,
            PROBE_RTT_INTERVAL.name,
            PROBE_RTT_DURATION.name,
        ]
    }

    fn set_parameters(&mut self, spec: &AlgorithmSpec) {
        self.min_packets = spec.get(&MIN_WINDOW);
        self.max_quantum = spec.get(&SEND_QUANTUM);
        self.probe_rtt_interval = spec.get(&PROBE_RTT_INTERVAL);
        self.probe_rtt_duration = spec.get(&PROBE_RTT_DURATION);
    }

    fn on_packet_size(&mut self, size: ByteSize) {
        self.packet = size.max(ByteSize::from_bytes(1));
        if self.used {
            self.cwnd = self.cwnd.max(self.min_window());
        } else {
            self.cwnd = self.initial_window();
            self.prior_cwnd = self.cwnd;
            self.pacing_rate = initial_rate(self.cwnd, None, HIGH_GAIN);
        }
    }

    fn window(&self) -> ByteSize {
        self.cwnd
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.pacing_rate)
    }

    fn snapshot(&self) -> Snapshot {
        let phase = match self.state {
            BbrState::Startup => "startup",
            BbrState::Drain => "drain",
            BbrState::ProbeBw => "probe-bw",
            BbrState::ProbeRtt => "probe-rtt",
        };
        let bandwidth = self.bandwidth();
        Snapshot {
            phase,
            bandwidth: (!bandwidth.is_zero()).then_some(bandwidth),
            ..Snapshot::default()
        }
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}
