//! What a data plane reports of a flow whose segments it sees.

use weir_units::{ByteSize, Time};
use weir_wire::tcp::Sequence;

/// Of so many places in the data can a report tell.
pub const PLACES: usize = 32;

/// A place in the data that has arrived: when it was sent, and what had arrived by then. The times and amounts are those
/// of [`PacketDelivery`](weir_congestion::PacketDelivery).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryPoint {
    /// When it was known to have arrived.
    pub passed_at: Time,
    /// What had been delivered then, since the flow began.
    pub upto: ByteSize,
    /// The acknowledgment that told of it, counted from the first that the report tells of.
    pub answer: u32,
    /// Whether it was sent more than once, so that nobody knows which of them has arrived.
    pub was_repeated: bool,
    /// When it was sent.
    pub sent_at: Time,
    /// What had been delivered.
    pub delivered: ByteSize,
    /// When.
    pub delivered_at: Time,
    /// When the packet was sent that was delivered then.
    pub first_sent_at: Time,
    /// In flight with it.
    pub in_flight: ByteSize,
    /// Whether the sender lacked data.
    pub app_limited: bool,
}

/// What was seen of a flow since the report before, up to an acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressReport {
    /// When the acknowledgment passed.
    pub now: Time,
    /// Bytes that have been delivered, since the flow began: in order, or beyond a hole.
    pub delivered: ByteSize,
    /// The part of them that acknowledgments with an ECN echo told of.
    pub marked: ByteSize,
    /// Bytes that the sender has sent again, since the flow began.
    pub sent_again: ByteSize,
    /// Time-outs of the sender, since the flow began.
    pub timeouts: u64,
    /// When new data was sent last.
    pub sent_at: Time,
    /// Places that have arrived, in that order; the last of them is the newest.
    pub passed: [Option<DeliveryPoint>; PLACES],
    /// The first number that has not been acknowledged.
    pub una: Sequence,
    /// The number behind the last that was sent.
    pub nxt: Sequence,
    /// Bytes beyond `una` that the receiver has reported, and where they end.
    pub sacked: ByteSize,
    /// Where they end.
    pub sack_end: Sequence,
    /// Acknowledgments that repeated the one before, from a receiver without SACK.
    pub duplicates: u32,
    /// In flight before the acknowledgment.
    pub prior_in_flight: ByteSize,
    /// How many acknowledgments have told of something new since the report before.
    pub answers: u32,
    /// When the first of them passed.
    pub answers_from: Time,
    /// The sender lacked data: what arrives until less than this is left to be delivered of all tells nothing of
    /// the network. Zero if it never did.
    pub limited_until: ByteSize,
    /// Which of the acknowledgments came so: the first has the lowest bit, and the highest stands for all that have
    /// none of their own.
    pub limited_answers: u64,
    /// Which of them had an ECN echo.
    pub marked_answers: u64,
    /// Bytes that the receiver has skipped, since the flow began: by SACK, as it reported data beyond them for the
    /// first time.
    pub skipped: ByteSize,
    /// When the newest data was sent that had arrived as bytes were skipped last.
    pub skipped_at: Time,
}
