//! Setting up an endpoint.

use std::iter;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use weir_policy::PolicySource;
use weir_quic::{
    EndpointConfig, EndpointSecret, PreferredAddresses, RetryPolicy, ServerConfig, TransportConfig,
    Version, Versions,
};
use weir_sed::Allocator;
use weir_units::{ByteSize, Duration};

use crate::clock;
use crate::dcquic::{CONNECTION_ID_LENGTH, EndpointSettings, Shared};
use crate::driver::Driver;
use crate::endpoint::{ClientSettings, Endpoint};
use crate::error::EndpointError;
use crate::interfaces::{self, AddressWatcher};
use crate::observe::{EndpointObservers, ObserverOptions};
use crate::policy_resolver::PolicyResolver;
use crate::random::seed;
use crate::socket::{BindAddress, SocketBuffers};
use crate::sockets::Sockets;
use crate::spin::Spin;
use crate::timers::Timers;
use crate::tls::{ClientCredentials, ServerCredentials};

/// What an endpoint is made with: [`Endpoint::builder`] begins, [`EndpointBuilder::bind`] ends.
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `bind`"]
pub struct EndpointBuilder {
    transport: Arc<TransportConfig>,
    policy: Option<Arc<dyn PolicySource>>,
    client: Option<ClientCredentials>,
    server: Option<ServerCredentials>,
    max_connections: usize,
    retry: RetryPolicy,
    token_lifetime: Duration,
    preferred: PreferredAddresses,
    server_versions: Versions,
    client_versions: (Version, Versions),
    secret: Option<EndpointSecret>,
    interface: Option<String>,
    more_places: Vec<BindAddress>,
    watch_interfaces: Option<bool>,
    buffers: SocketBuffers,
    low_latency: Option<Duration>,
    allocator: Option<Arc<dyn Allocator>>,
    wishes: ObserverOptions,
}

impl Default for EndpointBuilder {
    fn default() -> Self {
        let buffer = ByteSize::from_mib(1);
        Self {
            transport: Arc::new(TransportConfig::data_center()),
            policy: None,
            client: None,
            server: None,
            max_connections: 10_000,
            retry: RetryPolicy::default(),
            token_lifetime: Duration::from_secs(24 * 3600),
            preferred: PreferredAddresses::default(),
            server_versions: Versions::V1_AND_V2,
            client_versions: (Version::V1, Versions::V1),
            secret: None,
            interface: None,
            more_places: Vec::new(),
            watch_interfaces: None,
            buffers: SocketBuffers {
                receive: buffer,
                send: buffer,
            },
            low_latency: None,
            allocator: None,
            wishes: ObserverOptions::default(),
        }
    }
}

impl Endpoint {
    /// Begins to set up an endpoint.
    pub fn builder() -> EndpointBuilder {
        EndpointBuilder::default()
    }
}

impl EndpointBuilder {
    /// The transport of this endpoint's connections; [`TransportConfig::data_center`] otherwise.
    /// The congestion controller is part of it.
    pub fn transport(mut self, transport: impl Into<Arc<TransportConfig>>) -> Self {
        self.transport = transport.into();
        self
    }

    /// Which congestion controller the paths of this endpoint's connections get, by where they lead: the first rule
    /// that fits what is sent on a path decides, by the addresses and ports of the packets. Where none fits, or
    /// the rule says `pass`, the transport's own controls the path.
    ///
    /// A rule about an interface fits where the address is bound to it ([`Self::interface`],
    /// [`Self::also_at_interface`]); packets are of the class 0. An endpoint that is bound to all addresses knows
    /// its own only where the kernel says which, so rules with `from` want a specific one. `ecn` and `buffer` are
    /// for TCP. `docs/policy.md` describes the file. A transport that is given to
    /// [`Endpoint::connect_with`] is not touched.
    pub fn policy(mut self, source: impl PolicySource + 'static) -> Self {
        self.policy = Some(Arc::new(source));
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

    /// When clients have to prove that they receive at their address before this server does
    /// anything for them. [`RetryPolicy::default`], which is under load, otherwise.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// How long a client that was here can come back to the same address without proving again that
    /// it is there; a day otherwise, and zero for never. Early data of such a client are answered at
    /// once however long the answer is.
    pub fn token_lifetime(mut self, lifetime: Duration) -> Self {
        self.token_lifetime = lifetime;
        self
    }

    /// Where clients should go on once the handshake is over (RFC 9000, section 9.6): one address of
    /// each family at most, at which this endpoint has to listen too ([`Self::also_at`]).
    pub fn preferred_address(mut self, address: SocketAddr) -> Self {
        match address {
            SocketAddr::V4(address) => self.preferred.ipv4 = Some(address),
            SocketAddr::V6(address) => self.preferred.ipv6 = Some(address),
        }
        self
    }

    /// The endpoint's secret instead of a random one. Servers with the same secret take each other's
    /// clients without asking again, and one that restarts with its old secret tells the peers of
    /// its former self at once that their connections are gone.
    pub fn secret(mut self, secret: EndpointSecret) -> Self {
        self.secret = Some(secret);
        self
    }

    /// The versions of QUIC that this server speaks, in order of preference;
    /// [`Versions::V1_AND_V2`] otherwise.
    pub fn server_versions(mut self, versions: Versions) -> Self {
        self.server_versions = versions;
        self
    }

    /// The version of QUIC in which this endpoint begins connections, and those in which they may go
    /// on, in order of preference; version 1 alone otherwise. Sessions are resumed, and early data
    /// sent, in version 1 only.
    pub fn client_versions(mut self, first: Version, versions: Versions) -> Self {
        self.client_versions = (first, versions);
        self
    }

    /// Sends and receives at the address given to [`EndpointBuilder::bind`] by this network interface
    /// alone (`SO_BINDTODEVICE`), whatever the routing table prefers. Linux gives every process leave
    /// for that.
    pub fn interface(mut self, name: impl Into<String>) -> Self {
        self.interface = Some(name.into());
        self
    }

    /// Binds a further address with a socket of its own. Servers are found there too, and answer
    /// from there. Client connections begin at the address given to [`EndpointBuilder::bind`], or at
    /// the first that reaches the server, and hold validated paths ready from all the others of the
    /// same family; an address of a client's must be a specific one for that.
    pub fn also_at(mut self, address: SocketAddr) -> Self {
        self.more_places.push(BindAddress {
            address,
            interface: None,
        });
        self
    }

    /// As [`EndpointBuilder::also_at`], by this network interface alone, as
    /// [`EndpointBuilder::interface`] says. Without it, packets from an address of one interface may
    /// leave by another one, and fail with it.
    pub fn also_at_interface(mut self, address: SocketAddr, name: impl Into<String>) -> Self {
        self.more_places.push(BindAddress {
            address,
            interface: Some(name.into()),
        });
        self
    }

    /// Whether the endpoint listens to the kernel for changes of interfaces and addresses
    /// (rtnetlink), and follows them. Otherwise it does where it is a client, no server, and has
    /// several addresses.
    ///
    /// An address that goes, or whose interface goes down or loses its carrier, is left by all client
    /// connections: for a path that is ready, or else for another address untried. It is taken again
    /// when it is back. One that is replaced on its interface (a lease that ended, a machine that
    /// moved) is replaced here too, with the same port where that is free, and connections go on from
    /// it; the only address of an endpoint may be replaced by one of any interface. An endpoint that
    /// is bound to all addresses keeps each connection at the source address that the kernel chose
    /// first, until that is gone. The last address of a family is never given up. What the kernel
    /// never listed, like 127.0.0.2, is let alone. Connections that this endpoint took as a server
    /// are not touched. Where the kernel does not let it listen, a warning is logged.
    pub fn watch_interfaces(mut self, wanted: bool) -> Self {
        self.watch_interfaces = Some(wanted);
        self
    }

    /// The size of each socket's receive buffer; 1 MiB otherwise. What the kernel granted is
    /// [`Endpoint::socket_buffers`]; less than asked for is logged as a warning.
    pub fn receive_buffer(mut self, size: ByteSize) -> Self {
        self.buffers.receive = size;
        self
    }

    /// The size of each socket's send buffer; 1 MiB otherwise.
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

    /// Has somebody decide what connections may have on their way whose streams have deadlines
    /// ([`SendStream::set_deadline`](crate::SendStream::set_deadline)): SED's controller, by
    /// `weir_control::SenderChannel`. Without it a stream's deadline changes nothing.
    pub fn allocator(mut self, allocator: Arc<dyn Allocator>) -> Self {
        self.allocator = Some(allocator);
        self
    }

    /// Writes a qlog file for each connection to this directory, instead of the one that the
    /// environment variable `QLOGDIR` names, if it names one.
    ///
    /// The files, `<original destination connection ID>_<client or server>.sqlog`, hold everything but
    /// the contents of streams and datagrams, addresses included. A thread of the endpoint's writes
    /// them; what the disk cannot take in time is lost and counted
    /// ([`EndpointStats::qlog_events_lost`](crate::EndpointStats::qlog_events_lost)). When the
    /// endpoint's last handle and connection are gone, up to two seconds are spent on writing what
    /// is left.
    pub fn qlog(mut self, directory: impl Into<PathBuf>) -> Self {
        self.wishes.qlog = Some(directory.into());
        self
    }

    /// Counts in this registry what happens on the endpoint and its connections, under the label
    /// `endpoint` with the address that is bound. `docs/dcquic.md` lists the metrics.
    #[cfg(feature = "metrics")]
    pub fn metrics(mut self, registry: &crate::Registry) -> Self {
        self.wishes.metrics = Some(registry.clone());
        self
    }

    /// Binds the address, and those of [`EndpointBuilder::also_at`], and starts the endpoint's task
    /// on the current tokio runtime. Port 0 takes any free port.
    ///
    /// # Errors
    /// [`EndpointError`], which says what to do about it.
    pub fn bind(self, address: SocketAddr) -> Result<Endpoint, EndpointError> {
        self.transport.validate()?;
        let runtime =
            tokio::runtime::Handle::try_current().map_err(|_| EndpointError::NoRuntime)?;
        let is_client_alone = self.client.is_some() && self.server.is_none();
        let several = is_client_alone && !self.more_places.is_empty();
        let watch = open_watch(self.watch_interfaces.unwrap_or(several));
        let is_server = self.server.is_some();
        let first = BindAddress {
            address,
            interface: self.interface,
        };
        let places: Vec<_> = iter::once(first).chain(self.more_places).collect();
        let transport = match self.policy {
            Some(policy) => PolicyResolver::new(policy, &places).applied_to(&self.transport),
            None => self.transport,
        };
        let sockets = Sockets::bind(places, self.buffers)?;
        let timers = Timers::new().map_err(EndpointError::Timer)?;
        let spin = self
            .low_latency
            .filter(|span| !span.is_zero())
            .map(Spin::new);
        let server = self.server.map(|credentials| ServerConfig {
            max_connections: self.max_connections,
            retry: self.retry,
            token_lifetime: self.token_lifetime,
            versions: self.server_versions,
            preferred: self.preferred,
            ..ServerConfig::new(credentials.crypto, transport.clone())
        });
        let config = EndpointConfig {
            connection_id_length: CONNECTION_ID_LENGTH,
            secret: self.secret,
            epoch: clock::epoch(),
        };
        let registry = self.wishes.metrics.clone();
        let watchers = EndpointObservers::new(self.wishes, sockets.local(), config.epoch)?;
        let watchers = Arc::new(watchers);
        let mut engine = weir_quic::Endpoint::new(config, server, seed()?);
        engine.set_observers(Some(watchers.clone()));
        engine.set_interfaces(interfaces::current().map(Arc::new).unwrap_or_default());
        let settings = EndpointSettings {
            is_server,
            is_watched: watch.is_some(),
            allocator: self.allocator,
            lost_events: watchers.lost_events(),
        };
        let shared = Arc::new(Shared::new(sockets, timers, spin, settings, engine));
        watchers.connect(registry.as_ref(), &shared);
        drop(watchers);
        let watching = watch.map(|watch| runtime.spawn(watch.run(shared.clone())));
        runtime.spawn(Driver::new(shared.clone(), watching));
        let settings = ClientSettings {
            credentials: self.client,
            transport,
            version: self.client_versions.0,
            versions: self.client_versions.1,
        };
        Ok(Endpoint::new(shared, settings))
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

fn open_watch(wanted: bool) -> Option<AddressWatcher> {
    let opened = wanted.then(AddressWatcher::open)?;
    opened
        .inspect_err(|error| {
            tracing::warn!(%error, "changes of network interfaces will not be noticed");
        })
        .ok()
}
