//! DCTCP, RFC 8257: the window shrinks in proportion to the fraction of marked bytes.
//!
//! α estimates the fraction of marked bytes and is updated once per observation window (a round
//! trip). The first mark of a round trip multiplies the window by 1 − α/2. The transport reports
//! the exact number of marked bytes, so α needs no assumption about delayed ACKs. Losses halve the
//! window as in Reno (RFC 8257 section 3.5).

use weir_units::ByteSize;

use crate::algorithm::{Algorithm, Parameter, Typed};
use crate::loss_window::{INITIAL_WINDOW, LOSS_WINDOW, MIN_WINDOW, WHOLE_PACKETS};
use crate::reno::{MarkResponse, Reno};
use crate::{AckSample, AlgorithmSpec};

pub(crate) static ALGORITHM: Algorithm = Algorithm {
    name: "dctcp",
    summary: "shrinks the window by half the fraction of marked bytes (RFC 8257)",
    own_parameters: &PARAMETERS,
    build: |spec, context| {
        let least = spec.get(&FRACTIONAL_MIN_WINDOW);
        Reno::boxed(MarkedFraction::new(spec), least, spec, context)
    },
};

/// Linux's DCTCP has two packets. Many senders into one port need less: two packets of each fill its
/// queue.
pub(crate) const FRACTIONAL_MIN_WINDOW: Typed<f64> = Typed {
    name: MIN_WINDOW.name,
    doc: "the window never falls below this, in packets; below 1 packets are paced",
    default: MIN_WINDOW.default as f64,
    min: 0.001,
    max: MIN_WINDOW.max as f64,
};

pub(crate) const PARAMETERS: [Parameter; 6] = [
    G.parameter(),
    INITIAL_ALPHA.parameter(),
    INITIAL_WINDOW.parameter(),
    FRACTIONAL_MIN_WINDOW.parameter(),
    LOSS_WINDOW.parameter(),
    WHOLE_PACKETS.parameter(),
];

/// RFC 8257 section 3.3: the estimation gain, 1/16.
const G: Typed<f64> = Typed {
    name: "g",
    doc: "weight of the newest round trip in the marked fraction",
    default: 0.0625,
    min: 1e-6,
    max: 1.0,
};

/// RFC 8257 section 3.3: 1, so that the first mark halves the window.
const INITIAL_ALPHA: Typed<f64> = Typed {
    name: "initial_alpha",
    doc: "the marked fraction assumed before the first round trip has ended",
    default: 1.0,
    min: 0.0,
    max: 1.0,
};

/// The estimate of the fraction of marked bytes, DCTCP's α.
#[derive(Clone, Debug)]
pub(crate) struct MarkedFraction {
    pub(crate) alpha: f64,
    g: f64,
    acked: ByteSize,
    marked: ByteSize,
}

impl MarkedFraction {
    pub(crate) fn new(spec: &AlgorithmSpec) -> Self {
        Self {
            alpha: spec.get(&INITIAL_ALPHA),
            g: spec.get(&G),
            acked: ByteSize::ZERO,
            marked: ByteSize::ZERO,
        }
    }

    /// Updates α = α (1 − g) + g M at the end of each observation window (RFC 8257 section 3.3).
    /// Returns whether the acknowledgment carries a mark. An ECE echo marks all bytes that it
    /// acknowledges.
    #[inline(always)]
    pub(crate) fn on_ack(&mut self, ack: &AckSample) -> bool {
        let marked = if ack.ece {
            ack.acked
        } else {
            ack.ce_marked.min(ack.acked)
        };
        self.acked += ack.acked;
        self.marked += marked;
        if ack.round_ended && !self.acked.is_zero() {
            let fraction = self.marked.bytes() as f64 / self.acked.bytes() as f64;
            self.alpha += self.g * (fraction - self.alpha);
            self.acked = ByteSize::ZERO;
            self.marked = ByteSize::ZERO;
        }
        ack.ece || !marked.is_zero()
    }
}

impl MarkResponse for MarkedFraction {
    const NAME: &'static str = ALGORITHM.name;

    #[inline(always)]
    fn factor(&mut self, ack: &AckSample, _: ByteSize) -> Option<f64> {
        self.on_ack(ack).then(|| 1.0 - self.alpha / 2.0)
    }

    fn ce_fraction(&self) -> Option<f64> {
        Some(self.alpha)
    }

    fn adjustable(&self) -> &'static [&'static str] {
        &[G.name, FRACTIONAL_MIN_WINDOW.name, LOSS_WINDOW.name]
    }

    fn set_parameters(&mut self, spec: &AlgorithmSpec) -> f64 {
        self.g = spec.get(&G);
        spec.get(&FRACTIONAL_MIN_WINDOW)
    }
}

#[cfg(test)]
mod tests {
    use crate::samples::{PACKET, ack, build, loss, packets};
    use crate::{Controller, LossCause};

    /// A window of 20 packets, `marked` of which were CE-marked, acknowledged in two halves.
    fn window_with(dctcp: &mut dyn Controller, number: u64, marked: u64) {
        for half in 0..2 {
            let now = 1_000 * (number + 1) + half * 100;
            let mut sample = ack(now, now - 500, 10);
            sample.ce_marked = PACKET
                * if half == 0 {
                    marked / 2
                } else {
                    marked.div_ceil(2)
                };
            sample.round_ended = half == 1;
            dctcp.on_ack(&sample);
        }
    }

    fn alpha(dctcp: &dyn Controller) -> f64 {
        dctcp.snapshot().ce_fraction.unwrap()
    }

    #[test]
    fn alpha_follows_the_closed_form_under_constant_marking() {
        for (marked, fraction) in [(0, 0.0), (1, 0.05), (7, 0.35), (20, 1.0)] {
            let mut dctcp = build("dctcp");
            for n in 1..=200 {
                window_with(&mut *dctcp, n, marked);
                let expected = fraction + (1.0 - fraction) * (15.0_f64 / 16.0).powi(n as i32);
                assert!(
                    (alpha(&*dctcp) - expected).abs() < 1e-12,
                    "{marked} after {n}"
                );
            }
        }
    }

    #[test]
    fn alpha_follows_a_step_with_another_gain() {
        let mut dctcp = build("dctcp,g=0.25,initial_alpha=0");
        for n in 0..10 {
            window_with(&mut *dctcp, n, 0);
        }
        assert_eq!(alpha(&*dctcp), 0.0);
        for n in 1..=10 {
            window_with(&mut *dctcp, 10 + n, 10);
            let expected = 0.5 * (1.0 - 0.75_f64.powi(n as i32));
            assert!((alpha(&*dctcp) - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn the_first_mark_of_a_round_trip_cuts_by_half_of_alpha() {
        let mut dctcp = build("dctcp,initial_alpha=0.4,initial_window=100");
        let mut marked = ack(100, 50, 1);
        marked.ce_marked = PACKET;
        dctcp.on_ack(&marked);
        assert_eq!(dctcp.window(), packets(80));
        let mut again = ack(120, 90, 1);
        again.ce_marked = PACKET;
        dctcp.on_ack(&again);
        assert_eq!(dctcp.window(), packets(80));
        let mut next = ack(160, 110, 1);
        next.ce_marked = PACKET;
        dctcp.on_ack(&next);
        assert_eq!(dctcp.window(), packets(64));
    }

    #[test]
    fn an_ece_ack_marks_all_bytes_it_acknowledges() {
        let mut dctcp = build("dctcp,initial_alpha=0,g=0.5");
        let mut echo = ack(100, 50, 3);
        echo.ece = true;
        dctcp.on_ack(&echo);
        let mut rest = ack(110, 60, 1);
        rest.round_ended = true;
        dctcp.on_ack(&rest);
        assert_eq!(alpha(&*dctcp), 0.375);
    }

    #[test]
    fn a_loss_halves_the_window_down_to_one_packet() {
        let mut dctcp = build("dctcp,min_window=1");
        dctcp.on_loss(&loss(100, 50, 1, LossCause::Acks));
        assert_eq!(dctcp.window(), packets(5));
        dctcp.on_loss(&loss(200, 150, 5, LossCause::Timeout));
        assert_eq!(dctcp.window(), packets(1));
    }

    #[test]
    fn the_average_alpha_is_the_true_fraction() {
        use rand_core::{Rng, SeedableRng};
        let mut rng = rand_pcg::Pcg32::seed_from_u64(3);
        for percent in [1, 10, 50] {
            let mut dctcp = build("dctcp");
            let (mut sum, mut marked_total, windows) = (0.0, 0, 10_000);
            for n in 0..windows + 100 {
                let marked = (0..20).filter(|_| rng.next_u32() % 100 < percent).count() as u64;
                window_with(&mut *dctcp, n, marked);
                if n >= 100 {
                    sum += alpha(&*dctcp);
                    marked_total += marked;
                }
            }
            let truth = marked_total as f64 / (20 * windows) as f64;
            let error = (sum / windows as f64 / truth - 1.0).abs();
            assert!(error < 0.02, "{percent} %: off by {error}");
        }
    }

    #[test]
    fn a_window_below_one_packet_is_paced() {
        let mut dctcp = build("dctcp,initial_window=1,min_window=0.1");
        assert_eq!(dctcp.pacing_rate(), None);
        for number in 1..=8 {
            window_with(&mut *dctcp, number, 20);
        }
        let window = dctcp.window();
        assert!(window < PACKET && window >= PACKET / 10, "{window}");
        // Two round trips of 500 us, at half a packet each, and so on.
        let rate = weir_units::Rate::from_size_over(window, weir_units::Duration::from_micros(500));
        assert_eq!(dctcp.pacing_rate(), Some(rate));
        // One packet that arrives unmarked adds one packet.
        let mut unmarked = ack(100_000, 99_500, 1);
        unmarked.round_ended = true;
        dctcp.on_ack(&unmarked);
        assert_eq!(dctcp.window(), window + PACKET);
        assert_eq!(
            build("dctcp,initial_window=2,min_window=0.1").window(),
            packets(2)
        );
    }
}
