//! The client side of DCUDP.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use weir_dcudp::EndpointCounters;
use weir_units::Duration;

use super::config::DcudpConfig;
use super::connection::{DcudpConnection, ServiceKind};
use super::endpoint::Endpoint;
use super::error::DcudpConnectError;
use crate::error::{DeadlinePassed, EndpointError};

/// A UDP socket for any number of client connections.
///
/// After it is dropped no connection begins any more; existing ones go on.
pub struct DcudpClient {
    endpoint: Endpoint,
}

impl DcudpClient {
    /// Binds a socket, on the current tokio runtime; port 0 takes any free port.
    ///
    /// # Errors
    /// [`EndpointError`], which describes the remedy.
    pub fn bind(address: SocketAddr, config: DcudpConfig) -> Result<Self, EndpointError> {
        let endpoint = Endpoint::bind(address, config, None)?;
        Ok(Self { endpoint })
    }

    /// Binds any free port, of the family that reaches `remote`.
    ///
    /// # Errors
    /// [`EndpointError`], which describes the remedy.
    pub fn bind_for(remote: SocketAddr, config: DcudpConfig) -> Result<Self, EndpointError> {
        let any = match remote {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        Self::bind(any, config)
    }

    /// Connects and waits for the end of the handshake. The server must serve the same kind:
    /// streams or messages.
    ///
    /// # Errors
    /// [`DcudpConnectError`]; a server that does not answer is reported after the transport's
    /// `handshake_timeout`.
    pub async fn connect<K: ServiceKind>(
        &self,
        remote: SocketAddr,
    ) -> Result<DcudpConnection<K>, DcudpConnectError> {
        let connection = DcudpConnection::new(self.endpoint.connect(remote, K::DATA)?);
        connection.established().await?;
        Ok(connection)
    }

    /// Returns the address that the socket is bound to.
    pub fn local_address(&self) -> SocketAddr {
        self.endpoint.shared.sockets.local()
    }

    /// Returns the socket's counters of events outside its connections.
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

impl fmt::Debug for DcudpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DcudpClient")
            .field("local", &self.local_address())
            .finish_non_exhaustive()
    }
}
