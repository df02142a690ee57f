//! The rules of a policy, and why a rule does not match a flow.

use std::fmt;

use weir_congestion::AlgorithmSpec;
use weir_units::{ByteSize, Duration};

use crate::first_match::{Match, first_match};
use crate::{
    CgroupPath, CommandPattern, Dscp, Group, GuardCondition, NamePattern, PolicyFlow, PortRange,
    Prefix, Share, User,
};

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
    /// The control group of the process that opened the sender's socket, or its listener.
    pub cgroups: Vec<CgroupPath>,
    /// The user of that process.
    pub users: Vec<User>,
    /// The name of that process.
    pub commands: Vec<CommandPattern>,
    /// The part of the connections that meet these conditions which get the action; `None` for all.
    pub share: Option<Share>,
    /// Whether the connections that are not in the share are left alone and measured for comparison;
    /// otherwise the next rules apply to them.
    pub compare: bool,
    /// The action; `None` leaves the flow alone.
    pub control: Option<TconControl>,
    /// What is set in the sender's socket besides.
    pub socket: SocketOptions,
    /// When the rule is taken back: as soon as one of these holds.
    pub undo_if: Vec<GuardCondition>,
}

/// The rule that applies to a flow, and the flow's group in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision<'p> {
    /// The rule.
    pub rule: &'p PolicyRule,
    /// Whether its action applies.
    pub group: Group,
}

impl<'p> Decision<'p> {
    /// Returns how the flow is controlled; `None` leaves it alone.
    pub fn control(&self) -> Option<&'p TconControl> {
        match self.group {
            Group::Treated => self.rule.control.as_ref(),
            Group::Control => None,
        }
    }
}

/// Options of the sender's socket; what is `None` is left as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// The least retransmission time-out.
    pub min_rto: Option<Duration>,
    /// The longest delay of an acknowledgment.
    pub max_ack_delay: Option<Duration>,
    /// The DSCP of the packets that it sends.
    pub set_dscp: Option<Dscp>,
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
    pub decision: Option<Decision<'p>>,
}

impl Policy {
    /// Returns the rule that matches a flow, and the flow's group in it.
    pub fn decision(&self, flow: &PolicyFlow<'_>) -> Option<Decision<'_>> {
        let rule = first_match(&self.rules, flow)?;
        let group = rule.group(flow);
        Some(Decision { rule, group })
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
        let decision = self.decision(flow);
        let applies = |rule| decision.is_some_and(|decision| std::ptr::eq(decision.rule, rule));
        let before = (self.rules.iter()).take_while(|&rule| !applies(rule));
        let passed_over = before.filter_map(|rule| Some((rule, rule.mismatch(flow)?)));
        Explanation {
            mismatches: passed_over.collect(),
            decision,
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
    Cgroup,
    User,
    Command,
    Share,
}

impl Condition {
    const ALL: [Self; 10] = [
        Self::From,
        Self::To,
        Self::FromPort,
        Self::ToPort,
        Self::Interface,
        Self::Dscp,
        Self::Cgroup,
        Self::User,
        Self::Command,
        Self::Share,
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
            cgroups: Vec::new(),
            users: Vec::new(),
            commands: Vec::new(),
            share: None,
            compare: false,
            control,
            socket: SocketOptions::default(),
            undo_if: Vec::new(),
        }
    }

    /// Returns whether the rule is about measured connections: records of them are needed.
    pub fn needs_records(&self) -> bool {
        self.compare || !self.undo_if.is_empty()
    }

    /// Returns the group of a flow that the rule matches.
    pub fn group(&self, flow: &PolicyFlow<'_>) -> Group {
        match self.share {
            Some(share) if !share.contains(&flow.key) => Group::Control,
            _ => Group::Treated,
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
            Condition::Cgroup => any(&self.cgroups, |group| {
                flow.owner.cgroup.is_some_and(|path| group.contains(path))
            }),
            Condition::User => any(&self.users, |user| flow.owner.user == Some(user)),
            Condition::Command => any(&self.commands, |pattern| {
                flow.owner.command.is_some_and(|name| pattern.matches(name))
            }),
            Condition::Share => self.compare || self.group(flow) == Group::Treated,
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
            Condition::Cgroup => mismatch("cgroup", &self.cgroups, known(flow.owner.cgroup)),
            Condition::User => mismatch("user", &self.users, known(flow.owner.user)),
            Condition::Command => mismatch("command", &self.commands, known(flow.owner.command)),
            Condition::Share => share_mismatch(self.share?, flow),
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

/// Describes a property of a flow that may not be known.
fn known(found: Option<impl fmt::Display>) -> String {
    found.map_or_else(|| "not known".to_owned(), |found| found.to_string())
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

fn share_mismatch(share: Share, flow: &PolicyFlow<'_>) -> Mismatch {
    Mismatch {
        key: "share",
        wanted: format!("below {share}"),
        found: format!("{:.4}", share.position(&flow.key)),
    }
}
