//! NewReno as used by QUIC: RFC 9002 section 7 and appendix B. This is RFC 6582 with recovery
//! periods delimited by send time instead of sequence number.

use weir_units::ByteSize;

use crate::algorithm::Algorithm;
use crate::loss_window::{INITIAL_WINDOW, LOSS_WINDOW, MIN_WINDOW, WHOLE_PACKETS};
use crate::reno::{LOSS_REDUCTION, MarkResponse, Reno};
use crate::{AckSample, AlgorithmSpec};

pub(crate) static ALGORITHM: Algorithm = Algorithm {
    name: "newreno",
    summary: "halves the window on loss or mark, one packet more per round trip (RFC 9002, RFC 6582)",
    own_parameters: &[
        INITIAL_WINDOW.parameter(),
        MIN_WINDOW.parameter(),
        LOSS_WINDOW.parameter(),
        WHOLE_PACKETS.parameter(),
    ],
    build: |spec, context| Reno::boxed(NewReno, spec.get(&MIN_WINDOW) as f64, spec, context),
};

/// A mark counts as a loss (RFC 9002 section 7.1).
#[derive(Clone, Debug)]
pub(crate) struct NewReno;

impl MarkResponse for NewReno {
    const NAME: &'static str = ALGORITHM.name;

    #[inline]
    fn factor(&mut self, ack: &AckSample, _: ByteSize) -> Option<f64> {
        (ack.ece || !ack.ce_marked.is_zero()).then_some(LOSS_REDUCTION)
    }

    fn adjustable(&self) -> &'static [&'static str] {
        &[MIN_WINDOW.name, LOSS_WINDOW.name]
    }

    fn set_parameters(&mut self, spec: &AlgorithmSpec) -> f64 {
        spec.get(&MIN_WINDOW) as f64
    }
}

#[cfg(test)]
mod tests {
    use weir_units::Time;

    use super::*;
    use crate::LossCause;
    use crate::samples::{PACKET, ack, build, loss, packets, spurious};

    #[test]
    fn slow_start_adds_acked_bytes_and_avoidance_one_packet_per_window() {
        let mut reno = build("newreno");
        reno.on_ack(&ack(100, 50, 10));
        assert_eq!(reno.window(), packets(20));
        reno.on_loss(&loss(200, 150, 1, LossCause::Acks));
        assert_eq!(reno.window(), packets(10));
        assert_eq!(reno.snapshot().ssthresh, Some(packets(10)));
        reno.on_ack(&ack(300, 250, 9));
        assert_eq!(reno.window(), packets(10));
        reno.on_ack(&ack(310, 260, 1));
        assert_eq!(reno.window(), packets(11));
        // One acknowledgment for several windows adds one packet for each.
        reno.on_ack(&ack(400, 350, 33));
        assert_eq!(reno.window(), packets(14));
    }

    #[test]
    fn slow_start_stops_at_the_threshold() {
        let mut reno = build("newreno");
        reno.on_ack(&ack(100, 50, 30));
        reno.on_loss(&loss(150, 120, 1, LossCause::Acks));
        assert_eq!(reno.window(), packets(20));
        reno.on_loss(&loss(400, 390, 1, LossCause::Timeout));
        assert_eq!(reno.window(), packets(2));
        assert_eq!(reno.snapshot().ssthresh, Some(packets(10)));
        reno.on_ack(&ack(500, 450, 12));
        assert_eq!(reno.window(), packets(10));
        assert_eq!(reno.snapshot().phase, "congestion-avoidance");
    }

    #[test]
    fn one_reduction_per_round_trip_by_loss_mark_or_echo() {
        let mut reno = build("newreno");
        reno.on_ack(&ack(100, 50, 30));
        reno.on_loss(&loss(200, 150, 1, LossCause::Acks));
        assert_eq!(reno.window(), packets(20));
        reno.on_loss(&loss(210, 190, 5, LossCause::Nak));
        let mut marked = ack(220, 200, 3);
        marked.ce_marked = PACKET;
        reno.on_ack(&marked);
        assert_eq!(reno.window(), packets(20));
        assert_eq!(reno.snapshot().phase, "recovery");
        let mut echo = ack(300, 201, 3);
        echo.ece = true;
        reno.on_ack(&echo);
        assert_eq!(reno.window(), packets(10));
    }

    #[test]
    fn a_repeated_timeout_keeps_the_threshold() {
        let mut reno = build("newreno");
        reno.on_ack(&ack(100, 50, 30));
        reno.on_loss(&loss(200, 150, 40, LossCause::Timeout));
        assert_eq!(reno.window(), packets(2));
        reno.on_loss(&loss(400, 200, 2, LossCause::Timeout));
        assert_eq!(reno.snapshot().ssthresh, Some(packets(20)));
    }

    #[test]
    fn a_reduction_is_undone_once_all_its_losses_prove_spurious() {
        let mut reno = build("newreno");
        reno.on_ack(&ack(100, 50, 30));
        reno.on_loss(&loss(200, 150, 2, LossCause::Acks));
        reno.on_loss(&loss(210, 160, 1, LossCause::Acks));
        reno.on_spurious_loss(&spurious(220, 150, 2));
        assert_eq!(reno.window(), packets(20));
        reno.on_spurious_loss(&spurious(230, 160, 1));
        assert_eq!(reno.window(), packets(40));
        assert_eq!(reno.snapshot().ssthresh, None);
        reno.on_spurious_loss(&spurious(240, 160, 1));
        assert_eq!(reno.window(), packets(40));
    }

    #[test]
    fn a_reduction_with_ecn_marks_is_not_undone() {
        let mut reno = build("newreno");
        let mut marked = ack(100, 50, 30);
        marked.ce_marked = PACKET;
        reno.on_ack(&marked);
        assert_eq!(reno.window(), packets(5));
        reno.on_loss(&loss(110, 60, 1, LossCause::Acks));
        reno.on_spurious_loss(&spurious(120, 60, 1));
        assert_eq!(reno.window(), packets(5));
    }

    #[test]
    fn an_idle_restart_returns_to_the_initial_window() {
        let mut reno = build("newreno");
        reno.on_ack(&ack(100, 50, 70));
        reno.on_loss(&loss(200, 150, 1, LossCause::Acks));
        reno.on_idle_restart(Time::from_nanos(1_000_000));
        assert_eq!(reno.window(), packets(10));
        assert_eq!(reno.snapshot().ssthresh, Some(packets(40)));
    }

    #[test]
    fn an_unused_window_follows_the_packet_size() {
        let mut reno = build("newreno");
        reno.on_packet_size(ByteSize::from_bytes(9_000));
        assert_eq!(reno.window(), ByteSize::from_bytes(90_000));
        reno.on_packet_size(ByteSize::from_bytes(1_200));
        assert_eq!(reno.window(), ByteSize::from_bytes(12_000));
    }

    /// RFC 9002 section 7.2.
    #[test]
    fn a_window_that_nothing_has_reduced_is_at_least_the_initial_one_of_larger_packets() {
        let mut reno = build("newreno");
        reno.on_ack(&ack(100, 50, 1));
        assert_eq!(reno.window(), packets(11));
        reno.on_packet_size(ByteSize::from_bytes(9_000));
        assert_eq!(reno.window(), ByteSize::from_bytes(90_000));
        reno.on_packet_size(ByteSize::from_bytes(1_200));
        assert_eq!(reno.window(), ByteSize::from_bytes(90_000));
    }

    #[test]
    fn a_reduced_window_stays_above_the_minimum_of_larger_packets() {
        let mut reno = build("newreno");
        reno.on_ack(&ack(100, 50, 2));
        reno.on_loss(&loss(200, 150, 1, LossCause::Acks));
        assert_eq!(reno.window(), packets(6));
        reno.on_packet_size(ByteSize::from_bytes(3_000));
        assert_eq!(reno.window(), packets(6));
        reno.on_packet_size(ByteSize::from_bytes(65_000));
        assert_eq!(reno.window(), ByteSize::from_bytes(130_000));
    }

    #[test]
    fn an_application_limited_window_does_not_grow() {
        let mut reno = build("newreno");
        let mut limited = ack(100, 50, 10);
        limited.app_limited = true;
        reno.on_ack(&limited);
        assert_eq!(reno.window(), packets(10));
    }

    #[test]
    fn windows_count_in_bytes_or_in_whole_packets() {
        for (spec, rounds) in [("newreno", 2), ("newreno,whole_packets=true", 1)] {
            let mut reno = build(&format!("{spec},initial_window=9"));
            reno.on_loss(&loss(100, 50, 1, LossCause::Acks));
            assert_eq!(reno.window(), packets(9) / 2);
            // A window of 4.5 packets sends only four packets per round trip.
            for round in 1..=rounds {
                let before = reno.window();
                reno.on_ack(&ack(100 + 100 * round, 50 + 100 * round, 4));
                assert_eq!(reno.window() > before, round == rounds, "{spec}");
            }
        }
    }

    #[test]
    fn a_time_out_leaves_the_loss_window() {
        for (spec, left) in [("newreno", 2), ("newreno,loss_window=1", 1)] {
            let mut reno = build(spec);
            reno.on_loss(&loss(100, 50, 10, LossCause::Timeout));
            assert_eq!(reno.window(), packets(left), "{spec}");
            assert_eq!(reno.snapshot().ssthresh, Some(packets(5)));
        }
    }
}
