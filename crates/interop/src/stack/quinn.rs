//! The quinn stack.

use std::cell::RefCell;
use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;

use bytes::Bytes;
use quinn::{Endpoint, MtuDiscoveryConfig, TransportConfig};
use weir_traffic_peers::quinn::{new_client, new_server};

use super::{
    Client, Connection, ConnectionStatus, LARGEST_ECHO, Local, Result, SERVER_NAME, Server, Setup,
    Stack, tls,
};

/// A draft of version 1 that no other stack supports any more, for version negotiation: quinn starts
/// only with a version that it supports.
const DRAFT_29: u32 = 0xff00_001d;

pub(super) struct Quinn;

impl Stack for Quinn {
    fn serve(&self, setup: &Setup) -> Result<Box<dyn Server>> {
        let config = new_server(tls::server(setup)?, transport(setup))?;
        let endpoint = endpoint(setup, Some(config))?;
        let connections = Rc::<RefCell<Vec<_>>>::default();
        let accepting = accept(endpoint.clone(), setup.retry, Rc::clone(&connections));
        tokio::task::spawn_local(accepting);
        Ok(Box::new(QuinnServer {
            endpoint,
            connections,
        }))
    }

    fn client(&self, setup: &Setup) -> Result<Box<dyn Client>> {
        let mut config = new_client(tls::client(setup)?, transport(setup))?;
        if setup.unknown_version {
            config.version(DRAFT_29);
        }
        let mut endpoint = endpoint(setup, None)?;
        endpoint.set_default_client_config(config);
        Ok(Box::new(QuinnClient { endpoint }))
    }
}

fn transport(setup: &Setup) -> TransportConfig {
    let mut config = TransportConfig::default();
    if let Some(size) = setup.packet_size {
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(size);
        // quinn discovers the size by itself. A server with this initial size would not send until the
        // anti-amplification limit (three times the received bytes) allowed a packet of this size.
        config.mtu_discovery_config(Some(discovery));
    }
    config
}

fn endpoint(setup: &Setup, server: Option<quinn::ServerConfig>) -> Result<Endpoint> {
    let (bind, size) = (setup.bind(), setup.packet_size);
    Ok(weir_traffic_peers::quinn::endpoint(bind, size, server)?)
}

type Connections = Rc<RefCell<Vec<quinn::Connection>>>;

async fn accept(endpoint: Endpoint, retry: bool, connections: Connections) {
    while let Some(incoming) = endpoint.accept().await {
        if retry && !incoming.remote_address_validated() {
            // Fails only if the client was already retried.
            let _ = incoming.retry();
            continue;
        }
        // The client reports a failed handshake.
        let Ok(connecting) = incoming.accept() else {
            continue;
        };
        // Never fails on a server, which may answer early data at once.
        let Ok((connection, _)) = connecting.into_0rtt() else {
            continue;
        };
        connections.borrow_mut().push(connection.clone());
        tokio::spawn(echo_datagrams(connection.clone()));
        tokio::spawn(echo_streams(connection));
    }
}

async fn echo_datagrams(connection: quinn::Connection) {
    while let Ok(data) = connection.read_datagram().await {
        // A datagram that does not fit counts as lost.
        let _ = connection.send_datagram(data);
    }
}

async fn echo_streams(connection: quinn::Connection) {
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        tokio::spawn(async move {
            while let Ok(Some(chunk)) = receive.read_chunk(usize::MAX, true).await {
                if send.write_chunk(chunk.bytes).await.is_err() {
                    return;
                }
            }
            // The client may have closed the connection.
            let _ = send.finish();
        });
    }
}

struct QuinnServer {
    endpoint: Endpoint,
    connections: Connections,
}

impl Server for QuinnServer {
    fn address(&self) -> Result<SocketAddr> {
        Ok(self.endpoint.local_addr()?)
    }

    fn newest(&self) -> Option<ConnectionStatus> {
        self.connections.borrow().last().map(facts)
    }

    fn update_keys(&self) -> Local<'_, Result<()>> {
        if let Some(newest) = self.connections.borrow().last() {
            newest.force_key_update();
        }
        Box::pin(async { Ok(()) })
    }
}

struct QuinnClient {
    endpoint: Endpoint,
}

impl Client for QuinnClient {
    fn connect(&self, to: SocketAddr) -> Local<'_, Result<Box<dyn Connection>>> {
        Box::pin(async move {
            let connection = self.endpoint.connect(to, SERVER_NAME)?.await?;
            let connection = QuinnConnection {
                connection,
                early_data: None,
            };
            Ok(Box::new(connection) as Box<dyn Connection>)
        })
    }

    fn connect_early(
        &self,
        to: SocketAddr,
        data: Bytes,
    ) -> Local<'_, Result<(Box<dyn Connection>, Bytes)>> {
        Box::pin(async move {
            let connecting = self.endpoint.connect(to, SERVER_NAME)?;
            let Ok((connection, accepted)) = connecting.into_0rtt() else {
                return Err("quinn has no session that allows early data".into());
            };
            let echoed = echo(&connection, data).await?;
            let connection = QuinnConnection {
                connection,
                early_data: Some(accepted.await),
            };
            Ok((Box::new(connection) as Box<dyn Connection>, echoed))
        })
    }

    fn migrate(&self) -> Local<'_, Result<()>> {
        Box::pin(async move {
            let ip = self.endpoint.local_addr()?.ip();
            self.endpoint
                .rebind(UdpSocket::bind(SocketAddr::new(ip, 0))?)?;
            Ok(())
        })
    }
}

struct QuinnConnection {
    connection: quinn::Connection,
    early_data: Option<bool>,
}

impl Connection for QuinnConnection {
    fn echo(&self, data: Bytes) -> Local<'_, Result<Bytes>> {
        Box::pin(echo(&self.connection, data))
    }

    fn datagram(&self, data: Bytes) -> Local<'_, Result<Bytes>> {
        Box::pin(async move {
            self.connection.send_datagram(data)?;
            Ok(self.connection.read_datagram().await?)
        })
    }

    fn update_keys(&self) -> Local<'_, Result<()>> {
        self.connection.force_key_update();
        Box::pin(async { Ok(()) })
    }

    fn facts(&self) -> ConnectionStatus {
        ConnectionStatus {
            early_data: self.early_data,
            ..facts(&self.connection)
        }
    }

    fn close(&self) {
        self.connection.close(0_u32.into(), b"");
    }
}

async fn echo(connection: &quinn::Connection, data: Bytes) -> Result<Bytes> {
    let (mut send, mut receive) = connection.open_bi().await?;
    let sending = async {
        send.write_chunk(data).await?;
        send.finish()?;
        Ok(())
    };
    let receiving = async { Result::Ok(receive.read_to_end(LARGEST_ECHO).await?) };
    let ((), received) = tokio::try_join!(sending, receiving)?;
    Ok(received.into())
}

fn facts(connection: &quinn::Connection) -> ConnectionStatus {
    let path = connection.stats().path;
    ConnectionStatus {
        peer: Some(connection.remote_address()),
        // quinn counts marks and losses together.
        ecn_marks: Some(path.congestion_events.saturating_sub(path.lost_packets)),
        ..ConnectionStatus::default()
    }
}
