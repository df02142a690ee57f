//! `weir policy`: which flows `weir enforce` would control, and how.

mod check;
mod explain;
mod reload;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use weir_policy::{Policy as Rules, PolicyRule};
use weir_scenario::load_policy;

use crate::failure::Failure;

/// What the command line says.
#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// Look for mistakes in a policy file, and print its rules
    Check(check::Check),
    /// Say which rule of a policy holds for a flow, and why
    Explain(explain::Explain),
    /// Have a running `weir enforce` read its policy file again
    Reload(reload::Reload),
}

/// The file.
#[derive(Debug, Args)]
struct File {
    /// The policy file; docs/policy.md describes it
    file: PathBuf,
}

impl Policy {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match self {
            Self::Check(check) => check.run(),
            Self::Explain(explain) => explain.run(),
            Self::Reload(reload) => reload.run(),
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

/// What a rule does, in a few words.
fn action(rule: &PolicyRule) -> String {
    let Some(control) = &rule.control else {
        return "pass".to_owned();
    };
    match control.ecn {
        None => control.congestion.to_string(),
        Some(ecn) => format!("{} ecn={ecn}", control.congestion),
    }
}
