//! TLS 1.3 over TCP: the suite that DCQUIC uses too (X25519, AES-128-GCM, aws-lc-rs), a
//! self-signed certificate, and a client that believes exactly one.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use weir_net::tls::{Fingerprint, Identity, client_over_tcp, server_over_tcp};

use crate::error::Error;

/// The application protocol of data connections (RFC 7301).
pub(crate) const PROTOCOL: &[u8] = b"weir-perf";

/// Makes the client's side of TLS on a connection.
pub(crate) fn connector(pin: Fingerprint) -> Result<TlsConnector, Error> {
    let config = client_over_tcp(pin, PROTOCOL);
    let config = config.map_err(|error| Error::Certificate(error.to_string()))?;
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Makes the server's side of TLS on a connection.
pub(crate) fn acceptor(identity: &Identity) -> Result<TlsAcceptor, Error> {
    let config = server_over_tcp(identity, PROTOCOL);
    let config = config.map_err(|error| Error::Certificate(error.to_string()))?;
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
