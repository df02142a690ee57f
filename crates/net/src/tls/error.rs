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
    /// No certificate revocation list where one is needed.
    #[error("no certificate revocation list found in {origin}: PEM or DER is expected")]
    NoCrl {
        /// The file, or another name of the input.
        origin: String,
    },
    /// No secret for tickets, a malformed one, or too many.
    #[error(
        "{origin} must have 1 to 16 lines of 64 hexadecimal digits, as of `openssl rand -hex 32`"
    )]
    NoTicketKey {
        /// The file, or another name of the input.
        origin: String,
    },
    /// The cryptographic library refuses a ticket key.
    #[error("a ticket key cannot be used")]
    TicketKey,
    /// Shared ticket keys together with early data.
    #[error(
        "early data cannot be accepted with shared ticket keys: each server would accept a replay once"
    )]
    EarlyDataWithTicketKeys,
    /// A setting for clients' certificates without authorities that sign them.
    #[error("`{setting}` needs the authorities of clients: `client_roots`")]
    WithoutClientRoots {
        /// The setting.
        setting: &'static str,
    },
    /// A setting that a pinned certificate makes meaningless.
    #[error("`{setting}` has no effect on a pinned certificate: use `with_roots` or `with_spiffe`")]
    WithPinnedCertificate {
        /// The setting.
        setting: &'static str,
    },
    /// Clients are accepted in two ways that do not go together.
    #[error(
        "`client_roots` and `client_fingerprints` are two ways to accept clients: use one of them"
    )]
    ClientRootsAndFingerprints,
    /// A rustls configuration without an application protocol.
    #[error("the rustls configuration has no application protocol (ALPN), which QUIC needs")]
    NoApplicationProtocol,
    /// A rustls configuration with [`weir_quic::crypto::tls::provider()`], asked to serve TCP.
    #[error("the rustls configuration's cipher suites are for QUIC alone: they protect no records")]
    QuicAlone,
    /// The thread that reads files again could not be started.
    #[error("cannot start the thread that reloads credentials: {0}")]
    Thread(io::Error),
    /// A certificate could not be created.
    #[cfg(feature = "self-signed")]
    #[error("cannot make a self-signed certificate: {0}")]
    SelfSigned(#[from] rcgen::Error),
    /// rustls rejects the certificate, the key or a setting.
    #[error("TLS: {0}")]
    Rustls(#[from] rustls::Error),
    /// rustls rejects these authorities or revocation lists.
    #[error("TLS: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    /// QUIC cannot use the configuration.
    #[error(transparent)]
    Quic(#[from] StartError),
}
