//! A deterministic path for the algorithms: one sender with endless data, one bottleneck with a
//! drop-tail queue that optionally marks, and one constant delay.

use std::collections::VecDeque;

use weir_congestion::{
    AckSample, AlgorithmSpec, Context, Controller, DeliveryRate, LossCause, LossSample,
    PacketDelivery, PacketSent,
};
use weir_units::{ByteSize, Duration, Rate, Time};

pub(crate) const PACKET: ByteSize = ByteSize::from_bytes(1_500);

/// The path.
#[derive(Clone, Copy)]
pub(crate) struct Bottleneck {
    pub(crate) rate: Rate,
    pub(crate) rtt: Duration,
    pub(crate) buffer: ByteSize,
    pub(crate) mark_above: Option<ByteSize>,
}

impl Bottleneck {
    /// 1 Gbit/s, 1 ms, a buffer of one bandwidth-delay product, no marking.
    pub(crate) fn new() -> Self {
        let (rate, rtt) = (Rate::from_gbps(1), Duration::from_millis(1));
        Self {
            rate,
            rtt,
            buffer: rate.size_in(rtt),
            mark_above: None,
        }
    }

    pub(crate) fn bdp(&self) -> ByteSize {
        self.rate.size_in(self.rtt)
    }
}

/// The sender after an acknowledgment.
#[derive(Clone, Debug)]
pub(crate) struct SenderState {
    pub(crate) now: Time,
    pub(crate) window: ByteSize,
    pub(crate) pacing: Option<Rate>,
    pub(crate) phase: &'static str,
    pub(crate) bandwidth: Option<Rate>,
    /// Bytes queued at the bottleneck.
    pub(crate) queue: ByteSize,
    pub(crate) delivered: ByteSize,
    pub(crate) lost: ByteSize,
}

struct Flight {
    sent: Time,
    /// Arrival time of the acknowledgment; `None` for a dropped packet.
    acknowledged: Option<Time>,
    marked: bool,
    delivery: PacketDelivery,
    acknowledged_after: u32,
}

struct Sender {
    pipe: Bottleneck,
    controller: Box<dyn Controller>,
    estimator: DeliveryRate,
    flight: VecDeque<Flight>,
    now: Time,
    next_send: Time,
    link_free: Time,
    round_start: Time,
    smoothed_rtt: Duration,
    min_rtt: Duration,
    lost: ByteSize,
}

/// Runs `spec` over `pipe` for `span` and returns the sender state after each acknowledgment.
pub(crate) fn run(spec: &str, pipe: Bottleneck, span: Duration) -> Vec<SenderState> {
    let spec: AlgorithmSpec = spec.parse().expect("a valid spec");
    let controller = spec.build(&Context {
        packet_size: PACKET,
        seed: 42,
        is_paced: false,
    });
    let mut sender = Sender {
        pipe,
        controller,
        estimator: DeliveryRate::new(),
        flight: VecDeque::new(),
        now: Time::ZERO,
        next_send: Time::ZERO,
        link_free: Time::ZERO,
        round_start: Time::ZERO,
        smoothed_rtt: pipe.rtt,
        min_rtt: Duration::MAX,
        lost: ByteSize::ZERO,
    };
    let mut moments = Vec::new();
    while sender.now < Time::ZERO + span {
        sender.step(&mut moments);
    }
    moments
}

/// Returns the link utilization after `from`.
pub(crate) fn utilization(moments: &[SenderState], pipe: Bottleneck, from: Duration) -> f64 {
    let start = moments
        .iter()
        .find(|moment| moment.now >= Time::ZERO + from)
        .expect("the run is longer");
    let end = moments.last().expect("the run is longer");
    let delivered = end.delivered - start.delivered;
    delivered.bytes() as f64 / pipe.rate.size_in(end.now - start.now).bytes() as f64
}

impl Sender {
    fn in_flight(&self) -> ByteSize {
        PACKET * self.flight.len() as u64
    }

    fn queue(&self) -> ByteSize {
        self.pipe.rate.size_in(self.link_free - self.now)
    }

    fn step(&mut self, moments: &mut Vec<SenderState>) {
        let room = self.flight.is_empty() || self.in_flight() + PACKET <= self.controller.window();
        let send_at = self.next_send.max(self.now);
        let next = self
            .flight
            .iter()
            .position(|packet| packet.acknowledged.is_some());
        let acknowledged = next.and_then(|index| self.flight[index].acknowledged);
        match (acknowledged, next) {
            (Some(at), Some(index)) if !room || at <= send_at => {
                self.now = at;
                self.acknowledge(index);
                moments.push(self.moment());
            }
            _ if room => {
                self.now = send_at;
                self.send();
            }
            _ => self.time_out(),
        }
    }

    fn send(&mut self) {
        let now = self.now;
        let delivery = self.estimator.on_sent(now, PACKET, self.in_flight());
        let queue = self.queue();
        let fits = queue + PACKET <= self.pipe.buffer;
        if fits {
            self.link_free = self.link_free.max(now) + self.pipe.rate.time_for(PACKET);
        }
        self.flight.push_back(Flight {
            sent: now,
            acknowledged: fits.then_some(self.link_free + self.pipe.rtt),
            marked: self
                .pipe
                .mark_above
                .is_some_and(|threshold| queue > threshold),
            delivery,
            acknowledged_after: 0,
        });
        let in_flight = self.in_flight();
        self.controller.on_sent(&PacketSent {
            now,
            size: PACKET,
            in_flight,
        });
        // A transport paces like this for an algorithm without a pacing rate.
        let rate = self.controller.pacing_rate().unwrap_or_else(|| {
            Rate::from_size_over(self.controller.window(), self.smoothed_rtt).mul_f64(1.25)
        });
        self.next_send = now + rate.time_for(PACKET);
    }

    fn acknowledge(&mut self, index: usize) {
        let prior_in_flight = self.in_flight();
        let Some(packet) = self.flight.remove(index) else {
            return;
        };
        let (now, rtt) = (self.now, self.now - packet.sent);
        self.min_rtt = self.min_rtt.min(rtt);
        self.smoothed_rtt = (self.smoothed_rtt * 7 + rtt) / 8;
        self.estimator
            .on_acked(now, &packet.delivery, packet.sent, PACKET);
        self.detect_losses(index);
        let round_ended = packet.sent >= self.round_start;
        if round_ended {
            self.round_start = now;
        }
        self.controller.on_ack(&AckSample {
            now,
            acked: PACKET,
            ce_marked: if packet.marked {
                PACKET
            } else {
                ByteSize::ZERO
            },
            ece: false,
            rtt: Some(rtt),
            smoothed_rtt: self.smoothed_rtt,
            min_rtt: self.min_rtt,
            prior_in_flight,
            in_flight: self.in_flight(),
            newest_sent: packet.sent,
            delivery: self.estimator.sample(self.min_rtt),
            app_limited: prior_in_flight * 2 < self.controller.window(),
            is_recovering: false,
            round_ended,
        });
    }

    /// Declares a packet lost after three later acknowledgments (RFC 9002 section 6.1.1).
    fn detect_losses(&mut self, acknowledged: usize) {
        let (mut lost, mut newest) = (0, None);
        for packet in self.flight.iter_mut().take(acknowledged) {
            packet.acknowledged_after += 1;
            if packet.acknowledged_after >= 3 {
                lost += 1;
                newest = Some(packet.sent);
            }
        }
        self.flight.retain(|packet| packet.acknowledged_after < 3);
        if let Some(newest) = newest {
            self.report(lost, newest, LossCause::Acks);
        }
    }

    fn time_out(&mut self) {
        self.now += self.smoothed_rtt * 2;
        let (lost, newest) = (
            self.flight.len() as u64,
            self.flight[self.flight.len() - 1].sent,
        );
        self.flight.clear();
        self.report(lost, newest, LossCause::Timeout);
    }

    fn report(&mut self, packets: u64, newest_sent: Time, cause: LossCause) {
        let lost = PACKET * packets;
        self.lost += lost;
        self.estimator.on_lost(lost);
        let in_flight = self.in_flight();
        self.controller.on_loss(&LossSample {
            now: self.now,
            lost,
            newest_sent,
            cause,
            in_flight,
        });
    }

    fn moment(&self) -> SenderState {
        let snapshot = self.controller.snapshot();
        SenderState {
            now: self.now,
            window: self.controller.window(),
            pacing: self.controller.pacing_rate(),
            phase: snapshot.phase,
            bandwidth: snapshot.bandwidth,
            queue: self.queue(),
            delivered: self.estimator.delivered(),
            lost: self.lost,
        }
    }
}
