//! The rules of a policy, and why a rule does not match a flow.

use std::fmt;

use weir_congestion::AlgorithmSpec;
use weir_units::ByteSize;

use crate::first_match::{Match, first_match};
use crate::{Dscp, NamePattern, PolicyFlow, PortRange, Prefix};

/// A policy: the first rule that matches a flow applies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    /// The rules, in the file's order.
    pub rules: Vec<PolicyRule>,
}

/// A rule. An empty list of conditions matches every flow.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyRule {
    /// Where the rule begins in its file, counted from 1; 0 without a file.
    pub line: u32,
    /// The data's sender.
    pub from: Vec<Prefix>,
    /// The data's receiver.
    pub to: Vec<Prefix>,
    /// The data's source port.
    pub from_ports: Vec<PortRange>,
    /// The data's destination port.
    pub to_ports: Vec<PortRange>,
    /// The egress interface of the data.
    pub interfaces: Vec<NamePattern>,
    /// The DSCP of the data's packets.
    pub dscp: Vec<Dscp>,
    /// The action; `None` leaves the flow alone.
    pub control: Option<TconControl>,
}

/// How a flow is controlled.
#[derive(Clone, Debug, PartialEq)]
pub struct TconControl {
    /// The congestion control algorithm.
    pub congestion: AlgorithmSpec,
    /// Whether ECN is negotiated with the receiver; `None` leaves it to the algorithm.
    pub ecn: Option<bool>,
    /// How much of one flow's data is kept for retransmission.
    pub buffer: ByteSize,
}

/// A condition of a rule that a flow does not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Its key in the file.
    pub key: &'static str,
    /// The rule's value.
    pub wanted: String,
    /// The flow's value.
    pub found: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is {}, not {}", self.key, self.found, self.wanted)
    }
}

/// How a policy decides about a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation<'p> {
    /// The rules before the matching one, or all, each with its first unmet condition.
    pub mismatches: Vec<(&'p PolicyRule, Mismatch)>,
    /// The matching rule.
    pub rule: Option<&'p PolicyRule>,
}

impl Policy {
    /// Returns the rule that matches a flow.
    pub fn rule(&self, flow: &PolicyFlow<'_>) -> Option<&PolicyRule> {
        first_match(&self.rules, flow)
    }

    /// Returns whether a rule controls some flow whose data leave by one of these interfaces.
    pub fn controls_at(&self, interfaces: &[String]) -> bool {
        let passes_all = |rule: &&PolicyRule| {
            let all = PolicyRule {
                line: rule.line,
                ..PolicyRule::new(None)
            };
            **rule == all
        };
        let rules = self.rules.iter().take_while(|rule| !passes_all(rule));
        let mut controls = rules.filter(|rule| rule.control.is_some());
        controls.any(|rule| rule.unmatched_interfaces(interfaces).is_none())
    }

    /// Returns the same, with the reasons.
    pub fn explain(&self, flow: &PolicyFlow<'_>) -> Explanation<'_> {
        let rule = self.rule(flow);
        let before =
            (self.rules.iter()).take_while(|&other| rule.is_none_or(|it| !std::ptr::eq(it, other)));
        let passed_over = before.filter_map(|rule| Some((rule, rule.mismatch(flow)?)));
        Explanation {
            mismatches: passed_over.collect(),
            rule,
        }
    }
}

/// The conditions of a rule, in order of evaluation.
#[derive(Clone, Copy)]
enum Condition {
    From,
    To,
    FromPort,
    ToPort,
    Interface,
    Dscp,
}

impl Condition {
    const ALL: [Self; 6] = [
        Self::From,
        Self::To,
        Self::FromPort,
        Self::ToPort,
        Self::Interface,
        Self::Dscp,
    ];
}

impl PolicyRule {
    /// Creates a rule that matches every flow.
    pub fn new(control: Option<TconControl>) -> Self {
        Self {
            line: 0,
            from: Vec::new(),
            to: Vec::new(),
            from_ports: Vec::new(),
            to_ports: Vec::new(),
            interfaces: Vec::new(),
            dscp: Vec::new(),
            control,
        }
    }

    fn holds(&self, condition: Condition, flow: &PolicyFlow<'_>) -> bool {
        let key = &flow.key;
        match condition {
            Condition::From => any(&self.from, |set| set.contains(key.source)),
            Condition::To => any(&self.to, |set| set.contains(key.destination)),
            Condition::FromPort => any(&self.from_ports, |ports| ports.contains(key.source_port)),
            Condition::ToPort => any(&self.to_ports, |ports| ports.contains(key.destination_port)),
            Condition::Interface => any(&self.interfaces, |pattern| {
                flow.interface.is_some_and(|name| pattern.matches(name))
            }),
            Condition::Dscp => any(&self.dscp, |class| *class == flow.dscp),
        }
    }

    /// Returns the first condition that a flow does not meet.
    fn mismatch(&self, flow: &PolicyFlow<'_>) -> Option<Mismatch> {
        let unmet = |condition: &Condition| !self.holds(*condition, flow);
        let key = &flow.key;
        Some(match Condition::ALL.into_iter().find(unmet)? {
            Condition::From => mismatch("from", &self.from, key.source),
            Condition::To => mismatch("to", &self.to, key.destination),
            Condition::FromPort => mismatch("from_port", &self.from_ports, key.source_port),
            Condition::ToPort => mismatch("to_port", &self.to_ports, key.destination_port),
            Condition::Interface => {
                let name = flow.interface.unwrap_or("none");
                mismatch("interface", &self.interfaces, name)
            }
            Condition::Dscp => mismatch("dscp", &self.dscp, flow.dscp),
        })
    }
}

impl Match<PolicyFlow<'_>> for PolicyRule {
    fn matches(&self, flow: &PolicyFlow<'_>) -> bool {
        Condition::ALL
            .into_iter()
            .all(|condition| self.holds(condition, flow))
    }
}

/// Returns whether there is no condition, or one of the values matches.
fn any<T>(values: &[T], fits: impl Fn(&T) -> bool) -> bool {
    values.is_empty() || values.iter().any(fits)
}

fn mismatch<T: fmt::Display>(
    key: &'static str,
    values: &[T],
    found: impl fmt::Display,
) -> Mismatch {
    let wanted: Vec<_> = values.iter().map(T::to_string).collect();
    Mismatch {
        key,
        wanted: wanted.join(" or "),
        found: found.to_string(),
    }
}
