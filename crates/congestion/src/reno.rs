//! A controller based on Reno's window with a pluggable response to marks. NewReno, DCTCP and D2TCP
//! each implement [`MarkResponse`].

use std::fmt::Debug;

use weir_units::{ByteSize, Duration, Rate, Time};

use crate::loss_window::LossWindow;
use crate::{
    AckSample, AlgorithmSpec, Context, Controller, Deadline, LossSample, Snapshot, SpuriousLoss,
};

/// The factor by which a loss multiplies the window (RFC 9002 appendix B: `kLossReductionFactor`;
/// RFC 8257 section 3.5 treats losses as conventional TCP does).
pub(crate) const LOSS_REDUCTION: f64 = 0.5;

/// An algorithm's response to congestion marks.
pub(crate) trait MarkResponse: Clone + Debug + Send + Sync + 'static {
    /// The algorithm's name.
    const NAME: &'static str;

    /// Processes an acknowledgment. Returns the factor by which its mark multiplies the window, or
    /// `None` without a mark. The window applies it at most once per round trip.
    fn factor(&mut self, ack: &AckSample, window: ByteSize) -> Option<f64>;

    /// Sets what remains of the current transfer until its deadline.
    fn on_deadline(&mut self, _: Option<Deadline>) {}

    /// Returns the names of the parameters that can change while a flow runs, those of the window included.
    fn adjustable(&self) -> &'static [&'static str];

    /// Takes over these parameters, and returns the smallest window in packets.
    fn set_parameters(&mut self, spec: &AlgorithmSpec) -> f64;

    /// Returns the estimated fraction of marked bytes, if the algorithm has one.
    fn ce_fraction(&self) -> Option<f64> {
        None
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Reno<R> {
    window: LossWindow,
    /// The smoothed round-trip time.
    rtt: Duration,
    response: R,
}

impl<R: MarkResponse> Reno<R> {
    /// Creates a controller whose window never falls below `min_packets`.
    pub(crate) fn boxed(
        response: R,
        min_packets: f64,
        spec: &AlgorithmSpec,
        context: &Context,
    ) -> Box<dyn Controller> {
        Box::new(Self {
            window: LossWindow::new(spec, context, min_packets),
            rtt: Duration::ZERO,
            response,
        })
    }
}

impl<R: MarkResponse> Reno<R> {
    /// Handles an acknowledgment.
    #[inline(always)]
    pub(crate) fn acknowledge(&mut self, ack: &AckSample) {
        self.rtt = ack.smoothed_rtt;
        if let Some(factor) = self.response.factor(ack, self.window.size())
            && !ack.is_recovering
        {
            self.window.on_mark(ack.now, ack.newest_sent, factor);
        }
        self.window.grow(ack);
    }
}

impl<R: MarkResponse> Controller for Reno<R> {
    fn name(&self) -> &'static str {
        R::NAME
    }

    fn wants_delivery(&self) -> bool {
        false
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.acknowledge(ack);
    }

    fn on_loss(&mut self, loss: &LossSample) {
        self.window.on_loss(loss, LOSS_REDUCTION);
    }

    fn on_spurious_loss(&mut self, spurious: &SpuriousLoss) {
        self.window.on_spurious_loss(spurious);
    }

    fn on_idle_restart(&mut self, _now: Time) {
        self.window.on_idle_restart();
    }

    fn on_deadline(&mut self, deadline: Option<Deadline>) {
        self.response.on_deadline(deadline);
    }

    fn on_packet_size(&mut self, size: ByteSize) {
        self.window.on_packet_size(size);
    }

    fn adjustable(&self) -> &'static [&'static str] {
        self.response.adjustable()
    }

    fn set_parameters(&mut self, spec: &AlgorithmSpec) {
        let min_packets = self.response.set_parameters(spec);
        self.window.set_parameters(spec, min_packets);
    }

    #[inline]
    fn window(&self) -> ByteSize {
        self.window.size()
    }

    /// A window below one packet is one packet in more than a round trip.
    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        let cwnd = self.window.size();
        if cwnd >= self.window.packet {
            return None;
        }
        let round_trip = self.rtt.max(Duration::from_nanos(1));
        let rate = Rate::from_size_over(cwnd, round_trip);
        Some(rate.max(Rate::from_bits_per_second(1)))
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            ssthresh: self.window.ssthresh(),
            phase: self.window.phase(),
            ce_fraction: self.response.ce_fraction(),
            ..Snapshot::default()
        }
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}
