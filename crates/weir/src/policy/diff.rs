//! `weir policy diff`

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use weir_policy::{Policy, PolicyRule, RuleChange};
use weir_scenario::load_policy;

use super::check::described;
use super::controllers::{ControllerArguments, named, rules};
use crate::failure::Failure;
use crate::output;

/// The arguments of `weir policy diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir policy diff policy.toml                from what all hosts have to a file
  weir policy diff --from 3 --to 4            from one version to another one
  weir policy diff --from 3 policy.toml

Rules are compared, not lines: comments and the order of keys do not count.")]
pub(crate) struct Diff {
    /// Policy file
    #[arg(required_unless_present = "to", conflicts_with = "to")]
    file: Option<PathBuf>,

    #[command(flatten)]
    controllers: ControllerArguments,

    /// Version to begin with, instead of the one that all hosts have; 0 is the empty policy
    #[arg(long, value_name = "N")]
    from: Option<u64>,

    /// Version to end with
    #[arg(long, value_name = "N")]
    to: Option<u64>,
}

impl Diff {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let controllers = self.controllers.open()?;
        let version = |number: Option<u64>| {
            let version = controllers.version(number)?;
            Ok::<_, Failure>((named(version.number), rules(&version)?))
        };
        let (old_name, old) = version(self.from)?;
        let (new_name, new) = match (&self.file, self.to) {
            (Some(file), _) => {
                let policy = load_policy(file).map_err(Failure::of)?;
                (file.display().to_string(), policy)
            }
            (None, to) => version(to)?,
        };
        output::print(&text(&old_name, &old, &new_name, &new))
    }
}

fn text(old_name: &str, old: &Policy, new_name: &str, new: &Policy) -> String {
    let mut out = format!("--- {old_name}\n+++ {new_name}\n");
    let rule = |policy: &Policy, line: u32| {
        let found = policy.rules.iter().find(|rule| rule.line == line);
        found.map_or_else(String::new, |rule: &PolicyRule| described(rule))
    };
    let changes = old.changes(new);
    for change in &changes {
        let _ = match *change {
            RuleChange::Added { line } => writeln!(out, "+line {line:>4}  {}", rule(new, line)),
            RuleChange::Removed { line } => writeln!(out, "-line {line:>4}  {}", rule(old, line)),
            RuleChange::Changed { from, to } => writeln!(
                out,
                "-line {from:>4}  {}\n+line {to:>4}  {}",
                rule(old, from),
                rule(new, to)
            ),
        };
    }
    if changes.is_empty() {
        out.push_str("no rule differs\n");
    }
    out
}
