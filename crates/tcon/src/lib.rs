//! TCon: congestion control for TCP flows that pass by, without a change to either end.
//!
//! A [`Tcon`] is an [`Element`](weir_fabric::Element) in the path of a switch, near the senders. It
//! follows each [connection](weir_fabric::Connections) from its first SYN. For the data that goes one way
//! of it, and for which somebody [`PolicyLookup`]s a [`FlowPolicy`], it
//!
//! - keeps a copy of each segment until it is acknowledged, sends lost ones again and keeps the
//!   duplicate acknowledgments, SACK blocks and ECN echoes that tell of them from the sender, so that
//!   the sender never reduces its own window;
//! - measures round trips, delivery rate, marks and losses as a sender would, and asks a
//!   `weir_congestion::Controller` of the flow's own;
//! - lowers the receive window of acknowledgments to the controller's window, and spaces the segments
//!   by its rate.
//!
//! Where somebody else follows the flow, as a program in the kernel does, an [`ObservedFlow`] flow hears of it
//! by [`ProgressReport`]s, which may each tell of many segments, and says by how much its sender's window is to be
//! limited. It decides as the element does, but repairs nothing. [`ObservedFlows`] holds all of them, by a
//! policy.
//!
//! After Zhang et al., TCon: A Transparent Congestion Control Deployment Platform for Optimizing WAN
//! Transfers, sections 3.1 and 3.2. What it leaves open is decided so:
//!
//! - While a hole is open the window that the sender sees counts from the hole: what the receiver has
//!   reported beyond it is added to the controller's window, so that the sender does not stall for the
//!   round trip that the repair takes.
//! - Copies that do not fit the memory are not kept. A hole that cannot be repaired from here is left to
//!   the sender: the acknowledgments that tell of it pass as they are.
//! - What the sender sends again although a copy is kept goes no further; a copy that has been on its way
//!   for a round trip is sent instead.
//! - Connections whose SYN was not seen, for example those that are older than the process, pass
//!   untouched; so do acknowledgments of what was never sent.
//! - After 15 time-outs in a row, as many as Linux takes, nothing is kept of a flow any more.
//! - When a connection is forgotten, what waited for its turn leaves at once; from then on its sender
//!   hears the receiver itself.

mod ack_replay;
mod advertised_window;
mod cap;
mod counters;
mod ecn;
mod element;
mod flight;
mod flow_controller;
mod flow_policy;
mod memory_budget;
mod observed_flow;
mod observed_flows;
mod progress_report;
mod report_schedule;
mod rtt;
mod stream;

pub use cap::{Cap, HOLD};
pub use counters::{Counters, EnforcementCounters, FlowReport};
pub use element::{Limits, Tcon};
pub use flow_policy::{FlowInfo, FlowPolicy, PolicyLookup};
pub use observed_flow::{FlowStart, ObservedFlow};
pub use observed_flows::{ObservedCounters, ObservedFlows, SamplingRound};
pub use progress_report::{DeliveryPoint, PLACES, ProgressReport};
pub use report_schedule::ReportSchedule;
