//! D2TCP: Vamanan, Hasan, Vijaykumar, "Deadline-Aware Datacenter TCP", SIGCOMM 2012.
//!
//! D2TCP scales DCTCP's reduction by the flow's urgency. Tc is the time that the rest of the flow
//! needs, D the time left until its deadline. The imminence factor is d = Tc/D, between 0.5 and
//! 2.0. A mark multiplies the window by 1 − p/2 with p = α^d: a flow with a near deadline (d > 1)
//! backs off less than DCTCP, one with a far deadline more. Without a deadline d is 1, and the flow
//! is a DCTCP flow.

use weir_units::{ByteSize, Duration};

use crate::algorithm::Algorithm;
use crate::dctcp::{FRACTIONAL_MIN_WINDOW, MarkedFraction, PARAMETERS};
use crate::reno::{MarkResponse, Reno};
use crate::{AckSample, AlgorithmSpec, Deadline};

pub(crate) static ALGORITHM: Algorithm = Algorithm {
    name: "d2tcp",
    summary: "DCTCP that backs off less when a deadline is near (Vamanan 2012)",
    own_parameters: &PARAMETERS,
    build: |spec, context| {
        let response = D2tcp {
            fraction: MarkedFraction::new(spec),
            deadline: None,
        };
        Reno::boxed(response, spec.get(&FRACTIONAL_MIN_WINDOW), spec, context)
    },
};

/// The bounds of the imminence factor (section 3.2 of the paper).
const MIN_IMMINENCE: f64 = 0.5;
const MAX_IMMINENCE: f64 = 2.0;

#[derive(Clone, Debug)]
struct D2tcp {
    fraction: MarkedFraction,
    deadline: Option<Deadline>,
}

impl D2tcp {
    /// d = Tc/D. The sawtooth of a deadline-agnostic flow averages 3/4 of its window W, so the
    /// remaining B bytes take Tc = B / (3/4 W) round trips (section 3.2 of the paper).
    fn imminence(&self, window: ByteSize, rtt: Duration) -> f64 {
        let Some(deadline) = self.deadline else {
            return 1.0;
        };
        if deadline.time_left.is_zero() {
            return MAX_IMMINENCE;
        }
        let round_trips = deadline.remaining.bytes() as f64 / (0.75 * window.bytes() as f64);
        let needed = round_trips * rtt.as_secs_f64();
        (needed / deadline.time_left.as_secs_f64()).clamp(MIN_IMMINENCE, MAX_IMMINENCE)
    }
}

impl MarkResponse for D2tcp {
    const NAME: &'static str = ALGORITHM.name;

    fn factor(&mut self, ack: &AckSample, window: ByteSize) -> Option<f64> {
        let marked = self.fraction.on_ack(ack);
        marked.then(|| {
            let imminence = self.imminence(window, ack.smoothed_rtt);
            1.0 - self.fraction.alpha.powf(imminence) / 2.0
        })
    }

    fn on_deadline(&mut self, deadline: Option<Deadline>) {
        self.deadline = deadline;
    }

    fn ce_fraction(&self) -> Option<f64> {
        self.fraction.ce_fraction()
    }

    fn adjustable(&self) -> &'static [&'static str] {
        self.fraction.adjustable()
    }

    fn set_parameters(&mut self, spec: &AlgorithmSpec) -> f64 {
        self.fraction.set_parameters(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{PACKET, ack, build, packets};

    /// The window after one mark at α = 0.25 and a window of 100 packets.
    fn after_mark(deadline: Option<Deadline>) -> ByteSize {
        let mut d2tcp = build("d2tcp,initial_alpha=0.25,initial_window=100");
        d2tcp.on_deadline(deadline);
        let mut marked = ack(1_000, 900, 1);
        marked.ce_marked = PACKET;
        d2tcp.on_ack(&marked);
        d2tcp.window()
    }

    fn deadline(remaining: u64, micros: u64) -> Option<Deadline> {
        Some(Deadline {
            remaining: packets(remaining),
            time_left: Duration::from_micros(micros),
        })
    }

    #[test]
    fn without_a_deadline_it_is_dctcp() {
        assert_eq!(after_mark(None), packets(100).mul_f64(0.875));
    }

    #[test]
    fn the_reduction_depends_on_deadline_imminence() {
        // 750 packets at 75 per round trip of 100 us need 1000 us.
        let exact = |d: f64| packets(100).mul_f64(1.0 - 0.25_f64.powf(d) / 2.0);
        assert_eq!(after_mark(deadline(750, 1_000)), exact(1.0));
        assert_eq!(after_mark(deadline(750, 800)), exact(1.25));
        assert_eq!(after_mark(deadline(750, 1_250)), exact(0.8));
    }

    #[test]
    fn the_imminence_is_bounded() {
        let near = packets(100).mul_f64(1.0 - 0.0625 / 2.0);
        assert_eq!(after_mark(deadline(750, 10)), near);
        assert_eq!(after_mark(deadline(750, 0)), near);
        let far = packets(100).mul_f64(0.75);
        assert_eq!(after_mark(deadline(1, 1_000_000)), far);
        assert_eq!(after_mark(deadline(0, 10)), far);
    }
}
