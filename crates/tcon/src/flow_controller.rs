//! A flow's controller: its inputs, and the windows that result. Both the element, which sees the
//! segments, and an observed flow, which only receives reports, decide here.

use weir_congestion::{
    AckSample, AlgorithmSpec, Context, Controller, DeliveryRate, DeliverySample, LossCause,
    LossSample, PacketDelivery, PacketSent,
};
use weir_units::{ByteSize, Duration, Rate, Time};

use crate::busy_rate::BusyRate;
use crate::rtt::RttEstimator;

/// The congestion controller, with the state that spans acknowledgments.
#[derive(Debug)]
pub(crate) struct FlowController {
    pub(crate) controller: Box<dyn Controller>,
    pub(crate) rate: DeliveryRate,
    busy_rate: BusyRate,
    pub(crate) rtt: RttEstimator,
    /// The largest payload of a segment, in bytes.
    pub(crate) segment_size: u64,
    /// The acknowledgment of data sent from this time on ends the round trip.
    round_started: Time,
}

/// What acknowledgments have newly delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeliverySummary {
    /// Bytes delivered.
    pub(crate) bytes: u64,
    /// Delivered bytes that met a CE mark.
    pub(crate) marked: u64,
    /// When the newest delivered data was sent.
    pub(crate) newest_sent: Time,
    /// The RTT, measured on data that was sent once (Karn).
    pub(crate) rtt: Option<Duration>,
    /// Whether the sender was app-limited.
    pub(crate) app_limited: bool,
    /// Bytes in flight before.
    pub(crate) prior_in_flight: ByteSize,
    /// Bytes in flight now.
    pub(crate) in_flight: ByteSize,
}

impl FlowController {
    /// Creates the controller of a new flow; `rtt` is the RTT of its handshake.
    pub(crate) fn new(algorithm: &AlgorithmSpec, context: &Context, rtt: Option<Duration>) -> Self {
        let mut round_trip = RttEstimator::new();
        if let Some(rtt) = rtt {
            round_trip.on_sample(rtt);
        }
        Self {
            controller: algorithm.build(context),
            rate: DeliveryRate::new(),
            busy_rate: BusyRate::default(),
            rtt: round_trip,
            segment_size: context.packet_size.bytes(),
            round_started: Time::ZERO,
        }
    }

    /// Returns the controller's window; for a rate-only controller, what the rate sends in two RTTs.
    pub(crate) fn window(&self) -> ByteSize {
        let window = self.controller.window();
        if window == ByteSize::MAX
            && let Some(rate) = self.controller.pacing_rate()
        {
            return rate.size_in(self.rtt.smoothed().max(Duration::from_millis(1)) * 2);
        }
        window
    }

    /// Returns whether the controller uses the fraction of marked bytes.
    pub(crate) fn counts_marks(&self) -> bool {
        self.controller.snapshot().ce_fraction.is_some()
    }

    /// Returns the lower bound of the window, whatever the controller decides.
    pub(crate) fn smallest_window(&self) -> ByteSize {
        ByteSize::from_bytes(2 * self.segment_size)
    }

    /// Returns the pacing rate, if there is one. Before the first measurement the rate is a guess that
    /// would stretch a flight. Its acknowledgments would form a train as long as the RTT, which makes
    /// the sender leave slow start (HyStart: Ha and Rhee 2011).
    pub(crate) fn pacing_rate(&self) -> Option<Rate> {
        let is_measured = self.round_started > Time::ZERO;
        self.controller.pacing_rate().filter(|_| is_measured)
    }

    /// Returns the delivery state that a segment carries when it is sent.
    pub(crate) fn delivery_state(
        &mut self,
        now: Time,
        size: u64,
        before: ByteSize,
    ) -> PacketDelivery {
        self.rate.on_sent(now, ByteSize::from_bytes(size), before)
    }

    /// Notes sent data.
    pub(crate) fn on_sent(&mut self, now: Time, size: u64, in_flight: ByteSize) {
        self.controller.on_sent(&PacketSent {
            now,
            size: ByteSize::from_bytes(size),
            in_flight,
        });
    }

    /// Restarts after the sender was idle for longer than the RTO.
    pub(crate) fn on_idle_restart(&mut self, now: Time) {
        self.controller.on_idle_restart(now);
    }

    /// Returns whether so much is in flight that it cannot all be on its way: some waits in a queue, and the
    /// path limits the rate. Only a controller that estimates the bandwidth knows.
    pub(crate) fn fills_path(&self, in_flight: ByteSize) -> bool {
        let bandwidth = self.controller.snapshot().bandwidth;
        let min = self.rtt.min;
        bandwidth
            .is_some_and(|rate| min != Duration::MAX && in_flight > rate.size_in(min + min / 4))
    }

    /// Notes that the sender lacks data: what is sent from here on measures the sender, not the
    /// network.
    pub(crate) fn set_app_limited(&mut self, in_flight: ByteSize) {
        self.rate.set_app_limited(in_flight);
    }

    /// Notes delivered data that was sent at `sent_at`; [`Self::on_ack`] completes the acknowledgment.
    pub(crate) fn on_delivered(
        &mut self,
        now: Time,
        sent: &PacketDelivery,
        sent_at: Time,
        size: u64,
    ) {
        let size = ByteSize::from_bytes(size);
        self.rate.on_acked(now, sent, sent_at, size);
        self.busy_rate.on_delivered(now, sent.delivered_at, size);
    }

    /// Notes lost data; `in_flight` excludes it.
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

    /// Returns the delivery rate that the acknowledgment measures, without bursts.
    fn delivery(&mut self, shortest: Duration) -> Option<DeliverySample> {
        let mut sample = self.rate.sample(shortest)?;
        if let Some(bound) = self.busy_rate.bound(sample.interval) {
            sample.rate = sample.rate.min(bound);
        }
        Some(sample)
    }

    /// Passes the newly delivered data to the controller.
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
            delivery: self.delivery(shortest),
            app_limited: delivered.app_limited,
            is_recovering: false,
            round_ended,
        };
        self.controller.on_ack(&sample);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    const PACKET: u64 = 1_000;

    fn micros(micros: u64) -> Time {
        Time::ZERO + Duration::from_micros(micros)
    }

    /// Delivers this many packets, one each `spacing` microseconds, over an RTT of as many spacings as there
    /// are packets in flight. Returns the time of the last acknowledgment.
    fn deliver(flow: &mut FlowController, begin: u64, spacing: u64, count: u64) -> u64 {
        const FLIGHT: u64 = 10;
        let mut sent = VecDeque::new();
        let in_flight = |packets: usize| ByteSize::from_bytes(packets as u64 * PACKET);
        let send = |flow: &mut FlowController, sent: &mut VecDeque<_>, now: u64| {
            let state = flow.delivery_state(micros(now), PACKET, in_flight(sent.len()));
            sent.push_back((now, state));
            flow.on_sent(micros(now), PACKET, in_flight(sent.len()));
        };
        (0..FLIGHT.min(count)).for_each(|_| send(flow, &mut sent, begin));
        let mut now = begin;
        for number in 0..count {
            now += spacing;
            let (sent_at, state) = sent.pop_front().unwrap();
            let prior_in_flight = in_flight(sent.len() + 1);
            flow.on_delivered(micros(now), &state, micros(sent_at), PACKET);
            let summary = DeliverySummary {
                bytes: PACKET,
                marked: 0,
                newest_sent: micros(sent_at),
                rtt: Some(Duration::from_micros(now - sent_at)),
                app_limited: false,
                prior_in_flight,
                in_flight: in_flight(sent.len()),
            };
            flow.on_ack(micros(now), &summary);
            if number + FLIGHT < count {
                send(flow, &mut sent, now);
            }
        }
        now
    }

    #[test]
    fn bursts_through_a_token_bucket_are_not_taken_for_bandwidth() {
        let context = Context {
            packet_size: ByteSize::from_bytes(PACKET),
            seed: 1,
            is_paced: false,
        };
        let mut flow = FlowController::new(&"bbr".parse().unwrap(), &context, None);
        // A link of 200 Mbps, whose bucket passes 64 packets at 8 Gbps after each silence.
        let mut now = 0;
        let mut most = Rate::ZERO;
        for round in 0..100 {
            for (silence, spacing, count) in [(3_000, 1, 64), (0, 40, 250)] {
                now = deliver(&mut flow, now + silence, spacing, count);
                if round >= 20 {
                    most = most.max(flow.controller.pacing_rate().unwrap());
                }
            }
        }
        // Little more than ten busy milliseconds have two bursts and the link's 250 packets. The bound and
        // BBR's probing have gains of 1.25. Without the bound it is 10 Gbps.
        let delivered = Rate::from_size_over(
            ByteSize::from_bytes(378 * PACKET),
            Duration::from_millis(10),
        );
        assert!(most < delivered.mul_f64(1.25 * 1.26), "{most}");
        assert!(most > Rate::from_mbps(200), "{most}");
    }
}
