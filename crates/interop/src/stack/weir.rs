//! The DCQUIC stack.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use weir_net::tls::{CipherSuite, ClientCredentials, ClientTls, ServerTls};
use weir_net::{
    ByteSize, DatagramConfig, Endpoint, EndpointBuilder, KnownClientsConfig, KnownClientsCounters,
    KnownServersCounters, RetryPolicy, TransportConfig, UpdateKeysError, Version, Versions,
};
use weir_traffic::dcquic::settings;

use super::{
    ALPN, Client, Connection, ConnectionStatus, HANDSHAKE_TIMEOUT, LARGEST_ECHO, Local, Result,
    SERVER_NAME, Server, Setup, Stack, short_pause,
};

pub(super) struct Weir;

impl Stack for Weir {
    fn serve(&self, setup: &Setup) -> Result<Box<dyn Server>> {
        let mut tls = ServerTls::new(setup.identity.clone())
            .application_protocols([ALPN])
            .early_data(setup.early_data);
        if setup.chacha20 {
            tls = tls.cipher_suites([CipherSuite::ChaCha20Poly1305]);
        }
        if setup.known_peers {
            tls = tls.known_peers(KnownClientsConfig::default());
        }
        let endpoint = builder(setup).server(tls.build()?).bind(setup.bind())?;
        let connections = Rc::<RefCell<Vec<_>>>::default();
        tokio::task::spawn_local(accept(endpoint.clone(), Rc::clone(&connections)));
        Ok(Box::new(WeirServer {
            endpoint,
            connections,
        }))
    }

    fn client(&self, setup: &Setup) -> Result<Box<dyn Client>> {
        let mut tls = ClientTls::pinned(setup.identity.fingerprint())
            .application_protocols([ALPN])
            .early_data(setup.early_data);
        if setup.chacha20 {
            tls = tls.cipher_suites([CipherSuite::ChaCha20Poly1305]);
        }
        let credentials = tls.build()?;
        let endpoint = builder(setup)
            .client(credentials.clone())
            .bind(setup.bind())?;
        Ok(Box::new(WeirClient {
            endpoint,
            credentials,
        }))
    }
}

/// Packets as on Ethernet, not of 64 KB as on loopback: the cases count them.
const PACKET_SIZE: u16 = 1452;

fn builder(setup: &Setup) -> EndpointBuilder {
    let packet_size = ByteSize::from_bytes(setup.packet_size.unwrap_or(PACKET_SIZE).into());
    let transport = TransportConfig {
        datagrams: Some(DatagramConfig::default()),
        handshake_timeout: HANDSHAKE_TIMEOUT.into(),
        // One case has an outage of two seconds.
        max_probe_timeouts: 0,
        ..settings(Some(packet_size))
    };
    let mut builder = Endpoint::builder().transport(transport);
    if setup.retry {
        builder = builder.retry(RetryPolicy::Always);
    }
    if setup.unknown_version {
        builder = builder.client_versions(Version::V2, Versions::V1_AND_V2);
    }
    builder
}

type Connections = Rc<RefCell<Vec<Accepted>>>;

struct Accepted {
    connection: weir_net::Connection,
    /// Whether early data were received.
    early: Arc<AtomicBool>,
}

async fn accept(endpoint: Endpoint, connections: Connections) {
    while let Some(connecting) = endpoint.accept().await {
        let Some(connection) = connecting.early() else {
            continue;
        };
        let early = Arc::default();
        connections.borrow_mut().push(Accepted {
            connection: connection.clone(),
            early: Arc::clone(&early),
        });
        tokio::spawn(echo_datagrams(connection.clone()));
        tokio::spawn(echo_streams(connection, early));
    }
}

async fn echo_datagrams(connection: weir_net::Connection) {
    while let Ok(data) = connection.read_datagram().await {
        // A datagram that does not fit counts as lost.
        let _ = connection.send_datagram(data);
    }
}

async fn echo_streams(connection: weir_net::Connection, early: Arc<AtomicBool>) {
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        let early = Arc::clone(&early);
        tokio::spawn(async move {
            while let Ok(Some(chunk)) = receive.read_chunk(usize::MAX).await {
                if receive.is_early_data() {
                    early.store(true, Ordering::Relaxed);
                }
                if send.write_bytes(chunk).await.is_err() {
                    return;
                }
            }
            // The client may have closed the connection.
            let _ = send.finish();
        });
    }
}

struct WeirServer {
    endpoint: Endpoint,
    connections: Connections,
}

impl Server for WeirServer {
    fn address(&self) -> Result<SocketAddr> {
        Ok(self.endpoint.local_address())
    }

    fn newest(&self) -> Option<ConnectionStatus> {
        let connections = self.connections.borrow();
        let newest = connections.last()?;
        let early = newest.early.load(Ordering::Relaxed);
        Some(ConnectionStatus {
            early_data: Some(early),
            ..facts(&newest.connection)
        })
    }

    fn update_keys(&self) -> Local<'_, Result<()>> {
        let connections = self.connections.borrow();
        let newest = connections.last().map(|newest| newest.connection.clone());
        Box::pin(async move { update_keys(&newest.ok_or("no connection")?).await })
    }

    fn known_clients(&self) -> Option<KnownClientsCounters> {
        Some(self.endpoint.stats().known_clients)
    }
}

struct WeirClient {
    endpoint: Endpoint,
    credentials: ClientCredentials,
}

impl Client for WeirClient {
    fn connect(&self, to: SocketAddr) -> Local<'_, Result<Box<dyn Connection>>> {
        Box::pin(async move {
            let connection = self.endpoint.connect(to, SERVER_NAME)?.await?;
            Ok(Box::new(WeirConnection { connection }) as Box<dyn Connection>)
        })
    }

    fn connect_early(
        &self,
        to: SocketAddr,
        data: Bytes,
    ) -> Local<'_, Result<(Box<dyn Connection>, Bytes)>> {
        Box::pin(async move {
            let connecting = self.endpoint.connect(to, SERVER_NAME)?;
            let early = connecting.early();
            let early = early.ok_or("we have no session that allows early data")?;
            let (mut send, mut receive) = early.open_bi_early().await?;
            send.finish_with(data).await?;
            let echoed = receive.read_to_end(LARGEST_ECHO).await?;
            let connection = connecting.await?;
            let connection = Box::new(WeirConnection { connection });
            Ok((connection as Box<dyn Connection>, echoed))
        })
    }

    fn known_servers(&self) -> Option<KnownServersCounters> {
        Some(self.credentials.known_servers())
    }

    fn migrate(&self) -> Local<'_, Result<()>> {
        Box::pin(async move {
            let local = self.endpoint.local_address();
            self.endpoint.rebind(SocketAddr::new(local.ip(), 0))?;
            Ok(())
        })
    }
}

struct WeirConnection {
    connection: weir_net::Connection,
}

impl Connection for WeirConnection {
    fn echo(&self, data: Bytes) -> Local<'_, Result<Bytes>> {
        Box::pin(async move {
            let (mut send, mut receive) = self.connection.open_bi().await?;
            let sending = async {
                send.write_bytes(data).await?;
                send.finish()?;
                Ok(())
            };
            let receiving = async { Result::Ok(receive.read_to_end(LARGEST_ECHO).await?) };
            let ((), received) = tokio::try_join!(sending, receiving)?;
            Ok(received)
        })
    }

    fn datagram(&self, data: Bytes) -> Local<'_, Result<Bytes>> {
        Box::pin(async move {
            self.connection.send_datagram(data)?;
            Ok(self.connection.read_datagram().await?)
        })
    }

    fn update_keys(&self) -> Local<'_, Result<()>> {
        Box::pin(update_keys(&self.connection))
    }

    fn facts(&self) -> ConnectionStatus {
        let identity = self.connection.peer_identity();
        ConnectionStatus {
            resumed: Some(identity.resumed),
            early_data: Some(identity.resumed && !self.connection.early_data_rejected()),
            ..facts(&self.connection)
        }
    }

    fn close(&self) {
        self.connection.close(0, b"");
    }
}

async fn update_keys(connection: &weir_net::Connection) -> Result<()> {
    loop {
        match connection.update_keys() {
            Ok(()) => return Ok(()),
            Err(error @ UpdateKeysError::Closed) => return Err(error.into()),
            // The handshake is not confirmed yet, or the previous update is not complete.
            Err(_) => short_pause().await,
        }
    }
}

fn facts(connection: &weir_net::Connection) -> ConnectionStatus {
    let stats = connection.stats();
    let path = stats.paths.first();
    ConnectionStatus {
        peer: Some(connection.remote_address()),
        resumed: Some(connection.peer_identity().resumed),
        early_data: None,
        key_updates: Some(stats.key_updates),
        ecn_works: path.map(|path| path.ecn),
        ecn_marks: path.map(|path| path.ce_marks),
        executed: connection.error().map(|error| error.executed()),
    }
}
