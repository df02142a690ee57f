//! Delivery rate estimation (draft-ietf-ccwg-bbr, section 4.1): the state stored per packet, and
//! the sample that an acknowledgment yields. All transports use this estimator.

use weir_units::{ByteSize, Duration, Rate, Time};

/// The state of the path when a packet was sent, stored with the packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketDelivery {
    /// Total bytes delivered on the path.
    pub delivered: ByteSize,
    /// Time of the newest delivery, or of the first packet sent after an idle period.
    pub delivered_at: Time,
    /// Send time of the packet of that delivery.
    pub first_sent_at: Time,
    /// Total bytes lost on the path.
    pub lost: ByteSize,
    /// Bytes in flight, this packet included.
    pub in_flight: ByteSize,
    /// Whether the application, not the network, was the limit.
    pub app_limited: bool,
}

/// The delivery rate that an acknowledgment measures.
#[derive(Clone, Copy, Debug)]
pub struct DeliverySample {
    /// The delivery rate.
    pub rate: Rate,
    /// The interval over which the rate was measured.
    pub interval: Duration,
    /// Bytes delivered in that interval.
    pub delivered: ByteSize,
    /// Total bytes delivered on the path when the newest acknowledged packet was sent.
    pub prior_delivered: ByteSize,
    /// Bytes in flight just after the newest acknowledged packet was sent.
    pub in_flight_at_send: ByteSize,
    /// Bytes lost between the sending of that packet and this acknowledgment.
    pub lost: ByteSize,
    /// Whether the application, not the network, was the limit when that packet was sent.
    pub app_limited: bool,
}

/// The delivery rate estimator of one path.
#[derive(Clone, Debug, Default)]
pub struct DeliveryRate {
    delivered: ByteSize,
    delivered_at: Time,
    first_sent_at: Time,
    lost: ByteSize,
    /// Samples are application-limited until more than this has been delivered: by then, the gap in
    /// the application's data has left the network.
    app_limited_until: Option<ByteSize>,
    /// The newest packet of the acknowledgment being processed, and its send time.
    newest: Option<(PacketDelivery, Time)>,
}

impl DeliveryRate {
    /// Returns an estimator without samples.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records that a packet of `size` is about to be sent on top of `prior_in_flight`.
    pub fn on_sent(
        &mut self,
        now: Time,
        size: ByteSize,
        prior_in_flight: ByteSize,
    ) -> PacketDelivery {
        if prior_in_flight.is_zero() {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        PacketDelivery {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            lost: self.lost,
            in_flight: prior_in_flight + size,
            app_limited: self.app_limited_until.is_some(),
        }
    }

    /// Records that the acknowledgment at `now` covers a packet sent at `sent_at`. The packets of
    /// one acknowledgment may come in any order: the newest one counts. Among packets sent at the
    /// same time, the one with the most bytes in flight counts.
    pub fn on_acked(&mut self, now: Time, packet: &PacketDelivery, sent_at: Time, size: ByteSize) {
        self.delivered += size;
        self.delivered_at = now;
        let newer = self.newest.is_none_or(|(newest, newest_sent_at)| {
            (sent_at, packet.delivered, packet.in_flight)
                > (newest_sent_at, newest.delivered, newest.in_flight)
        });
        if newer {
            self.newest = Some((*packet, sent_at));
        }
    }

    /// Records bytes declared lost.
    pub fn on_lost(&mut self, size: ByteSize) {
        self.lost += size;
    }

    /// Records that the sender ran out of data with `in_flight` outstanding. Packets sent until
    /// that has been delivered yield application-limited samples.
    pub fn set_app_limited(&mut self, in_flight: ByteSize) {
        self.app_limited_until = Some(self.delivered + in_flight);
    }

    /// Ends an acknowledgment and returns its sample. Returns `None` if it acknowledged nothing
    /// new, or if the interval is below `min_rtt`, where ACK compression and retransmissions make
    /// it unreliable.
    pub fn sample(&mut self, min_rtt: Duration) -> Option<DeliverySample> {
        if self
            .app_limited_until
            .is_some_and(|until| self.delivered > until)
        {
            self.app_limited_until = None;
        }
        let (packet, sent_at) = self.newest.take()?;
        self.first_sent_at = sent_at;
        let send_span = sent_at.since(packet.first_sent_at);
        let ack_span = self.delivered_at.since(packet.delivered_at);
        let interval = send_span.max(ack_span);
        let delivered = self.delivered - packet.delivered;
        if interval.is_zero() || interval < min_rtt {
            return None;
        }
        Some(DeliverySample {
            rate: Rate::from_size_over(delivered, interval),
            interval,
            delivered,
            prior_delivered: packet.delivered,
            in_flight_at_send: packet.in_flight,
            lost: self.lost - packet.lost,
            app_limited: packet.app_limited,
        })
    }

    /// Returns whether packets sent now measure the application instead of the network.
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_until.is_some()
    }

    /// Returns the total bytes delivered on the path.
    pub fn delivered(&self) -> ByteSize {
        self.delivered
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PACKET: ByteSize = ByteSize::from_bytes(1_000);

    fn micros(micros: u64) -> Time {
        Time::ZERO + Duration::from_micros(micros)
    }

    /// Sends `count` packets, one per `spacing` microseconds from `start` on.
    fn send(
        rate: &mut DeliveryRate,
        start: u64,
        spacing: u64,
        count: u64,
    ) -> Vec<(PacketDelivery, Time)> {
        (0..count)
            .map(|index| {
                let now = micros(start + index * spacing);
                (rate.on_sent(now, PACKET, PACKET * index), now)
            })
            .collect()
    }

    #[test]
    fn the_slower_of_send_and_ack_rate_is_used() {
        // Sent every 2 us, acknowledged every 10 us: 1000 B / 10 us = 800 Mbit/s.
        let mut rate = DeliveryRate::new();
        let flight = send(&mut rate, 0, 2, 10);
        for (index, (packet, sent_at)) in flight.iter().enumerate() {
            rate.on_acked(micros(110 + 10 * index as u64), packet, *sent_at, PACKET);
            rate.sample(Duration::ZERO);
        }
        let next = rate.on_sent(micros(200), PACKET, PACKET * 2);
        rate.on_acked(micros(210), &next, micros(200), PACKET);
        let sample = rate.sample(Duration::ZERO).unwrap();
        assert_eq!(sample.delivered, PACKET);
        assert_eq!(sample.prior_delivered, PACKET * 10);
        assert_eq!(sample.in_flight_at_send, PACKET * 3);
        // Compressed acknowledgments of packets sent every 10 us: the sending rate is the limit.
        let mut rate = DeliveryRate::new();
        for (packet, sent_at) in send(&mut rate, 0, 10, 11) {
            rate.on_acked(micros(101), &packet, sent_at, PACKET);
        }
        let sample = rate.sample(Duration::from_micros(50)).unwrap();
        assert_eq!(sample.interval, Duration::from_micros(101));
        assert_eq!(sample.delivered, PACKET * 11);
    }

    #[test]
    fn steady_state_measures_the_bottleneck() {
        // 10 packets in flight, a packet per 10 us, a round trip of 100 us.
        let mut rate = DeliveryRate::new();
        let mut flight: std::collections::VecDeque<_> = send(&mut rate, 0, 10, 10).into();
        for index in 0..100 {
            let now = micros(100 + 10 * index);
            let (packet, sent_at) = flight.pop_front().unwrap();
            rate.on_acked(now, &packet, sent_at, PACKET);
            let sample = rate.sample(Duration::from_micros(100)).unwrap();
            if index >= 10 {
                assert_eq!(sample.rate, Rate::from_mbps(800));
            }
            assert!(!sample.app_limited);
            flight.push_back((rate.on_sent(now, PACKET, PACKET * 9), now));
        }
    }

    #[test]
    fn the_order_within_an_acknowledgment_does_not_matter() {
        let measure = |descending: bool| {
            let mut rate = DeliveryRate::new();
            let mut flight = send(&mut rate, 0, 0, 5);
            if descending {
                flight.reverse();
            }
            for (packet, sent_at) in flight {
                rate.on_acked(micros(50), &packet, sent_at, PACKET);
            }
            let sample = rate.sample(Duration::ZERO).unwrap();
            (sample.rate, sample.in_flight_at_send)
        };
        assert_eq!(measure(false), measure(true));
        assert_eq!(measure(true).1, PACKET * 5);
    }

    #[test]
    fn samples_are_app_limited_until_the_gap_is_acknowledged() {
        let mut rate = DeliveryRate::new();
        let flight = send(&mut rate, 0, 1, 3);
        rate.set_app_limited(PACKET * 3);
        let after_gap = rate.on_sent(micros(90), PACKET, PACKET * 3);
        for (packet, sent_at) in flight {
            rate.on_acked(micros(100), &packet, sent_at, PACKET);
        }
        assert!(!rate.sample(Duration::ZERO).unwrap().app_limited);
        // The in-flight packets have been delivered, but nothing sent after the gap yet.
        assert!(rate.is_app_limited());
        rate.on_acked(micros(190), &after_gap, micros(90), PACKET);
        assert!(rate.sample(Duration::ZERO).unwrap().app_limited);
        assert!(!rate.is_app_limited());
        let later = rate.on_sent(micros(200), PACKET, ByteSize::ZERO);
        rate.on_acked(micros(300), &later, micros(200), PACKET);
        assert!(!rate.sample(Duration::ZERO).unwrap().app_limited);
    }

    #[test]
    fn idle_time_is_not_measured() {
        let mut rate = DeliveryRate::new();
        let (packet, sent_at) = send(&mut rate, 0, 1, 1)[0];
        rate.on_acked(micros(100), &packet, sent_at, PACKET);
        rate.sample(Duration::ZERO);
        let (packet, sent_at) = send(&mut rate, 1_000_000, 1, 1)[0];
        rate.on_acked(micros(1_000_100), &packet, sent_at, PACKET);
        assert_eq!(
            rate.sample(Duration::ZERO).unwrap().interval,
            Duration::from_micros(100)
        );
    }

    #[test]
    fn a_sample_needs_an_ack_and_at_least_the_minimum_rtt() {
        let mut rate = DeliveryRate::new();
        assert!(rate.sample(Duration::ZERO).is_none());
        let (packet, sent_at) = send(&mut rate, 0, 1, 1)[0];
        rate.on_lost(PACKET);
        rate.on_acked(micros(10), &packet, sent_at, PACKET);
        assert!(rate.sample(Duration::from_micros(50)).is_none());
    }

    #[test]
    fn a_sample_reports_losses_since_the_packet_was_sent() {
        let mut rate = DeliveryRate::new();
        rate.on_lost(PACKET);
        let flight = send(&mut rate, 0, 1, 3);
        rate.on_lost(PACKET * 2);
        rate.on_acked(micros(100), &flight[2].0, flight[2].1, PACKET);
        assert_eq!(rate.sample(Duration::ZERO).unwrap().lost, PACKET * 2);
    }

    proptest! {
        /// For any order of events, no sample exceeds the bytes delivered since the start divided
        /// by the minimum round-trip time.
        #[test]
        fn samples_are_bounded(operations in prop::collection::vec((0_u8..4, 0_usize..8, 0_u64..100), 0..200)) {
            let (mut rate, mut now) = (DeliveryRate::new(), 0);
            let mut flight = Vec::new();
            let min_rtt = Duration::from_micros(20);
            for (operation, index, step) in operations {
                now += step;
                let in_flight = PACKET * flight.len() as u64;
                match operation {
                    0 | 1 => flight.push((rate.on_sent(micros(now), PACKET, in_flight), micros(now))),
                    2 if !flight.is_empty() => {
                        let (packet, sent_at) = flight.swap_remove(index % flight.len());
                        rate.on_acked(micros(now), &packet, sent_at, PACKET);
                        if let Some(sample) = rate.sample(min_rtt) {
                            prop_assert!(sample.interval >= min_rtt);
                            prop_assert!(sample.delivered <= rate.delivered());
                            prop_assert!(sample.rate <= Rate::from_size_over(rate.delivered(), min_rtt));
                        }
                    }
                    _ => rate.set_app_limited(in_flight),
                }
            }
        }
    }
}
