//! Interoperability tests: DCQUIC (`weir-net`) with `quinn`, `quiche` and `s2n-quic`, in both
//! directions, over real sockets, with the cases of the QUIC interop runner.
//!
//! Client and server run on one thread with a forwarder between them. The forwarder drops, delays,
//! corrupts and marks datagrams, rebinds client addresses, and records every datagram so that cases
//! can check the traffic. [`run`] runs one case; [`matrix`] runs all of them and writes
//! `docs/interop.md` (`make interop`).
//!
//! | module | contents |
//! |---|---|
//! | [`case`] | the list of cases, and which stacks do not support them |
//! | `cases` | the implementation of the cases |
//! | `stack` | the four stacks behind one interface |
//! | `wire` | the forwarder, its rules and its records |
//! | [`capture`] | recorded traffic as a pcapng file with keys, for Wireshark |
//! | [`matrix`] | the result table |

pub mod capture;
pub mod case;
mod cases;
pub mod matrix;
mod stack;
mod wire;

use std::fmt;
use std::time::Duration;

pub use case::{Case, Unsupported};
pub use stack::Peer;

/// Time limit of a case; only a case that hangs reaches it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Which side is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Our client and their server.
    OurClient,
    /// Their client and our server.
    OurServer,
}

impl Direction {
    /// Both directions.
    pub const ALL: [Self; 2] = [Self::OurClient, Self::OurServer];

    /// Returns a name that can be part of a test's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::OurClient => "our-client",
            Self::OurServer => "our-server",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Why a case failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A check failed, or a stack reported an error.
    #[error("{0}")]
    Case(Box<dyn std::error::Error + Send + Sync>),
    /// The case did not end in time.
    #[error("it did not end within {} s", PATIENCE.as_secs())]
    Hangs,
    /// The tokio runtime could not be created.
    #[error("no runtime: {0}")]
    Runtime(std::io::Error),
}

/// Runs a case that both sides support ([`Case::unsupported`]), on its own runtime.
///
/// # Errors
/// Returns the reason if the case fails.
pub fn run(case: Case, peer: Peer, direction: Direction) -> Result<(), Failure> {
    on_a_runtime(cases::run(case, cases::Pairing { peer, direction }))
}

fn on_a_runtime<T>(work: impl Future<Output = stack::Result<T>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::Runtime)?;
    // Dropping the set drops all tasks spawned on it.
    let tasks = tokio::task::LocalSet::new();
    let bounded = async { tokio::time::timeout(PATIENCE, work).await };
    match runtime.block_on(tasks.run_until(bounded)) {
        Ok(result) => result.map_err(Failure::Case),
        Err(_) => Err(Failure::Hangs),
    }
}
