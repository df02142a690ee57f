//! `weir lab-host`: the process of a host in a live run.

use clap::Args;

use crate::failure::Failure;

/// Takes no arguments; its configuration comes over standard input, which is a socket.
#[derive(Debug, Args)]
pub(crate) struct LabHost {}

impl LabHost {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        weir_lab::host::run().map_err(Failure::of)
    }
}
