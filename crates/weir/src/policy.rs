//! `weir policy`: checks and explains policy files of `weir enforce`, and pushes versions of them to many hosts.

mod check;
mod controllers;
mod diff;
mod explain;
mod host;
mod log;
mod plane;
mod push;
mod reload;
mod simulate;
pub(crate) mod status;
mod undo;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use weir_policy::{Policy as Rules, PolicyRule};
use weir_scenario::load_policy;

use crate::failure::Failure;

pub(crate) use controllers::named;
pub(crate) use host::HostArguments;
pub(crate) use plane::Plane;

/// The subcommands of `weir policy`.
#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// Check a policy file for mistakes, and print its rules
    Check(check::Check),
    /// Show which rule of a policy applies to a flow, and why
    Explain(explain::Explain),
    /// Make a running `weir enforce` reload its policy file
    Reload(reload::Reload),
    /// Push a version to all hosts of a controller, in stages, simulated before
    Push(push::Push),
    /// Show how rules differ between two versions, or from a version to a file
    Diff(diff::Diff),
    /// Show the audit log: who has pushed what, and which host took it when
    Log(log::Log),
    /// Stop the version on its way, or push the one before the last again
    Undo(undo::Undo),
    /// Show which version is on its way, and which host has what
    Status(status::Status),
}

/// The policy file argument.
#[derive(Debug, Args)]
struct File {
    /// Policy file; docs/policy.md describes its format
    file: PathBuf,
}

impl Policy {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match self {
            Self::Check(check) => check.run(),
            Self::Explain(explain) => explain.run(),
            Self::Reload(reload) => reload.run(),
            Self::Push(push) => push.run(),
            Self::Diff(diff) => diff.run(),
            Self::Log(log) => log.run(),
            Self::Undo(undo) => undo.run(),
            Self::Status(status) => status.run(),
        }
    }
}

impl File {
    fn load(&self) -> Result<Rules, Failure> {
        load_policy(&self.file).map_err(Failure::of)
    }

    fn path(&self) -> &Path {
        &self.file
    }
}

/// Describes the action of a rule.
fn action(rule: &PolicyRule) -> String {
    let Some(control) = &rule.control else {
        return "pass".to_owned();
    };
    let mut text = control.congestion.to_string();
    if let Some(ecn) = control.ecn {
        let _ = write!(text, " ecn={ecn}");
    }
    if rule.compare {
        text.push_str(", compared with the rest");
    }
    for condition in &rule.undo_if {
        let _ = write!(text, ", undone if {condition}");
    }
    text
}
