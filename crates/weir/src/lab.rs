//! `weir lab`: lists live runs on this machine, and removes the remains of killed ones.

mod clean;
mod host;
mod list;

use clap::Subcommand;

use crate::failure::Failure;

pub(crate) use host::LabHost;

/// The subcommands of `weir lab`.
#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    /// List the live runs on this machine, with their host processes
    List(list::List),
    /// Remove the remains of live runs whose process was killed
    Clean(clean::Clean),
}

impl Lab {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match self {
            Self::List(list) => list.run(),
            Self::Clean(clean) => clean.run(),
        }
    }
}
