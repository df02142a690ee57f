//! A server's certificate, and a client that trusts it.

use std::sync::Arc;

use rustls::pki_types::PrivateKeyDer;
use rustls::{RootCertStore, version};
use weir_quic::crypto::tls::{TlsClient, TlsServer, provider};

/// Returns the credentials of a client and of a server with the name "localhost".
pub(crate) fn credentials() -> (Arc<TlsClient>, Arc<TlsServer>) {
    let key = rcgen::KeyPair::generate().unwrap();
    let parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = parameters.self_signed(&key).unwrap().der().clone();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let mut client = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut server = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    client.alpn_protocols = vec![b"weir".to_vec()];
    server.alpn_protocols = vec![b"weir".to_vec()];
    server.max_early_data_size = u32::MAX;
    let client = TlsClient::new(Arc::new(client)).unwrap();
    let server = TlsServer::new(Arc::new(server)).unwrap();
    (Arc::new(client), Arc::new(server))
}
