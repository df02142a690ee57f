//! What a server is told, and the record of what it executes.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use serde::{Deserialize, Serialize};
use weir_net::tls::Identity;

use super::{Contestant, REQUEST};
use crate::calls::error::Error;
use crate::calls::identity::identity_from_der;

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
        identity_from_der(self.certificate.clone(), self.key.clone())
    }
}

/// The record of what this process executes: numbers of 8 bytes in a pipe. The kernel keeps what was
/// written when the process dies, and writes 8 bytes at once or not at all.
pub(super) struct Journal(File);

impl Journal {
    pub(super) fn open() -> Result<Self, Error> {
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
