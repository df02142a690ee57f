//! `weir policy check`

use std::fmt::{Display, Write as _};

use clap::Args;
use serde::Serialize;
use weir_policy::{Policy, PolicyRule};

use super::{File, Plane, action};
use crate::failure::Failure;
use crate::output;

/// The arguments of `weir policy check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir policy check policy.toml                its mistakes, or its rules
  weir policy check policy.toml --json         for programs
  weir policy check policy.toml --for enforce --interface eth0 --interface eth1
                                               also what `weir enforce` would refuse there, and
                                               rules that would never match
  weir policy check policy.toml --for cgroup   what `weir enforce --cgroup` would refuse on this machine

Exit code 1 tells of mistakes. Warnings do not change it.")]
pub(crate) struct Check {
    #[command(flatten)]
    file: File,

    /// What is to put the policy in force: also reports what it refuses, and what has no effect there
    #[arg(long = "for", value_enum, value_name = "PLANE")]
    plane: Option<Plane>,

    /// An interface that the policy is for: also reports rules that match no such interface (repeatable)
    #[arg(long, short, value_name = "NAME", requires = "plane")]
    interface: Vec<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A rule in the `--json` output.
#[derive(Serialize)]
struct Listed {
    line: u32,
    conditions: Vec<(&'static str, Vec<String>)>,
    action: String,
}

impl Check {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let policy = self.load()?;
        let listed: Vec<_> = policy.rules.iter().map(listed).collect();
        if self.json {
            return output::print_json(&listed);
        }
        let mut out = String::new();
        for rule in &listed {
            let _ = writeln!(out, "line {:>4}  {}: {}", rule.line, who(rule), rule.action);
        }
        out.push_str("otherwise  every flow: pass\n");
        output::print(&out)
    }

    fn load(&self) -> Result<Policy, Failure> {
        let Some(plane) = self.plane else {
            return self.file.load();
        };
        let checked = plane.load(self.file.path(), &self.interface);
        for warning in checked.warnings {
            eprintln!("warning: {warning}");
        }
        checked.policy.map_err(Failure::of)
    }
}

/// Describes the conditions and the action of a rule.
pub(super) fn described(rule: &PolicyRule) -> String {
    let rule = listed(rule);
    format!("{}: {}", who(&rule), rule.action)
}

fn listed(rule: &PolicyRule) -> Listed {
    let conditions = [
        ("from", texts(&rule.from)),
        ("to", texts(&rule.to)),
        ("from_port", texts(&rule.from_ports)),
        ("to_port", texts(&rule.to_ports)),
        ("interface", texts(&rule.interfaces)),
        ("dscp", texts(&rule.dscp)),
        ("cgroup", texts(&rule.cgroups)),
        ("user", texts(&rule.users)),
        ("command", texts(&rule.commands)),
        ("share", texts(rule.share.as_slice())),
    ];
    Listed {
        line: rule.line,
        conditions: (conditions.into_iter())
            .filter(|(_, values)| !values.is_empty())
            .collect(),
        action: action(rule),
    }
}

fn texts(values: &[impl Display]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

fn who(rule: &Listed) -> String {
    let conditions = rule.conditions.iter();
    let written: Vec<_> = conditions
        .map(|(key, values)| format!("{key} {}", values.join(" or ")))
        .collect();
    if written.is_empty() {
        "every flow".to_owned()
    } else {
        written.join(", ")
    }
}
