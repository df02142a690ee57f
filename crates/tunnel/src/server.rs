//! The server: takes streams, and connects them to their destinations.

mod connect;
mod serve;
mod tls;
mod udp;

use std::net::SocketAddr;
use std::num::NonZeroU8;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use weir_metrics::Registry;
use weir_net::tls::ServerCredentials;
use weir_net::{AlgorithmSpec, Connecting, Endpoint, Side};
use weir_units::Duration;

use crate::access::Access;
use crate::counters::Counters;
use crate::error::TunnelError;
use crate::identity::ClientIdentity;
use crate::metrics::TunnelMetrics;
use crate::status::Status;
use crate::transport::transport;

/// What a server is given.
#[derive(Debug)]
pub struct ServerOptions {
    /// The UDP address, and the TCP address for clients whose UDP does not pass.
    pub bind: SocketAddr,
    /// The server's identity and its clients; the application protocol is
    /// [`APPLICATION_PROTOCOL`](crate::APPLICATION_PROTOCOL).
    pub credentials: ServerCredentials,
    /// Which client may reach what.
    pub access: Access,
    /// The most connections of applications at the same time.
    pub max_connections: usize,
    /// How long a destination may take to accept a connection.
    pub connect_timeout: Duration,
    /// Whether destinations are told the application's address by the PROXY protocol.
    pub proxy_protocol: bool,
    /// Whether UDP is carried.
    pub udp: bool,
    /// Whether clients may come by TLS over TCP.
    pub over_tcp: bool,
    /// The congestion controller of what the server sends; `None` for the default.
    pub congestion: Option<AlgorithmSpec>,
    /// How many threads carry data; 1 for the runtime's own.
    pub threads: NonZeroU8,
    /// Where the endpoint's secret is kept, so that clients notice a restart at once.
    pub state_directory: Option<PathBuf>,
    /// Where qlog files are written.
    pub qlog: Option<PathBuf>,
    /// Where metrics are registered.
    pub registry: Option<Registry>,
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    endpoint: Endpoint,
    /// Until [`Server::run`] takes it, whose end closes it.
    tcp: Mutex<Option<TcpListener>>,
    shared: Arc<Shared>,
}

/// What all connections of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    access: Access,
    places: Arc<Semaphore>,
    connect_timeout: Duration,
    proxy_protocol: bool,
    udp: bool,
    credentials: ServerCredentials,
    counters: Counters,
}

impl Server {
    /// Listens, within a tokio runtime.
    ///
    /// # Errors
    /// [`TunnelError`].
    pub fn bind(options: ServerOptions) -> Result<Self, TunnelError> {
        let mut builder = Endpoint::builder()
            .transport(transport(Side::Server, options.congestion))
            .server(options.credentials.clone())
            .threads(options.threads);
        if let Some(directory) = options.state_directory {
            builder = builder.state_directory(directory);
        }
        if let Some(directory) = options.qlog {
            builder = builder.qlog(directory);
        }
        if let Some(registry) = &options.registry {
            builder = builder.metrics(registry);
        }
        let endpoint = builder.bind(options.bind)?;
        let tcp = if options.over_tcp {
            // Fails here rather than at the first client.
            options.credentials.over_tcp()?;
            Some(crate::listen::listen(endpoint.local_address())?)
        } else {
            None
        };
        let shared = Arc::new(Shared {
            access: options.access,
            places: Arc::new(Semaphore::new(
                options.max_connections.min(Semaphore::MAX_PERMITS),
            )),
            connect_timeout: options.connect_timeout,
            proxy_protocol: options.proxy_protocol,
            udp: options.udp,
            credentials: options.credentials,
            counters: Counters::default(),
        });
        if let Some(registry) = &options.registry {
            let counted = Arc::downgrade(&shared);
            TunnelMetrics::follow(registry, move || Some(counted.upgrade()?.counters.values()));
        }
        Ok(Self {
            endpoint,
            tcp: Mutex::new(tcp),
            shared,
        })
    }

    /// Returns the address that it listens on.
    pub fn local_address(&self) -> SocketAddr {
        self.endpoint.local_address()
    }

    /// Returns what `weir tunnel status` shows.
    pub fn status(&self) -> Status {
        Status::server(self.local_address(), &self.shared.counters)
    }

    /// Takes clients until the server [drains](Server::drain), or this future is dropped. It is called once.
    pub async fn run(&self) {
        let listener = self
            .tcp
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let over_tcp = async {
            match listener {
                Some(listener) => tls::accept(&listener, &self.shared).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.accept() => {}
            () = over_tcp => {}
        }
    }

    async fn accept(&self) {
        while let Some(connecting) = self.endpoint.accept().await {
            let shared = self.shared.clone();
            tokio::spawn(establish(connecting, shared));
        }
    }

    /// Ends: takes no new connections, and waits for those that are open, for `limit` at most. Returns
    /// whether all have ended.
    pub async fn drain(&self, limit: Duration) -> bool {
        let places = async {
            // Connections over TLS have no endpoint that waits for them.
            while self.shared.counters.open() > 0 {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        let over_tls = tokio::time::timeout(limit.into(), places);
        let (drained, ended) = tokio::join!(self.endpoint.shutdown(limit), over_tls);
        drained.is_ok() && ended.is_ok()
    }
}

/// Waits for the handshake, and serves the connection where its packets arrive.
async fn establish(connecting: Connecting, shared: Arc<Shared>) {
    let remote = connecting.remote_address();
    match connecting.await {
        Ok(connection) => {
            let client = ClientIdentity::of(&connection);
            tracing::debug!(client = client.name(), %remote, "a client has come");
            let runtime = connection.runtime().clone();
            runtime.spawn(serve::serve(connection, client, shared));
        }
        Err(error) => tracing::debug!(%remote, %error, "a client has no connection"),
    }
}
