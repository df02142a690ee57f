//! `weir bench worker`: a client or server process of `weir bench rpc`.

use clap::Args;

use crate::failure::Failure;

/// Everything that it has to know comes over standard input.
#[derive(Debug, Args)]
pub(crate) struct Worker {}

impl Worker {
    /// What [`Launcher`](weir_traffic::calls::Launcher) has to call to get here.
    pub(crate) const ARGUMENTS: [&'static str; 2] = ["bench", "worker"];

    pub(crate) fn run(&self) -> Result<(), Failure> {
        weir_traffic::calls::worker::run(&weir_traffic::calls::standard_drivers())
            .map_err(Failure::of)
    }
}
