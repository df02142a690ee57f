//! The server: takes streams, and connects them to their destinations.

mod connect;
mod serve;
mod source;
mod tls;
mod udp;

use std::net::SocketAddr;
use std::num::NonZeroU8;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use weir_metrics::Registry;
use weir_net::tls::ServerCredentials;
use weir_net::{AlgorithmSpec, Connecting, Endpoint, EndpointBuilder, Side};
use weir_policy::Prefix;
use weir_units::Duration;

use crate::access::Access;
use crate::counters::Counters;
use crate::error::TunnelError;
use crate::handover::{Handover, Inheritance};
use crate::identity::ClientIdentity;
use crate::listen::inherit_or_listen;
use crate::metrics::TunnelMetrics;
use crate::status::Status;
use crate::transport::transport;

/// How long clients are warned before their new streams are refused: many round trips.
const WARNING: Duration = Duration::from_millis(200);

/// How often another free port is tried.
const ATTEMPTS: u32 = 16;

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
    /// The networks of applications whose destinations see the application's own address, by a transparent
    /// bind: others are refused. None for the server's address.
    pub transparent: Vec<Prefix>,
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
    /// Until the server drains.
    tcp: Mutex<Option<Arc<TcpListener>>>,
    shared: Arc<Shared>,
}

/// What all connections of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    access: Access,
    places: Arc<Semaphore>,
    connect_timeout: Duration,
    proxy_protocol: bool,
    transparent: Vec<Prefix>,
    udp: bool,
    credentials: ServerCredentials,
    counters: Counters,
    /// Cloned by each connection over TLS.
    over_tls: Arc<()>,
}

/// Why a server cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum HandoverError {
    /// The DCQUIC endpoint cannot be followed.
    #[error(transparent)]
    Endpoint(#[from] weir_net::SuccessionError),
    /// The listener cannot be given away.
    #[error(transparent)]
    Listener(#[from] std::io::Error),
}

impl Server {
    /// Listens, within a tokio runtime.
    ///
    /// # Errors
    /// [`TunnelError`].
    pub fn bind(options: ServerOptions) -> Result<Self, TunnelError> {
        Self::follow(options, None)
    }

    /// As [`Server::bind`], after a predecessor: new connections come here from now on, those of the
    /// predecessor stay there. When it has ended, [`Server::keep_port`] is called.
    ///
    /// # Errors
    /// [`TunnelError`].
    pub fn follow(
        mut options: ServerOptions,
        inherited: Option<&mut Inheritance>,
    ) -> Result<Self, TunnelError> {
        if !options.transparent.is_empty() {
            source::check_permission().map_err(TunnelError::Transparent)?;
        }
        let mut builder = Endpoint::builder()
            .transport(transport(Side::Server, options.congestion))
            .server(options.credentials.clone())
            .threads(options.threads)
            .can_be_followed();
        if let Some(inherited) = &inherited {
            let found = inherited.endpoint(options.bind);
            let (address, predecessor) = found.ok_or(TunnelError::OtherAddress(options.bind))?;
            options.bind = address;
            builder = builder.follow(predecessor);
        }
        if let Some(directory) = options.state_directory {
            builder = builder.state_directory(directory);
        }
        if let Some(directory) = options.qlog {
            builder = builder.qlog(directory);
        }
        if let Some(registry) = &options.registry {
            builder = builder.metrics(registry);
        }
        if options.over_tcp {
            // Fails here rather than at the first client.
            options.credentials.over_tcp()?;
        }
        let (endpoint, tcp) = bind_both(&builder, options.bind, options.over_tcp, inherited)?;
        let shared = Arc::new(Shared {
            access: options.access,
            places: Arc::new(Semaphore::new(
                options.max_connections.min(Semaphore::MAX_PERMITS),
            )),
            connect_timeout: options.connect_timeout,
            proxy_protocol: options.proxy_protocol,
            transparent: options.transparent,
            udp: options.udp,
            credentials: options.credentials,
            counters: Counters::default(),
            over_tls: Arc::default(),
        });
        if let Some(registry) = &options.registry {
            let counted = Arc::downgrade(&shared);
            TunnelMetrics::follow(registry, move || Some(counted.upgrade()?.counters.values()));
        }
        Ok(Self {
            endpoint,
            tcp: Mutex::new(tcp.map(Arc::new)),
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
        let listener = self.tcp().clone();
        let over_tcp = async {
            match &listener {
                Some(listener) => tls::accept(listener, &self.shared).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.accept() => {}
            () = over_tcp => {}
        }
    }

    /// Returns the listening sockets, for a successor: from when that is [bound](Server::follow) this server
    /// gets no new connections. Where the successor fails, [`Server::keep_port`] is called.
    ///
    /// # Errors
    /// Why there can be no successor.
    pub fn hand_over(&self) -> Result<Handover, HandoverError> {
        let mut handover = Handover::default();
        if let Some(listener) = &*self.tcp() {
            handover.tcp(listener)?;
        }
        handover.endpoint(self.local_address(), self.endpoint.share_port()?);
        Ok(handover)
    }

    /// Has the port for itself again: the predecessor has ended, or the successor.
    ///
    /// # Errors
    /// The port's filter cannot be set.
    pub fn keep_port(&self) -> Result<(), HandoverError> {
        Ok(self.endpoint.keep_port()?)
    }

    fn tcp(&self) -> MutexGuard<'_, Option<Arc<TcpListener>>> {
        self.tcp.lock().unwrap_or_else(PoisonError::into_inner)
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
        *self.tcp() = None;
        let by_dcquic = async {
            // Streams that clients have opened before they hear of it are served.
            self.endpoint.warn_of_shutdown();
            tokio::time::sleep(WARNING.min(limit).into()).await;
            self.endpoint.shutdown(limit - WARNING).await
        };
        let over_tls = async {
            // They have no endpoint that waits for them.
            while Arc::strong_count(&self.shared.over_tls) > 1 {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        let over_tls = tokio::time::timeout(limit.into(), over_tls);
        let (drained, ended) = tokio::join!(by_dcquic, over_tls);
        drained.is_ok() && ended.is_ok()
    }
}

/// Binds UDP, and TCP at the same port where that is wanted: for port 0 one that is free for both.
fn bind_both(
    builder: &EndpointBuilder,
    address: SocketAddr,
    over_tcp: bool,
    mut inherited: Option<&mut Inheritance>,
) -> Result<(Endpoint, Option<TcpListener>), TunnelError> {
    let mut attempts = 0;
    loop {
        let endpoint = builder.clone().bind(address)?;
        if !over_tcp {
            return Ok((endpoint, None));
        }
        match inherit_or_listen(endpoint.local_address(), inherited.as_deref_mut()) {
            Err(TunnelError::Listen { source, .. })
                if address.port() == 0
                    && source.kind() == std::io::ErrorKind::AddrInUse
                    && attempts < ATTEMPTS =>
            {
                attempts += 1;
            }
            listener => return Ok((endpoint, Some(listener?))),
        }
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
