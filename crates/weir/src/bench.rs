//! `weir bench`

mod rpc;
mod worker;

use clap::Subcommand;

use crate::failure::Failure;

/// Comparisons of transports.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Measure requests and responses: connection set-up, resumption, and open connections
    Rpc(Box<rpc::Rpc>),
    /// One process of a measurement; started by the other commands
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
