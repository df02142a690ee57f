//! What is being done, for people and programs to read.

use serde::{Deserialize, Serialize};

/// All there is to know of an enforcer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The interfaces with programs.
    pub interfaces: Vec<String>,
    /// How many flows are controlled, and what was counted.
    pub totals: Totals,
    /// Each flow that is controlled, the one with the most bytes first.
    pub flows: Vec<FlowStatus>,
}

/// Counts since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Flows that are controlled now.
    pub controlled: u64,
    /// Flows that were left alone as the policy says.
    pub passed: u64,
    /// Flows that were forgotten after a long silence.
    pub idle: u64,
    /// What the programs have counted.
    pub kernel: Kernel,
}

/// What the programs in the kernel have counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// Connections whose handshake was seen.
    pub opened: u64,
    /// Connections whose end was seen.
    pub closed: u64,
    /// Connections for which there was no room: they pass.
    pub refused: u64,
    /// Packets of connections that are not followed.
    pub unknown_packets: u64,
    /// Windows that were lowered.
    pub lowered: u64,
    /// Reports that were begun.
    pub reports: u64,
    /// Reports for which there was no room: their news come with the next ones.
    pub lost_reports: u64,
}

/// A flow that is controlled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowStatus {
    /// Who sends the data: address and port.
    pub from: String,
    /// Who receives it.
    pub to: String,
    /// The interface that it leaves by.
    pub interface: String,
    /// The algorithm.
    pub congestion: String,
    /// The line of the rule in the policy's file as the flow opened.
    pub rule: u32,
    /// The smoothed round-trip time, in microseconds.
    pub rtt_us: f64,
    /// The controller's window, in bytes.
    pub window: u64,
    /// What the sender is told at most, in bytes.
    pub enforced: u64,
    /// The rate that the controller would have, in bits per second.
    pub pacing_rate: Option<u64>,
    /// On the way to the receiver, in bytes.
    pub in_flight: u64,
    /// Bytes that have arrived.
    pub delivered: u64,
    /// Bytes of them whose acknowledgments told of marks.
    pub marked: u64,
    /// Bytes that the sender has sent again.
    pub sent_again: u64,
    /// Windows that were lowered.
    pub lowered: u64,
}
