//! `weir lab`: live runs on this machine, and what killed ones left.

mod clean;
mod host;
mod list;

use clap::Subcommand;

use crate::failure::Failure;

pub(crate) use host::LabHost;

/// What the command line says.
#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    /// List the live runs on this machine, with their hosts' processes
    List(list::List),
    /// Remove what live runs left whose process was killed
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
