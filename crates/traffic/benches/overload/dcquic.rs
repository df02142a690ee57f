//! DCQUIC by `weir-net`, with the data center profile.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::task::JoinSet;
use weir_net::tls::{ClientTls, ServerTls};
use weir_net::{Connection, Endpoint, EndpointBuilder, Refusal, Request, Response, ServeOptions};
use weir_traffic::calls::identity::{ALPN, SERVER_NAME};
use weir_traffic::dcquic::settings;
use weir_traffic::tls::Fingerprint;

use crate::Failure;
use crate::calls::{Call, Calls, respond};
use crate::client::{self, Counters, LOCAL};
use crate::server::{Role, listening};
use crate::socket_drops::drops_at;

/// The refusal of a request that is malformed.
const MALFORMED: Refusal = Refusal(1);

fn builder() -> EndpointBuilder {
    Endpoint::builder().transport(settings(None))
}

/// The connections of an endpoint, for their counters.
type Connections = Mutex<Vec<Connection>>;

fn keep(connections: &Connections, connection: &Connection) {
    let mut connections = connections.lock().unwrap_or_else(PoisonError::into_inner);
    connections.push(connection.clone());
}

fn counters(endpoint: &Endpoint, connections: &Connections) -> Result<Counters, Failure> {
    let connections = connections.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut sent, mut lost, mut timeouts) = (0, 0, 0);
    for connection in connections.iter() {
        let totals = connection.stats().totals;
        sent += totals.packets_sent;
        lost += totals.packets_lost;
        timeouts += totals.probe_timeouts;
    }
    Ok(Counters {
        datagrams_dropped: Some(drops_at(endpoint.local_address().port())?),
        packets_sent: Some(sent),
        packets_lost: Some(lost),
        probe_timeouts: Some(timeouts),
    })
}

/// Answers calls until it is stopped.
pub(crate) async fn serve(
    role: &Role,
    stopped: impl Future<Output = ()>,
) -> Result<Counters, Failure> {
    let tls = ServerTls::new(role.identity())
        .application_protocols([ALPN])
        .build()?;
    let endpoint = builder().server(tls).bind(LOCAL)?;
    listening(endpoint.local_address())?;
    let connections = Arc::new(Connections::default());
    let accepted = async {
        while let Some(connecting) = endpoint.accept().await {
            let connections = connections.clone();
            tokio::spawn(async move {
                // The client reports a connection that does not open.
                let Ok(connection) = connecting.await else {
                    return;
                };
                keep(&connections, &connection);
                let answer = |request: Request| {
                    let response = respond(&request.body).map(Response::of_pieces);
                    std::future::ready(response.ok_or(MALFORMED))
                };
                connection.serve(ServeOptions::default(), answer).await;
            });
        }
    };
    tokio::select! {
        () = accepted => return Err("the endpoint has ended".into()),
        () = stopped => {}
    }
    counters(&endpoint, &connections)
}

/// The client.
pub(crate) struct Client {
    endpoint: Endpoint,
    server: SocketAddr,
    connections: Connections,
}

impl Client {
    pub(crate) fn new(server: SocketAddr, trusted: Fingerprint) -> Result<Self, Failure> {
        // Connections begin with full handshakes, as those of the other transports.
        let tls = ClientTls::pinned(trusted)
            .application_protocols([ALPN])
            .resumption(false)
            .build()?;
        Ok(Self {
            endpoint: builder().client(tls).bind(LOCAL)?,
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
        let request = Bytes::copy_from_slice(&call.request());
        let answered = match connection.call(request).await {
            Ok(response) => call.check(&response),
            Err(error) => Err(error.to_string()),
        };
        next = calls.end(&call, answered);
    }
}
