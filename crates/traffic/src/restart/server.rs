//! The server's process: it answers calls, and first writes their numbers to standard output.

use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;

use rustix::process::{Signal, set_parent_process_death_signal};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use serde::{Deserialize, Serialize};
use weir_net::tls::Identity;

use super::{Contestant, REQUEST, dcquic, tcp_tls};
use crate::calls::error::Error;

/// The first server's address. Clients are at 127.0.0.1: while no server has its port, none of theirs is
/// the same, and none can connect to itself.
pub(super) const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)), 0);

/// What a server is told, as one line of JSON on standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Role {
    pub(super) contestant: Contestant,
    pub(super) address: SocketAddr,
    /// DER.
    pub(super) certificate: Vec<u8>,
    /// PKCS #8.
    pub(super) key: Vec<u8>,
    /// The secret of the endpoint, which survives restarts.
    pub(super) secret: [u8; 32],
}

impl Role {
    pub(super) fn identity(&self) -> Identity {
        let chain = vec![CertificateDer::from(self.certificate.clone())];
        Identity::from_der(chain, PrivatePkcs8KeyDer::from(self.key.clone()).into())
    }
}

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

/// The record of what this process executes: numbers of 8 bytes in a pipe. The kernel keeps what was
/// written when the process dies, and writes 8 bytes at once or not at all.
pub(super) struct Journal(File);

impl Journal {
    fn open() -> Result<Self, Error> {
        let stdout = std::io::stdout().as_fd().try_clone_to_owned();
        let stdout = stdout.map_err(Error::io("opening standard output"))?;
        Ok(Self(File::from(stdout)))
    }

    /// Tells the parent that the server listens.
    pub(super) fn listening(&self, address: SocketAddr) -> Result<(), Error> {
        let port = u64::from(address.port());
        (&self.0)
            .write_all(&port.to_le_bytes())
            .map_err(Error::io("writing to standard output"))
    }

    /// Executes a call, which is no more than to record it. Returns `false`, and the call must not be
    /// answered, if the request is malformed or cannot be recorded.
    pub(super) fn execute(&self, request: &[u8]) -> bool {
        match request.first_chunk::<8>() {
            Some(number) if request.len() == REQUEST => (&self.0).write_all(number).is_ok(),
            _ => false,
        }
    }
}
