//! Credentials of one end of a connection, and the authority that it trusts.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use weir_net::tls::{
    ClientCredentials, ClientTls, Crls, Identity, Roots, ServerCredentials, ServerTls, TlsError,
};
use weir_units::Duration;

/// A certificate, its key, the authority that verifies the peer's certificate, and the certificates that
/// it has revoked. Their files are read again while they are in use: new connections have the new
/// contents, and what cannot be used changes nothing.
#[derive(Clone)]
pub struct Credentials {
    authority: Roots,
    identity: Identity,
    revoked: Option<Crls>,
    reload_interval: Duration,
    /// For connections to a controller, once there is one; clones share it.
    client: Arc<OnceLock<ClientCredentials>>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Credentials")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// A file cannot be read, or TLS cannot use its contents.
#[derive(Debug, thiserror::Error)]
#[error("{0}; `weir sed certificates` makes what is needed")]
pub struct CredentialsError(#[from] TlsError);

/// How often files are read again.
const RELOAD: Duration = Duration::from_secs(10);
/// The application protocol (ALPN) of gRPC.
const HTTP_2: &str = "h2";

impl Credentials {
    /// Reads `authority.pem`, `NAME.pem` and `NAME.key` from a directory, as
    /// [`Authority`](crate::certificates::Authority) writes them.
    ///
    /// # Errors
    /// [`CredentialsError`], with the file's name.
    pub fn from_directory(directory: &Path, name: &str) -> Result<Self, CredentialsError> {
        let path = |file: &str| directory.join(file);
        let (certificate, key) = (path(&format!("{name}.pem")), path(&format!("{name}.key")));
        let credentials = Self {
            authority: Roots::from_file(path("authority.pem"))?,
            identity: Identity::from_files(certificate, key)?,
            revoked: None,
            reload_interval: RELOAD,
            client: Arc::default(),
        };
        credentials.check()
    }

    /// Refuses certificates that a file with a revocation list of the authority contains.
    ///
    /// # Errors
    /// [`CredentialsError`], with the file's name.
    pub fn with_crl(self, file: &Path) -> Result<Self, CredentialsError> {
        let credentials = Self {
            revoked: Some(Crls::from_files([file])?),
            client: Arc::default(),
            ..self
        };
        credentials.check()
    }

    /// Sets how often the files are read again; 10 s by default.
    pub fn reload_every(self, interval: Duration) -> Self {
        Self {
            reload_interval: interval,
            client: Arc::default(),
            ..self
        }
    }

    pub(crate) fn reload_interval(&self) -> Duration {
        self.reload_interval
    }

    /// Returns the configuration of a controller, which nothing reloads by itself.
    pub(crate) fn server(&self) -> Result<ServerCredentials, CredentialsError> {
        let tls = ServerTls::new(self.identity.clone())
            .client_roots(self.authority.clone())
            .application_protocols([HTTP_2])
            // A resumed session would not be verified again.
            .tickets(0);
        let tls = match &self.revoked {
            Some(revoked) => tls.client_crls(revoked.clone()),
            None => tls,
        };
        Ok(tls.build()?)
    }

    /// Returns the configuration of connections to a controller, which is reloaded.
    pub(crate) fn client(&self) -> Result<&ClientCredentials, CredentialsError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = self.client_tls()?.reload_every(self.reload_interval);
        let client = client.build()?;
        Ok(self.client.get_or_init(|| client))
    }

    fn client_tls(&self) -> Result<ClientTls, TlsError> {
        let tls = ClientTls::with_roots(self.authority.clone())?
            .identity(self.identity.clone())
            .application_protocols([HTTP_2])
            .resumption(false);
        Ok(match &self.revoked {
            Some(revoked) => tls.crls(revoked.clone()),
            None => tls,
        })
    }

    /// Checks that TLS can use everything.
    fn check(self) -> Result<Self, CredentialsError> {
        self.client_tls()?.build()?;
        Ok(self)
    }
}
