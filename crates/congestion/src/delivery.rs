//! Delivery rate estimation (draft-ietf-ccwg-bbr, section 4.1): what each packet remembers, and
//! what an acknowledgment measures. One estimator serves every transport.

use weir_units::{ByteSize, Duration, Rate, Time};

/// What a packet remembers from the moment it was sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketDelivery {
    pub(crate) delivered: ByteSize,
    pub(crate) delivered_at: Time,
    pub(crate) first_sent_at: Time,
    pub(crate) lost: ByteSize,
    pub(crate) in_flight: ByteSize,
    pub(crate) app_limited: bool,
}

/// The delivery rate that an acknowledgment measures.
#[derive(Clone, Copy, Debug)]
pub struct DeliverySample {
    /// The rate.
    pub rate: Rate,
    /// Over which span.
    pub interval: Duration,
    /// Bytes delivered in that span.
    pub delivered: ByteSize,
    /// Bytes delivered on the path in all when the newest acknowledged packet was sent.
    pub prior_delivered: ByteSize,
    /// Bytes in flight just after the newest acknowledged packet was sent.
    pub in_flight_at_send: ByteSize,
    /// Bytes lost between that packet's sending and this acknowledgment.
    pub lost: ByteSize,
    /// Whether the application, not the network, was the limit when that packet was sent.
    pub app_limited: bool,
}

/// The estimator: one per path.
#[derive(Clone, Debug, Default)]
pub struct DeliveryRate {
    delivered: ByteSize,
    delivered_at: Time,
    first_sent_at: Time,
    lost: ByteSize,
    /// While `delivered` is below this, the samples are application-limited.
    app_limited_until: ByteSize,
    /// The newest packet of the acknowledgment that is being processed.
    newest: Option<(PacketDelivery, Time)>,
}

impl DeliveryRate {
    /// An estimator that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// A packet of `size` is about to be sent on top of `prior_in_flight`.
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
            app_limited: self.delivered < self.app_limited_until,
        }
    }

    /// A packet that was sent at `sent_at` is acknowledged by the acknowledgment at `now`.
    pub fn on_acked(&mut self, now: Time, packet: &PacketDelivery, sent_at: Time, size: ByteSize) {
        self.delivered += size;
        self.delivered_at = now;
        let newer = self.newest.is_none_or(|(newest, newest_sent_at)| {
            (packet.delivered, sent_at) >= (newest.delivered, newest_sent_at)
        });
        if newer {
            self.newest = Some((*packet, sent_at));
        }
    }

    /// Bytes were declared lost.
    pub fn on_lost(&mut self, size: ByteSize) {
        self.lost += size;
    }

    /// The sender ran out of data with `in_flight` outstanding: what is sent until that has been
    /// delivered says nothing about the network.
    pub fn set_app_limited(&mut self, in_flight: ByteSize) {
        self.app_limited_until =
            (self.delivered + in_flight).max(ByteSize::from_bytes(self.delivered.bytes() + 1));
    }

    /// Ends an acknowledgment: what it measured. `None` where it acknowledged nothing new, or in
    /// less than `min_rtt`, which ACK compression and retransmissions make unreliable.
    pub fn sample(&mut self, min_rtt: Duration) -> Option<DeliverySample> {
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

    /// Bytes delivered on the path in all.
    pub fn delivered(&self) -> ByteSize {
        self.delivered
    }
}
