//! The API of a DCQUIC endpoint.

use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use weir_quic::{ClientConfig, Side, TransportConfig, Version, Versions};
use weir_units::Duration;

use crate::connecting::Connecting;
use crate::dcquic::{Shared, SharedDcquicConnection};
use crate::error::{ConnectError, ConnectionError, DeadlinePassed, EndpointError, SuccessionError};
use crate::handle::Handle;
use crate::socket::{SocketBuffers, canonical};
use crate::stats::EndpointStats;
use crate::succession::{Predecessor, Succession};
use crate::tls::ClientCredentials;
use crate::undecided::Incoming;
use crate::waiters::wait;

/// Closes the connections of an endpoint that shuts down, and refuses calls that arrive too late: these
/// are not executed.
pub const SHUT_DOWN: u64 = 0x5745_0000;
pub(crate) const SHUT_DOWN_REASON: &[u8] = b"the endpoint shuts down";

/// A UDP socket, or several, with all its DCQUIC connections: a client, a server or both. Clones
/// are handles to the same endpoint.
///
/// After the last handle is dropped no connection begins any more; existing ones go on.
#[derive(Clone)]
pub struct Endpoint {
    inner: Arc<Inner>,
}

struct Inner {
    /// At least one.
    engines: Vec<Arc<Shared>>,
    /// Counts connections that begin here, which go to each engine in turn.
    begun: AtomicUsize,
    client: ClientSettings,
    succession: Option<Succession>,
}

/// The settings of client connections.
pub(crate) struct ClientSettings {
    pub(crate) credentials: Option<ClientCredentials>,
    pub(crate) transport: Arc<TransportConfig>,
    pub(crate) version: Version,
    pub(crate) versions: Versions,
}

impl ClientSettings {
    fn config(
        &self,
        credentials: &ClientCredentials,
        transport: Arc<TransportConfig>,
    ) -> ClientConfig {
        ClientConfig {
            early_data: credentials.early_data,
            version: self.version,
            versions: self.versions,
            tokens: credentials.tokens.clone(),
            known_servers: credentials.known_servers.clone(),
            ..ClientConfig::new(credentials.crypto.clone(), transport)
        }
    }
}

impl Endpoint {
    /// An endpoint of these engines, of which there is at least one.
    pub(crate) fn new(
        engines: Vec<Arc<Shared>>,
        client: ClientSettings,
        succession: Option<Succession>,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                engines,
                begun: AtomicUsize::new(0),
                client,
                succession,
            }),
        }
    }

    /// Lets an endpoint of another process, of the same user, [follow](crate::EndpointBuilder::follow) this one
    /// at its port. Until then nothing changes; afterwards this one gets the packets of its own connections
    /// only, and is to be [shut down](Self::shutdown).
    ///
    /// # Errors
    /// [`SuccessionError::NotPrepared`] where it was not [bound for
    /// that](crate::EndpointBuilder::can_be_followed), [`SuccessionError::Shared`] where it follows another one
    /// that has not ended, or was shared already.
    pub fn share_port(&self) -> Result<Predecessor, SuccessionError> {
        self.succession()?.share(&self.inner.engines)
    }

    /// Has the port for itself again: the predecessor has ended, or the successor that the port was
    /// [shared](Self::share_port) with.
    ///
    /// # Errors
    /// As of [`Self::share_port`].
    pub fn keep_port(&self) -> Result<(), SuccessionError> {
        self.succession()?.keep(&self.inner.engines)
    }

    fn succession(&self) -> Result<&Succession, SuccessionError> {
        let succession = self.inner.succession.as_ref();
        succession.ok_or(SuccessionError::NotPrepared)
    }

    /// Starts a connection to the server `server_name` at `remote`. The first packet leaves before
    /// this returns, unless the server is a known peer or early data may be sent: then it leaves with
    /// the first request.
    ///
    /// # Errors
    /// [`ConnectError`] where it cannot be started. A server that does not answer is reported only
    /// after the transport's `handshake_timeout`, by [`Connecting`].
    pub fn connect(
        &self,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        let client = &self.inner.client;
        let credentials = client.credentials.as_ref();
        let credentials = credentials.ok_or(ConnectError::NoClientConfig)?;
        let config = client.config(credentials, client.transport.clone());
        self.begin(config, remote, server_name)
    }

    /// As [`Endpoint::connect`], with credentials and a transport for this connection only; `None`
    /// uses the endpoint's transport.
    ///
    /// # Errors
    /// As [`Endpoint::connect`].
    pub fn connect_with(
        &self,
        credentials: &ClientCredentials,
        transport: Option<Arc<TransportConfig>>,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        let client = &self.inner.client;
        let transport = transport.unwrap_or_else(|| client.transport.clone());
        let config = client.config(credentials, transport);
        self.begin(config, remote, server_name)
    }

    /// Returns its engines.
    #[cfg(test)]
    pub(crate) fn engines(&self) -> impl Iterator<Item = &Arc<Shared>> {
        self.inner.engines.iter()
    }

    fn begin(
        &self,
        mut client: ClientConfig,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        let shared = self.inner.next();
        let remote = canonical(remote);
        let reaching = shared.sockets.reaching(remote);
        let socket = reaching.ok_or_else(|| ConnectError::AddressFamily {
            remote,
            local: shared.sockets.local(),
        })?;
        let now = shared.clock.now();
        let mut routing = shared.routing();
        if shared.shutting_down.load(Ordering::Relaxed) {
            return Err(ConnectError::ShuttingDown);
        }
        let local = shared.local_towards(&socket, remote);
        client.local_addresses = shared.standby_addresses(remote);
        let begun = routing
            .engine
            .connect(now, client, remote, local, server_name);
        let (handle, engine) = begun?;
        let connection = routing.insert(
            handle.0,
            SharedDcquicConnection::new(handle.0, shared.clone(), engine),
        );
        let open = routing.open;
        drop(routing);
        shared.sockets.make_room(open);
        let mut locked = connection.lock_at(Some(now));
        if locked.engine.has_early_keys() || locked.engine.is_known_peer() {
            // The first request leaves with the first packet, once this task has written it.
            locked.queue();
        } else {
            locked.send();
        }
        drop(locked);
        Ok(Connecting::new(Handle::new(connection)))
    }

    /// Returns the next connection from a client; `None` once the endpoint shuts down.
    pub async fn accept(&self) -> Option<Connecting> {
        if self.inner.first().settings.undecided.is_some() {
            loop {
                if let Ok(connecting) = self.accept_incoming().await?.accept() {
                    return Some(connecting);
                }
            }
        }
        let connection = self.inner.first().accept().await?;
        Some(Connecting::new(Handle::new(connection)))
    }

    /// Returns the next client, to decide about before its handshake, of an endpoint built with
    /// [`EndpointBuilder::decide_incoming`](crate::EndpointBuilder::decide_incoming); `None` once the
    /// endpoint shuts down, and at once on any other endpoint.
    pub async fn accept_incoming(&self) -> Option<Incoming> {
        let queue = self.inner.first().settings.undecided.as_ref()?;
        queue.next().await.map(Incoming::new)
    }

    /// Returns the address that the endpoint is bound to; the first one where there are several.
    pub fn local_address(&self) -> SocketAddr {
        self.inner.first().sockets.local()
    }

    /// Returns all addresses that the endpoint is bound to now, without those that the machine
    /// lost.
    pub fn local_addresses(&self) -> Vec<SocketAddr> {
        let bind_addresses = self.inner.first().sockets.bound_addresses().into_iter();
        let open = bind_addresses.filter(|(_, is_open)| *is_open);
        open.map(|(bind_address, _)| bind_address.address).collect()
    }

    /// Moves the endpoint from [`Endpoint::local_address`] to another address; port 0 takes any
    /// free port. Its client connections go on from there, invisibly to their applications. Returns
    /// the new address.
    ///
    /// Connections whose handshake is not confirmed yet follow when it is; the old socket stays
    /// open for them. To a peer that forbids migration, packets leave from the new address all the
    /// same, as after a NAT rebinding; the peer may or may not accept them. The family may change:
    /// from `[::]` to an IPv4 address, connections to IPv4 peers go on.
    ///
    /// # Errors
    /// [`EndpointError`] where the address cannot be bound; [`EndpointError::OtherFamily`] where a
    /// connection could not go on from it; [`EndpointError::ServerStays`] where the endpoint is a
    /// server too. Nothing changes then.
    pub fn rebind(&self, address: SocketAddr) -> Result<SocketAddr, EndpointError> {
        if self.inner.first().settings.is_server {
            return Err(EndpointError::ServerStays);
        }
        let mut address = canonical(address);
        for engine in &self.inner.engines {
            engine.check_rebind(0, address)?;
        }
        for engine in &self.inner.engines {
            // The first one takes a free port; the others follow.
            address = engine.rebind_socket_at(0, address)?;
        }
        Ok(address)
    }

    /// Returns the buffer sizes that the kernel granted each socket.
    pub fn socket_buffers(&self) -> SocketBuffers {
        self.inner.first().sockets.buffers()
    }

    /// Returns the endpoint's statistics, without those of its connections.
    pub fn stats(&self) -> EndpointStats {
        let engines = self.inner.engines.iter();
        engines.map(|engine| EndpointStats::of(engine)).sum()
    }

    /// Ends the secrets of all known peers of this server: their next connections have a handshake, in
    /// which their certificates are verified.
    pub fn forget_known_clients(&self) {
        let shared = self.inner.first();
        if let Some(clients) = &shared.settings.known_clients {
            clients.clear(shared.clock.now() + shared.clock.epoch());
        }
    }

    /// Accepts no connection any more, and asks the clients of this server to open no streams, ahead of
    /// [`Self::shutdown`]: until then those that are on their way are served.
    pub fn warn_of_shutdown(&self) {
        self.inner.refuse_new();
        for connection in self.inner.engines.iter().flat_map(connections_of) {
            let mut locked = connection.lock();
            if locked.engine.side() == Side::Server {
                locked.warn_of_drain();
            }
        }
    }

    /// Closes all connections at once, with a code and a reason for the peers, and accepts no new
    /// ones. [`Endpoint::wait_idle`] waits until the close has had time to reach the peers.
    pub fn close(&self, code: u64, reason: &[u8]) {
        self.inner.refuse_new();
        for engine in &self.inner.engines {
            for connection in connections_of(engine) {
                connection.lock().close(code, reason);
            }
        }
    }

    /// Waits until no connection is left, or for `limit` at most.
    ///
    /// # Errors
    /// [`DeadlinePassed`] where connections are left then.
    pub async fn wait_idle(&self, limit: impl Into<Duration>) -> Result<(), DeadlinePassed> {
        let waited = tokio::time::timeout(limit.into().into(), self.inner.become_idle()).await;
        waited.map_err(|_| DeadlinePassed)
    }

    /// Refuses new connections from now on, at once, and makes none. Those that are open go on.
    pub fn refuse_new(&self) {
        self.inner.refuse_new();
    }

    /// Shuts the endpoint down gracefully. New connections are refused at once. Those of clients take no
    /// new calls or streams; each closes, with [`SHUT_DOWN`] or its
    /// [own code](crate::Connection::set_drain_codes), as soon as its last one has ended and the
    /// client has acknowledged it, and an idle one closes at once. The endpoint's own connections to
    /// servers follow in the same way when these are gone, as calls that run may need them. After
    /// `limit` all are closed.
    ///
    /// A client learns which of its calls were not executed: [`CallError::executed`](crate::CallError)
    /// says `No`. [`Connection::serve`](crate::Connection::serve) needs nothing else to drain.
    ///
    /// # Errors
    /// [`DeadlinePassed`] where streams were open after `limit`.
    pub async fn shutdown(&self, limit: impl Into<Duration>) -> Result<(), DeadlinePassed> {
        self.inner.refuse_new();
        let drain = async {
            self.inner.drain(Side::Server).await;
            self.inner.drain(Side::Client).await;
            self.inner.become_idle().await;
        };
        let drained = tokio::time::timeout(limit.into().into(), drain).await;
        drained.map_err(|_| {
            for connection in self.inner.engines.iter().flat_map(connections_of) {
                let mut locked = connection.lock();
                let (_, code) = locked.drain_codes;
                locked.close(code, SHUT_DOWN_REASON);
            }
            DeadlinePassed
        })
    }
}

impl Inner {
    fn first(&self) -> &Arc<Shared> {
        &self.engines[0]
    }

    /// Returns the engine of a new client connection.
    fn next(&self) -> &Arc<Shared> {
        let begun = self.begun.fetch_add(1, Ordering::Relaxed);
        &self.engines[begun % self.engines.len()]
    }

    /// Drains all connections of which this is our side, and waits until they are gone.
    async fn drain(&self, side: Side) {
        let mut draining = Vec::new();
        for connection in self.engines.iter().flat_map(connections_of) {
            let mut locked = connection.lock();
            if locked.engine.side() == side {
                locked.drain();
                drop(locked);
                draining.push(connection);
            }
        }
        for connection in draining {
            poll_fn(|cx| poll_removed(cx, &connection)).await;
        }
    }

    /// Waits until no connection is left.
    async fn become_idle(&self) {
        for engine in &self.engines {
            engine.become_idle().await;
        }
    }

    fn refuse_new(&self) {
        for connection in self.engines.iter().flat_map(|engine| engine.refuse_new()) {
            connection.close_unused();
        }
        for connection in self.first().engines.incoming.end() {
            connection.close_unused();
        }
        if let Some(undecided) = &self.first().settings.undecided {
            // Dropping them refuses them.
            undecided.end();
        }
    }
}

fn connections_of(engine: &Arc<Shared>) -> Vec<Arc<SharedDcquicConnection>> {
    engine.routing().connections().cloned().collect()
}

/// Ready once the endpoint has forgotten the connection.
fn poll_removed(cx: &mut Context<'_>, connection: &Arc<SharedDcquicConnection>) -> Poll<()> {
    let mut locked = connection.lock();
    if locked.is_removed() || locked.error == Some(ConnectionError::EndpointGone) {
        return Poll::Ready(());
    }
    wait(&mut locked.waiting.closing, cx.waker());
    Poll::Pending
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.refuse_new();
        for engine in &self.engines {
            engine.on_last_handle_dropped();
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("local", &self.local_address())
            .finish_non_exhaustive()
    }
}
