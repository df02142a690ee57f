//! The server side of DCUDP.

use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;

use weir_dcudp::EndpointCounters;
use weir_units::Duration;

use super::config::DcudpConfig;
use super::connection::{DcudpConnection, ServiceKind, Stream};
use super::endpoint::Endpoint;
use crate::error::{DeadlinePassed, EndpointError};

/// A UDP socket that accepts connections of one kind.
///
/// It keeps no state for a client before that has returned a cookie, so that forged source
/// addresses cost no memory.
///
/// After it is dropped no connection is accepted any more, and those not accepted yet are aborted;
/// the others go on.
pub struct DcudpListener<K: ServiceKind = Stream> {
    endpoint: Endpoint,
    kind: PhantomData<K>,
}

impl<K: ServiceKind> DcudpListener<K> {
    /// Binds a socket, on the current tokio runtime; port 0 takes any free port.
    ///
    /// # Errors
    /// [`EndpointError`], which describes the remedy.
    pub fn bind(address: SocketAddr, config: DcudpConfig) -> Result<Self, EndpointError> {
        Ok(Self {
            endpoint: Endpoint::bind(address, config, Some(K::DATA))?,
            kind: PhantomData,
        })
    }

    /// Returns the next connection from a client; `None` once the listener accepts no more.
    pub async fn accept(&self) -> Option<DcudpConnection<K>> {
        self.endpoint
            .shared
            .accept()
            .await
            .map(DcudpConnection::new)
    }

    /// Stops accepting connections; those not accepted yet are aborted.
    pub fn refuse_new(&self) {
        self.endpoint.refuse_new();
    }

    /// Returns the address that the socket is bound to.
    pub fn local_address(&self) -> SocketAddr {
        self.endpoint.shared.sockets.local()
    }

    /// Returns the socket's counters of events outside its connections: cookie requests, refused
    /// clients, unroutable datagrams.
    pub fn counters(&self) -> EndpointCounters {
        self.endpoint.shared.routing().engine.counters()
    }

    /// Waits until no connection is left, or for `limit` at most. A closed connection still answers
    /// its peer for a while.
    ///
    /// # Errors
    /// [`DeadlinePassed`] where connections are left then.
    pub async fn wait_idle(&self, limit: impl Into<Duration>) -> Result<(), DeadlinePassed> {
        self.endpoint.shared.wait_idle(limit.into()).await
    }
}

impl<K: ServiceKind> fmt::Debug for DcudpListener<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DcudpListener")
            .field("local", &self.local_address())
            .field("data", &K::DATA)
            .finish_non_exhaustive()
    }
}
