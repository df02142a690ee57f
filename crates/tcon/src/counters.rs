//! What was done to the flows.

use weir_fabric::PortIndex;
use weir_units::{ByteSize, Duration, Rate};
use weir_wire::FlowKey;

/// Counts since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Flows that were treated: one for each way of a connection.
    pub flows: u64,
    /// Those of them that are over.
    pub ended: u64,
    /// Flows that were left alone, as whoever chooses said.
    pub passed: u64,
    /// Data that the receivers have.
    pub delivered: ByteSize,
    /// The part of it whose acknowledgments told of marks.
    pub marked: ByteSize,
    /// Data that was lost and sent again from here.
    pub masked: ByteSize,
    /// Data that the senders have sent again.
    pub sent_again: ByteSize,
    /// Segments of data that were sent on for the first time.
    pub segments: u64,
    /// Segments that were lost and sent again from here.
    pub retransmissions: u64,
    /// Time-outs.
    pub timeouts: u64,
    /// Acknowledgments whose window was lowered.
    pub lowered: u64,
    /// Acknowledgments that were kept from the sender.
    pub withheld: u64,
    /// Acknowledgments with an ECN echo, which was kept from the sender.
    pub echoes: u64,
    /// Segments that the sender sent again although a copy was kept.
    pub repeated: u64,
    /// Segments of which no copy was kept: there was no room, or they overlapped others.
    pub unkept: u64,
    /// Acknowledgments of what was never sent.
    pub forged: u64,
}

/// What was done to one flow, since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EnforcementCounters {
    /// Data that the receiver has.
    pub delivered: ByteSize,
    /// The part of it whose acknowledgments told of marks.
    pub marked: ByteSize,
    /// Data that was lost and sent again from here, without the sender's notice.
    pub masked: ByteSize,
    /// Data that the sender has sent again.
    pub sent_again: ByteSize,
    /// Acknowledgments whose window was lowered.
    pub lowered: u64,
}

/// A flow as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowReport {
    /// As the sender of its data names it.
    pub flow: FlowKey,
    /// Where it leaves by, if the receiver has been heard.
    pub egress: Option<PortIndex>,
    /// The rule of its [treatment](crate::FlowPolicy::rule).
    pub rule: u32,
    /// The algorithm.
    pub congestion: &'static str,
    /// The smoothed round-trip time between here and the receiver; zero before it is known.
    pub rtt: Duration,
    /// The controller's window.
    pub window: ByteSize,
    /// What the sender is shown at most.
    pub enforced: ByteSize,
    /// By what segments are spaced.
    pub pacing_rate: Option<Rate>,
    /// On the way to the receiver.
    pub in_flight: ByteSize,
    /// What is kept of it.
    pub kept: ByteSize,
    /// What was done to it.
    pub counters: EnforcementCounters,
}
