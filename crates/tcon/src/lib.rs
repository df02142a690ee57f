//! TCon: congestion control for TCP flows in a switch's path, without a change to either end.
//!
//! A [`Tcon`] is an [`Element`](weir_fabric::Element) in the path of a switch, near the senders. It
//! follows each [connection](weir_fabric::Connections) from its first SYN. For each direction of data
//! that a [`PolicyLookup`] gives a [`FlowPolicy`], it
//!
//! - keeps a copy of each segment until it is acknowledged, retransmits lost ones and hides the
//!   duplicate acknowledgments, SACK blocks and ECN echoes of the loss from the sender, so that the
//!   sender never reduces its own window;
//! - measures RTT, delivery rate, marks and losses as a sender would, and feeds them to the flow's own
//!   `weir_congestion::Controller`;
//! - lowers the receive window of acknowledgments to the controller's window, and paces the segments by
//!   its rate.
//!
//! Where another component follows the flow, such as a program in the kernel, an [`ObservedFlow`]
//! receives [`ProgressReport`]s, each of which may cover many segments, and returns the limit for the
//! sender's window. It decides as the element does, but repairs nothing. [`ObservedFlows`] holds all
//! observed flows under one policy.
//!
//! After Zhang et al., TCon: A Transparent Congestion Control Deployment Platform for Optimizing WAN
//! Transfers, sections 3.1 and 3.2. Decisions that the paper leaves open:
//!
//! - While a hole is open, the sender's window counts from the hole. The bytes that the receiver has
//!   reported beyond it are added to the controller's window, so that the sender does not stall for the
//!   round trip of the repair.
//! - Copies that do not fit the memory are not kept. A hole that cannot be repaired here is left to the
//!   sender: the acknowledgments that report it pass unchanged.
//! - A segment that the sender retransmits although a copy is kept is not forwarded. A copy that has
//!   been in flight for an RTT is sent instead.
//! - Connections whose SYN was not seen, for example those older than the process, pass untouched; so
//!   do acknowledgments of data that was never sent.
//! - After 15 RTOs in a row, as many as Linux allows, all copies of the flow are dropped.
//! - When a connection is forgotten, its waiting segments leave at once; from then on the receiver's
//!   acknowledgments reach the sender unchanged.

mod ack_replay;
mod advertised_window;
mod busy_rate;
mod cap;
mod counters;
mod ecn;
mod element;
mod flight;
mod flow_class;
mod flow_controller;
mod flow_policy;
mod mark_feedback;
mod memory_budget;
mod observed_flow;
mod observed_flows;
mod progress_report;
mod rate_meter;
mod report_schedule;
mod rtt;
mod stream;
mod suspected_loss;

pub use cap::{Cap, HOLD};
pub use counters::{Counters, EnforcementCounters, FlowReport};
pub use element::{Limits, Tcon};
pub use flow_class::{Distribution, FlowClass};
pub use flow_policy::{FlowInfo, FlowPolicy, PolicyLookup};
pub use observed_flow::{FlowStart, ObservedFlow};
pub use observed_flows::{FreeWindow, ObservedCounters, ObservedFlows, SamplingRound};
pub use progress_report::{DeliveryPoint, PLACES, ProgressReport};
pub use report_schedule::ReportSchedule;
