//! `weir policy check`

use std::fmt::{Display, Write as _};

use clap::Args;
use serde::Serialize;
use weir_policy::PolicyRule;

use super::{File, action};
use crate::failure::Failure;
use crate::output;

/// The arguments of `weir policy check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir policy check policy.toml          its mistakes, or its rules
  weir policy check policy.toml --json   for programs

Exit code 1 tells of mistakes.")]
pub(crate) struct Check {
    #[command(flatten)]
    file: File,

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
        let policy = self.file.load()?;
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
}

fn listed(rule: &PolicyRule) -> Listed {
    let conditions = [
        ("from", texts(&rule.from)),
        ("to", texts(&rule.to)),
        ("from_port", texts(&rule.from_ports)),
        ("to_port", texts(&rule.to_ports)),
        ("interface", texts(&rule.interfaces)),
        ("dscp", texts(&rule.dscp)),
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
