//! The interface between a transport and a congestion control algorithm.

use std::any::Any;
use std::fmt;

use weir_units::{ByteSize, Duration, Rate, Time};

use crate::{AlgorithmSpec, DeliverySample};

/// A sent packet that counts against the window.
#[derive(Clone, Copy, Debug)]
pub struct PacketSent {
    /// Send time.
    pub now: Time,
    /// Packet size as the transport counts it (QUIC: the UDP payload; TCP: the segment's data).
    pub size: ByteSize,
    /// Bytes in flight, this packet included.
    pub in_flight: ByteSize,
}

/// One acknowledgment, summed over the packets that it newly acknowledges.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// Arrival time of the acknowledgment.
    pub now: Time,
    /// Bytes newly acknowledged.
    pub acked: ByteSize,
    /// Of these, the bytes that were CE-marked.
    pub ce_marked: ByteSize,
    /// Whether an ECE echo was set, for protocols that echo a state instead of counting marks
    /// (classic TCP ECN, RFC 3168). `ce_marked` is then zero.
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
    /// Send time of the newest acknowledged packet.
    pub newest_sent: Time,
    /// The delivery rate that this acknowledgment measures.
    pub delivery: Option<DeliverySample>,
    /// Whether the window was not the limit while these packets were sent. If so, it must not grow.
    pub app_limited: bool,
    /// Whether TCP repairs losses: the window has been reduced for all that was outstanding, and marks
    /// reduce it no further until that is acknowledged (Linux). QUIC compares send times instead (RFC 9002,
    /// section 7.3.2).
    pub is_recovering: bool,
    /// Whether this acknowledgment ends a round trip: it acknowledges a packet that was sent after
    /// the previous round trip ended.
    pub round_ended: bool,
}

/// How a loss was detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// By later acknowledgments (reordering threshold, duplicate ACKs, SACK).
    Acks,
    /// By a negative acknowledgment (DCUDP NAK).
    Nak,
    /// By a retransmission timeout (TCP's RTO; QUIC's persistent congestion, RFC 9002 7.6).
    Timeout,
}

/// Packets declared lost.
#[derive(Clone, Copy, Debug)]
pub struct LossSample {
    /// Time of the declaration.
    pub now: Time,
    /// Bytes lost.
    pub lost: ByteSize,
    /// Send time of the newest lost packet.
    pub newest_sent: Time,
    /// How the loss was detected.
    pub cause: LossCause,
    /// Bytes in flight after the loss.
    pub in_flight: ByteSize,
}

/// A spurious loss: packets that were declared lost have been acknowledged after all.
#[derive(Clone, Copy, Debug)]
pub struct SpuriousLoss {
    /// Time of the late acknowledgment.
    pub now: Time,
    /// Bytes wrongly declared lost.
    pub bytes: ByteSize,
    /// Send time of the newest of these packets.
    pub newest_sent: Time,
}

/// The remaining bytes and time of a transfer with a deadline (D2TCP).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// Bytes that have not been acknowledged yet.
    pub remaining: ByteSize,
    /// Time left; zero once the deadline has passed.
    pub time_left: Duration,
}

/// An algorithm's internal state, for statistics and traces.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The slow-start threshold, where the algorithm has one and it is set.
    pub ssthresh: Option<ByteSize>,
    /// The current phase: `slow-start`, `recovery`, `probe-bw` …
    pub phase: &'static str,
    /// The smoothed fraction of CE-marked bytes (DCTCP's α), where the algorithm keeps one.
    pub ce_fraction: Option<f64>,
    /// The bandwidth estimate, where the algorithm keeps one.
    pub bandwidth: Option<Rate>,
}

/// A congestion control algorithm for one path of one connection.
///
/// The order of events matters: for one acknowledgment, the transport calls [`Controller::on_loss`]
/// before [`Controller::on_ack`].
pub trait Controller: Any + fmt::Debug + Send + Sync {
    /// Returns the algorithm's name in the registry.
    fn name(&self) -> &'static str;

    /// Returns whether the algorithm uses [`AckSample::delivery`]. If not, the transport may skip
    /// the delivery rate estimate.
    fn wants_delivery(&self) -> bool {
        true
    }

    /// Handles a sent packet.
    fn on_sent(&mut self, _sent: &PacketSent) {}

    /// Handles an acknowledgment of at least one new packet. A receiver that reports once per round
    /// trip (DCUDP) may also send one that only reports the state of the path.
    fn on_ack(&mut self, ack: &AckSample);

    /// Handles packets declared lost.
    fn on_loss(&mut self, loss: &LossSample);

    /// Handles an earlier loss that turned out spurious.
    fn on_spurious_loss(&mut self, _spurious: &SpuriousLoss) {}

    /// Handles a restart after an idle period. The transport calls this if nothing was in flight
    /// for longer than the RTO, so that the path state is stale (RFC 5681 4.1, RFC 2861). Shorter
    /// gaps need no call.
    fn on_idle_restart(&mut self, _now: Time) {}

    /// Sets what remains until the deadline of the current transfer; `None` without a deadline.
    fn on_deadline(&mut self, _deadline: Option<Deadline>) {}

    /// Sets the size of a full packet (after path MTU discovery or packet size negotiation).
    fn on_packet_size(&mut self, size: ByteSize);

    /// Returns the names of the parameters that [`Self::set_parameters`] takes over.
    fn adjustable(&self) -> &'static [&'static str] {
        &[]
    }

    /// Takes over the [adjustable](Self::adjustable) parameters of a specification of the same algorithm.
    /// The state stays: what a parameter limits follows at once, and all else with the next event.
    fn set_parameters(&mut self, _spec: &AlgorithmSpec) {}

    /// Returns the window in bytes; [`ByteSize::MAX`] for an algorithm that only sets a rate. Below
    /// one packet, the transport keeps one packet in flight at a time and spaces packets by
    /// [`Controller::pacing_rate`].
    fn window(&self) -> ByteSize;

    /// Returns the pacing rate; `None` leaves pacing to the transport.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// Returns the algorithm's internal state.
    fn snapshot(&self) -> Snapshot;

    /// Returns a copy in the same state.
    fn clone_box(&self) -> Box<dyn Controller>;
}

impl Clone for Box<dyn Controller> {
    fn clone(&self) -> Self {
        self.clone_box()
    }
}
