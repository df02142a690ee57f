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
use crate::carrier::{Carrier, DcquicStream};
use crate::counters::ConnectionCounters;
use crate::destination::Destination;
use crate::header::{Header, Protocol};
use crate::refusal::Refusal;
use crate::relay::{End, relay, reset};

/// The pause after a failed accept, mostly a lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Where the connections of a listener go.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) to: Destination,
    pub(super) peer: Arc<Peer>,
    pub(super) counters: Arc<ConnectionCounters>,
}

impl Route {
    pub(super) fn new(to: Destination, peer: Arc<Peer>, counters: Arc<ConnectionCounters>) -> Self {
        Self { to, peer, counters }
    }

    /// Accepts connections, without an end.
    pub(super) async fn accept(self: &Arc<Self>, listener: &TcpListener) {
        loop {
            match listener.accept().await {
                Ok((tcp, source)) => {
                    let route = self.clone();
                    tokio::spawn(async move { route.carry(tcp, source).await });
                }
                Err(error) => {
                    tracing::warn!(%error, to = %self.to, "a connection cannot be accepted");
                    sleep(PAUSE).await;
                }
            }
        }
    }

    async fn carry(self: Arc<Self>, tcp: TcpStream, source: SocketAddr) {
        // Requests and replies leave at once; where that fails they are only later.
        let _ = tcp.set_nodelay(true);
        let place = match self.peer.way().await {
            Ok(Way::Dcquic(place)) => place,
            Ok(Way::Tls(carrier)) => {
                return self.copy(tcp, source, *carrier).await;
            }
            Err(error) => {
                self.counters.lost.add(1);
                tracing::warn!(to = %self.to, "no connection: {error}");
                return reset(&tcp);
            }
        };
        let runtime = place.link().connection.runtime();
        if runtime.id() == Handle::current().id() {
            return self.copy_over(tcp, source, place).await;
        }
        // The connection's own thread copies, so that nothing wakes another one.
        let runtime = runtime.clone();
        let Ok(tcp) = tcp.into_std() else { return };
        runtime.spawn(async move {
            if let Ok(tcp) = TcpStream::from_std(tcp) {
                self.copy_over(tcp, source, place).await;
            }
        });
    }

    /// Copies over a new stream of a DCQUIC connection. The stream counts as open while `place` is kept.
    async fn copy_over(&self, tcp: TcpStream, source: SocketAddr, place: Place) {
        let Ok((send, receive)) = place.link().connection.open_bi().await else {
            self.counters.lost.add(1);
            return reset(&tcp);
        };
        self.copy(tcp, source, DcquicStream::new(send, receive))
            .await;
    }

    async fn copy<C: Carrier>(&self, tcp: TcpStream, source: SocketAddr, mut carrier: C) {
        let header = Header {
            protocol: Protocol::Tcp,
            destination: self.to.clone(),
            source: Some(SocketAddr::new(source.ip().to_canonical(), source.port())),
        };
        let mut bytes = Vec::with_capacity(64);
        header.encode(&mut bytes);
        let mut bytes = Bytes::from(bytes);
        let open = self.counters.open(C::KIND);
        let end = match poll_fn(|cx| carrier.poll_send(cx, &mut bytes)).await {
            Ok(()) => relay(tcp, carrier, Bytes::new(), &self.counters).await,
            Err(broken) => {
                reset(&tcp);
                End::of(broken)
            }
        };
        drop(open);
        self.note(end);
    }

    fn note(&self, end: End) {
        match end {
            End::Complete => {}
            End::TcpReset => self.counters.refused(Refusal::Reset),
            End::ByPeer(refusal) => {
                self.counters.refused(refusal);
                if refusal != Refusal::Reset {
                    tracing::info!(to = %self.to, "refused: {refusal}");
                }
            }
            End::CarrierLost => self.counters.lost.add(1),
        }
    }
}
