//! quinn as the peer: an echo server, and a client.

use std::sync::Arc;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::crypto::{AeadKey, CryptoError, HandshakeTokenKey};
use rustls::RootCertStore;
use weir_net::tls::Identity;

use super::{loopback, pattern};

/// A quinn echo server.
pub(crate) fn quinn_server(identity: &Identity) -> quinn::Endpoint {
    quinn_server_with(identity, |_| {}, |_| true)
}

/// A quinn echo server with another configuration, which accepts connections for which `accepts`
/// holds and sends a Retry packet to the others.
pub(crate) fn quinn_server_with(
    identity: &Identity,
    change: impl FnOnce(&mut quinn::ServerConfig),
    accepts: impl Fn(&quinn::Incoming) -> bool + Send + 'static,
) -> quinn::Endpoint {
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
    change(&mut config);
    let endpoint = quinn::Endpoint::server(config, loopback()).unwrap();
    let accepting = endpoint.clone();
    tokio::spawn(async move {
        while let Some(incoming) = accepting.accept().await {
            if !accepts(&incoming) {
                incoming.retry().unwrap();
                continue;
            }
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

/// Seals address validation tokens as texts of this length; anybody could open them.
pub(crate) struct LongTokens(pub(crate) usize);

impl HandshakeTokenKey for LongTokens {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Self(self.0))
    }
}

impl AeadKey for LongTokens {
    fn seal(&self, data: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        let length = data.len() as u16;
        data.resize(self.0 - 2, 0);
        data.extend_from_slice(&length.to_be_bytes());
        Ok(())
    }

    fn open<'a>(&self, data: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        let (rest, length) = data.split_last_chunk_mut().ok_or(CryptoError)?;
        let length = u16::from_be_bytes(*length);
        rest.get_mut(..usize::from(length)).ok_or(CryptoError)
    }
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
