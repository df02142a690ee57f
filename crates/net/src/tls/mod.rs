//! Who we are and whom we trust: TLS 1.3 by rustls.
//!
//! A server has an [`Identity`]: a certificate chain and its key, from files or, for development,
//! made by [`Identity::self_signed`]. A client trusts either the authorities that it is given
//! ([`ClientTls::with_roots`]) or exactly one certificate, by its [`Fingerprint`]
//! ([`ClientTls::pinned`]). Certificates are always verified; nothing turns that off.

mod cipher_suite;
mod client;
mod error;
mod fingerprint;
mod identity;
mod pin;
mod roots;
mod server;
mod sessions;

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
