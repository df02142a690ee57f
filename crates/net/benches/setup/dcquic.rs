//! DCQUIC's connections.

use std::net::SocketAddr;

use bytes::Bytes;
use weir_net::tls::{ClientCredentials, ClientTls, Identity, ServerCredentials, ServerTls};
use weir_net::{Endpoint, KnownClientsConfig};

use crate::{LONGEST, REQUEST, Server};

/// Returns the credentials of both sides.
pub(crate) fn credentials(has_known_peers: bool) -> (ClientCredentials, ServerCredentials) {
    let identity = Identity::self_signed(["localhost"]).unwrap();
    let client = ClientTls::pinned(identity.fingerprint()).known_peers(has_known_peers);
    let mut server = ServerTls::new(identity);
    if has_known_peers {
        server = server.known_peers(KnownClientsConfig::default());
    }
    (client.build().unwrap(), server.build().unwrap())
}

/// A listening endpoint.
pub(crate) struct DcquicServer(Endpoint);

impl DcquicServer {
    pub(crate) fn bind(credentials: ServerCredentials, address: SocketAddr) -> Self {
        Self(
            Endpoint::builder()
                .server(credentials)
                .bind(address)
                .unwrap(),
        )
    }
}

impl Server for DcquicServer {
    fn address(&self) -> SocketAddr {
        self.0.local_address()
    }

    async fn serve(&self, reply: Bytes) {
        let connection = self.0.accept().await.unwrap().await.unwrap();
        let (mut send, mut receive) = connection.accept_bi().await.unwrap();
        receive.read_to_end(LONGEST).await.unwrap();
        send.finish_with(reply).await.unwrap();
        connection.closed().await;
    }
}

/// A client's endpoint.
pub(crate) struct DcquicClient(Endpoint);

impl DcquicClient {
    pub(crate) fn bind(credentials: ClientCredentials, address: SocketAddr) -> Self {
        Self(
            Endpoint::builder()
                .client(credentials)
                .bind(address)
                .unwrap(),
        )
    }

    pub(crate) async fn call(&self, server: SocketAddr) -> usize {
        let connecting = self.0.connect(server, "localhost").unwrap();
        let connection = connecting.await.unwrap();
        let (mut send, mut receive) = connection.open_bi().await.unwrap();
        send.finish_with(Bytes::from_static(REQUEST)).await.unwrap();
        let reply = receive.read_to_end(LONGEST).await.unwrap();
        connection.close(0, b"");
        reply.len()
    }
}
