//! Setting up an endpoint.

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;

use weir_quic::{ClientConfig, EndpointConfig, ServerConfig, TransportConfig};
use weir_units::{ByteSize, Duration};

use crate::driver::{CONNECTION_ID_LENGTH, Driver};
use crate::endpoint::Endpoint;
use crate::error::EndpointError;
use crate::shared::Shared;
use crate::socket::{Socket, SocketBuffers};
use crate::spin::Spin;
use crate::timers::Timers;
use crate::tls::{ClientCredentials, ServerCredentials};

/// What an endpoint is made with: [`Endpoint::builder`] begins, [`EndpointBuilder::bind`] ends.
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `bind`"]
pub struct EndpointBuilder {
    transport: Arc<TransportConfig>,
    client: Option<ClientCredentials>,
    server: Option<ServerCredentials>,
    max_connections: usize,
    buffers: SocketBuffers,
    low_latency: Option<Duration>,
}

impl Default for EndpointBuilder {
    fn default() -> Self {
        let buffer = ByteSize::from_mib(1);
        Self {
            transport: Arc::new(TransportConfig::data_center()),
            client: None,
            server: None,
            max_connections: 10_000,
            buffers: SocketBuffers {
                receive: buffer,
                send: buffer,
            },
            low_latency: None,
        }
    }
}

impl EndpointBuilder {
    /// The transport of this endpoint's connections; [`TransportConfig::data_center`] otherwise.
    /// The congestion controller is part of it.
    pub fn transport(mut self, transport: impl Into<Arc<TransportConfig>>) -> Self {
        self.transport = transport.into();
        self
    }

    /// Whom connections trust that this endpoint begins, and who it is to them.
    pub fn client(mut self, credentials: ClientCredentials) -> Self {
        self.client = Some(credentials);
        self
    }

    /// Takes connections, as this server.
    pub fn server(mut self, credentials: ServerCredentials) -> Self {
        self.server = Some(credentials);
        self
    }

    /// How many connections there may be at once; clients beyond that are refused. 10,000
    /// otherwise.
    pub fn max_connections(mut self, count: usize) -> Self {
        self.max_connections = count;
        self
    }

    /// The size of the socket's receive buffer; 1 MiB otherwise. What the kernel granted is
    /// [`Endpoint::socket_buffers`]; less than asked for is logged as a warning.
    pub fn receive_buffer(mut self, size: ByteSize) -> Self {
        self.buffers.receive = size;
        self
    }

    /// The size of the socket's send buffer; 1 MiB otherwise.
    pub fn send_buffer(mut self, size: ByteSize) -> Self {
        self.buffers.send = size;
        self
    }

    /// Before sleeping, looks for a reply that is due for this long (50 µs is a good value);
    /// `None`, the default, sleeps at once.
    ///
    /// That saves waking a core, some 20 µs per direction, and costs CPU time for as long as
    /// replies are due: [`EndpointStats::spinning`](crate::EndpointStats::spinning) counts it. The
    /// endpoint's task gives way to others meanwhile, on its runtime and on its core.
    pub fn low_latency(mut self, spin: Option<Duration>) -> Self {
        self.low_latency = spin;
        self
    }

    /// Binds the address and starts the endpoint's task on the current tokio runtime. Port 0 takes
    /// any free port.
    ///
    /// # Errors
    /// [`EndpointError`], which says what to do about it.
    pub fn bind(self, address: SocketAddr) -> Result<Endpoint, EndpointError> {
        self.transport.validate()?;
        let runtime =
            tokio::runtime::Handle::try_current().map_err(|_| EndpointError::NoRuntime)?;
        let socket = Socket::bind(address, self.buffers)?;
        let timers = Timers::new().map_err(EndpointError::Timer)?;
        let spin = self
            .low_latency
            .filter(|span| !span.is_zero())
            .map(Spin::new);
        let server = self.server.map(|credentials| ServerConfig {
            crypto: credentials.crypto,
            transport: self.transport.clone(),
            max_connections: self.max_connections,
        });
        let config = EndpointConfig {
            connection_id_length: CONNECTION_ID_LENGTH,
        };
        let engine = weir_quic::Endpoint::new(config, server, seed()?);
        let shared = Arc::new(Shared::new(socket, timers, spin, engine));
        runtime.spawn(Driver::new(shared.clone()));
        let client = self.client.map(|credentials| ClientConfig {
            crypto: credentials.crypto,
            transport: self.transport.clone(),
            early_data: credentials.early_data,
        });
        Ok(Endpoint::new(shared, client, self.transport))
    }

    /// Binds any free port, for clients: on all IPv4 and IPv6 addresses, or IPv4 alone where the
    /// machine has no IPv6.
    ///
    /// # Errors
    /// [`EndpointError`], which says what to do about it.
    pub fn bind_any(self) -> Result<Endpoint, EndpointError> {
        let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
        match self.clone().bind(any) {
            Err(EndpointError::Socket { .. } | EndpointError::AddressNotAvailable { .. }) => {
                self.bind(SocketAddr::from(([0, 0, 0, 0], 0)))
            }
            bound => bound,
        }
    }
}

fn seed() -> Result<[u8; 32], EndpointError> {
    let mut seed = [0; 32];
    weir_quic::crypto::tls::provider()
        .secure_random
        .fill(&mut seed)
        .map_err(|_| EndpointError::Random)?;
    Ok(seed)
}
