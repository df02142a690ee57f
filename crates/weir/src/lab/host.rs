//! `weir lab-host`: a host of a live run.

use clap::Args;

use crate::failure::Failure;

/// Everything that it has to know comes over its standard input, which is a socket.
#[derive(Debug, Args)]
pub(crate) struct LabHost {}

impl LabHost {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        weir_lab::host::run().map_err(Failure::of)
    }
}
