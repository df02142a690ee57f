//! A listener, and what becomes of the connections that it accepts.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::time::sleep;

use super::connections::Place;
use super::peer::{Peer, Way};
use crate::carrier::{Carrier, CarrierKind, DcquicStream};
use crate::counters::{ActiveConnection, ConnectionCounters};
use crate::destination::Destination;
use crate::header::{Header, Protocol};
use crate::refusal::Refusal;
use crate::relay::{End, relay, reset};

/// The pause after a failed accept, mostly a lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// The server that the connections of a listener go to, and what is counted of them.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) peer: Arc<Peer>,
    pub(super) counters: Arc<ConnectionCounters>,
}

/// A connection that was accepted.
#[derive(Debug)]
struct Accepted {
    route: Arc<Route>,
    /// The application's address.
    source: SocketAddr,
    /// Where the server connects it to.
    to: Destination,
    _active: ActiveConnection,
}

/// Accepts connections, without an end, and carries each that has a destination.
pub(super) async fn accept(
    route: &Arc<Route>,
    listener: &TcpListener,
    destination: impl Fn(SocketAddr) -> Option<Destination>,
) {
    loop {
        match listener.accept().await {
            Ok((tcp, source)) => begin(route, tcp, source, destination(source)),
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                sleep(PAUSE).await;
            }
        }
    }
}

/// Carries a connection in a task of its own; resets it where it has no destination.
pub(super) fn begin(
    route: &Arc<Route>,
    tcp: TcpStream,
    source: SocketAddr,
    to: Option<Destination>,
) {
    let Some(to) = to else {
        route.counters.refused(Refusal::NotFound);
        tracing::warn!(%source, "a connection that was not redirected came to the listener of those that are");
        return reset(&tcp);
    };
    let accepted = Accepted {
        _active: route.counters.activate(),
        route: route.clone(),
        source,
        to,
    };
    tokio::spawn(accepted.carry(tcp));
}

impl Accepted {
    async fn carry(self, tcp: TcpStream) {
        // Requests and replies leave at once; where that fails they are only later.
        let _ = tcp.set_nodelay(true);
        let place = match self.route.peer.way().await {
            Ok(Way::Dcquic(place)) => place,
            Ok(Way::Tls(carrier)) => {
                return self.copy(tcp, *carrier).await;
            }
            Err(error) => {
                self.route.counters.lost.add(1);
                tracing::warn!(to = %self.to, "no connection: {error}");
                return reset(&tcp);
            }
        };
        let runtime = place.link().connection.runtime();
        if runtime.id() == Handle::current().id() {
            return self.copy_over(tcp, place).await;
        }
        // The connection's own thread copies, so that nothing wakes another one.
        let runtime = runtime.clone();
        let Ok(tcp) = tcp.into_std() else { return };
        runtime.spawn(async move {
            if let Ok(tcp) = TcpStream::from_std(tcp) {
                self.copy_over(tcp, place).await;
            }
        });
    }

    /// Copies over a new stream of a DCQUIC connection. The stream counts as open while `place` is kept.
    async fn copy_over(&self, tcp: TcpStream, place: Place) {
        let Ok((send, receive)) = place.link().connection.open_bi().await else {
            self.route.counters.lost.add(1);
            return reset(&tcp);
        };
        self.copy(tcp, DcquicStream::new(send, receive)).await;
    }

    async fn copy<C: Carrier>(&self, tcp: TcpStream, mut carrier: C) {
        let source = self.source;
        let header = Header {
            protocol: Protocol::Tcp,
            destination: self.to.clone(),
            source: Some(SocketAddr::new(source.ip().to_canonical(), source.port())),
        };
        let mut bytes = Vec::with_capacity(64);
        header.encode(&mut bytes);
        let mut bytes = Bytes::from(bytes);
        let open = self.route.counters.open(C::KIND);
        let end = match poll_fn(|cx| carrier.poll_send(cx, &mut bytes)).await {
            Ok(()) => relay(tcp, carrier, Bytes::new(), &self.route.counters).await,
            Err(broken) => {
                reset(&tcp);
                End::of(broken)
            }
        };
        drop(open);
        if end == End::CarrierLost && C::KIND == CarrierKind::Dcquic {
            self.route.peer.doubt();
        }
        self.note(end);
    }

    fn note(&self, end: End) {
        match end {
            End::Complete => {}
            End::TcpReset => self.route.counters.refused(Refusal::Reset),
            End::ByPeer(refusal) => {
                self.route.counters.refused(refusal);
                if refusal != Refusal::Reset {
                    tracing::info!(to = %self.to, "refused: {refusal}");
                }
            }
            End::CarrierLost => self.route.counters.lost.add(1),
        }
    }
}
