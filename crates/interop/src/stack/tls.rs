//! rustls as quinn and s2n-quic use it.

use rustls::{ClientConfig, RootCertStore, ServerConfig};

use super::{ALPN, Result, Setup};

/// The server's configuration.
pub(super) fn server(setup: &Setup) -> Result<ServerConfig> {
    let provider = weir_quic::crypto::tls::provider();
    let chain = setup.identity.chain().to_vec();
    let key = setup.identity.private_key().clone_key();
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    if setup.early_data {
        // RFC 9001, section 4.6.1: flow control is the limit.
        config.max_early_data_size = u32::MAX;
    }
    if let Some(lines) = &setup.key_log {
        config.key_log = lines.clone();
    }
    Ok(config)
}

/// The client's configuration, which keeps sessions.
pub(super) fn client(setup: &Setup) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in setup.identity.chain() {
        roots.add(certificate.clone())?;
    }
    let provider = weir_quic::crypto::tls::provider();
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.enable_early_data = setup.early_data;
    if let Some(lines) = &setup.key_log {
        config.key_log = lines.clone();
    }
    Ok(config)
}
