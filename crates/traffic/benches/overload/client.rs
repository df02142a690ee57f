//! The client's part of a run.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::timeout;
use weir_traffic::tls::Fingerprint;

use crate::calls::{Calls, Failures, Outcome};
use crate::{Failure, Plan, Transport, dcquic, quinn, tcp_tls};

/// Any port of this machine.
pub(crate) const LOCAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Connections that are opened at the same time.
const OPENING: usize = 16;
const OPENING_LIMIT: Duration = Duration::from_secs(30);
/// How long open calls may still end when no more begin.
const LEFT: Duration = Duration::from_secs(10);

/// What one side has counted.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Counters {
    /// UDP datagrams that arrived while this side's sockets had no room.
    pub(crate) datagrams_dropped: Option<u64>,
    /// QUIC packets that this side has sent.
    pub(crate) packets_sent: Option<u64>,
    /// QUIC packets that this side has declared lost.
    pub(crate) packets_lost: Option<u64>,
    pub(crate) probe_timeouts: Option<u64>,
}

/// What a client has measured.
pub(crate) struct Measured {
    /// Connections that did not open.
    pub(crate) not_opened: Failures,
    pub(crate) calls: Outcome,
    pub(crate) counters: Counters,
}

/// A client of a transport.
pub(crate) trait Client {
    type Connection: Send + 'static;

    async fn connect(&self) -> Result<Self::Connection, Failure>;

    /// Keeps a call open in each of these slots, until none begin any more or the connection has failed.
    fn call(
        connection: Self::Connection,
        calls: Arc<Calls>,
        slots: Range<usize>,
    ) -> impl Future<Output = ()> + Send + 'static;

    fn counters(&self) -> Result<Counters, Failure>;
}

pub(crate) async fn run(
    plan: Plan,
    transport: Transport,
    server: SocketAddr,
    trusted: Fingerprint,
) -> Result<Measured, Failure> {
    match transport {
        Transport::Dcquic => measure(plan, &dcquic::Client::new(server, trusted)?).await,
        Transport::TcpTls => measure(plan, &tcp_tls::Client::new(server, trusted)?).await,
        Transport::Quinn => measure(plan, &quinn::Client::new(server, trusted)?).await,
    }
}

async fn measure<C: Client>(plan: Plan, client: &C) -> Result<Measured, Failure> {
    let (connections, not_opened) = open(plan, client).await;
    let calls = Arc::new(Calls::new(plan));
    let mut running = JoinSet::new();
    for (index, connection) in connections.into_iter().enumerate() {
        let slots = index * plan.calls..(index + 1) * plan.calls;
        running.spawn(C::call(connection, calls.clone(), slots));
    }
    let all = async { while running.join_next().await.is_some() {} };
    // Where this is too short, calls are left, which the outcome has.
    let _ = timeout(Duration::from(plan.span) + LEFT, all).await;
    Ok(Measured {
        not_opened,
        calls: calls.outcome(),
        counters: client.counters()?,
    })
}

async fn open<C: Client>(plan: Plan, client: &C) -> (Vec<C::Connection>, Failures) {
    let opening =
        (0..plan.connections).map(
            async |_| match timeout(OPENING_LIMIT, client.connect()).await {
                Ok(opened) => opened.map_err(|error| error.to_string()),
                Err(_) => Err(format!("not within {} s", OPENING_LIMIT.as_secs())),
            },
        );
    let mut opening = stream::iter(opening).buffer_unordered(OPENING);
    let (mut connections, mut not_opened) = (Vec::new(), Failures::new());
    while let Some(opened) = opening.next().await {
        match opened {
            Ok(connection) => connections.push(connection),
            Err(error) => *not_opened.entry(error).or_default() += 1,
        }
    }
    (connections, not_opened)
}
