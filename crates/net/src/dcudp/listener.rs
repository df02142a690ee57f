//! The side that takes connections.

use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;

use weir_dcudp::EndpointCounters;
use weir_units::Duration;

use super::config::DcudpConfig;
use super::connection::{DcudpConnection, ServiceKind, Stream};
use super::endpoint::Endpoint;
use crate::error::{DeadlinePassed, EndpointError};

/// A UDP socket at which connections arrive, of one kind.
///
/// It remembers nothing of a client before that has brought back a cookie, so that forged source
/// addresses cost no memory.
///
/// When it is dropped no connection is taken any more, and those that nobody accepted are cut off;
/// the others go on.
pub struct DcudpListener<K: ServiceKind = Stream> {
    endpoint: Endpoint,
    kind: PhantomData<K>,
}

impl<K: ServiceKind> DcudpListener<K> {
    /// Binds a socket, on the current tokio runtime; port 0 takes any free port.
    ///
    /// # Errors
    /// [`EndpointError`], which says what to do about it.
    pub fn bind(address: SocketAddr, config: DcudpConfig) -> Result<Self, EndpointError> {
        Ok(Self {
            endpoint: Endpoint::bind(address, config, Some(K::DATA))?,
            kind: PhantomData,
        })
    }

    /// The next connection that a client begins; `None` once the listener takes no more.
    pub async fn accept(&self) -> Option<DcudpConnection<K>> {
        self.endpoint
            .shared
            .accept()
            .await
            .map(DcudpConnection::new)
    }

    /// Takes no connections from now on; those that nobody accepted are cut off.
    pub fn refuse_new(&self) {
        self.endpoint.refuse_new();
    }

    /// The address that the socket is bound to.
    pub fn local_address(&self) -> SocketAddr {
        self.endpoint.shared.sockets.local()
    }

    /// What happened at the socket beyond its connections: clients that were asked for a cookie or
    /// refused, datagrams that belonged nowhere.
    pub fn counters(&self) -> EndpointCounters {
        self.endpoint.shared.routing().engine.counters()
    }

    /// Waits until no connection is left, or for `limit` at most. A connection that is over still
    /// answers its peer for a while.
    ///
    /// # Errors
    /// [`DeadlinePassed`] where connections are left then.
    pub async fn wait_idle(&self, limit: Duration) -> Result<(), DeadlinePassed> {
        self.endpoint.shared.wait_idle(limit).await
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
