//! DCUDP's rate control: Figure 4 of Ye, Mhamdi and Hamdi, "Efficient UDP-Based Congestion Aware
//! Transport for Data Center Traffic" (CloudNet 2014).
//!
//! It keeps two rates in packets per second: `Rate_data`, the sending rate, and `Rate_max`, the
//! limit of its fast recovery. Both start at the capacity of the path. The receiver acknowledges
//! once per round trip. An acknowledgment with an echo divides both rates by 1 + (n_ecn / n_ack) /
//! (Rate_data RTT), about one packet less per round trip. An acknowledgment without an echo raises
//! `Rate_data`. A loss reduces `Rate_data` to one packet per round trip and halves `Rate_max`.
//! After a reduction the rates are frozen until the next packet has been sent.
//!
//! Figure 4 contradicts itself where `Rate_data` has passed `Rate_max`: it increments `Rate_max`
//! and then overwrites it. The parameters `raise_data` and `stop_at_max` select an interpretation.
//! `increment` with `increment_per_rtt` gives the increment its unit. `docs/dcudp.md` compares
//! them.

use weir_units::{ByteSize, Duration, Rate};

use super::rates::{Rates, one_packet_per_rtt};
use super::round::RoundTripCounts;
use super::{CAPACITY, FREEZE, INITIAL_RTT, SHORTEST_RTT};
use crate::algorithm::{Algorithm, Context, Parameter, Typed};
use crate::{AckSample, AlgorithmSpec, Controller, LossSample, PacketSent, Snapshot};

pub(crate) static ALGORITHM: Algorithm = Algorithm {
    name: "dcudp",
    summary: "a rate: doubles up to its maximum, a packet less per echo (Ye et al. 2014)",
    own_parameters: &PARAMETERS,
    build: |spec, context| Box::new(Dcudp::new(spec, context)),
};

const PARAMETERS: [Parameter; 6] = [
    CAPACITY.parameter(),
    RAISE_DATA.parameter(),
    STOP_AT_MAX.parameter(),
    INCREMENT.parameter(),
    INCREMENT_PER_RTT.parameter(),
    FREEZE.parameter(),
];

const RAISE_DATA: Typed<bool> = Typed {
    name: "raise_data",
    doc: "past the maximum, Rate_data follows Rate_max; as printed it is the other way round",
    default: true,
    min: false,
    max: true,
};

const STOP_AT_MAX: Typed<bool> = Typed {
    name: "stop_at_max",
    doc: "doubling ends at Rate_max; as printed it overshoots by up to a factor of two",
    default: true,
    min: false,
    max: true,
};

const INCREMENT: Typed<f64> = Typed {
    name: "increment",
    doc: "by how many packets `Rate_max++` raises the maximum",
    default: 1.0,
    min: 0.0,
    max: 1e6,
};

const INCREMENT_PER_RTT: Typed<bool> = Typed {
    name: "increment_per_rtt",
    doc: "the increment is in packets per round trip; if not, in packets per second",
    default: true,
    min: false,
    max: true,
};

#[derive(Clone, Debug)]
struct Dcudp {
    rates: Rates,
    acks: u64,
    echoes: u64,
    frozen: bool,
    rtt: Duration,
    round: RoundTripCounts,
    phase: &'static str,
    raise_data: bool,
    stop_at_max: bool,
    increment: f64,
    increment_per_rtt: bool,
    freeze: bool,
}

impl Dcudp {
    fn new(spec: &AlgorithmSpec, context: &Context) -> Self {
        Self {
            rates: Rates::new(spec.get(&CAPACITY), context.packet_size),
            acks: 0,
            echoes: 0,
            frozen: false,
            rtt: INITIAL_RTT,
            round: RoundTripCounts::default(),
            phase: "start",
            raise_data: spec.get(&RAISE_DATA),
            stop_at_max: spec.get(&STOP_AT_MAX),
            increment: spec.get(&INCREMENT),
            increment_per_rtt: spec.get(&INCREMENT_PER_RTT),
            freeze: spec.get(&FREEZE),
        }
    }

    /// Applies equations (1) and (2) in printed order: the second one uses the rate that the first
    /// one has set.
    fn slow_down(&mut self) {
        if self.frozen {
            return;
        }
        let portion = self.echoes as f64 / self.acks as f64;
        let rtt = self.rtt.as_secs_f64();
        self.rates.data /= 1.0 + portion / (self.rates.data * rtt);
        self.rates.max /= 1.0 + portion / (self.rates.data * rtt);
        self.rates.bound(self.rtt);
        self.frozen = self.freeze;
        self.phase = "echo";
    }

    fn speed_up(&mut self) {
        let passed = if self.stop_at_max {
            self.rates.data >= self.rates.max
        } else {
            self.rates.data > self.rates.max
        };
        if !passed {
            self.rates.data *= 2.0;
            if self.stop_at_max {
                self.rates.data = self.rates.data.min(self.rates.max);
            }
            self.phase = "double";
        } else {
            let per = if self.increment_per_rtt {
                one_packet_per_rtt(self.rtt)
            } else {
                1.0
            };
            self.rates.max += self.increment * per;
            if self.raise_data {
                self.rates.data = self.rates.max;
            } else {
                self.rates.max = self.rates.data;
            }
            self.phase = "increment";
        }
        self.rates.bound(self.rtt);
    }
}

impl Controller for Dcudp {
    fn name(&self) -> &'static str {
        ALGORITHM.name
    }

    fn wants_delivery(&self) -> bool {
        false
    }

    /// "Each time the sender sends out a data packet after Interval_data, it sets freeze as false."
    fn on_sent(&mut self, _sent: &PacketSent) {
        self.frozen = false;
    }

    fn on_ack(&mut self, ack: &AckSample) {
        if !ack.smoothed_rtt.is_zero() {
            self.rtt = ack.smoothed_rtt.max(SHORTEST_RTT);
        }
        let Some(round) = self.round.on_ack(ack) else {
            return;
        };
        self.acks += 1;
        if round.is_marked() {
            self.echoes += 1;
            self.slow_down();
        } else if !round.app_limited {
            self.speed_up();
        }
    }

    fn on_loss(&mut self, _loss: &LossSample) {
        self.acks += 1;
        self.echoes += 1;
        if self.frozen {
            return;
        }
        self.rates.data = one_packet_per_rtt(self.rtt);
        self.rates.max /= 2.0;
        self.rates.bound(self.rtt);
        self.frozen = self.freeze;
        self.phase = "loss";
    }

    fn adjustable(&self) -> &'static [&'static str] {
        &[
            RAISE_DATA.name,
            STOP_AT_MAX.name,
            INCREMENT.name,
            INCREMENT_PER_RTT.name,
            FREEZE.name,
        ]
    }

    fn set_parameters(&mut self, spec: &AlgorithmSpec) {
        self.raise_data = spec.get(&RAISE_DATA);
        self.stop_at_max = spec.get(&STOP_AT_MAX);
        self.increment = spec.get(&INCREMENT);
        self.increment_per_rtt = spec.get(&INCREMENT_PER_RTT);
        self.freeze = spec.get(&FREEZE);
    }

    fn on_packet_size(&mut self, size: ByteSize) {
        self.rates.resize(size);
        self.rates.bound(self.rtt);
    }

    /// There is no window: only the rate limits.
    fn window(&self) -> ByteSize {
        ByteSize::MAX
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.rates.rate_of(self.rates.data))
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            phase: self.phase,
            ce_fraction: (self.acks > 0).then(|| self.echoes as f64 / self.acks as f64),
            bandwidth: Some(self.rates.rate_of(self.rates.max)),
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
    use crate::LossCause;
    use crate::samples::{PACKET, ack, build, loss, micros};

    /// Reports one acknowledgment for a round trip of 100 us.
    fn report(controller: &mut dyn Controller, now: u64, ece: bool) {
        let mut sample = ack(now, now - 100, 1);
        sample.ece = ece;
        sample.round_ended = true;
        controller.on_ack(&sample);
    }

    fn send(controller: &mut dyn Controller, now: u64) {
        controller.on_sent(&PacketSent {
            now: micros(now),
            size: PACKET,
            in_flight: PACKET,
        });
    }

    /// The rate in packets of 1500 bytes per round trip of 100 us.
    fn window(controller: &dyn Controller) -> f64 {
        let rate = controller.pacing_rate().unwrap().bits_per_second();
        rate as f64 / 12_000.0 * 1e-4
    }

    fn maximum(controller: &dyn Controller) -> f64 {
        let rate = controller.snapshot().bandwidth.unwrap().bits_per_second();
        rate as f64 / 12_000.0 * 1e-4
    }

    fn close(left: f64, right: f64) {
        assert!((left / right - 1.0).abs() < 1e-6, "{left} is not {right}");
    }

    #[test]
    fn both_rates_start_at_the_capacity() {
        let dcudp = build("dcudp,capacity=10Gbps");
        assert_eq!(dcudp.pacing_rate(), Some(Rate::from_gbps(10)));
        assert_eq!(dcudp.window(), ByteSize::MAX);
    }

    #[test]
    fn echoes_follow_equations_1_and_2() {
        let mut dcudp = build("dcudp,capacity=1.2Gbps");
        report(&mut *dcudp, 200, true);
        // Ten packets per round trip, and every acknowledgment so far carried an echo: w / (1 + 1 /
        // w).
        let first = 10.0 / (1.0 + 1.0 / 10.0);
        close(window(&*dcudp), first);
        close(maximum(&*dcudp), 10.0 / (1.0 + 1.0 / first));
        // Frozen: the echo is counted, but the rates change only after a packet is sent.
        report(&mut *dcudp, 300, true);
        close(window(&*dcudp), first);
        send(&mut *dcudp, 310);
        report(&mut *dcudp, 400, false);
        let raised = window(&*dcudp);
        report(&mut *dcudp, 500, true);
        // Three echoes of four acknowledgments.
        close(window(&*dcudp), raised / (1.0 + 0.75 / raised));
    }

    #[test]
    fn each_echo_reduces_the_rate_without_freeze() {
        let mut dcudp = build("dcudp,capacity=1.2Gbps,freeze=false");
        report(&mut *dcudp, 200, true);
        let first = window(&*dcudp);
        report(&mut *dcudp, 300, true);
        close(window(&*dcudp), first / (1.0 + 1.0 / first));
    }

    #[test]
    fn a_loss_leaves_one_packet_per_round_trip_and_half_the_maximum() {
        let mut dcudp = build("dcudp,capacity=1.2Gbps");
        dcudp.on_loss(&loss(200, 100, 3, LossCause::Nak));
        close(window(&*dcudp), 1.0);
        close(maximum(&*dcudp), 5.0);
        dcudp.on_loss(&loss(210, 110, 3, LossCause::Nak));
        close(maximum(&*dcudp), 5.0);
        send(&mut *dcudp, 220);
        for (now, expected) in [(300, 2.0), (400, 4.0), (500, 5.0), (600, 6.0), (700, 7.0)] {
            report(&mut *dcudp, now, false);
            close(window(&*dcudp), expected);
        }
    }

    #[test]
    fn the_printed_interpretation_doubles_without_bound() {
        let mut dcudp =
            build("dcudp,capacity=1.2Gbps,raise_data=false,stop_at_max=false,increment=0");
        for (now, rate, max) in [(200, 20.0, 10.0), (300, 20.0, 20.0), (400, 40.0, 20.0)] {
            report(&mut *dcudp, now, false);
            close(window(&*dcudp), rate);
            close(maximum(&*dcudp), max);
        }
    }

    #[test]
    fn the_increment_can_be_a_packet_per_second() {
        let mut dcudp = build("dcudp,capacity=1.2Gbps,increment_per_rtt=false,increment=1000");
        report(&mut *dcudp, 200, false);
        // 100,000 packets per second and 1,000 more.
        close(window(&*dcudp), 10.1);
    }

    #[test]
    fn neither_rate_falls_below_a_packet_per_round_trip() {
        let mut dcudp = build("dcudp,capacity=1.2Gbps");
        for round in 0..1_000 {
            report(&mut *dcudp, 200 + 100 * round, true);
            send(&mut *dcudp, 210 + 100 * round);
        }
        close(window(&*dcudp), 1.0);
        close(maximum(&*dcudp), 1.0);
    }

    #[test]
    fn acknowledgments_of_one_round_trip_count_as_one() {
        let mut dcudp = build("dcudp,capacity=1.2Gbps");
        let mut marked = ack(200, 100, 1);
        marked.ce_marked = PACKET;
        dcudp.on_ack(&marked);
        dcudp.on_ack(&ack(210, 110, 1));
        close(window(&*dcudp), 10.0);
        report(&mut *dcudp, 220, false);
        close(window(&*dcudp), 10.0 / 1.1);
    }
}
