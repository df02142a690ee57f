//! TLS 1.3 over TCP with the parameters that DCQUIC has by default (X25519, AES-128-GCM, aws-lc-rs),
//! for programs that measure DCQUIC beside it: neither tickets nor resumption.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs as provider;
use rustls::version::TLS13;
use rustls::{ClientConfig, ServerConfig};

use super::{Fingerprint, Identity, PinnedCertificate, TlsError};

fn crypto() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![provider::cipher_suite::TLS13_AES_128_GCM_SHA256],
        kx_groups: vec![provider::kx_group::X25519],
        ..provider::default_provider()
    })
}

/// A client that believes this certificate alone and speaks this application protocol (RFC 7301).
///
/// # Errors
/// [`TlsError::Rustls`] where rustls refuses the parameters.
pub fn client_over_tcp(pin: Fingerprint, protocol: &[u8]) -> Result<ClientConfig, TlsError> {
    let provider = crypto();
    let verifier = PinnedCertificate::new(pin, &provider);
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// A server with this identity that speaks this application protocol.
///
/// # Errors
/// [`TlsError::Rustls`] where rustls refuses the identity.
pub fn server_over_tcp(identity: &Identity, protocol: &[u8]) -> Result<ServerConfig, TlsError> {
    let chain = identity.chain().to_vec();
    let key = identity.private_key().clone_key();
    let mut config = ServerConfig::builder_with_provider(crypto())
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![protocol.to_vec()];
    // A client that only sends would never read the tickets.
    config.send_tls13_tickets = 0;
    Ok(config)
}
