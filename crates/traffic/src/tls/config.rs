//! The TLS parameters that all stacks are measured with: X25519 and AES-128-GCM by aws-lc-rs, as DCQUIC
//! has them by default. Who wants others brings them.

use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs as provider;
use rustls::pki_types::CertificateDer;
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde::{Deserialize, Serialize};
use weir_net::tls::{Fingerprint, Identity, PinnedCertificate};

use super::Tickets;
use crate::error::Error;

const CONFIGURING: &str = "configuring TLS";

/// A server's handling of early data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyData {
    /// Rejects it.
    Refused,
    /// Accepts it over TCP, up to 16 KiB.
    OverTcp,
    /// Accepts it over QUIC, where flow control is the limit (RFC 9001, section 4.6.1).
    OverQuic,
}

impl EarlyData {
    /// This where it is `accepted`, refusal otherwise.
    #[must_use]
    pub fn when(self, accepted: bool) -> Self {
        if accepted { self } else { Self::Refused }
    }

    fn limit(self) -> u32 {
        match self {
            Self::Refused => 0,
            Self::OverTcp => 16 * 1024,
            Self::OverQuic => u32::MAX,
        }
    }
}

/// The certificate that a client trusts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trust {
    /// This certificate (DER), as the only root of the verification.
    Certificate(Vec<u8>),
    /// The certificate with this fingerprint; the proof that the server has its key is still verified.
    #[serde(with = "fingerprint")]
    Fingerprint(Fingerprint),
}

/// Serializes a fingerprint as text.
mod fingerprint {
    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};
    use weir_net::tls::Fingerprint;

    pub(super) fn serialize<S: Serializer>(
        fingerprint: &Fingerprint,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(fingerprint)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Fingerprint, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// Returns the configuration of a server with this application protocol (RFC 7301) and this number
/// of tickets per connection.
///
/// # Errors
/// [`Error::Failed`] if rustls rejects the identity.
pub fn server_config(
    identity: &Identity,
    protocol: &[u8],
    tickets: usize,
    early_data: EarlyData,
) -> Result<ServerConfig, Error> {
    server_config_with(measured(), identity, protocol, tickets, early_data)
}

/// The same with other algorithms.
///
/// # Errors
/// As [`server_config`].
pub fn server_config_with(
    crypto: Arc<CryptoProvider>,
    identity: &Identity,
    protocol: &[u8],
    tickets: usize,
    early_data: EarlyData,
) -> Result<ServerConfig, Error> {
    let chain = identity.chain().to_vec();
    let key = identity.private_key().clone_key();
    let mut config = ServerConfig::builder_with_provider(crypto)
        .with_protocol_versions(&[&TLS13])
        .map_err(Error::failed(CONFIGURING))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(Error::failed(CONFIGURING))?;
    config.alpn_protocols = vec![protocol.to_vec()];
    // A client that only sends would never read tickets.
    config.send_tls13_tickets = tickets;
    config.max_early_data_size = early_data.limit();
    config.send_half_rtt_data = early_data != EarlyData::Refused;
    Ok(config)
}

/// Returns the configuration of a client with this application protocol (RFC 7301). Without
/// `tickets` it never resumes.
///
/// # Errors
/// [`Error::Failed`] if the trusted certificate is unusable.
pub fn client_config(
    trust: &Trust,
    protocol: &[u8],
    tickets: Option<Arc<Tickets>>,
) -> Result<ClientConfig, Error> {
    client_config_with(measured(), trust, protocol, tickets)
}

/// The same with other algorithms.
///
/// # Errors
/// As [`client_config`].
pub fn client_config_with(
    crypto: Arc<CryptoProvider>,
    trust: &Trust,
    protocol: &[u8],
    tickets: Option<Arc<Tickets>>,
) -> Result<ClientConfig, Error> {
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Trust::Certificate(certificate) => {
            let mut roots = RootCertStore::empty();
            roots
                .add(CertificateDer::from(certificate.clone()))
                .map_err(Error::failed(CONFIGURING))?;
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), crypto.clone())
                .build()
                .map_err(Error::failed(CONFIGURING))?
        }
        Trust::Fingerprint(fingerprint) => Arc::new(PinnedCertificate::new(*fingerprint, &crypto)),
    };
    let mut config = ClientConfig::builder_with_provider(crypto)
        .with_protocol_versions(&[&TLS13])
        .map_err(Error::failed(CONFIGURING))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    config.enable_early_data = tickets.is_some();
    config.resumption = match tickets {
        Some(tickets) => Resumption::store(tickets),
        None => Resumption::disabled(),
    };
    Ok(config)
}

/// Returns aws-lc-rs restricted to the one group and the one cipher suite of all measurements.
fn measured() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![provider::cipher_suite::TLS13_AES_128_GCM_SHA256],
        kx_groups: vec![provider::kx_group::X25519],
        ..provider::default_provider()
    })
}
