//! `weir bench worker`: a client or server process of `weir bench rpc`.

use clap::Args;

use crate::failure::Failure;

/// Takes no arguments; its configuration comes over standard input.
#[derive(Debug, Args)]
pub(crate) struct Worker {}

impl Worker {
    /// The arguments with which [`Launcher`](weir_traffic::calls::Launcher) starts this command.
    pub(crate) const ARGUMENTS: [&'static str; 2] = ["bench", "worker"];

    pub(crate) fn run(&self) -> Result<(), Failure> {
        weir_traffic::calls::worker::run(&weir_traffic::calls::standard_drivers())
            .map_err(Failure::of)
    }
}
