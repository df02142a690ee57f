//! Configuration of an endpoint.

mod bind;

use std::net::SocketAddr;
use std::num::NonZeroU8;
use std::path::PathBuf;
use std::sync::Arc;

use weir_policy::PolicySource;
use weir_quic::{
    ClientLimits, EndpointSecret, PreferredAddresses, RetryPolicy, TransportConfig, Version,
    Versions,
};
use weir_sed::Allocator;
use weir_units::{ByteSize, Duration};

use crate::endpoint::Endpoint;
use crate::observe::ObserverOptions;
use crate::socket::{BindAddress, SocketBuffers};
use crate::succession::Predecessor;
use crate::tls::{ClientCredentials, ServerCredentials};

/// Builds an endpoint: [`Endpoint::builder`] begins, [`EndpointBuilder::bind`] ends.
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `bind`"]
pub struct EndpointBuilder {
    transport: Arc<TransportConfig>,
    policy: Option<Arc<dyn PolicySource>>,
    client: Option<ClientCredentials>,
    server: Option<ServerCredentials>,
    max_connections: usize,
    client_limits: Option<ClientLimits>,
    max_undecided: usize,
    retry: RetryPolicy,
    token_lifetime: Duration,
    preferred: PreferredAddresses,
    server_versions: Versions,
    client_versions: (Version, Versions),
    secret: Option<EndpointSecret>,
    state_directory: Option<PathBuf>,
    interface: Option<String>,
    more_addresses: Vec<BindAddress>,
    watch_interfaces: Option<bool>,
    buffers: SocketBuffers,
    receive_buffer_grows: bool,
    low_latency: Option<Duration>,
    busy_poll: Option<Duration>,
    allocator: Option<Arc<dyn Allocator>>,
    observers: ObserverOptions,
    threads: NonZeroU8,
    can_be_followed: bool,
    follows: Option<Predecessor>,
}

impl Default for EndpointBuilder {
    fn default() -> Self {
        Self {
            transport: Arc::new(TransportConfig::data_center()),
            policy: None,
            client: None,
            server: None,
            max_connections: 10_000,
            client_limits: None,
            max_undecided: 0,
            retry: RetryPolicy::default(),
            token_lifetime: Duration::from_secs(24 * 3600),
            preferred: PreferredAddresses::default(),
            server_versions: Versions::V1_AND_V2,
            client_versions: (Version::V1, Versions::V1),
            secret: None,
            state_directory: None,
            interface: None,
            more_addresses: Vec::new(),
            watch_interfaces: None,
            buffers: SocketBuffers {
                // Room for 60,000 small datagrams, or 4,000 answers of 10 KB: thousands of connections send at
                // once.
                receive: ByteSize::from_mib(32),
                send: ByteSize::from_mib(1),
            },
            receive_buffer_grows: true,
            low_latency: None,
            busy_poll: None,
            allocator: None,
            observers: ObserverOptions::default(),
            threads: NonZeroU8::MIN,
            can_be_followed: false,
            follows: None,
        }
    }
}

impl Endpoint {
    /// Returns a builder with default settings.
    pub fn builder() -> EndpointBuilder {
        EndpointBuilder::default()
    }
}

impl EndpointBuilder {
    /// Sets the transport of this endpoint's connections, the congestion controller included;
    /// [`TransportConfig::data_center`] by default.
    pub fn transport(mut self, transport: impl Into<Arc<TransportConfig>>) -> Self {
        self.transport = transport.into();
        self
    }

    /// Sets the policy that chooses the congestion controller of each path. The first rule that
    /// matches the addresses and ports of the path's packets decides. Where no rule matches, or the
    /// rule says `pass`, the transport's own controller is used.
    ///
    /// A rule for an interface matches where the address is bound to it ([`Self::interface`],
    /// [`Self::also_at_interface`]); packets are of class 0. A wildcard endpoint knows its own
    /// address only where the kernel reports it, so rules with `from` need a specific address.
    /// `ecn` and `buffer` are for TCP. `docs/policy.md` describes the file. A transport given to
    /// [`Endpoint::connect_with`] is not touched.
    pub fn policy(mut self, source: impl PolicySource + 'static) -> Self {
        self.policy = Some(Arc::new(source));
        self
    }

    /// Sets the trust anchors and the identity of this endpoint's client connections.
    pub fn client(mut self, credentials: ClientCredentials) -> Self {
        self.client = Some(credentials);
        self
    }

    /// Accepts connections, as this server.
    pub fn server(mut self, credentials: ServerCredentials) -> Self {
        self.server = Some(credentials);
        self
    }

    /// Sets the limit of concurrent connections; further clients are refused. 10,000 by default.
    pub fn max_connections(mut self, count: usize) -> Self {
        self.max_connections = count;
        self
    }

    /// Sets the limits of concurrent connections of one client address and of its network; further
    /// ones are refused with CONNECTION_REFUSED. [`ClientLimits::for_capacity`] of
    /// [`Self::max_connections`] by default: a quarter and a half of it. From half of a limit on, clients
    /// have to validate their address, unless [`Self::retry`] is [`RetryPolicy::Never`].
    pub fn client_limits(mut self, limits: ClientLimits) -> Self {
        self.client_limits = Some(limits);
        self
    }

    /// Lets the application decide about each client before its handshake
    /// ([`Endpoint::accept_incoming`]): accept, with these or other credentials, refuse, retry or
    /// ignore. Up to `most_waiting` clients wait for a decision in each engine; more are refused. Zero, the
    /// default, accepts every client at once, which saves a turn of the application's task per
    /// connection.
    pub fn decide_incoming(mut self, most_waiting: usize) -> Self {
        self.max_undecided = most_waiting;
        self
    }

    /// Sets when clients have to prove their address before this server spends resources on them.
    /// [`RetryPolicy::default`], which is under load, by default.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Sets how long a returning client at the same address need not prove it again; a day by
    /// default, zero for never. Early data of such a client are answered at once, however long the
    /// answer is.
    pub fn token_lifetime(mut self, lifetime: impl Into<Duration>) -> Self {
        self.token_lifetime = lifetime.into();
        self
    }

    /// Sets the address that clients should use after the handshake (RFC 9000, section 9.6): at
    /// most one per address family. This endpoint has to listen there too ([`Self::also_at`]).
    pub fn preferred_address(mut self, address: SocketAddr) -> Self {
        match address {
            SocketAddr::V4(address) => self.preferred.ipv4 = Some(address),
            SocketAddr::V6(address) => self.preferred.ipv6 = Some(address),
        }
        self
    }

    /// Sets the endpoint's secret instead of a random one. Servers with the same secret accept each
    /// other's address validation tokens. A server that restarts with its old secret resets the
    /// connections of its previous run at once.
    pub fn secret(mut self, secret: EndpointSecret) -> Self {
        self.secret = Some(secret);
        self
    }

    /// Keeps the endpoint's secret in this directory, in the file `endpoint-secret`, which is made where it is
    /// missing: so a server that was killed and started again resets the connections of its previous run
    /// at once, and clients do not wait for it. [`Self::secret`] takes precedence.
    pub fn state_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.state_directory = Some(directory.into());
        self
    }

    /// Sets the QUIC versions of this server, in order of preference; [`Versions::V1_AND_V2`] by
    /// default.
    pub fn server_versions(mut self, versions: Versions) -> Self {
        self.server_versions = versions;
        self
    }

    /// Sets the QUIC version of this endpoint's first client packets, and those to which
    /// connections may switch, in order of preference; version 1 alone by default. Session
    /// resumption and early data work in version 1 only.
    pub fn client_versions(mut self, first: Version, versions: Versions) -> Self {
        self.client_versions = (first, versions);
        self
    }

    /// Binds the address given to [`EndpointBuilder::bind`] to one network interface
    /// (`SO_BINDTODEVICE`), whatever the routing table prefers. On Linux this needs no privilege.
    pub fn interface(mut self, name: impl Into<String>) -> Self {
        self.interface = Some(name.into());
        self
    }

    /// Binds a further address with a socket of its own. The server listens there too, and answers
    /// from there. Client connections begin at the address given to [`EndpointBuilder::bind`], or
    /// at the first that reaches the server, and keep validated standby paths from all others of
    /// the same family. A client's address must be a specific one for that.
    pub fn also_at(mut self, address: SocketAddr) -> Self {
        self.more_addresses.push(BindAddress {
            address,
            interface: None,
        });
        self
    }

    /// As [`EndpointBuilder::also_at`], bound to one network interface, as with
    /// [`EndpointBuilder::interface`]. Without it, packets from an address of one interface may
    /// leave by another one, and fail with it.
    pub fn also_at_interface(mut self, address: SocketAddr, name: impl Into<String>) -> Self {
        self.more_addresses.push(BindAddress {
            address,
            interface: Some(name.into()),
        });
        self
    }

    /// Sets whether the endpoint follows changes of interfaces and addresses (rtnetlink). By
    /// default it does where it is a client, no server, and has several addresses.
    ///
    /// Client connections leave an address that disappears, or whose interface goes down or loses
    /// its carrier: for a ready path, or else for another, untested address. They use it again when
    /// it is back. An address that is replaced on its interface (an expired lease, a machine that
    /// moved) is replaced here too, with the same port where that is free, and connections go on
    /// from it. The only address of an endpoint may be replaced by one of any interface. A wildcard
    /// endpoint keeps each connection at the source address that the kernel chose first, until that
    /// is gone. The last address of a family is never given up. Addresses that the kernel never
    /// listed, like 127.0.0.2, are not changed. Connections that this endpoint accepted as a server
    /// are not touched. Where the kernel refuses the subscription, a warning is logged.
    pub fn watch_interfaces(mut self, wanted: bool) -> Self {
        self.watch_interfaces = Some(wanted);
        self
    }

    /// Sets the size of each socket's receive buffer: a limit, not memory that it always takes. By default it
    /// is 32 MiB, and grows to 128 KiB for each of the first 2,048 connections, where the kernel allows that.
    /// [`Endpoint::socket_buffers`] returns the size that the kernel granted; less than requested is logged
    /// as a warning.
    pub fn receive_buffer(mut self, size: ByteSize) -> Self {
        self.buffers.receive = size;
        self.receive_buffer_grows = false;
        self
    }

    /// Sets the size of each socket's send buffer; 1 MiB by default.
    pub fn send_buffer(mut self, size: ByteSize) -> Self {
        self.buffers.send = size;
        self
    }

    /// Runs the endpoint on this number of threads instead of one task of the current runtime, which
    /// 1, the default, is.
    ///
    /// Each thread is an engine with sockets, connections and a runtime of its own, so that threads
    /// share nothing while they carry data. All have the same addresses: the kernel selects the
    /// engine by the connection ID. New connections spread over them. The tasks of a connection run
    /// best where its packets arrive: spawn them on [`Connection::runtime`](crate::Connection::runtime).
    /// A thread ends, with all tasks that are left there, when the endpoint's last handle and the
    /// engine's last connection are gone. Each engine has its share of
    /// [`Self::max_connections`], and its own count of half-open handshakes for [`Self::retry`].
    pub fn threads(mut self, count: NonZeroU8) -> Self {
        self.threads = count;
        self
    }

    /// Binds a server so that another process's endpoint can follow it at its port:
    /// [`Endpoint::share_port`](Endpoint::share_port).
    pub fn can_be_followed(mut self) -> Self {
        self.can_be_followed = true;
        self
    }

    /// Follows another endpoint at its port, which has [shared](Endpoint::share_port) it. The address and
    /// [`Self::secret`] must be the same, and so must the user. New connections come here from now on;
    /// the connections of the other endpoint go on there. When it has ended,
    /// [`Endpoint::keep_port`] is called. This endpoint can be followed in turn.
    pub fn follow(mut self, predecessor: Predecessor) -> Self {
        self.follows = Some(predecessor);
        self.can_be_followed()
    }

    /// Polls for an expected reply for this long before sleeping (50 µs is a good value); `None`,
    /// the default, sleeps at once.
    ///
    /// That saves the wake-up of a core, some 20 µs per direction, and costs CPU time while replies
    /// are expected: [`EndpointStats::spinning`](crate::EndpointStats::spinning) counts it.
    /// Meanwhile the endpoint's task yields to other tasks of its runtime and other threads of its
    /// core.
    pub fn low_latency(mut self, spin: Option<Duration>) -> Self {
        self.low_latency = spin;
        self
    }

    /// Polls the network interface's receive queue for this long instead of waiting for its
    /// interrupt: `SO_BUSY_POLL`, preferred busy polling, and epoll's busy-poll parameters (Linux
    /// 6.9). `None`, the default, does not. It takes `CAP_NET_ADMIN`.
    ///
    /// It acts only where the interface's driver supports it, which loopback does not, and where
    /// its interrupts are deferred (`napi_defer_hard_irqs` and `gro_flush_timeout` in
    /// `/sys/class/net/<interface>`). The whole runtime polls: give the endpoint a runtime of its own,
    /// or use [`Self::threads`]. Together with [`Self::low_latency`], its reads poll too.
    pub fn busy_poll(mut self, span: Option<Duration>) -> Self {
        self.busy_poll = span.filter(|span| !span.is_zero());
        self
    }

    /// Sets the allocator that caps the cwnd of connections whose streams have deadlines
    /// ([`SendStream::set_deadline`](crate::SendStream::set_deadline)): SED's controller, by
    /// `weir_control::SenderChannel`. Without it a stream's deadline changes nothing.
    pub fn allocator(mut self, allocator: Arc<dyn Allocator>) -> Self {
        self.allocator = Some(allocator);
        self
    }

    /// Writes a qlog file per connection to this directory, instead of the one in the environment
    /// variable `QLOGDIR`, if that is set.
    ///
    /// The files, `<original destination connection ID>_<client or server>.sqlog`, hold everything
    /// but the contents of streams and datagrams, addresses included. A thread of the endpoint
    /// writes them. Events that the disk cannot take in time are lost and counted
    /// ([`EndpointStats::qlog_events_lost`](crate::EndpointStats::qlog_events_lost)). When the
    /// endpoint's last handle and connection are gone, the rest is written within up to two
    /// seconds.
    pub fn qlog(mut self, directory: impl Into<PathBuf>) -> Self {
        self.observers.qlog = Some(directory.into());
        self
    }

    /// Counts events of the endpoint and its connections in this registry, under the label
    /// `endpoint` with the bound address. `docs/dcquic.md` lists the metrics.
    #[cfg(feature = "metrics")]
    pub fn metrics(mut self, registry: &crate::Registry) -> Self {
        self.observers.metrics = Some(registry.clone());
        self
    }
}
