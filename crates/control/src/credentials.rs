//! Credentials of one end of a connection, and the authority that it trusts.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tonic::transport::{Certificate, ClientTlsConfig, Identity, ServerTlsConfig};

use crate::role::Role;

/// A certificate, its key, and the authority that verifies the peer's certificate.
#[derive(Clone)]
pub struct Credentials {
    authority: Vec<u8>,
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Credentials")
            .finish_non_exhaustive()
    }
}

/// A file cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}; `weir sed certificates` makes what is needed")]
pub struct CredentialsError {
    path: PathBuf,
    source: io::Error,
}

/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(5);

impl Credentials {
    /// Reads `authority.pem`, `NAME.pem` and `NAME.key` from a directory, as
    /// [`Authority`](crate::certificates::Authority) writes them.
    ///
    /// # Errors
    /// [`CredentialsError`], with the file's name.
    pub fn from_directory(directory: &Path, name: &str) -> Result<Self, CredentialsError> {
        let read = |file: String| {
            let path = directory.join(file);
            fs::read(&path).map_err(|source| CredentialsError { path, source })
        };
        Ok(Self {
            authority: read("authority.pem".to_owned())?,
            certificate: read(format!("{name}.pem"))?,
            key: read(format!("{name}.key"))?,
        })
    }

    pub(crate) fn server(&self) -> ServerTlsConfig {
        ServerTlsConfig::new()
            .identity(Identity::from_pem(&self.certificate, &self.key))
            .client_ca_root(Certificate::from_pem(&self.authority))
            .timeout(HANDSHAKE)
    }

    /// The peer must have the controller's certificate, at any address.
    pub(crate) fn client(&self) -> ClientTlsConfig {
        ClientTlsConfig::new()
            .identity(Identity::from_pem(&self.certificate, &self.key))
            .ca_certificate(Certificate::from_pem(&self.authority))
            .domain_name(Role::Controller.to_string())
    }
}
