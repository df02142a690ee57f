//! The client: takes TCP connections of applications, and has the server connect them.

mod connections;
mod link;
mod listener;
mod over_tcp;
mod peer;
mod redirected;
mod udp;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::num::{NonZeroU8, NonZeroUsize};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::watch;
use weir_metrics::Registry;
use weir_net::tls::ClientCredentials;
use weir_net::{AlgorithmSpec, Endpoint, Side};
use weir_units::Duration;

use crate::counters::Counters;
use crate::destination::Destination;
use crate::error::TunnelError;
use crate::handover::{Handover, Inheritance};
use crate::listen::{inherit_or_bind_udp, inherit_or_listen};
use crate::metrics::TunnelMetrics;
use crate::status::Status;
use crate::transport::transport;

use peer::Peer;
use redirected::RedirectedListener;

pub use redirected::{OriginalDestinations, Redirected};

/// A tunnel of a client.
#[derive(Clone, Debug)]
pub struct Tunnel {
    /// Where applications connect to.
    pub listen: SocketAddr,
    /// Where the server connects them to.
    pub to: Destination,
    /// The server.
    pub via: Destination,
    /// Whether UDP is carried besides, from the same address and port.
    pub udp: bool,
}

/// An address that DCQUIC packets leave from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalAddress {
    /// The address; port 0 for any.
    pub address: SocketAddr,
    /// The network interface that it is bound to.
    pub interface: Option<String>,
}

/// What a client is given.
#[derive(Debug)]
pub struct ClientOptions {
    /// The tunnels.
    pub tunnels: Vec<Tunnel>,
    /// Connections that were to go elsewhere, if such are redirected to the client.
    pub redirected: Option<Redirected>,
    /// The trust in the servers, and the client's identity; the application protocol is
    /// [`APPLICATION_PROTOCOL`](crate::APPLICATION_PROTOCOL).
    pub credentials: ClientCredentials,
    /// The name in the servers' certificates, where it is not that of [`Tunnel::via`].
    pub server_name: Option<String>,
    /// Where packets leave from: with several, connections survive the loss of one. None for any.
    pub local: Vec<LocalAddress>,
    /// How many DCQUIC connections each server has.
    pub connections: NonZeroUsize,
    /// Whether TLS over TCP is used while UDP does not pass.
    pub over_tcp: bool,
    /// The congestion controller of what the client sends; `None` for the default.
    pub congestion: Option<AlgorithmSpec>,
    /// How many threads carry data; 1 for the runtime's own.
    pub threads: NonZeroU8,
    /// Where qlog files are written.
    pub qlog: Option<PathBuf>,
    /// Where metrics are registered.
    pub registry: Option<Registry>,
}

/// A client that listens.
#[derive(Debug)]
pub struct Client {
    endpoint: Endpoint,
    addresses: Vec<SocketAddr>,
    /// Until the client drains.
    listeners: Mutex<Vec<Arc<Listener>>>,
    redirected: Vec<RedirectedListener>,
    shared: Arc<Shared>,
}

/// The sockets of a tunnel.
#[derive(Debug)]
struct Listener {
    tcp: TcpListener,
    udp: Option<Arc<UdpSocket>>,
    to: Destination,
    route: Arc<listener::Route>,
}

/// What the status and the metrics are made of.
#[derive(Debug)]
struct Shared {
    counters: Counters,
    peers: Vec<Arc<Peer>>,
    /// Turns to `true` when the client drains.
    draining: watch::Sender<bool>,
}

impl Client {
    /// Listens, and begins to connect to the servers, within a tokio runtime.
    ///
    /// # Errors
    /// [`TunnelError`].
    pub fn bind(options: ClientOptions) -> Result<Self, TunnelError> {
        Self::follow(options, None)
    }

    /// As [`Client::bind`], with the sockets of a predecessor where the addresses are the same.
    ///
    /// # Errors
    /// [`TunnelError`].
    pub fn follow(
        mut options: ClientOptions,
        mut inherited: Option<&mut Inheritance>,
    ) -> Result<Self, TunnelError> {
        if inherited
            .as_ref()
            .is_some_and(|inherited| inherited.is_of_server())
        {
            return Err(TunnelError::OtherKind);
        }
        let endpoint = endpoint(&options)?;
        let counters = Counters::default();
        let redirected = options.redirected.take();
        let mut peers: HashMap<Destination, Arc<Peer>> = HashMap::new();
        let mut peer = |via: &Destination| -> Result<Arc<Peer>, TunnelError> {
            if let Some(peer) = peers.get(via) {
                return Ok(peer.clone());
            }
            let peer = Arc::new(Peer::new(&endpoint, via, &options)?);
            peers.insert(via.clone(), peer.clone());
            Ok(peer)
        };
        let (mut listeners, mut addresses) = (Vec::new(), Vec::new());
        for tunnel in &options.tunnels {
            let tcp = inherit_or_listen(tunnel.listen, inherited.as_deref_mut())?;
            let address = tcp.local_addr();
            let address = address.map_err(|source| TunnelError::Listen {
                address: tunnel.listen,
                source,
            })?;
            let route = listener::Route {
                peer: peer(&tunnel.via)?,
                counters: counters.tunnel(&format!("{address} to {}", tunnel.to)),
            };
            let udp = tunnel
                .udp
                .then(|| inherit_or_bind_udp(address, inherited.as_deref_mut()));
            listeners.push(Arc::new(Listener {
                tcp,
                udp: udp.transpose()?.map(Arc::new),
                to: tunnel.to.clone(),
                route: Arc::new(route),
            }));
            addresses.push(address);
        }
        let redirected = match redirected {
            None => Vec::new(),
            Some(redirected) => {
                let route = Arc::new(listener::Route {
                    peer: peer(&redirected.via)?,
                    counters: counters.tunnel("redirected"),
                });
                let listeners = redirected.listeners.into_iter();
                let listening = listeners.map(|listener| {
                    let destinations = redirected.destinations.clone();
                    RedirectedListener::new(listener, destinations, route.clone())
                });
                listening.collect::<Result<_, _>>()?
            }
        };
        let shared = Arc::new(Shared {
            counters,
            peers: peers.into_values().collect(),
            draining: watch::Sender::new(false),
        });
        if let Some(registry) = &options.registry {
            let counted = Arc::downgrade(&shared);
            TunnelMetrics::follow(registry, move || Some(counted.upgrade()?.counters.values()));
            let counted = Arc::downgrade(&shared);
            TunnelMetrics::follow_peers(registry, move || {
                let shared = counted.upgrade()?;
                Some(shared.peers.iter().map(|peer| peer.status()).collect())
            });
        }
        Ok(Self {
            endpoint,
            addresses,
            listeners: Mutex::new(listeners),
            redirected,
            shared,
        })
    }

    /// Returns the addresses that it listens on, in the order of the tunnels.
    pub fn local_addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns what `weir tunnel status` shows.
    pub fn status(&self) -> Status {
        let peers = self.shared.peers.iter().map(|peer| peer.status());
        Status::client(peers.collect(), &self.shared.counters)
    }

    /// Takes connections until the client [drains](Client::drain), or this future is dropped; then nothing
    /// listens any more. It is called once.
    pub async fn run(&self) {
        let mut draining = self.shared.draining.subscribe();
        let listeners = self.listeners().clone();
        let accepting = listeners.iter().map(|listener| listener.accept());
        let redirected = self.redirected.iter().map(RedirectedListener::accept);
        let accepting = async {
            tokio::join!(
                join_all(accepting.collect()),
                join_all(redirected.collect())
            )
        };
        tokio::select! {
            _ = accepting => {}
            _ = draining.wait_for(|draining| *draining) => {}
        }
    }

    /// Returns the listening sockets, for a successor.
    ///
    /// # Errors
    /// The system's.
    pub fn hand_over(&self) -> io::Result<Handover> {
        let mut handover = Handover::default();
        for listener in &*self.listeners() {
            handover.tcp(&listener.tcp)?;
            if let Some(socket) = &listener.udp {
                handover.udp(socket)?;
            }
        }
        Ok(handover)
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<Arc<Listener>>> {
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts the redirected connections that the kernel has established already. It is called when
    /// nothing is redirected any more, before [`Client::drain`].
    pub async fn accept_waiting(&self) {
        for listener in &self.redirected {
            listener.accept_waiting().await;
        }
    }

    /// Ends: takes no new connections, and waits for those that are open, for `limit` at most. Returns
    /// whether all have ended.
    pub async fn drain(&self, limit: Duration) -> bool {
        self.shared.draining.send_replace(true);
        self.listeners().clear();
        let ended = async {
            while self.shared.counters.active() > 0 {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        let ended = tokio::time::timeout(limit.into(), ended).await.is_ok();
        self.endpoint.close(0, b"the client ends");
        // The close gets through, or the server notices by itself.
        let _ = self.endpoint.wait_idle(Duration::from_millis(200)).await;
        ended
    }
}

impl Listener {
    async fn accept(&self) {
        let datagrams = async {
            match &self.udp {
                Some(socket) => udp::accept(&self.route, &self.to, socket).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = listener::accept(&self.route, &self.tcp, |_| Some(self.to.clone())) => {}
            () = datagrams => {}
        }
    }
}

fn endpoint(options: &ClientOptions) -> Result<Endpoint, TunnelError> {
    let mut builder = Endpoint::builder()
        .transport(transport(Side::Client, options.congestion.clone()))
        .client(options.credentials.clone())
        .threads(options.threads);
    if let Some(directory) = &options.qlog {
        builder = builder.qlog(directory);
    }
    if let Some(registry) = &options.registry {
        builder = builder.metrics(registry);
    }
    let Some((first, others)) = options.local.split_first() else {
        // Reaches servers of both families where the machine has IPv6.
        let any = SocketAddr::from(([0u16; 8], 0));
        let both = builder.clone().bind(any);
        return Ok(both.or_else(|_| builder.bind(SocketAddr::from(([0; 4], 0))))?);
    };
    if let Some(interface) = &first.interface {
        builder = builder.interface(interface);
    }
    for local in others {
        builder = match &local.interface {
            Some(interface) => builder.also_at_interface(local.address, interface),
            None => builder.also_at(local.address),
        };
    }
    Ok(builder.bind(first.address)?)
}

/// Runs futures in one task until all have ended.
async fn join_all<F: Future<Output = ()> + Send>(futures: Vec<F>) {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    std::future::poll_fn(|cx| {
        futures.retain_mut(|future| future.as_mut().poll(cx).is_pending());
        if futures.is_empty() {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
}
