//! What a transport tells an algorithm, and what it may ask.

use std::fmt;

use weir_units::{ByteSize, Duration, Rate, Time};

use crate::DeliverySample;

/// A packet that counts against the window has been sent.
#[derive(Clone, Copy, Debug)]
pub struct PacketSent {
    /// When.
    pub now: Time,
    /// Its size as the transport counts it (QUIC: the UDP payload; TCP: the segment's data).
    pub size: ByteSize,
    /// Bytes in flight, this packet included.
    pub in_flight: ByteSize,
}

/// What one acknowledgment says, summed over the packets that it newly acknowledges.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// When it arrived.
    pub now: Time,
    /// Bytes newly acknowledged.
    pub acked: ByteSize,
    /// Of these, the bytes that met a CE mark on their way.
    pub ce_marked: ByteSize,
    /// Whether an ECE echo was set, for protocols that echo a state instead of counting marks
    /// (classic TCP ECN, RFC 3168). `ce_marked` is zero then.
    pub ece: bool,
    /// The round-trip time that this acknowledgment measures, if it measures one.
    pub rtt: Option<Duration>,
    /// The smoothed round-trip time, this sample included.
    pub smoothed_rtt: Duration,
    /// The smallest round-trip time seen on the path.
    pub min_rtt: Duration,
    /// Bytes in flight before this acknowledgment.
    pub prior_in_flight: ByteSize,
    /// Bytes in flight after this acknowledgment and the losses that it revealed.
    pub in_flight: ByteSize,
    /// When the newest of the acknowledged packets was sent.
    pub newest_sent: Time,
    /// The delivery rate that this acknowledgment measures.
    pub delivery: Option<DeliverySample>,
    /// Whether the window was not the limit while these packets were sent: it must not grow.
    pub app_limited: bool,
    /// Whether this acknowledgment ends a round trip: a packet is acknowledged that was sent
    /// after the previous round trip ended.
    pub round_ended: bool,
}

/// How a loss was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// By later acknowledgments (reordering threshold, duplicate ACKs, SACK).
    Acks,
    /// By a negative acknowledgment (DCUDP).
    Nak,
    /// By a retransmission time-out (TCP's RTO; QUIC's persistent congestion, RFC 9002 7.6).
    Timeout,
}

/// Packets have been declared lost.
#[derive(Clone, Copy, Debug)]
pub struct LossSample {
    /// When they were declared lost.
    pub now: Time,
    /// Bytes lost.
    pub lost: ByteSize,
    /// When the newest of the lost packets was sent.
    pub newest_sent: Time,
    /// How the loss was found.
    pub cause: LossCause,
    /// Bytes in flight after the loss.
    pub in_flight: ByteSize,
}

/// An earlier loss turned out not to be one: its packets have been acknowledged after all.
#[derive(Clone, Copy, Debug)]
pub struct SpuriousLoss {
    /// When this became known.
    pub now: Time,
    /// Bytes wrongly declared lost.
    pub bytes: ByteSize,
    /// When the newest of these packets was sent.
    pub newest_sent: Time,
}

/// What is left to do until when (D2TCP).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// Bytes that have not been acknowledged yet.
    pub remaining: ByteSize,
    /// Time left; zero once the deadline has passed.
    pub time_left: Duration,
}

/// What an algorithm shows of itself, for statistics and traces.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The slow-start threshold, where the algorithm has one and it is set.
    pub ssthresh: Option<ByteSize>,
    /// What it is doing: `slow-start`, `recovery`, `probe-bw` …
    pub phase: &'static str,
    /// The smoothed fraction of CE-marked bytes (DCTCP's α), where the algorithm keeps one.
    pub ce_fraction: Option<f64>,
    /// The bandwidth estimate, where the algorithm keeps one.
    pub bandwidth: Option<Rate>,
}

/// A congestion control algorithm, driving one path of one connection.
///
/// The order of events matters: for one acknowledgment, [`Controller::on_loss`] comes before
/// [`Controller::on_ack`], as losses are part of what the acknowledgment says.
pub trait Controller: fmt::Debug + Send + Sync {
    /// The name under which the registry knows the algorithm.
    fn name(&self) -> &'static str;

    /// Whether the algorithm uses [`AckSample::delivery`]. A transport may save itself the estimate
    /// where it does not.
    fn wants_delivery(&self) -> bool {
        true
    }

    /// A packet was sent.
    fn on_sent(&mut self, _sent: &PacketSent) {}

    /// An acknowledgment of at least one new packet arrived; from a receiver that reports once per
    /// round trip (DCUDP), possibly one that only says how the path is.
    fn on_ack(&mut self, ack: &AckSample);

    /// Packets were declared lost.
    fn on_loss(&mut self, loss: &LossSample);

    /// An earlier loss was none.
    fn on_spurious_loss(&mut self, _spurious: &SpuriousLoss) {}

    /// The sender starts again after a time with nothing in flight that was long enough for what is
    /// known of the path to be stale: longer than the retransmission time-out (RFC 5681 4.1,
    /// RFC 2861). Shorter gaps need no call.
    fn on_idle_restart(&mut self, _now: Time) {}

    /// What is left until the deadline of the data in transfer; `None` where there is none.
    fn on_deadline(&mut self, _deadline: Option<Deadline>) {}

    /// The size of a full packet changed (path MTU discovery, negotiated packet size).
    fn on_packet_size(&mut self, size: ByteSize);

    /// How many bytes may be in flight; [`ByteSize::MAX`] for an algorithm that only sets a rate.
    /// Below one packet the transport keeps one packet in flight at a time and spaces packets as
    /// [`Controller::pacing_rate`] says.
    fn window(&self) -> ByteSize;

    /// The rate at which packets should leave; `None` leaves pacing to the transport.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// What the algorithm shows of itself.
    fn snapshot(&self) -> Snapshot;

    /// A copy in the same state.
    fn clone_box(&self) -> Box<dyn Controller>;
}

impl Clone for Box<dyn Controller> {
    fn clone(&self) -> Self {
        self.clone_box()
    }
}
