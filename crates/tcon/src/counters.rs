//! Counters of all flows and of each flow.

use weir_fabric::PortIndex;
use weir_units::{ByteSize, Duration, Rate};
use weir_wire::FlowKey;

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Controlled flows: one for each direction of a connection.
    pub flows: u64,
    /// Controlled flows that have ended.
    pub ended: u64,
    /// Flows that the policy left alone.
    pub passed: u64,
    /// Data that the receivers have.
    pub delivered: ByteSize,
    /// The part of it whose acknowledgments carried an ECN echo.
    pub marked: ByteSize,
    /// Data that was lost and retransmitted here.
    pub masked: ByteSize,
    /// Data that the senders have retransmitted.
    pub sent_again: ByteSize,
    /// Data segments that were forwarded for the first time.
    pub segments: u64,
    /// Segments that were lost and retransmitted here.
    pub retransmissions: u64,
    /// RTOs.
    pub timeouts: u64,
    /// Acknowledgments whose window was lowered.
    pub lowered: u64,
    /// Acknowledgments that were withheld from the sender.
    pub withheld: u64,
    /// Acknowledgments with an ECN echo, which was hidden from the sender.
    pub echoes: u64,
    /// Segments that the sender retransmitted although a copy was kept.
    pub repeated: u64,
    /// Segments without a copy: there was no room, or they overlapped others.
    pub unkept: u64,
    /// Acknowledgments of data that was never sent.
    pub forged: u64,
}

/// Counts of one flow, since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EnforcementCounters {
    /// Data that the receiver has.
    pub delivered: ByteSize,
    /// The part of it whose acknowledgments carried an ECN echo.
    pub marked: ByteSize,
    /// Data that was lost and retransmitted here, unnoticed by the sender.
    pub masked: ByteSize,
    /// Data that the sender has retransmitted.
    pub sent_again: ByteSize,
    /// Acknowledgments whose window was lowered.
    pub lowered: u64,
}

/// The current state of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowReport {
    /// Addresses and ports, in the direction of its data.
    pub flow: FlowKey,
    /// Its egress port, if a packet of the receiver has been seen.
    pub egress: Option<PortIndex>,
    /// The rule of its [policy](crate::FlowPolicy::rule).
    pub rule: u32,
    /// The algorithm.
    pub congestion: &'static str,
    /// The time since it came under control.
    pub age: Duration,
    /// The largest payload of a segment.
    pub segment_size: ByteSize,
    /// The smoothed round-trip time between here and the receiver; zero before it is known.
    pub rtt: Duration,
    /// The shortest round-trip time between here and the receiver, once one is known.
    pub rtt_min: Option<Duration>,
    /// The controller's window.
    pub window: ByteSize,
    /// The largest window that the sender is shown.
    pub enforced: ByteSize,
    /// The rate by which segments are paced.
    pub pacing_rate: Option<Rate>,
    /// The highest rate of its payload (`max_rate` of its rule).
    pub max_rate: Option<Rate>,
    /// The rate at which its payload has been delivered in the last ten seconds, or since it began;
    /// `None` if it has just begun.
    pub measured_rate: Option<Rate>,
    /// Bytes in flight to the receiver.
    pub in_flight: ByteSize,
    /// Bytes of packet copies that are kept.
    pub kept: ByteSize,
    /// Its counters.
    pub counters: EnforcementCounters,
}
