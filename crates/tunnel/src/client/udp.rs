//! UDP of applications: a flow for each of their sockets.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use tokio::net::UdpSocket;
use tokio::time::{Duration, sleep, timeout};
use weir_net::{Connection, RecvStream, SendStream};

use super::connections::Place;
use super::listener::Route;
use crate::carrier::CarrierKind;
use crate::destination::Destination;
use crate::flows::{Flow, LARGEST};
use crate::header::{Header, Protocol};
use crate::refusal::Refusal;

/// The most flows of a listener.
const FLOWS: usize = 4096;
/// How long the server's connection may take to open a stream: meanwhile no datagram is read.
const PATIENCE: Duration = Duration::from_millis(100);
/// The pause after a failed receive.
const PAUSE: Duration = Duration::from_millis(100);

/// The flows of a listener, by the application's address.
type Table = Arc<Mutex<FxHashMap<SocketAddr, Arc<OpenFlow>>>>;

struct OpenFlow {
    flow: Arc<Flow>,
    connection: Connection,
    number: u64,
}

/// Carries datagrams of applications to a destination, without an end.
pub(super) async fn accept(route: &Arc<Route>, to: &Destination, socket: &Arc<UdpSocket>) {
    let table = Table::default();
    let mut buffer = vec![0; LARGEST];
    loop {
        let Ok((length, source)) = socket.recv_from(&mut buffer).await else {
            sleep(PAUSE).await;
            continue;
        };
        let known = lock(&table).get(&source).cloned();
        let open = match known {
            Some(open) if open.connection.error().is_none() => Some(open),
            _ => begin(route, to, socket, &table, source).await,
        };
        match open {
            Some(open) => open
                .flow
                .send(&open.connection, open.number, &buffer[..length]),
            None => route.counters.datagrams_dropped.add(1),
        }
    }
}

/// Begins a flow; `None` where DCQUIC does not carry it now.
async fn begin(
    route: &Arc<Route>,
    to: &Destination,
    socket: &Arc<UdpSocket>,
    table: &Table,
    source: SocketAddr,
) -> Option<Arc<OpenFlow>> {
    if lock(table).len() >= FLOWS {
        return None;
    }
    let place = route.peer.dcquic().await?;
    let connection = place.link().connection.clone();
    let opened = timeout(PATIENCE, connection.open_bi()).await;
    let (mut send, receive) = opened.ok()?.ok()?;
    let header = Header {
        protocol: Protocol::Udp,
        destination: to.clone(),
        source: Some(SocketAddr::new(source.ip().to_canonical(), source.port())),
    };
    let mut bytes = Vec::new();
    header.encode(&mut bytes);
    // A new stream has room for it.
    timeout(PATIENCE, send.write_all(&bytes)).await.ok()?.ok()?;
    let number = receive.id().as_u64();
    let flow = Flow::new(socket.clone(), Some(source), route.counters.clone());
    let open = Arc::new(OpenFlow {
        flow: Arc::new(flow),
        connection,
        number,
    });
    place.link().flows.insert(number, open.flow.clone());
    lock(table).insert(source, open.clone());
    tokio::spawn(keep(
        route.clone(),
        table.clone(),
        source,
        place,
        open.clone(),
        (send, receive),
    ));
    Some(open)
}

/// Keeps a flow until the server ends it, or nothing has come for long.
async fn keep(
    route: Arc<Route>,
    table: Table,
    source: SocketAddr,
    place: Place,
    open: Arc<OpenFlow>,
    (mut send, mut receive): (SendStream, RecvStream),
) {
    let _counted = (
        route.counters.open(CarrierKind::Dcquic),
        route.counters.activate(),
    );
    tokio::select! {
        () = open.flow.idle() => {
            // Where the connection is over the server knows.
            let _ = send.finish();
        }
        // The server sends nothing on the stream.
        ended = receive.read_chunk(1) => {
            if let Err(weir_net::ReadError::Reset(code)) = ended {
                route.counters.refused(Refusal::of_code(code));
            }
        }
    }
    place.link().flows.remove(open.number);
    let mut table = lock(&table);
    if table
        .get(&source)
        .is_some_and(|current| Arc::ptr_eq(current, &open))
    {
        table.remove(&source);
    }
}

fn lock(table: &Table) -> MutexGuard<'_, FxHashMap<SocketAddr, Arc<OpenFlow>>> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}
