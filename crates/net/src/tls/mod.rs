//! TLS 1.3 by rustls: identities and trust.
//!
//! A server has an [`Identity`]: a certificate chain and its key, from files or, for development,
//! made by `Identity::self_signed` (feature `self-signed`). A client trusts either the authorities that it is given
//! ([`ClientTls::with_roots`]) or exactly one certificate, by its [`Fingerprint`]
//! ([`ClientTls::pinned`]), or workloads by their SPIFFE IDs ([`ClientTls::with_spiffe`]). Certificates
//! are always verified; nothing turns that off. [`ServerTls::from_rustls`] and
//! [`ClientTls::from_rustls`] take configurations of rustls instead. `docs/tls.md` has examples.
//!
//! Where the environment variable `SSLKEYLOGFILE` names a file, keys are written to it.

mod cipher_suite;
mod client;
mod client_auth;
mod crls;
mod error;
mod fingerprint;
mod identity;
mod pin;
mod reload;
mod resolver;
mod roots;
mod server;
mod sessions;
mod spiffe;
mod ticket_keys;

use std::sync::Arc;

use rustls::{KeyLog, KeyLogFile, NoKeyLog};

pub use cipher_suite::CipherSuite;
pub use client::{ClientCredentials, ClientTls};
pub use crls::Crls;
pub use error::TlsError;
pub use fingerprint::{Fingerprint, FingerprintError};
pub use identity::Identity;
pub use pin::PinnedCertificate;
pub use reload::{Reload, ReloadCounters};
pub use roots::Roots;
pub use server::{ServerCredentials, ServerTls};
pub use spiffe::{SpiffeError, SpiffeId};
pub use ticket_keys::TicketKeys;

/// The default application protocol (ALPN) of both sides.
pub const DEFAULT_APPLICATION_PROTOCOL: &[u8] = b"weir";

/// Returns a log of the connections' keys to the file that `SSLKEYLOGFILE` names, if it is set: a
/// reader of that file can decrypt the connections.
fn key_log() -> Arc<dyn KeyLog> {
    if std::env::var_os("SSLKEYLOGFILE").is_none_or(|name| name.is_empty()) {
        return Arc::new(NoKeyLog);
    }
    tracing::warn!("SSLKEYLOGFILE is set: who has that file can read these connections");
    Arc::new(KeyLogFile::new())
}
