//! What flows demand whose applications say nothing.

use weir_units::{ByteSize, Duration};

use crate::{PortRange, Prefix};

/// Rules about what flows carry, and by when; the first rule that fits a flow holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadlinePolicy {
    /// The rules, in the file's order.
    pub rules: Vec<DeadlineRule>,
}

/// A rule. An empty list of conditions fits every flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlineRule {
    /// Where the rule begins in its file, counted from 1.
    pub line: u32,
    /// Who sends the data.
    pub from: Vec<Prefix>,
    /// Who receives it.
    pub to: Vec<Prefix>,
    /// The port that the data comes from.
    pub from_ports: Vec<PortRange>,
    /// The port that the data goes to.
    pub to_ports: Vec<PortRange>,
    /// How much such flows carry, and how long they have from their SYN on; `None` for no deadline.
    pub demand: Option<(ByteSize, Duration)>,
}
