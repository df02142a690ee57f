//! The report that a data plane makes of a flow whose segments it sees.

use weir_units::{ByteSize, Time};
use weir_wire::tcp::Sequence;

/// The most delivery points in one report.
pub const PLACES: usize = 32;

/// A point in the delivered data: when it was sent, and the delivery state at that time. The times and
/// amounts are those of [`PacketDelivery`](weir_congestion::PacketDelivery).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryPoint {
    /// When it was known to be delivered.
    pub passed_at: Time,
    /// Bytes delivered by then, since the flow began.
    pub upto: ByteSize,
    /// The acknowledgment that delivered it, counted from the first that the report covers.
    pub ack_index: u32,
    /// Whether it was sent more than once, so that the arrived copy is unknown.
    pub was_retransmitted: bool,
    /// When it was sent.
    pub sent_at: Time,
    /// Bytes that had been delivered when it was sent.
    pub delivered: ByteSize,
    /// When they had been delivered.
    pub delivered_at: Time,
    /// When the packet delivered then was sent.
    pub first_sent_at: Time,
    /// Bytes in flight, including it.
    pub in_flight: ByteSize,
    /// Whether the sender was app-limited.
    pub app_limited: bool,
}

/// The progress of a flow since the previous report, up to an acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressReport {
    /// When the acknowledgment passed.
    pub now: Time,
    /// Bytes delivered since the flow began, in order or beyond a hole.
    pub delivered: ByteSize,
    /// Those that were acknowledged with an ECN echo.
    pub marked: ByteSize,
    /// Bytes that the sender has retransmitted, since the flow began.
    pub retransmitted: ByteSize,
    /// RTOs of the sender, since the flow began.
    pub timeouts: u64,
    /// When new data was last sent.
    pub sent_at: Time,
    /// Delivery points in order of delivery; the last is the newest.
    pub delivery_points: [Option<DeliveryPoint>; PLACES],
    /// The first unacknowledged sequence number.
    pub una: Sequence,
    /// The sequence number after the last that was sent.
    pub nxt: Sequence,
    /// Bytes beyond `una` that the receiver has reported.
    pub sacked: ByteSize,
    /// The sequence number at which they end.
    pub sack_end: Sequence,
    /// Duplicate acknowledgments, from a receiver without SACK.
    pub duplicates: u32,
    /// Bytes in flight before the acknowledgment.
    pub prior_in_flight: ByteSize,
    /// The number of acknowledgments with news since the previous report.
    pub new_acks: u32,
    /// When the first of them passed.
    pub first_ack_at: Time,
    /// The sender was app-limited: deliveries while `delivered` is below this say nothing about the
    /// network. Zero if it never was.
    pub limited_until: ByteSize,
    /// Which of the acknowledgments came while the sender was app-limited. The first has the lowest
    /// bit; the highest bit covers all those without a bit of their own.
    pub app_limited_acks: u64,
    /// Which of them carried an ECN echo.
    pub echo_acks: u64,
    /// Bytes that the receiver has skipped since the flow began, counted by SACK when data beyond them
    /// is first reported.
    pub skipped: ByteSize,
    /// When the newest data that had arrived at the last skip was sent.
    pub skipped_at: Time,
    /// Bytes that the receiver has got twice since the flow began, as it reports (RFC 2883).
    pub duplicated: ByteSize,
}
