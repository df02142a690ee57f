//! quinn as the peer: an echo server, and a client.

use std::sync::Arc;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::RootCertStore;
use weir_net::tls::Identity;

use super::{loopback, pattern};

/// A quinn echo server.
pub(crate) fn quinn_server(identity: &Identity) -> quinn::Endpoint {
    let provider = weir_quic::crypto::tls::provider();
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            identity.chain().to_vec(),
            identity.private_key().clone_key(),
        )
        .unwrap();
    tls.alpn_protocols = vec![b"weir".to_vec()];
    tls.max_early_data_size = u32::MAX;
    let crypto = Arc::new(QuicServerConfig::try_from(tls).unwrap());
    let mut config = quinn::ServerConfig::with_crypto(crypto);
    config.transport_config(quinn_transport());
    let endpoint = quinn::Endpoint::server(config, loopback()).unwrap();
    let accepting = endpoint.clone();
    tokio::spawn(async move {
        while let Some(incoming) = accepting.accept().await {
            tokio::spawn(async move {
                let connecting = incoming.accept().unwrap();
                // Half-RTT: accepts early data.
                let (connection, _) = connecting.into_0rtt().unwrap_or_else(|_| unreachable!());
                let datagrams = connection.clone();
                tokio::spawn(async move {
                    while let Ok(data) = datagrams.read_datagram().await {
                        datagrams.send_datagram(data).unwrap();
                    }
                });
                while let Ok((mut send, mut recv)) = connection.accept_bi().await {
                    tokio::spawn(async move {
                        while let Ok(Some(chunk)) = recv.read_chunk(usize::MAX, true).await {
                            if send.write_chunk(chunk.bytes).await.is_err() {
                                return;
                            }
                        }
                        let _ = send.finish();
                    });
                }
            });
        }
    });
    endpoint
}

/// A quinn client that trusts it.
pub(crate) fn quinn_client(identity: &Identity) -> quinn::Endpoint {
    let mut roots = RootCertStore::empty();
    roots.add(identity.chain()[0].clone()).unwrap();
    let provider = weir_quic::crypto::tls::provider();
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"weir".to_vec()];
    tls.enable_early_data = true;
    let crypto = Arc::new(QuicClientConfig::try_from(tls).unwrap());
    let mut endpoint = quinn::Endpoint::client(loopback()).unwrap();
    let mut config = quinn::ClientConfig::new(crypto);
    config.transport_config(quinn_transport());
    endpoint.set_default_client_config(config);
    endpoint
}

/// Requests our acknowledgments by the ACK frequency extension.
pub(crate) fn quinn_transport() -> Arc<quinn::TransportConfig> {
    let mut transport = quinn::TransportConfig::default();
    transport.ack_frequency_config(Some(quinn::AckFrequencyConfig::default()));
    Arc::new(transport)
}

/// Sends `size` bytes and receives the echo.
pub(crate) async fn quinn_echo(connection: &quinn::Connection, seed: u64, size: usize) {
    let data = pattern(seed, size);
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    let sending = async {
        send.write_all(&data).await.unwrap();
        send.finish().unwrap();
    };
    let ((), received) = tokio::join!(sending, recv.read_to_end(size));
    assert_eq!(received.unwrap(), data);
}
