//! Errors of certificates, keys and TLS settings.

use std::io;
use std::path::PathBuf;

use weir_quic::crypto::StartError;

/// Why a TLS configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// No certificate where one is needed.
    #[error("no certificate found in {origin}: PEM or DER is expected")]
    NoCertificate {
        /// The file, or another name of the input.
        origin: String,
    },
    /// No private key where one is needed.
    #[error("no private key found in {origin}: PKCS#8, PKCS#1 or SEC1 in PEM or DER is expected")]
    NoPrivateKey {
        /// The file, or another name of the input.
        origin: String,
    },
    /// A certificate could not be created.
    #[cfg(feature = "self-signed")]
    #[error("cannot make a self-signed certificate: {0}")]
    SelfSigned(#[from] rcgen::Error),
    /// rustls rejects the certificate, the key or a setting.
    #[error("TLS: {0}")]
    Rustls(#[from] rustls::Error),
    /// rustls rejects these authorities for client certificates.
    #[error("TLS: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    /// QUIC cannot use the configuration.
    #[error(transparent)]
    Quic(#[from] StartError),
}
