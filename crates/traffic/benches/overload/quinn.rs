//! quinn, with the buffers and windows of `make bench`.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use ::quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use ::quinn::{
    ClientConfig, Connection, Endpoint, EndpointConfig, Incoming, RecvStream, SendStream,
    ServerConfig, TokioRuntime, TransportConfig, VarInt,
};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::task::JoinSet;
use weir_traffic::calls::SOCKET_BUFFER;
use weir_traffic::calls::identity::{ALPN, SERVER_NAME};
use weir_traffic::tls::{EarlyData, Fingerprint, Trust, client_config, server_config};

use crate::Failure;
use crate::calls::{Call, Calls, REQUEST, SIZES, respond};
use crate::client::{self, Counters, LOCAL};
use crate::server::{Role, listening};
use crate::socket_drops::drops_at;

/// Flow-control windows in bytes, which are never full.
const STREAM_WINDOW: u32 = 16 * 1024 * 1024;
const CONNECTION_WINDOW: u32 = 24 * 1024 * 1024;

fn transport() -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config
        .stream_receive_window(STREAM_WINDOW.into())
        .receive_window(CONNECTION_WINDOW.into())
        .send_window(CONNECTION_WINDOW.into());
    Arc::new(config)
}

fn endpoint(server: Option<ServerConfig>) -> Result<Endpoint, Failure> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_recv_buffer_size(SOCKET_BUFFER.as_usize())?;
    socket.set_send_buffer_size(SOCKET_BUFFER.as_usize())?;
    socket.bind(&LOCAL.into())?;
    let config = EndpointConfig::default();
    Ok(Endpoint::new(
        config,
        server,
        socket.into(),
        Arc::new(TokioRuntime),
    )?)
}

/// The connections of an endpoint, for their counters.
type Connections = Mutex<Vec<Connection>>;

fn keep(connections: &Connections, connection: &Connection) {
    let mut connections = connections.lock().unwrap_or_else(PoisonError::into_inner);
    connections.push(connection.clone());
}

fn counters(endpoint: &Endpoint, connections: &Connections) -> Result<Counters, Failure> {
    let connections = connections.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut sent, mut lost) = (0, 0);
    for connection in connections.iter() {
        let path = connection.stats().path;
        sent += path.sent_packets;
        lost += path.lost_packets;
    }
    Ok(Counters {
        datagrams_dropped: Some(drops_at(endpoint.local_addr()?.port())?),
        packets_sent: Some(sent),
        packets_lost: Some(lost),
        // It does not count them.
        probe_timeouts: None,
    })
}

/// Answers calls until it is stopped.
pub(crate) async fn serve(
    role: &Role,
    stopped: impl Future<Output = ()>,
) -> Result<Counters, Failure> {
    let tls = server_config(&role.identity(), ALPN, 0, EarlyData::Refused)?;
    let tls = QuicServerConfig::try_from(tls)?;
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(transport());
    let endpoint = endpoint(Some(config))?;
    listening(endpoint.local_addr()?)?;
    let connections = Arc::new(Connections::default());
    let accepted = async {
        while let Some(incoming) = endpoint.accept().await {
            tokio::spawn(serve_connection(incoming, connections.clone()));
        }
    };
    tokio::select! {
        () = accepted => return Err("the endpoint has ended".into()),
        () = stopped => {}
    }
    counters(&endpoint, &connections)
}

async fn serve_connection(incoming: Incoming, connections: Arc<Connections>) {
    // The client reports a connection that does not open.
    let Ok(connection) = incoming.await else {
        return;
    };
    keep(&connections, &connection);
    while let Ok((send, receive)) = connection.accept_bi().await {
        // The client reports a call without an answer.
        tokio::spawn(async move { answer(send, receive).await.ok() });
    }
}

async fn answer(mut send: SendStream, mut receive: RecvStream) -> Result<(), Failure> {
    let request = receive.read_to_end(REQUEST).await?;
    match respond(&request) {
        Some(mut pieces) => {
            send.write_all_chunks(&mut pieces).await?;
            send.finish()?;
        }
        None => send.reset(VarInt::from_u32(1))?,
    }
    Ok(())
}

/// The client.
pub(crate) struct Client {
    endpoint: Endpoint,
    server: SocketAddr,
    connections: Connections,
}

impl Client {
    pub(crate) fn new(server: SocketAddr, trusted: Fingerprint) -> Result<Self, Failure> {
        let tls = client_config(&Trust::Fingerprint(trusted), ALPN, None)?;
        let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
        config.transport_config(transport());
        let mut endpoint = endpoint(None)?;
        endpoint.set_default_client_config(config);
        Ok(Self {
            endpoint,
            server,
            connections: Connections::default(),
        })
    }
}

impl client::Client for Client {
    type Connection = Connection;

    async fn connect(&self) -> Result<Connection, Failure> {
        let connection = self.endpoint.connect(self.server, SERVER_NAME)?.await?;
        keep(&self.connections, &connection);
        Ok(connection)
    }

    async fn call(connection: Connection, calls: Arc<Calls>, slots: Range<usize>) {
        let mut running = JoinSet::new();
        for call in slots.filter_map(|slot| calls.begin(slot)) {
            running.spawn(call_on(connection.clone(), calls.clone(), call));
        }
        running.join_all().await;
    }

    fn counters(&self) -> Result<Counters, Failure> {
        counters(&self.endpoint, &self.connections)
    }
}

/// Makes one call after the other.
async fn call_on(connection: Connection, calls: Arc<Calls>, first: Call) {
    let mut next = Some(first);
    while let Some(call) = next {
        let answered = match exchange(&connection, &call).await {
            Ok(response) => call.check(&response),
            Err(error) => Err(error.to_string()),
        };
        next = calls.end(&call, answered);
    }
}

async fn exchange(connection: &Connection, call: &Call) -> Result<Vec<u8>, Failure> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&call.request()).await?;
    send.finish()?;
    Ok(receive.read_to_end(*SIZES.end() as usize).await?)
}
