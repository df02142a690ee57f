//! `weir perf`

mod client;
mod report;
mod server;
mod text;

use std::path::Path;
use std::sync::Arc;

use clap::Subcommand;
use tokio::runtime::Runtime;
use weir_policy::Policy;
use weir_traffic::throughput::{PreSharedKey, read_key};

use crate::failure::Failure;
use crate::interrupt;
use crate::policy::Plane;

/// Throughput tests.
#[derive(Debug, Subcommand)]
pub(crate) enum Perf {
    /// Wait for clients and run their tests, one at a time
    Server(server::Server),
    /// Run a test against a server
    Client(client::Client),
}

impl Perf {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let runtime = Runtime::new().map_err(Failure::of)?;
        match self {
            Self::Server(server) => runtime.block_on(server.run()),
            Self::Client(client) => {
                interrupt::end_on_signals()?;
                runtime.block_on(client.run())
            }
        }
    }
}

/// Reads the key from a file.
fn shared_key(path: &Path) -> Result<Arc<PreSharedKey>, Failure> {
    let key = read_key(path);
    let key = key.map_err(|error| Failure::option("key-file", error))?;
    Ok(Arc::new(key))
}

/// Reads the policy from a file, and prints warnings.
fn policy(file: &Path) -> Result<Policy, Failure> {
    // The endpoints are bound to no interface.
    let checked = Plane::Dcquic.load(file, &[]);
    for warning in checked.warnings {
        eprintln!("warning: {warning}");
    }
    checked.policy.map_err(Failure::of)
}
