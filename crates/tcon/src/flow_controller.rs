//! A flow's controller: what it is told, and the windows that come of it. Whoever sees a flow's segments
//! pass, and whoever only hears of them, decides here.

use weir_congestion::{
    AckSample, AlgorithmSpec, Context, Controller, DeliveryRate, LossCause, LossSample,
    PacketDelivery, PacketSent,
};
use weir_units::{ByteSize, Duration, Rate, Time};

use crate::rtt::RttEstimator;

/// The controller, and what it has to be told that spans acknowledgments.
#[derive(Debug)]
pub(crate) struct FlowController {
    pub(crate) controller: Box<dyn Controller>,
    pub(crate) rate: DeliveryRate,
    pub(crate) rtt: RttEstimator,
    /// The largest data of a segment, in bytes.
    pub(crate) segment_size: u64,
    /// What was sent from here on ends the round trip.
    round_started: Time,
}

/// What acknowledgments have newly told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeliverySummary {
    /// How much arrived.
    pub(crate) bytes: u64,
    /// How much of it met a mark.
    pub(crate) marked: u64,
    /// When the newest of it was sent.
    pub(crate) newest_sent: Time,
    /// The round trip that was measured by what was sent once (Karn).
    pub(crate) rtt: Option<Duration>,
    /// Whether the sender lacked data.
    pub(crate) app_limited: bool,
    /// Bytes in flight before.
    pub(crate) prior_in_flight: ByteSize,
    /// Bytes in flight now.
    pub(crate) in_flight: ByteSize,
}

impl FlowController {
    /// A flow that begins; `rtt` is what its handshake has measured.
    pub(crate) fn new(algorithm: &AlgorithmSpec, context: &Context, rtt: Option<Duration>) -> Self {
        let mut round_trip = RttEstimator::new();
        if let Some(rtt) = rtt {
            round_trip.on_sample(rtt);
        }
        Self {
            controller: algorithm.build(context),
            rate: DeliveryRate::new(),
            rtt: round_trip,
            segment_size: context.packet_size.bytes(),
            round_started: Time::ZERO,
        }
    }

    /// The controller's window; for one that only sets a rate, what that sends in two round trips.
    pub(crate) fn window(&self) -> ByteSize {
        let window = self.controller.window();
        if window == ByteSize::MAX
            && let Some(rate) = self.controller.pacing_rate()
        {
            return rate.size_in(self.rtt.smoothed().max(Duration::from_millis(1)) * 2);
        }
        window
    }

    /// The least that may be on its way, whatever the controller says.
    pub(crate) fn smallest_window(&self) -> ByteSize {
        ByteSize::from_bytes(2 * self.segment_size)
    }

    /// The pacing rate, where there is one. Before anything is measured it is a guess, by which a flight
    /// would be stretched: its acknowledgments as a train that is as long as the round trip, by which
    /// the sender's slow start may know its end (HyStart: Ha and Rhee 2011).
    pub(crate) fn pacing_rate(&self) -> Option<Rate> {
        let is_measured = self.round_started > Time::ZERO;
        self.controller.pacing_rate().filter(|_| is_measured)
    }

    /// What a segment that is about to be sent has to remember.
    pub(crate) fn remember(&mut self, now: Time, size: u64, before: ByteSize) -> PacketDelivery {
        self.rate.on_sent(now, ByteSize::from_bytes(size), before)
    }

    /// Data has been sent.
    pub(crate) fn on_sent(&mut self, now: Time, size: u64, in_flight: ByteSize) {
        self.controller.on_sent(&PacketSent {
            now,
            size: ByteSize::from_bytes(size),
            in_flight,
        });
    }

    /// The sender was silent for longer than the time-out, and begins again.
    pub(crate) fn on_idle_restart(&mut self, now: Time) {
        self.controller.on_idle_restart(now);
    }

    /// The sender lacks data: what is sent from here on measures it and not the network.
    pub(crate) fn set_app_limited(&mut self, in_flight: ByteSize) {
        self.rate.set_app_limited(in_flight);
    }

    /// Data has arrived that was sent at `sent_at`; [`Self::on_ack`] ends the acknowledgment.
    pub(crate) fn on_delivered(
        &mut self,
        now: Time,
        sent: &PacketDelivery,
        sent_at: Time,
        size: u64,
    ) {
        self.rate
            .on_acked(now, sent, sent_at, ByteSize::from_bytes(size));
    }

    /// Data is lost; `in_flight` is without it.
    pub(crate) fn on_loss(
        &mut self,
        now: Time,
        lost: u64,
        newest_sent: Time,
        cause: LossCause,
        in_flight: ByteSize,
    ) {
        let lost = ByteSize::from_bytes(lost);
        self.rate.on_lost(lost);
        self.controller.on_loss(&LossSample {
            now,
            lost,
            newest_sent,
            cause,
            in_flight,
        });
    }

    /// Tells the controller what acknowledgments have told.
    pub(crate) fn on_ack(&mut self, now: Time, delivered: &DeliverySummary) {
        if let Some(rtt) = delivered.rtt {
            self.rtt.on_sample(rtt);
        }
        let min_rtt = self.rtt.min;
        let shortest = match min_rtt {
            Duration::MAX => Duration::ZERO,
            known => known,
        };
        let round_ended = delivered.newest_sent >= self.round_started;
        if round_ended {
            self.round_started = now;
        }
        let sample = AckSample {
            now,
            acked: ByteSize::from_bytes(delivered.bytes),
            ce_marked: ByteSize::from_bytes(delivered.marked),
            ece: false,
            rtt: delivered.rtt,
            smoothed_rtt: self.rtt.smoothed(),
            min_rtt,
            prior_in_flight: delivered.prior_in_flight,
            in_flight: delivered.in_flight,
            newest_sent: delivered.newest_sent + Duration::from_nanos(1),
            delivery: self.rate.sample(shortest),
            app_limited: delivered.app_limited,
            round_ended,
        };
        self.controller.on_ack(&sample);
    }
}
