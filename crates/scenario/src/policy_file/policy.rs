//! Policy files: which flows are controlled, and by which algorithm.

use std::path::Path;

use weir_policy::{Dscp, NamePattern, Policy, PolicyRule, TconControl};
use weir_scenario_derive::Keys;

use super::condition;
use super::rules::{self, FlowEnds};
use crate::ScenarioError;
use crate::document::{Cursor, Reported};
use crate::schema::Section;
use crate::topology::{ControlKeys, control};

/// The tables and keys of a policy file.
#[derive(Keys)]
#[keys(title = "the top of the file", doc = "A policy is a list of rules.")]
struct File {
    /// The rules; the first one that matches a flow applies. A flow that matches none is not
    /// controlled.
    #[key(accepts = rules::RULES, read = at.all("tables `[[rules]]`", rule))]
    rules: Vec<PolicyRule>,
}

/// The keys of a rule.
#[derive(Keys)]
#[keys(title = "[[rules]]", doc = rules::DOC)]
struct Rule {
    #[key(flatten)]
    ends: FlowEnds,
    /// The egress interface of the data.
    #[key(absent = "any", or = Vec::new(), read = condition::read(at))]
    interface: Vec<NamePattern>,
    /// The DSCP of the sender's packets of the handshake.
    #[key(absent = "any", or = Vec::new(), read = condition::read(at))]
    dscp: Vec<Dscp>,
    #[key(keys = ControlKeys, by = control(fields))]
    control: Option<TconControl>,
}

/// The tables of a policy file.
pub(crate) const SECTIONS: [&Section; 2] = [File::SECTION, Rule::SECTION];

/// Reads a policy file.
///
/// # Errors
/// The file cannot be read, or it has mistakes: the error lists those that were found, with their
/// lines and keys.
pub fn load_policy(path: &Path) -> Result<Policy, ScenarioError> {
    rules::load(path, "policy", policy)
}

/// Reads a policy from text; errors contain `name`.
///
/// # Errors
/// See [`load_policy`].
pub fn parse_policy(name: &str, text: &str) -> Result<Policy, ScenarioError> {
    rules::parse_as(name, text, policy)
}

fn policy(at: &Cursor<'_>) -> Result<Policy, Reported> {
    File::read(at, ()).map(|file| Policy { rules: file.rules })
}

fn rule(at: &Cursor<'_>) -> Result<PolicyRule, Reported> {
    let rule = Rule::read(at, ())?;
    Ok(PolicyRule {
        line: rules::line_of(at),
        from: rule.ends.from,
        to: rule.ends.to,
        from_ports: rule.ends.from_port,
        to_ports: rule.ends.to_port,
        interfaces: rule.interface,
        dscp: rule.dscp,
        control: rule.control,
    })
}
