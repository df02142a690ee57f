//! A UDP socket with all its connections: the common part of clients and listeners.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::runtime::Handle as Runtime;
use weir_dcudp::{DataKind, ServerConfig, TransportConfig};

use super::config::DcudpConfig;
use super::error::DcudpConnectError;
use super::state::{Shared, SharedDcudpConnection};
use crate::clock::Clock;
use crate::driver::Driver;
use crate::engines::Engines;
use crate::error::EndpointError;
use crate::random::seed;
use crate::socket::{BindAddress, SocketOptions, canonical};
use crate::sockets::Sockets;
use crate::timers::Timers;

/// The last handle of a socket: dropping it lets existing connections go on.
pub(super) struct Endpoint {
    pub(super) shared: Arc<Shared>,
    transport: Box<TransportConfig>,
}

impl Endpoint {
    /// Binds, and starts the socket's task. `serves` is the data kind for clients, if they are
    /// accepted.
    pub(super) fn bind(
        address: SocketAddr,
        config: DcudpConfig,
        serves: Option<DataKind>,
    ) -> Result<Self, EndpointError> {
        config.transport.validate()?;
        let runtime = Runtime::try_current().map_err(|_| EndpointError::NoRuntime)?;
        let bind_address = BindAddress {
            address,
            interface: config.interface,
        };
        let sockets = Sockets::bind(vec![bind_address], SocketOptions::new(config.buffers))?;
        let granted = sockets.buffers().receive;
        let transport = fitting(config.transport, granted.bytes());
        let server = serves.map(|data| ServerConfig {
            max_connections: config.max_connections,
            ..ServerConfig::new(Arc::new(TransportConfig {
                data,
                ..transport.clone()
            }))
        });
        let clock = Clock::start();
        let timers = Timers::new(clock).map_err(EndpointError::Timer)?;
        let engine = weir_dcudp::Endpoint::new(server, seed()?)?;
        let shared = Arc::new(Shared::new(
            sockets,
            clock,
            timers,
            None,
            (),
            engine,
            Engines::alone(),
        ));
        runtime.spawn(Driver::new(shared.clone(), None));
        Ok(Self {
            shared,
            transport: Box::new(transport),
        })
    }

    /// Starts a connection; the first packet leaves before this returns.
    pub(super) fn connect(
        &self,
        remote: SocketAddr,
        data: DataKind,
    ) -> Result<Arc<SharedDcudpConnection>, DcudpConnectError> {
        let shared = &self.shared;
        let local = shared.sockets.local();
        let remote = canonical(remote);
        let reaching = shared.sockets.reaching(remote);
        reaching.ok_or(DcudpConnectError::AddressFamily { remote, local })?;
        let config = Arc::new(TransportConfig {
            data,
            ..TransportConfig::clone(&self.transport)
        });
        let now = shared.clock.now();
        let mut routing = shared.routing();
        let (handle, engine) = routing.engine.connect(now, config, remote, None)?;
        let connection = routing.insert(
            handle.0,
            SharedDcudpConnection::new(handle.0, shared.clone(), Box::new(engine)),
        );
        drop(routing);
        connection.lock_at(Some(now)).send();
        Ok(connection)
    }

    pub(super) fn refuse_new(&self) {
        for connection in self.shared.refuse_new() {
            connection.close_unused();
        }
        for connection in self.shared.engines.incoming.end() {
            connection.close_unused();
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.refuse_new();
        self.shared.on_last_handle_dropped();
    }
}

/// Returns the transport with a receive window that fits the socket's receive buffer: a sender does
/// not notice when that overflows.
fn fitting(transport: TransportConfig, granted: u64) -> TransportConfig {
    let packets = granted / transport.packet_size.bytes().max(1);
    let fits = u32::try_from(packets).unwrap_or(u32::MAX);
    let fits = fits.max(TransportConfig::SMALLEST_WINDOW);
    TransportConfig {
        receive_window: transport.receive_window.min(fits),
        ..transport
    }
}

#[cfg(test)]
mod tests {
    use weir_units::Rate;

    use super::*;

    #[test]
    fn the_receive_window_fits_the_socket_buffer() {
        let transport = DcudpConfig::new(Rate::from_gbps(10)).transport;
        let window = |granted| fitting(transport.clone(), granted).receive_window;
        assert_eq!(window(1452 * 100 + 7), 100);
        assert_eq!(window(1000), TransportConfig::SMALLEST_WINDOW);
        assert_eq!(window(u64::MAX), transport.receive_window);
    }
}
