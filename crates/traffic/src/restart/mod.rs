//! A restart storm: a server is killed and started again at once, while many clients call it.
//!
//! Every call has a connection of its own and a number of its own. Calls arrive as a Poisson process,
//! whether or not earlier ones have ended, and the time of a call runs from its arrival. There are no
//! repetitions: a call that fails has failed.
//!
//! The server writes each number to a pipe before it answers, and so before the call can count as
//! answered. What is in the pipe survives the server. [`Report`] compares what both processes executed with
//! what the clients were told.
//!
//! [`run`] is the parent's part: it starts the server as a child process, which calls [`serve`], and has the
//! clients on a thread of its own. Either side does everything on one thread.

mod call;
mod clients;
mod dcquic;
mod execution;
mod load;
mod process;
mod report;
mod server;
mod tcp_tls;

use std::fmt;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use weir_units::Duration;

use crate::calls::error::Error;
use crate::calls::identity::{certificate, new_identity};
use crate::calls::process::{Launcher, raise_file_limit};

pub use report::{Counts, Report, Restart, Times, Violations};
pub use server::serve;

use execution::Role;
use process::ServerProcess;
use report::Sample;

/// The bytes of a request, and of its answer: the call's number, and zeros.
pub const REQUEST: usize = 64;

/// A transport under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Contestant {
    /// DCQUIC with known peers.
    Dcquic,
    /// TLS 1.3 over kernel TCP, with session resumption and without early data, which a network could
    /// replay.
    TcpTls,
}

impl Contestant {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Dcquic, Self::TcpTls];
}

impl fmt::Display for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dcquic => "DCQUIC",
            Self::TcpTls => "TCP + TLS 1.3",
        })
    }
}

/// The parameters of a storm.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The transport.
    pub contestant: Contestant,
    /// Clients, each with credentials of its own; at least one.
    pub clients: usize,
    /// The mean rate of calls per second, of all clients together; positive.
    pub rate_per_s: f64,
    /// How long calls arrive before the server is killed.
    pub before: Duration,
    /// How long calls arrive from then on.
    pub after: Duration,
    /// How long a call may take from its arrival.
    pub deadline: Duration,
    /// The most calls in progress; a call that arrives beyond them does not start.
    pub concurrent: usize,
    /// The seed of the arrivals and of the clients that they choose.
    pub seed: u64,
}

/// Runs a storm. `launcher` starts a process that calls [`serve`].
///
/// Raises this process's limit of open files to what the system allows.
///
/// # Errors
/// A process or a socket cannot be started, or a client does not get to know the server before the storm.
/// Calls that fail in the storm are results.
pub fn run(plan: &Plan, launcher: &Launcher) -> Result<Report, Error> {
    raise_file_limit()?;
    let identity = new_identity()?;
    let mut secret = [0; 32];
    random(&mut secret)?;
    let mut role = Role {
        contestant: plan.contestant,
        address: server::ANY_PORT,
        certificate: certificate(&identity),
        key: identity.private_key().secret_der().to_vec(),
        secret,
    };
    let mut first = ServerProcess::start(launcher, &role)?;
    // The new server has the old one's address.
    role.address = first.address();

    let (ready, begun) = mpsc::channel();
    let (storm, address) = (plan.clone(), role.address);
    let calls = thread::spawn(move || -> Result<Vec<Sample>, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Error::io("starting the runtime"))?;
        runtime.block_on(load::run(&storm, address, &identity, &ready))
    });
    let mut executed = Vec::new();
    let mut restarted = None;
    // Without a beginning the thread has failed, and says why.
    if let Ok(begin) = begun.recv() {
        sleep_until(begin + std::time::Duration::from(plan.before));
        let killed = begin.elapsed();
        executed.extend(first.kill()?);
        let second = ServerProcess::start(launcher, &role)?;
        let restart = Restart {
            killed: killed.into(),
            listening: begin.elapsed().into(),
        };
        restarted = Some((second, restart));
    }
    let samples = calls
        .join()
        .map_err(|_| Error::transport("running the clients", "their thread panicked"))??;
    let Some((mut second, restart)) = restarted else {
        return Err(Error::transport("running the clients", "none began"));
    };
    executed.extend(second.kill()?);
    Report::new(plan, &samples, &executed, restart)
}

/// Fills the bytes with random numbers of the system.
fn random(bytes: &mut [u8]) -> Result<(), Error> {
    rustls::crypto::aws_lc_rs::default_provider()
        .secure_random
        .fill(bytes)
        .map_err(|_| Error::transport("drawing a secret", "the system gives no random numbers"))
}

/// Sleeps to the resolution of the kernel's timers; returns at once if the time has passed.
fn sleep_until(time: Instant) {
    thread::sleep(time.saturating_duration_since(Instant::now()));
}
