//! quinn's connections, with rustls and aws-lc-rs.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Endpoint, ServerConfig};
use rustls::RootCertStore;
use rustls::version::TLS13;
use weir_net::tls::Identity;

use crate::{LONGEST, REQUEST, Server};

/// Returns the configurations of both sides.
pub(crate) fn configurations() -> (ClientConfig, ServerConfig) {
    let identity = Identity::self_signed(["localhost"]).unwrap();
    let provider = weir_quic::crypto::tls::provider;
    let mut server = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            identity.chain().to_vec(),
            identity.private_key().clone_key(),
        )
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(identity.chain()[0].clone()).unwrap();
    let mut client = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    // As DCQUIC's clients without known peers do.
    client.resumption = rustls::client::Resumption::disabled();
    client.alpn_protocols = vec![b"weir".to_vec()];
    server.alpn_protocols = vec![b"weir".to_vec()];
    let client = QuicClientConfig::try_from(client).unwrap();
    let server = QuicServerConfig::try_from(server).unwrap();
    (
        ClientConfig::new(Arc::new(client)),
        ServerConfig::with_crypto(Arc::new(server)),
    )
}

/// A listening endpoint.
pub(crate) struct QuinnServer(Endpoint);

impl QuinnServer {
    pub(crate) fn bind(config: ServerConfig, address: SocketAddr) -> Self {
        Self(Endpoint::server(config, address).unwrap())
    }
}

impl Server for QuinnServer {
    fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    async fn serve(&self, reply: Bytes) {
        let connection = self.0.accept().await.unwrap().await.unwrap();
        let (mut send, mut receive) = connection.accept_bi().await.unwrap();
        receive.read_to_end(LONGEST).await.unwrap();
        send.write_chunk(reply).await.unwrap();
        send.finish().unwrap();
        connection.closed().await;
    }
}

/// A client's endpoint.
pub(crate) struct QuinnClient(Endpoint);

impl QuinnClient {
    pub(crate) fn bind(config: ClientConfig, address: SocketAddr) -> Self {
        let mut endpoint = Endpoint::client(address).unwrap();
        endpoint.set_default_client_config(config);
        Self(endpoint)
    }

    pub(crate) async fn call(&self, server: SocketAddr) -> usize {
        let connection = self.0.connect(server, "localhost").unwrap().await.unwrap();
        let (mut send, mut receive) = connection.open_bi().await.unwrap();
        send.write_chunk(Bytes::from_static(REQUEST)).await.unwrap();
        send.finish().unwrap();
        let reply = receive.read_to_end(LONGEST).await.unwrap();
        connection.close(0u32.into(), b"");
        reply.len()
    }
}
