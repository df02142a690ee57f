//! Connections that were on their way elsewhere, and were redirected to the client.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use socket2::SockRef;
use tokio::net::TcpListener;

use super::listener::{self, Route};
use crate::destination::{Destination, Host};
use crate::error::TunnelError;
use crate::listen::BACKLOG;

/// Where redirected connections were to go.
pub trait OriginalDestinations: Send + Sync {
    /// Returns where the connection was to go that was accepted from this address; `None` for one that was not
    /// redirected. It is asked once for each.
    fn take(&self, source: SocketAddr) -> Option<SocketAddr>;
}

/// Connections that are redirected to listeners of the client.
pub struct Redirected {
    /// The listeners, which listen already.
    pub listeners: Vec<std::net::TcpListener>,
    /// Where their connections were to go.
    pub destinations: Arc<dyn OriginalDestinations>,
    /// The server.
    pub via: Destination,
}

impl fmt::Debug for Redirected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redirected")
            .field("listeners", &self.listeners)
            .field("via", &self.via)
            .finish_non_exhaustive()
    }
}

/// A listener of redirected connections.
pub(super) struct RedirectedListener {
    listener: TcpListener,
    destinations: Arc<dyn OriginalDestinations>,
    route: Arc<Route>,
}

impl fmt::Debug for RedirectedListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedirectedListener")
            .field("listener", &self.listener)
            .finish_non_exhaustive()
    }
}

impl RedirectedListener {
    pub(super) fn new(
        listener: std::net::TcpListener,
        destinations: Arc<dyn OriginalDestinations>,
        route: Arc<Route>,
    ) -> Result<Self, TunnelError> {
        let address = listener.local_addr();
        let registering = || {
            listener.set_nonblocking(true)?;
            SockRef::from(&listener).listen(BACKLOG)?;
            TcpListener::from_std(listener)
        };
        Ok(Self {
            listener: registering().map_err(|source| TunnelError::Listen {
                address: address.unwrap_or_else(|_| SocketAddr::from(([0; 4], 0))),
                source,
            })?,
            destinations,
            route,
        })
    }

    /// Accepts connections, without an end.
    pub(super) async fn accept(&self) {
        listener::accept(&self.route, &self.listener, |source| {
            self.destination(source)
        })
        .await;
    }

    /// Accepts the connections that the kernel has established already.
    pub(super) async fn accept_waiting(&self) {
        loop {
            let accepted = tokio::select! {
                biased;
                accepted = self.listener.accept() => accepted,
                () = std::future::ready(()) => return,
            };
            let Ok((tcp, source)) = accepted else { return };
            listener::begin(&self.route, tcp, source, self.destination(source));
        }
    }

    fn destination(&self, source: SocketAddr) -> Option<Destination> {
        let original = self.destinations.take(source)?;
        Destination::new(Host::Address(original.ip()), original.port())
    }
}
