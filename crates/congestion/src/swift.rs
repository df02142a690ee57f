//! Swift: Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the
//! Datacenter", SIGCOMM 2020, algorithms 1 and 2.
//!
//! The window follows the distance of each RTT from a target: additive increase below it, a
//! decrease in proportion to the excess above it, at most once per round trip. Under heavy incast
//! the window falls below one packet, and pacing spaces the packets.
//!
//! The paper splits the delay into fabric delay and host delay and runs two windows. Here the
//! transport's RTT counts as fabric delay. The paper's base target contains the unloaded RTT of its
//! fabric. A transport that does not know its topology adds the base target to the path's minimum
//! RTT instead (`above_min_rtt`, on by default).
//! base target to the path's minimum round-trip time instead (`above_min_rtt`, on by default).

use weir_units::{ByteSize, Duration, Rate, Time};

use crate::algorithm::{Algorithm, Typed};
use crate::loss_window::INITIAL_WINDOW;
use crate::{AckSample, AlgorithmSpec, Context, Controller, LossCause, LossSample, Snapshot};

pub(crate) static ALGORITHM: Algorithm = Algorithm {
    name: "swift",
    summary: "keeps the round-trip time at a target, down to windows below a packet (Kumar 2020)",
    own_parameters: &[
        INITIAL_WINDOW.parameter(),
        MIN_WINDOW.parameter(),
        BASE_TARGET.parameter(),
        ABOVE_MIN_RTT.parameter(),
        HOPS.parameter(),
        PER_HOP.parameter(),
        FLOW_SCALING.parameter(),
        FLOW_SCALING_MIN.parameter(),
        FLOW_SCALING_MAX.parameter(),
        ADDITIVE_INCREASE.parameter(),
        BETA.parameter(),
        MAX_DECREASE.parameter(),
        RESET_THRESHOLD.parameter(),
    ],
    build: |spec, context| Box::new(Swift::new(spec, context)),
};

const MIN_WINDOW: Typed<f64> = Typed {
    name: "min_window",
    doc: "the window never falls below this, in packets; below 1 packets are paced",
    default: 0.01,
    min: 0.001,
    max: 10_000.0,
};

const BASE_TARGET: Typed<Duration> = Typed {
    name: "base_target",
    doc: "the target delay before scaling",
    default: Duration::from_micros(25),
    min: Duration::from_nanos(1),
    max: Duration::from_secs(10),
};

const ABOVE_MIN_RTT: Typed<bool> = Typed {
    name: "above_min_rtt",
    doc: "take the target as delay above the path's minimum round-trip time",
    default: true,
    min: false,
    max: true,
};

const HOPS: Typed<u64> = Typed {
    name: "hops",
    doc: "hops on the path, for topology scaling",
    default: 0,
    min: 0,
    max: 255,
};

const PER_HOP: Typed<Duration> = Typed {
    name: "per_hop",
    doc: "what each hop adds to the target",
    default: Duration::from_micros(1),
    min: Duration::ZERO,
    max: Duration::from_secs(1),
};

const FLOW_SCALING: Typed<Duration> = Typed {
    name: "flow_scaling",
    doc: "what small windows add to the target at most",
    default: Duration::from_micros(100),
    min: Duration::ZERO,
    max: Duration::from_secs(10),
};

const FLOW_SCALING_MIN: Typed<f64> = Typed {
    name: "flow_scaling_min_window",
    doc: "the window, in packets, at which the most is added",
    default: 0.1,
    min: 0.001,
    max: 1.0,
};

const FLOW_SCALING_MAX: Typed<f64> = Typed {
    name: "flow_scaling_max_window",
    doc: "the window, in packets, from which nothing is added",
    default: 100.0,
    min: 1.001,
    max: 1e6,
};

const ADDITIVE_INCREASE: Typed<f64> = Typed {
    name: "additive_increase",
    doc: "packets per round trip below the target",
    default: 1.0,
    min: 0.001,
    max: 1_000.0,
};

const BETA: Typed<f64> = Typed {
    name: "beta",
    doc: "how strongly excess delay shrinks the window",
    default: 0.8,
    min: 0.001,
    max: 1.0,
};

const MAX_DECREASE: Typed<f64> = Typed {
    name: "max_decrease",
    doc: "the largest fraction that one decrease takes away",
    default: 0.5,
    min: 0.001,
    max: 0.999,
};

const RESET_THRESHOLD: Typed<u64> = Typed {
    name: "reset_threshold",
    doc: "time-outs in a row from which the window falls to its minimum",
    default: 5,
    min: 1,
    max: 1_000,
};

/// More than any path carries. Keeps the arithmetic finite for any acknowledgment.
const MAX_PACKETS: f64 = 1e9;

/// The target delay (section 3.5 of the paper).
#[derive(Clone, Debug)]
struct Target {
    /// Base target and topology scaling.
    fixed: Duration,
    above_min_rtt: bool,
    /// In seconds.
    flow_scaling: f64,
    /// The paper's α and β: added delay = α / √cwnd + β.
    slope: f64,
    offset: f64,
}

impl Target {
    fn new(spec: &AlgorithmSpec) -> Self {
        let flow_scaling = spec.get(&FLOW_SCALING).as_secs_f64();
        let at_max = 1.0 / spec.get(&FLOW_SCALING_MAX).sqrt();
        let slope = flow_scaling / (1.0 / spec.get(&FLOW_SCALING_MIN).sqrt() - at_max);
        Self {
            fixed: spec.get(&BASE_TARGET) + spec.get(&PER_HOP) * spec.get(&HOPS),
            above_min_rtt: spec.get(&ABOVE_MIN_RTT),
            flow_scaling,
            slope,
            offset: -slope * at_max,
        }
    }

    fn at(&self, cwnd: f64, min_rtt: Duration) -> Duration {
        let scaling = (self.slope / cwnd.sqrt() + self.offset).clamp(0.0, self.flow_scaling);
        let target = self.fixed + Duration::from_secs_f64(scaling);
        if self.above_min_rtt {
            target + min_rtt
        } else {
            target
        }
    }
}

#[derive(Clone, Debug)]
struct Swift {
    /// In packets, with fractions.
    cwnd: f64,
    packet: ByteSize,
    initial: f64,
    minimum: f64,
    additive_increase: f64,
    beta: f64,
    max_decrease: f64,
    reset_threshold: u64,
    target: Target,
    rtt: Duration,
    last_decrease: Option<Time>,
    timeouts: u64,
    used: bool,
    phase: &'static str,
}

impl Swift {
    fn new(spec: &AlgorithmSpec, context: &Context) -> Self {
        let minimum = spec.get(&MIN_WINDOW);
        let initial = (spec.get(&INITIAL_WINDOW) as f64).max(minimum);
        Self {
            cwnd: initial,
            packet: context.packet_size.max(ByteSize::from_bytes(1)),
            initial,
            minimum,
            additive_increase: spec.get(&ADDITIVE_INCREASE),
            beta: spec.get(&BETA),
            max_decrease: spec.get(&MAX_DECREASE),
            reset_threshold: spec.get(&RESET_THRESHOLD),
            target: Target::new(spec),
            rtt: Duration::ZERO,
            last_decrease: None,
            timeouts: 0,
            used: false,
            phase: "increase",
        }
    }

    /// Takes over all parameters but the initial window.
    fn set_own_parameters(&mut self, spec: &AlgorithmSpec) {
        self.minimum = spec.get(&MIN_WINDOW);
        self.additive_increase = spec.get(&ADDITIVE_INCREASE);
        self.beta = spec.get(&BETA);
        self.max_decrease = spec.get(&MAX_DECREASE);
        self.reset_threshold = spec.get(&RESET_THRESHOLD);
        self.target = Target::new(spec);
    }

    fn increase(&mut self, acked: ByteSize) {
        let acked = acked.bytes() as f64 / self.packet.bytes() as f64;
        let windows = if self.cwnd >= 1.0 {
            acked / self.cwnd
        } else {
            acked
        };
        self.cwnd = (self.cwnd + self.additive_increase * windows).min(MAX_PACKETS.max(self.cwnd));
        self.phase = "increase";
    }

    /// Multiplies the window, unless it was reduced within the last RTT.
    fn decrease(&mut self, now: Time, factor: f64) {
        self.phase = "decrease";
        if self
            .last_decrease
            .is_some_and(|last| now.since(last) < self.rtt)
        {
            return;
        }
        self.cwnd = (self.cwnd * factor).max(self.minimum).min(self.cwnd);
        self.last_decrease = Some(now);
    }
}

impl Controller for Swift {
    fn name(&self) -> &'static str {
        ALGORITHM.name
    }

    fn wants_delivery(&self) -> bool {
        false
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.used = true;
        self.timeouts = 0;
        self.rtt = ack.smoothed_rtt;
        let Some(delay) = ack.rtt else { return };
        let target = self.target.at(self.cwnd, ack.min_rtt);
        if delay < target {
            if !ack.app_limited {
                self.increase(ack.acked);
            }
        } else {
            let excess = (delay - target).as_secs_f64() / delay.as_secs_f64().max(1e-9);
            self.decrease(ack.now, 1.0 - (self.beta * excess).min(self.max_decrease));
        }
    }

    fn on_loss(&mut self, loss: &LossSample) {
        self.used = true;
        if loss.cause != LossCause::Timeout {
            self.timeouts = 0;
            self.decrease(loss.now, 1.0 - self.max_decrease);
            return;
        }
        self.timeouts = self.timeouts.saturating_add(1);
        if self.timeouts >= self.reset_threshold {
            self.cwnd = self.minimum.min(self.cwnd);
            self.last_decrease = Some(loss.now);
        } else {
            self.decrease(loss.now, 1.0 - self.max_decrease);
        }
    }

    fn on_packet_size(&mut self, size: ByteSize) {
        let size = size.max(ByteSize::from_bytes(1));
        if self.used {
            let ratio = self.packet.bytes() as f64 / size.bytes() as f64;
            self.cwnd = (self.cwnd * ratio).clamp(self.minimum, MAX_PACKETS);
        }
        self.packet = size;
    }

    fn on_idle_restart(&mut self, _now: Time) {
        self.cwnd = self.cwnd.min(self.initial);
    }

    fn adjustable(&self) -> &'static [&'static str] {
        &[
            MIN_WINDOW.name,
            BASE_TARGET.name,
            ABOVE_MIN_RTT.name,
            HOPS.name,
            PER_HOP.name,
            FLOW_SCALING.name,
            FLOW_SCALING_MIN.name,
            FLOW_SCALING_MAX.name,
            ADDITIVE_INCREASE.name,
            BETA.name,
            MAX_DECREASE.name,
            RESET_THRESHOLD.name,
        ]
    }

    fn set_parameters(&mut self, spec: &AlgorithmSpec) {
        self.set_own_parameters(spec);
        self.cwnd = self.cwnd.max(self.minimum);
    }

    fn window(&self) -> ByteSize {
        self.packet.mul_f64(self.cwnd).max(ByteSize::from_bytes(1))
    }

    /// One packet per `rtt / cwnd` while the window is below a packet (algorithm 1 of the paper).
    fn pacing_rate(&self) -> Option<Rate> {
        if self.cwnd >= 1.0 {
            return None;
        }
        let full = Rate::from_size_over(self.packet, self.rtt.max(Duration::from_nanos(1)));
        Some(full.mul_f64(self.cwnd).max(Rate::from_bits_per_second(1)))
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            phase: self.phase,
            ..Snapshot::default()
        }
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{ack, build, loss, packets};

    fn target(spec: &str) -> Target {
        Target::new(&spec.parse().unwrap())
    }

    #[test]
    fn the_target_scales_with_hops_and_small_windows() {
        let swift = target("swift,base_target=25us,hops=5,per_hop=2us,above_min_rtt=false");
        let at = |cwnd: f64| swift.at(cwnd, Duration::from_micros(10));
        assert_eq!(at(100.0), Duration::from_micros(35));
        assert_eq!(at(1_000.0), Duration::from_micros(35));
        assert_eq!(at(0.1), Duration::from_micros(135));
        assert_eq!(at(0.01), Duration::from_micros(135));
        // fs_range (1/√w − 1/√100) / (1/√0.1 − 1/√100) at w = 4.
        let expected = 35.0 + 100.0 * (0.5 - 0.1) / (10.0_f64.sqrt() - 0.1);
        assert!((at(4.0).as_secs_f64() * 1e6 - expected).abs() < 1e-3);
        let above = target("swift,base_target=25us");
        assert_eq!(
            above.at(100.0, Duration::from_micros(10)),
            Duration::from_micros(35)
        );
    }

    /// An acknowledgment of one packet with an RTT of `rtt` on a path of 50 us.
    fn delayed(now: u64, rtt: u64) -> AckSample {
        let mut sample = ack(now, now - rtt, 1);
        sample.min_rtt = Duration::from_micros(50);
        sample
    }

    #[test]
    fn the_window_grows_a_packet_per_round_trip_below_the_target() {
        let mut swift = build("swift,flow_scaling=0ns");
        swift.on_ack(&delayed(1_000, 60));
        assert_eq!(swift.window(), packets(10).mul_f64(1.01));
        let mut limited = delayed(1_010, 60);
        limited.app_limited = true;
        swift.on_ack(&limited);
        assert_eq!(swift.window(), packets(10).mul_f64(1.01));
    }

    #[test]
    fn the_window_shrinks_in_proportion_once_per_rtt_above_the_target() {
        // 100 us against a target of 75 us: 1 − 0.8 · 25/100.
        let mut swift = build("swift,flow_scaling=0ns");
        swift.on_ack(&delayed(1_000, 100));
        assert_eq!(swift.window(), packets(8));
        swift.on_ack(&delayed(1_050, 100));
        assert_eq!(swift.window(), packets(8));
        swift.on_ack(&delayed(1_100, 100));
        assert_eq!(swift.window(), packets(8).mul_f64(0.8));
        // Never reduced by more than half.
        swift.on_ack(&delayed(9_000, 5_000));
        assert_eq!(swift.window(), packets(8).mul_f64(0.4));
    }

    #[test]
    fn losses_halve_the_window_and_repeated_timeouts_reset_it() {
        let mut swift = build("swift");
        swift.on_loss(&loss(100, 50, 1, LossCause::Nak));
        assert_eq!(swift.window(), packets(5));
        for n in 1..5 {
            swift.on_loss(&loss(1_000 * n, 900 * n, 1, LossCause::Timeout));
        }
        assert_eq!(swift.window(), packets(5).mul_f64(0.0625));
        swift.on_loss(&loss(9_000, 8_000, 1, LossCause::Timeout));
        assert_eq!(swift.window(), packets(1).mul_f64(0.01));
    }

    #[test]
    fn a_window_below_one_packet_is_paced() {
        let mut swift = build("swift,initial_window=1,flow_scaling=0ns");
        assert_eq!(swift.pacing_rate(), None);
        swift.on_ack(&delayed(1_000, 100));
        // 0.8 packets of 1500 bytes per 100 us.
        assert_eq!(swift.pacing_rate(), Some(Rate::from_mbps(96)));
        // Below one packet, the increase is per acknowledged packet.
        swift.on_ack(&delayed(1_050, 60));
        assert_eq!(swift.window(), packets(1).mul_f64(1.8));
    }
}
