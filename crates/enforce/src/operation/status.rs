//! The status of an enforcer, for people and programs to read.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use weir_tcon::FlowReport;
use weir_units::Rate;

use super::canary_status::CanaryStatus;
use crate::bypass::{BypassCounts, FastPathCounts};

/// The status of an enforcer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Its interfaces.
    pub interfaces: Vec<String>,
    /// The totals over all flows.
    pub totals: Totals,
    /// The controlled flows, the one with the most bytes first.
    pub flows: Vec<FlowStatus>,
    /// The sockets of a control group, if the enforcer is at one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sockets: Option<SocketStatus>,
}

/// The status of an enforcer at the sockets of a control group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SocketStatus {
    /// The control group's directory.
    pub cgroup: String,
    /// Whether it decides and counts only.
    pub is_dry_run: bool,
    /// The rules in force in the file's order, then former ones that sockets belong to.
    pub rules: Vec<RuleStatus>,
    /// The figures of the rules in force that are tried or have guards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub canaries: Vec<CanaryStatus>,
}

/// What became of the sockets of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleStatus {
    /// Its line in the policy file.
    pub line: u32,
    /// The kernel's name of its algorithm, or `pass`.
    pub algorithm: String,
    /// Whether it is in force.
    pub is_current: bool,
    /// Open connections that belong to it, and are not left alone for comparison.
    pub flows: u64,
    /// Open connections that are left alone for comparison, or because the rule was taken back.
    pub control_flows: u64,
    /// Of these, those that have Reno, because they have no ECN, which the algorithm needs.
    pub flows_without_ecn: u64,
    /// Of these, those whose application has set an option itself afterwards.
    pub overridden_flows: u64,
    /// Connections that matched it.
    pub matched: u64,
    /// Of these, connections that got all that it says.
    pub applied: u64,
    /// Of these, connections that got Reno, because they have no ECN.
    pub without_ecn: u64,
    /// Options that applications have set themselves afterwards, which then hold.
    pub overridden: u64,
    /// Connections that got back what they had.
    pub undone: u64,
    /// Connections for which the kernel refused that.
    pub not_undone: u64,
    /// Options that the kernel refused, by their keys.
    pub refused: BTreeMap<String, u64>,
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Flows under control now.
    pub controlled: u64,
    /// Flows exempted by the policy.
    pub passed: u64,
    /// Flows (in line: connections) removed after a long silence.
    pub idle: u64,
    /// Connections whose handshake was seen; in line, those whose first SYN was seen.
    pub opened: u64,
    /// Connections whose end was seen.
    pub closed: u64,
    /// Connections without a free slot: they pass.
    pub refused: u64,
    /// Packets of connections that are not tracked.
    pub unknown_packets: u64,
    /// Windows that were lowered.
    pub lowered: u64,
    /// Delivered bytes of controlled flows.
    pub delivered: u64,
    /// Delivered bytes of controlled flows whose acknowledgments carried an ECN echo.
    pub marked: u64,
    /// Retransmitted bytes of controlled flows, sent by their senders.
    pub sent_again: u64,
    /// The counters of the programs in the kernel, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelCounts>,
    /// The counters of an enforcer in line, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_line: Option<InlineCounts>,
}

/// The counters of the programs in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelCounts {
    /// Reports begun.
    pub reports: u64,
    /// Reports lost for lack of room: the next ones carry their contents.
    pub lost_reports: u64,
    /// Segments dropped because their sender did not heed the window that holds its highest rate.
    pub beyond_rate: u64,
}

/// The counters of an enforcer between two interfaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InlineCounts {
    /// Frames received by the process, super-packets counted once.
    pub frames: u64,
    /// Of these, frames without a valid IP packet: passed unchanged.
    pub untouched: u64,
    /// Segments of the other frames.
    pub segments: u64,
    /// Frames lost before they were read: too many arrived at a time.
    pub overrun: u64,
    /// Frames that could not be read.
    pub unreadable: u64,
    /// Frames for which the other interface had no room.
    pub full: u64,
    /// Frames longer than the other interface's MTU.
    pub too_long: u64,
    /// Frames for an interface that was down.
    pub down: u64,
    /// Frames and segments dropped because the enforcer had paused: they were too old.
    pub late: u64,
    /// Lost segments retransmitted from here, without their senders' knowledge.
    pub masked: u64,
    /// Their bytes.
    pub masked_bytes: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// Acknowledgments withheld from their senders.
    pub withheld: u64,
    /// Acknowledgments whose ECN echo was removed.
    pub echoes: u64,
    /// Segments without a kept copy: there was no room, or they overlapped others.
    pub unkept: u64,
    /// Acknowledgments of data never sent.
    pub forged: u64,
    /// Half-open connections displaced by others.
    pub displaced: u64,
    /// Packets kept now.
    pub kept_packets: u64,
    /// Their bytes.
    pub kept_bytes: u64,
    /// The largest number of packets kept at a time.
    pub most_kept_packets: u64,
    /// Their bytes.
    pub most_kept_bytes: u64,
    /// The counters of the bypass; without it the cable fails closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bypass: Option<BypassCounts>,
    /// The counters of frames that the kernel forwards, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fast_path: Option<FastPathCounts>,
}

/// A controlled flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowStatus {
    /// The sender: address and port.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// The interface that its data leave by.
    pub interface: String,
    /// The algorithm.
    pub congestion: String,
    /// The line of its rule in the policy file when the flow opened.
    pub rule: u32,
    /// The smoothed round-trip time, in microseconds.
    pub rtt_us: f64,
    /// The controller's window, in bytes.
    pub window: u64,
    /// The largest window announced to the sender, in bytes.
    pub enforced: u64,
    /// The controller's pacing rate, in bits per second.
    pub pacing_rate: Option<u64>,
    /// The highest rate that its rule allows, in bits of payload per second.
    pub max_rate: Option<u64>,
    /// The rate of the payload that was delivered in the last ten seconds, or since it opened, in bits per
    /// second.
    pub measured_rate: Option<u64>,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Delivered bytes.
    pub delivered: u64,
    /// Delivered bytes whose acknowledgments carried an ECN echo.
    pub marked: u64,
    /// Bytes retransmitted by the sender.
    pub sent_again: u64,
    /// Lost bytes retransmitted from here, without the sender's knowledge; only in line.
    pub masked: u64,
    /// Bytes kept until they are acknowledged; only in line.
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
            sockets: None,
        }
    }
}

impl FlowStatus {
    /// Returns the status of a flow that leaves by this interface.
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
            max_rate: report.max_rate.map(Rate::bits_per_second),
            measured_rate: report.measured_rate.map(Rate::bits_per_second),
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
