//! The certificate of the servers, and the names that all transports share.

use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use weir_net::tls::Identity;

use crate::calls::error::Error;

/// The application protocol that all transports negotiate (RFC 7301).
pub const ALPN: &[u8] = b"weir-bench";

/// The name in the certificate.
pub const SERVER_NAME: &str = "localhost";

/// The TLS parameters in [`report::Environment`](crate::calls::report::Environment).
pub const TLS_PARAMETERS: &str =
    "TLS 1.3, aws-lc-rs, X25519, TLS_AES_128_GCM_SHA256, self-signed ECDSA P-256 certificate";

/// Creates a new certificate for [`SERVER_NAME`] with a new P-256 key.
///
/// # Errors
/// [`Error::Certificate`] if the system provides no randomness.
pub fn new_identity() -> Result<Identity, Error> {
    Identity::self_signed([SERVER_NAME]).map_err(|error| Error::Certificate(error.to_string()))
}

/// Returns the certificate that clients of a server with this identity trust, in DER.
#[must_use]
pub fn certificate(identity: &Identity) -> Vec<u8> {
    let certificate = identity.chain().first();
    certificate.map(|der| der.to_vec()).unwrap_or_default()
}

/// Returns the identity with this certificate, in DER, and its key, as PKCS #8 in DER.
#[must_use]
pub fn identity_from_der(certificate: Vec<u8>, key: Vec<u8>) -> Identity {
    let chain = vec![CertificateDer::from(certificate)];
    Identity::from_der(chain, PrivatePkcs8KeyDer::from(key).into())
}
