//! Deadlines by policy, for flows whose applications set none.

use weir_units::{ByteSize, Duration};

use crate::{PortRange, Prefix};

/// Rules for the size and the deadline of flows; the first rule that matches a flow applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadlinePolicy {
    /// The rules, in the file's order.
    pub rules: Vec<DeadlineRule>,
}

/// A rule. An empty list of conditions matches every flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlineRule {
    /// Where the rule begins in its file, counted from 1.
    pub line: u32,
    /// The data's sender.
    pub from: Vec<Prefix>,
    /// The data's receiver.
    pub to: Vec<Prefix>,
    /// The data's source port.
    pub from_ports: Vec<PortRange>,
    /// The data's destination port.
    pub to_ports: Vec<PortRange>,
    /// The size of such flows, and their deadline as a span from the SYN; `None` for no deadline.
    pub demand: Option<(ByteSize, Duration)>,
}
