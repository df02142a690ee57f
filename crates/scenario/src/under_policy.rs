//! A scenario under a policy: its groups get the congestion control of the first rule that fits the
//! connections that they stand for.
//!
//! A rule with a share divides a group: see [`Scenario::under`].

use std::fmt;

use weir_policy::{Policy, PolicyRule};

use crate::group::Fit;
use crate::{Group, HostIndex, LoadedScenario, Pairing, Scenario, TcpEcn, Transport, Workload};

/// What a policy does with a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupUnderPolicy {
    /// The group's name.
    pub group: String,
    /// What becomes of it.
    pub outcome: PolicyOutcome,
}

/// What a policy does with a group's connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyOutcome {
    /// The group does not say which connections it stands for.
    NotSaid,
    /// Its transport has no congestion control that a policy chooses.
    OtherTransport,
    /// No rule fits.
    NoRule,
    /// A rule leaves it alone.
    Passes {
        /// The rule's line.
        line: u32,
    },
    /// It is the part that a rule compares with its share.
    Compared {
        /// The rule's line.
        line: u32,
    },
    /// A rule has chosen its congestion control.
    Controlled {
        /// The rule's line.
        line: u32,
        /// The algorithm and its parameters.
        congestion: String,
        /// The rule's keys that have no counterpart in a scenario.
        without_effect: Vec<&'static str>,
    },
}

impl fmt::Display for GroupUnderPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "group `{}`: ", self.group)?;
        match &self.outcome {
            PolicyOutcome::NotSaid => f.write_str("left alone, as it has no `stands_for`"),
            PolicyOutcome::OtherTransport => {
                f.write_str("left alone, as policies are for TCP, TLS and DCQUIC")
            }
            PolicyOutcome::NoRule => f.write_str("left alone, as no rule fits it"),
            PolicyOutcome::Passes { line } => write!(f, "left alone by the rule on line {line}"),
            PolicyOutcome::Compared { line } => {
                write!(f, "the control group of the rule on line {line}")
            }
            PolicyOutcome::Controlled {
                line,
                congestion,
                without_effect,
            } => {
                write!(f, "{congestion}, by the rule on line {line}")?;
                if without_effect.is_empty() {
                    return Ok(());
                }
                let keys: Vec<_> = (without_effect.iter())
                    .map(|key| format!("`{key}`"))
                    .collect();
                write!(f, "; without effect here: {}", keys.join(", "))
            }
        }
    }
}

/// A policy that does not fit a scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyMisfit {
    /// No group says which connections it stands for.
    #[error(
        "no group says which connections it stands for: write a table `[groups.NAME.stands_for]` with the keys that \
         the rules ask for, such as `from_port = 443`"
    )]
    NothingSaid,
    /// A rule asks for what the group does not say.
    #[error(
        "the rule on line {line} asks for `{key}`, which the group `{group}` does not say: write \
         `groups.{group}.stands_for.{key}`"
    )]
    KeyNotSaid {
        /// The group.
        group: String,
        /// The rule's line.
        line: u32,
        /// The key.
        key: &'static str,
    },
    /// A rule fits some of a group's connections.
    #[error(
        "the rule on line {line} fits a part of `groups.{group}.stands_for.{key}`: make two groups, one for the \
         connections that it fits"
    )]
    FitsPart {
        /// The group.
        group: String,
        /// The rule's line.
        line: u32,
        /// The key.
        key: &'static str,
    },
    /// A rule asks for an interface.
    #[error(
        "the rule on line {line} asks for an `interface`, which a scenario's hosts do not have: match by `from` or \
         `to`"
    )]
    Interface {
        /// The rule's line.
        line: u32,
    },
    /// A share of a group that is too small.
    #[error(
        "the rule on line {line} takes a share of {fraction} of the group `{group}`, which has too few flows and \
         senders for it: set more `flows`"
    )]
    TooFewFlows {
        /// The group.
        group: String,
        /// The rule's line.
        line: u32,
        /// The share.
        fraction: String,
    },
    /// A share of flows that belong together: an incast's, or a trace's.
    #[error(
        "the rule on line {line} takes a share of the group `{group}`, whose flows belong together (an incast, or a \
         trace): make two groups"
    )]
    Indivisible {
        /// The group.
        group: String,
        /// The rule's line.
        line: u32,
    },
    /// The name of a rule's share of a group is taken.
    #[error(
        "a rule's share of a group needs the name `{name}`, which another group has: rename that one"
    )]
    NameTaken {
        /// The name.
        name: String,
    },
}

impl LoadedScenario {
    /// Returns the scenario and its variants under a policy, and what becomes of the file's own
    /// groups.
    ///
    /// # Errors
    /// See [`Scenario::under`].
    pub fn under(mut self, policy: &Policy) -> Result<(Self, Vec<GroupUnderPolicy>), PolicyMisfit> {
        let (scenario, groups) = self.scenario.under(policy)?;
        self.scenario = scenario;
        for variant in &mut self.variants {
            variant.scenario = variant.scenario.under(policy)?.0;
        }
        Ok((self, groups))
    }
}

impl Scenario {
    /// Returns the scenario with the congestion control that a policy chooses, and what becomes of each
    /// group.
    ///
    /// A rule with a `share` divides a group in two; the part that gets the rule's action is called
    /// `NAME-rule-LINE`. Random arrivals are thinned, other flows divided by their number or by their
    /// senders, at equal distances: the simulation does not draw connections by hashes. ECN follows the
    /// new algorithm, if it has followed the old one.
    ///
    /// # Errors
    /// The policy cannot be decided for a group, or a share of it is no whole number of flows.
    pub fn under(&self, policy: &Policy) -> Result<(Self, Vec<GroupUnderPolicy>), PolicyMisfit> {
        if self.groups.iter().all(|group| group.stands_for.is_none()) {
            return Err(PolicyMisfit::NothingSaid);
        }
        let mut under = self.clone();
        under.groups.clear();
        let mut outcomes = Vec::new();
        for group in &self.groups {
            for (part, outcome) in parts(group, &policy.rules)? {
                if part.name != group.name && self.group(&part.name).is_some() {
                    return Err(PolicyMisfit::NameTaken { name: part.name });
                }
                outcomes.push(GroupUnderPolicy {
                    group: part.name.clone(),
                    outcome,
                });
                under.groups.push(part);
            }
        }
        // What is left of a group keeps its name.
        let position = |old: usize| {
            let name = &self.groups[old].name;
            let found = under.groups.iter().position(|group| group.name == *name);
            found.unwrap_or_default()
        };
        if let Some(reduction) = &mut under.measurements.reduction {
            reduction.of = position(reduction.of);
            reduction.against = position(reduction.against);
        }
        Ok((under, outcomes))
    }
}

/// Returns the parts into which the rules divide a group.
fn parts(group: &Group, rules: &[PolicyRule]) -> Result<Vec<(Group, PolicyOutcome)>, PolicyMisfit> {
    let Some(connections) = &group.stands_for else {
        return Ok(vec![(group.clone(), PolicyOutcome::NotSaid)]);
    };
    if matches!(
        group.transport,
        Transport::Udp { .. } | Transport::Dcudp { .. }
    ) {
        return Ok(vec![(group.clone(), PolicyOutcome::OtherTransport)]);
    }
    let mut parts = Vec::new();
    let mut rest = group.clone();
    for rule in rules {
        let line = rule.line;
        let name = || group.name.clone();
        match connections.fit(rule) {
            Fit::None => continue,
            Fit::All => {}
            Fit::NotSaid(key) => {
                let group = name();
                return Err(PolicyMisfit::KeyNotSaid { group, line, key });
            }
            Fit::Some(key) => {
                let group = name();
                return Err(PolicyMisfit::FitsPart { group, line, key });
            }
        }
        if !rule.interfaces.is_empty() {
            return Err(PolicyMisfit::Interface { line });
        }
        let fraction = rule.share.map_or(1.0, |share| share.fraction());
        if fraction >= 1.0 {
            parts.push(treated(rest, rule));
            return Ok(parts);
        }
        let (mut inside, outside) = divided(&rest, fraction, line)?;
        inside.name = format!("{}-rule-{line}", group.name);
        parts.push(treated(inside, rule));
        if rule.compare {
            parts.push((outside, PolicyOutcome::Compared { line }));
            return Ok(parts);
        }
        rest = outside;
    }
    parts.push((rest, PolicyOutcome::NoRule));
    Ok(parts)
}

/// Returns the group with a rule's action.
fn treated(mut group: Group, rule: &PolicyRule) -> (Group, PolicyOutcome) {
    let line = rule.line;
    let Some(control) = &rule.control else {
        return (group, PolicyOutcome::Passes { line });
    };
    match &mut group.transport {
        Transport::Tcp {
            congestion,
            options,
        }
        | Transport::Tls {
            congestion,
            options,
            ..
        } => {
            let follows = options.ecn == TcpEcn::of(congestion);
            *congestion = control.congestion.clone();
            options.ecn = match (control.ecn, TcpEcn::of(congestion)) {
                (None, ecn) if follows => ecn,
                (None, _) => options.ecn,
                (Some(false), _) => TcpEcn::Off,
                (Some(true), TcpEcn::Off) => TcpEcn::Rfc3168,
                (Some(true), ecn) => ecn,
            };
            if let Some(min_rto) = rule.socket.min_rto {
                options.min_rto = min_rto;
                options.max_rto = options.max_rto.max(min_rto);
            }
        }
        Transport::Quic { congestion, .. } => *congestion = control.congestion.clone(),
        Transport::Dcudp { .. } | Transport::Udp { .. } => {}
    }
    let is_quic = matches!(group.transport, Transport::Quic { .. });
    let keys = [
        ("ecn", is_quic && control.ecn.is_some()),
        ("min_rto", is_quic && rule.socket.min_rto.is_some()),
        // A group's two ends are alike, and the rule is about one of them.
        ("max_ack_delay", rule.socket.max_ack_delay.is_some()),
        ("set_dscp", rule.socket.set_dscp.is_some()),
        ("undo_if", !rule.undo_if.is_empty()),
    ];
    let without_effect = keys.into_iter().filter_map(|(key, is)| is.then_some(key));
    let outcome = PolicyOutcome::Controlled {
        line,
        congestion: control.congestion.to_string(),
        without_effect: without_effect.collect(),
    };
    (group, outcome)
}

/// Divides a group: the share, and the rest.
fn divided(group: &Group, fraction: f64, line: u32) -> Result<(Group, Group), PolicyMisfit> {
    let (mut inside, mut outside) = (group.clone(), group.clone());
    match &group.workload {
        Workload::Incast { .. }
        | Workload::Trace { .. }
        | Workload::Poisson { fan_in: 2.., .. } => {
            let group = group.name.clone();
            return Err(PolicyMisfit::Indivisible { group, line });
        }
        Workload::Poisson { .. } => {
            thin(&mut inside, fraction);
            thin(&mut outside, 1.0 - fraction);
        }
        _ => {
            let flows = (f64::from(group.flows) * fraction).round() as u32;
            if (1..group.flows).contains(&flows) {
                inside.flows = flows;
                outside.flows = group.flows - flows;
            } else {
                let is_inside = every(group.from.len(), fraction);
                keep(&mut inside, &is_inside);
                keep(&mut outside, |index| !is_inside(index));
            }
        }
    }
    if [&inside, &outside]
        .iter()
        .any(|part| part.pairs().next().is_none())
    {
        return Err(PolicyMisfit::TooFewFlows {
            group: group.name.clone(),
            line,
            fraction: fraction.to_string(),
        });
    }
    Ok((inside, outside))
}

/// A part of a Poisson process is one, with the same part of the rate.
fn thin(group: &mut Group, fraction: f64) {
    if let Some(mean) = group.mean_arrival_seconds() {
        group.set_mean_arrival_seconds(mean / fraction);
    }
    if let Some(load) = &mut group.load {
        load.load *= fraction;
    }
}

/// Returns which of `count` things are in a share, at equal distances.
fn every(count: usize, fraction: f64) -> impl Fn(usize) -> bool {
    let inside = (count as f64 * fraction).round() as usize;
    move |index| (index + 1) * inside / count > index * inside / count
}

/// Keeps some of the senders, with their receivers where they are paired one to one.
fn keep(group: &mut Group, is_kept: impl Fn(usize) -> bool) {
    let kept = |hosts: &[HostIndex]| -> Vec<HostIndex> {
        let hosts = hosts.iter().enumerate();
        hosts
            .filter_map(|(index, host)| is_kept(index).then_some(*host))
            .collect()
    };
    group.from = kept(&group.from);
    if group.pairing == Pairing::OneToOne {
        group.to = kept(&group.to);
    }
}

#[cfg(test)]
mod tests;
