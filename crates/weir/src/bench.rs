//! `weir bench`

mod rpc;
mod worker;

use clap::Subcommand;

use crate::failure::Failure;

/// Comparisons of transports.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Measure requests and responses: connecting, resuming, and on open connections
    Rpc(Box<rpc::Rpc>),
    /// One side of a measurement; started by the others
    #[command(hide = true)]
    Worker(worker::Worker),
}

impl Bench {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match self {
            Self::Rpc(rpc) => rpc.run(),
            Self::Worker(worker) => worker.run(),
        }
    }
}
