//! Policy files: which flows are controlled, and by which algorithm.

use std::cell::RefCell;
use std::path::Path;

use weir_policy::{
    CgroupPath, CommandPattern, Dscp, NamePattern, Policy, PolicyRule, RuleFinding, Severity,
    Share, SocketOptions, TconControl, User,
};
use weir_scenario_derive::Keys;

use super::canary::CanaryKeys;
use super::condition;
use super::rules::{self, FlowEnds};
use super::socket::{SocketKeys, socket_options};
use crate::document::{Cursor, Reported};
use crate::schema::{Accepts, Section};
use crate::topology::{ControlKeys, control};
use crate::{Problem, ProblemKind, ScenarioError};

/// The tables and keys of a policy file.
#[derive(Keys)]
#[keys(
    title = "the top of the file",
    doc = "A policy is a list of rules.",
    context = &RuleChecks<'_>
)]
struct File {
    /// Another seed draws other connections for each `share`.
    #[key(accepts = Accepts::Count(0, u32::MAX as u64), default = 0)]
    seed: u32,
    /// The rules; the first one that matches a flow applies. A flow that matches none is not
    /// controlled.
    #[key(accepts = rules::RULES, read = at.all("tables `[[rules]]`", |at| context.read(at)))]
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
    /// The control group of the process that opened the sender's socket, or its listener; also one below
    /// it. Only for `weir enforce --cgroup`.
    #[key(absent = "any", or = Vec::new(), read = condition::read(at))]
    cgroup: Vec<CgroupPath>,
    /// The user of that process. Only for `weir enforce --cgroup`.
    #[key(absent = "any", or = Vec::new(), read = condition::read(at))]
    user: Vec<User>,
    /// The name of that process, as `ps -o comm` shows it. Only for `weir enforce --cgroup`.
    #[key(absent = "any", or = Vec::new(), read = condition::read(at))]
    command: Vec<CommandPattern>,
    #[key(keys = ControlKeys, by = control(fields))]
    control: Option<TconControl>,
    #[key(keys = SocketKeys, by = socket_options(fields))]
    socket: SocketOptions,
    #[key(flatten)]
    canary: CanaryKeys,
}

/// The tables of a policy file.
pub(crate) const SECTIONS: [&Section; 2] = [File::SECTION, Rule::SECTION];

/// A policy, and what is doubtful about it where it is to be put in force.
#[derive(Debug)]
pub struct CheckedPolicy {
    /// The policy; the mistakes of its file, and what the data plane refuses.
    pub policy: Result<Policy, ScenarioError>,
    /// Keys without effect, and rules that never match.
    pub warnings: Vec<Problem>,
}

/// Reads a policy file.
///
/// # Errors
/// The file cannot be read, or it has mistakes: the error lists those that were found, with their
/// lines and keys.
pub fn load_policy(path: &Path) -> Result<Policy, ScenarioError> {
    load_policy_for(path, |_| Vec::new()).policy
}

/// Reads a policy from text; errors contain `name`.
///
/// # Errors
/// See [`load_policy`].
pub fn parse_policy(name: &str, text: &str) -> Result<Policy, ScenarioError> {
    parse_policy_for(name, text, |_| Vec::new()).policy
}

/// Reads a policy file for a data plane, which checks each rule. What it refuses is listed with the
/// file's other mistakes.
pub fn load_policy_for(
    path: &Path,
    check: impl Fn(&PolicyRule) -> Vec<RuleFinding>,
) -> CheckedPolicy {
    let checks = RuleChecks::new(&check);
    let policy = rules::load(path, "policy", |at| policy(at, &checks));
    checks.applied_to(policy)
}

/// Reads a policy from text for a data plane, as [`load_policy_for`] does; errors contain `name`.
pub fn parse_policy_for(
    name: &str,
    text: &str,
    check: impl Fn(&PolicyRule) -> Vec<RuleFinding>,
) -> CheckedPolicy {
    let checks = RuleChecks::new(&check);
    let policy = rules::parse_as(name, text, |at| policy(at, &checks));
    checks.applied_to(policy)
}

fn policy(at: &Cursor<'_>, checks: &RuleChecks<'_>) -> Result<Policy, Reported> {
    let mut file = File::read(at, checks)?;
    draw_by(file.seed, &mut file.rules);
    Ok(Policy { rules: file.rules })
}

/// Sets the seeds of the rules' shares.
fn draw_by(seed: u32, rules: &mut [PolicyRule]) {
    let shares = rules.iter_mut().filter_map(|rule| rule.share.as_mut());
    for (above, share) in (0..).zip(shares) {
        if let Some(drawn) = Share::of_rule(share.fraction(), seed, above) {
            *share = drawn;
        }
    }
}

/// The checks of a data plane, and what they found that is no mistake.
struct RuleChecks<'c> {
    check: &'c dyn Fn(&PolicyRule) -> Vec<RuleFinding>,
    warnings: RefCell<Vec<Problem>>,
}

impl<'c> RuleChecks<'c> {
    fn new(check: &'c dyn Fn(&PolicyRule) -> Vec<RuleFinding>) -> Self {
        Self {
            check,
            warnings: RefCell::default(),
        }
    }

    /// Reads and checks a rule.
    fn read(&self, at: &Cursor<'_>) -> Result<PolicyRule, Reported> {
        let rule = rule(at)?;
        let mut result = Ok(());
        for finding in (self.check)(&rule) {
            // A finding may be about a key that is absent.
            let table = at.node.as_table();
            let node = table.and_then(|table| table.get(finding.key));
            let key = node.map_or_else(|| at.clone(), |node| at.child(finding.key, node));
            let kind = ProblemKind::Conflict {
                conflict: finding.problem,
                remedy: finding.remedy,
            };
            match finding.severity {
                Severity::Refused => result = Err(key.problem(kind)),
                Severity::Warning => self.warnings.borrow_mut().push(key.describe(kind)),
            }
        }
        result.map(|()| rule)
    }

    fn applied_to(self, policy: Result<Policy, ScenarioError>) -> CheckedPolicy {
        CheckedPolicy {
            policy,
            warnings: self.warnings.into_inner(),
        }
    }
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
        cgroups: rule.cgroup,
        users: rule.user,
        commands: rule.command,
        share: rule.canary.share.and_then(|share| Share::new(share, 0)),
        compare: rule.canary.compare,
        control: rule.control,
        socket: rule.socket,
        undo_if: rule.canary.undo_if,
    })
}
