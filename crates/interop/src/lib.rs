//! Is it QUIC? DCQUIC (`weir-net`) with `quinn`, `quiche` and `s2n-quic`, in both directions, over
//! real sockets, with the cases of the QUIC interop runner.
//!
//! Client and server run on one thread with a forwarder between them, which loses, delays, changes
//! and marks datagrams, gives clients other addresses, and keeps a record by which cases check what
//! really went over the wire. [`run`] runs one case; `docs/interop.md` is what [`matrix`] makes of
//! all of them (`make interop`).
//!
//! | module | what it tells |
//! |---|---|
//! | [`case`] | which cases there are, and who does not support which |
//! | `cases` | what they do |
//! | `stack` | the four stacks behind one face |
//! | `wire` | the forwarder, its rules and its records |
//! | [`capture`] | what went over the wire as a pcapng file with keys, for Wireshark |
//! | [`matrix`] | the table |

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

/// Bounds each case; reached only by one that hangs.
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
    /// Both.
    pub const ALL: [Self; 2] = [Self::OurClient, Self::OurServer];

    /// A name that fits into the name of a test.
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
    /// What must hold did not, or a stack reported an error.
    #[error("{0}")]
    Case(Box<dyn std::error::Error + Send + Sync>),
    /// It did not end.
    #[error("it did not end within {} s", PATIENCE.as_secs())]
    Hangs,
    /// There is no runtime to be had.
    #[error("no runtime: {0}")]
    Runtime(std::io::Error),
}

/// Runs a case that both sides support ([`Case::unsupported`]), on a runtime of its own.
///
/// # Errors
/// What did not hold.
pub fn run(case: Case, peer: Peer, direction: Direction) -> Result<(), Failure> {
    on_a_runtime(cases::run(case, cases::Pairing { peer, direction }))
}

fn on_a_runtime<T>(work: impl Future<Output = stack::Result<T>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::Runtime)?;
    // Tasks that were spawned there are dropped with it.
    let tasks = tokio::task::LocalSet::new();
    let bounded = async { tokio::time::timeout(PATIENCE, work).await };
    match runtime.block_on(tasks.run_until(bounded)) {
        Ok(result) => result.map_err(Failure::Case),
        Err(_) => Err(Failure::Hangs),
    }
}
