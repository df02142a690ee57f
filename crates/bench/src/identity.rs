//! The server's certificate, who believes it, and the TLS parameters that all transports share:
//! TLS 1.3, X25519, AES-128-GCM with SHA-256, a self-signed P-256 certificate, aws-lc-rs.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use aws_lc_rs::digest;
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs as provider};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde::{Deserialize, Serialize};
use weir_net::tls::PinnedCertificate;

use crate::error::Error;

mod tickets;

pub use tickets::Tickets;

/// The application protocol that all transports negotiate (RFC 7301).
pub const ALPN: &[u8] = b"weir-bench";

/// The name that the certificate is for.
pub const SERVER_NAME: &str = "localhost";

/// What goes into [`report::Environment`](crate::report::Environment) about these parameters.
pub const TLS_PARAMETERS: &str =
    "TLS 1.3, aws-lc-rs, X25519, TLS_AES_128_GCM_SHA256, self-signed ECDSA P-256 certificate";

/// A self-signed certificate and its key.
#[derive(Clone, Serialize, Deserialize)]
pub struct Identity {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("fingerprint", &self.fingerprint())
            .finish_non_exhaustive()
    }
}

impl Identity {
    /// Makes a new certificate for [`SERVER_NAME`] with a new P-256 key.
    ///
    /// # Errors
    /// [`Error::Certificate`] when the system gives no randomness.
    pub fn generate() -> Result<Self, Error> {
        let made = rcgen::generate_simple_self_signed([SERVER_NAME.to_owned()])
            .map_err(|error| Error::Certificate(error.to_string()))?;
        Ok(Self {
            certificate: made.cert.der().to_vec(),
            key: made.signing_key.serialize_der(),
        })
    }

    /// The certificate in DER.
    #[must_use]
    pub fn certificate(&self) -> &[u8] {
        &self.certificate
    }

    /// The private key as PKCS #8 in DER.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// What a client on another machine pins.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.certificate)
    }

    /// The server's TLS configuration. It sends one ticket per connection.
    ///
    /// # Errors
    /// [`Error::Tls`] when the certificate and key do not fit.
    pub fn server_config(&self, early_data: EarlyData) -> Result<ServerConfig, Error> {
        let chain = vec![CertificateDer::from(self.certificate.clone())];
        let key = PrivatePkcs8KeyDer::from(self.key.clone()).into();
        let mut config = ServerConfig::builder_with_provider(crypto())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.send_tls13_tickets = 1;
        config.max_early_data_size = early_data.limit();
        config.send_half_rtt_data = early_data != EarlyData::Refused;
        Ok(config)
    }
}

/// What a server does with early data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyData {
    /// Refuses it.
    Refused,
    /// Accepts it over TCP, up to 16 KiB.
    OverTcp,
    /// Accepts it over QUIC, where flow control is the limit (RFC 9001, section 4.6.1).
    OverQuic,
}

impl EarlyData {
    fn limit(self) -> u32 {
        match self {
            Self::Refused => 0,
            Self::OverTcp => 16 * 1024,
            Self::OverQuic => u32::MAX,
        }
    }
}

/// SHA-256 of a certificate in DER. Its text is 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a certificate in DER.
    #[must_use]
    pub fn of(certificate: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest::digest(&digest::SHA256, certificate).as_ref());
        Self(bytes)
    }

    /// The same as `weir-net` has it.
    pub(crate) fn pin(&self) -> Result<weir_net::tls::Fingerprint, Error> {
        self.to_string()
            .parse()
            .map_err(|error| Error::transport("reading the fingerprint", error))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Fingerprint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::Specification {
            text: text.to_owned(),
            reason: "a fingerprint is 64 hexadecimal digits".to_owned(),
        };
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
            if !pair.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(wrong());
            }
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

/// Which certificate a client believes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trust {
    /// This one (DER), by verification against it as the only root.
    Certificate(Vec<u8>),
    /// The one with this fingerprint; proof that the server has its key is verified as always.
    Fingerprint(Fingerprint),
}

impl Trust {
    /// The client's TLS configuration. Without `tickets` it never resumes.
    ///
    /// # Errors
    /// [`Error::Tls`] or [`Error::Certificate`] when the trusted certificate is unusable.
    pub fn client_config(&self, tickets: Option<Arc<Tickets>>) -> Result<ClientConfig, Error> {
        let verifier: Arc<dyn ServerCertVerifier> = match self {
            Self::Certificate(certificate) => {
                let mut roots = RootCertStore::empty();
                roots.add(CertificateDer::from(certificate.clone()))?;
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), crypto())
                    .build()
                    .map_err(|error| Error::Certificate(error.to_string()))?
            }
            Self::Fingerprint(fingerprint) => {
                Arc::new(PinnedCertificate::new(fingerprint.pin()?, &crypto()))
            }
        };
        let mut config = ClientConfig::builder_with_provider(crypto())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.enable_early_data = tickets.is_some();
        config.resumption = match tickets {
            Some(tickets) => Resumption::store(tickets),
            None => Resumption::disabled(),
        };
        Ok(config)
    }
}

/// aws-lc-rs cut down to the one group and the one cipher suite that everyone is measured with.
fn crypto() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![provider::cipher_suite::TLS13_AES_128_GCM_SHA256],
        kx_groups: vec![provider::kx_group::X25519],
        ..provider::default_provider()
    })
}

#[cfg(test)]
mod tests;
