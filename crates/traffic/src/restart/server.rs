//! The server's process: it answers calls, and first writes their numbers to standard output.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use rustix::process::{Signal, set_parent_process_death_signal};

use super::execution::{Journal, Role};
use super::{Contestant, dcquic, tcp_tls};
use crate::calls::error::Error;

/// The first server's address. Clients are at 127.0.0.1: while no server has its port, none of theirs is
/// the same, and none can connect to itself.
pub(super) const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)), 0);

/// Runs the server of a [`run`](super::run) until it is killed, at the latest with its parent.
///
/// # Errors
/// The role on standard input is invalid, or the server cannot listen.
pub fn serve() -> Result<(), Error> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|errno| Error::io("tying the process to its parent")(errno.into()))?;
    let mut line = String::new();
    std::io::stdin()
        .read_line(&mut line)
        .map_err(Error::io("reading standard input"))?;
    let role: Role = serde_json::from_str(&line)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::io("starting the runtime"))?;
    let journal = Journal::open()?;
    runtime.block_on(async {
        match role.contestant {
            Contestant::Dcquic => dcquic::serve(&role, journal).await,
            Contestant::TcpTls => tcp_tls::serve(&role, journal).await,
        }
    })
}
