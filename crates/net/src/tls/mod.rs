//! Who we are and whom we trust: TLS 1.3 by rustls.
//!
//! A server has an [`Identity`]: a certificate chain and its key, from files or, for development,
//! made by [`Identity::self_signed`]. A client trusts either the authorities that it is given
//! ([`ClientTls::with_roots`]) or exactly one certificate, by its [`Fingerprint`]
//! ([`ClientTls::pinned`]). Certificates are always verified; nothing turns that off.
//!
//! Where the environment variable `SSLKEYLOGFILE` names a file, keys are written to it.

mod cipher_suite;
mod client;
mod error;
mod fingerprint;
mod identity;
mod pin;
mod roots;
mod server;
mod sessions;

use std::sync::Arc;

use rustls::{KeyLog, KeyLogFile, NoKeyLog};

pub use cipher_suite::CipherSuite;
pub use client::{ClientCredentials, ClientTls};
pub use error::TlsError;
pub use fingerprint::{Fingerprint, FingerprintError};
pub use identity::Identity;
pub use pin::PinnedCertificate;
pub use roots::Roots;
pub use server::{ServerCredentials, ServerTls};

/// The application protocol that both sides offer unless they are told otherwise.
pub const DEFAULT_APPLICATION_PROTOCOL: &[u8] = b"weir";

/// Writes the keys of connections to the file that `SSLKEYLOGFILE` names, where it names one: who has
/// that file can read what they carry.
fn key_log() -> Arc<dyn KeyLog> {
    if std::env::var_os("SSLKEYLOGFILE").is_none_or(|name| name.is_empty()) {
        return Arc::new(NoKeyLog);
    }
    tracing::warn!("SSLKEYLOGFILE is set: who has that file can read these connections");
    Arc::new(KeyLogFile::new())
}
