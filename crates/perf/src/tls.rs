//! TLS 1.3 over TCP: the suite that DCQUIC uses too (X25519, AES-128-GCM, aws-lc-rs), a
//! self-signed certificate, and a client that believes exactly one.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs as provider;
use rustls::pki_types::ServerName;
use rustls::version::TLS13;
use rustls::{ClientConfig, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use weir_net::tls::{Fingerprint, Identity, PinnedCertificate};

use crate::error::Error;

/// The application protocol of data connections (RFC 7301).
pub(crate) const PROTOCOL: &[u8] = b"weir-perf";

fn crypto() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![provider::cipher_suite::TLS13_AES_128_GCM_SHA256],
        kx_groups: vec![provider::kx_group::X25519],
        ..provider::default_provider()
    })
}

/// Makes the client's side of TLS on a connection.
pub(crate) fn connector(pin: Fingerprint) -> Result<TlsConnector, Error> {
    let provider = crypto();
    let verifier = PinnedCertificate::new(pin, &provider);
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| Error::Certificate(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Makes the server's side of TLS on a connection.
pub(crate) fn acceptor(identity: &Identity) -> Result<TlsAcceptor, Error> {
    let chain = identity.chain().to_vec();
    let key = identity.private_key().clone_key();
    let mut config = ServerConfig::builder_with_provider(crypto())
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| Error::Certificate(error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| Error::Certificate(error.to_string()))?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    // A client that only sends would never read the tickets.
    config.send_tls13_tickets = 0;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The client's handshake.
pub(crate) async fn connect(
    connector: &TlsConnector,
    server: SocketAddr,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, Error> {
    let name = ServerName::IpAddress(server.ip().into());
    match connector.connect(name, stream).await {
        Ok(stream) => Ok(stream.into()),
        Err(error) if is_wrong_pin(&error) => Err(Error::WrongPin { address: server }),
        Err(source) => Err(Error::Stream {
            doing: "TLS handshake",
            source,
        }),
    }
}

/// The server's handshake.
pub(crate) async fn accept(
    acceptor: &TlsAcceptor,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, Error> {
    let stream = acceptor
        .accept(stream)
        .await
        .map_err(Error::stream("TLS handshake"))?;
    Ok(stream.into())
}

fn is_wrong_pin(error: &io::Error) -> bool {
    let tls = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(
        tls,
        Some(rustls::Error::InvalidCertificate(
            rustls::CertificateError::ApplicationVerificationFailure
        ))
    )
}
