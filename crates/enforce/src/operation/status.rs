//! What is being done, for people and programs to read.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use weir_tcon::FlowReport;
use weir_units::Rate;

/// All there is to know of an enforcer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The interfaces that it is at.
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
    /// Flows, or in line connections, that were forgotten after a long silence.
    pub idle: u64,
    /// Connections whose handshake was seen; in line, those whose first SYN was.
    pub opened: u64,
    /// Connections whose end was seen.
    pub closed: u64,
    /// Connections for which there was no room: they pass.
    pub refused: u64,
    /// Packets of connections that are not followed.
    pub unknown_packets: u64,
    /// Windows that were lowered.
    pub lowered: u64,
    /// Bytes of controlled flows that have arrived.
    pub delivered: u64,
    /// Bytes of them whose acknowledgments told of marks.
    pub marked: u64,
    /// Bytes of controlled flows that their senders have sent again.
    pub sent_again: u64,
    /// What the programs in the kernel have counted, where there are such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelCounts>,
    /// What was counted in line, where the enforcer is a cable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_line: Option<InlineCounts>,
}

/// What the programs in the kernel have counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelCounts {
    /// Reports that were begun.
    pub reports: u64,
    /// Reports for which there was no room: their news come with the next ones.
    pub lost_reports: u64,
}

/// What was counted between two interfaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InlineCounts {
    /// Frames that came in, super-packets counted once.
    pub frames: u64,
    /// Of these, those that are no IP packets that make sense: passed as they came.
    pub untouched: u64,
    /// Segments of the others.
    pub segments: u64,
    /// Frames that were lost before they were read: too many came at a time.
    pub overrun: u64,
    /// Frames that could not be read.
    pub unreadable: u64,
    /// Frames that the other interface had no room for.
    pub full: u64,
    /// Frames that are longer than the other interface takes.
    pub too_long: u64,
    /// Frames for an interface that was down.
    pub down: u64,
    /// Segments that were lost and sent again from here, without their senders' notice.
    pub masked: u64,
    /// Bytes of these.
    pub masked_bytes: u64,
    /// Time-outs.
    pub timeouts: u64,
    /// Acknowledgments that were kept from their senders.
    pub withheld: u64,
    /// Acknowledgments with an ECN echo, which was kept from their senders.
    pub echoes: u64,
    /// Segments of which no copy was kept: there was no room, or they overlapped others.
    pub unkept: u64,
    /// Acknowledgments of what was never sent.
    pub forged: u64,
    /// Half-open connections that made room for others.
    pub displaced: u64,
    /// Packets that are kept now.
    pub kept_packets: u64,
    /// Their bytes.
    pub kept_bytes: u64,
    /// The most packets that have been kept at a time.
    pub most_kept_packets: u64,
    /// Their bytes.
    pub most_kept_bytes: u64,
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
    /// Bytes that were lost and sent again from here, without the sender's notice; only in line.
    pub masked: u64,
    /// Bytes that are kept until they are acknowledged; only in line.
    pub kept: u64,
    /// Windows that were lowered.
    pub lowered: u64,
}

impl Status {
    pub(crate) fn new(
        interfaces: Vec<String>,
        totals: Totals,
        flows: impl Iterator<Item = FlowStatus>,
    ) -> Self {
        let mut flows: Vec<_> = flows.collect();
        flows.sort_by_key(|flow| std::cmp::Reverse(flow.delivered));
        Self {
            interfaces,
            totals,
            flows,
        }
    }
}

impl FlowStatus {
    /// A flow that leaves by this interface.
    pub(crate) fn of(report: &FlowReport, interface: String) -> Self {
        let end = |address: IpAddr, port| SocketAddr::new(address, port).to_string();
        let (flow, counters) = (report.flow, report.counters);
        Self {
            from: end(flow.source, flow.source_port),
            to: end(flow.destination, flow.destination_port),
            interface,
            congestion: report.congestion.to_owned(),
            rule: report.rule,
            rtt_us: report.rtt.as_nanos() as f64 / 1e3,
            window: report.window.bytes(),
            enforced: report.enforced.bytes(),
            pacing_rate: report.pacing_rate.map(Rate::bits_per_second),
            in_flight: report.in_flight.bytes(),
            delivered: counters.delivered.bytes(),
            marked: counters.marked.bytes(),
            sent_again: counters.sent_again.bytes(),
            masked: counters.masked.bytes(),
            kept: report.kept.bytes(),
            lowered: counters.lowered,
        }
    }
}
