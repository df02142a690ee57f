//! The configuration of connections and endpoints.

use std::fmt;
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::sync::Arc;

use weir_congestion::{AlgorithmSpec, Context, Controller};
use weir_units::{ByteSize, Duration};

use crate::crypto::{ClientCrypto, ServerCrypto};
use crate::endpoint::ClientTable;
use crate::interfaces::{LARGEST_UDP_PAYLOAD, SMALLEST_MAX_UDP_PAYLOAD};
use crate::known_peers::{KnownClients, KnownServers};
use crate::migration::{MigrationConfig, MigrationConfigError};
use crate::{ConnectionIdLayout, EndpointSecret, TokenStore, Version, Versions};

/// Creates a congestion controller for a path.
pub type ControllerFactory = dyn Fn(&Context) -> Box<dyn Controller> + Send + Sync;

/// The addresses of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathEndpoints {
    /// Ours; `None` if only the kernel knows it.
    pub local: Option<SocketAddr>,
    /// The peer's.
    pub remote: SocketAddr,
}

/// Creates a congestion controller for a path between two addresses.
pub type ControllerChoice = dyn Fn(&PathEndpoints, &Context) -> Box<dyn Controller> + Send + Sync;

/// The congestion controller of a connection.
#[derive(Clone)]
pub enum Congestion {
    /// A registered algorithm, by name and parameters.
    Named(AlgorithmSpec),
    /// The caller's own controller.
    Custom(Arc<ControllerFactory>),
    /// A controller that depends on the addresses of the path.
    Chosen(Arc<ControllerChoice>),
}

impl Congestion {
    /// Creates the controller of a path between two addresses.
    pub fn build(&self, ends: &PathEndpoints, context: &Context) -> Box<dyn Controller> {
        match self {
            Self::Named(spec) => spec.build(context),
            Self::Custom(make) => make(context),
            Self::Chosen(choose) => choose(ends, context),
        }
    }
}

impl fmt::Debug for Congestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(spec) => write!(f, "{spec}"),
            Self::Custom(_) => f.write_str("custom"),
            Self::Chosen(_) => f.write_str("by address"),
        }
    }
}

impl From<AlgorithmSpec> for Congestion {
    fn from(spec: AlgorithmSpec) -> Self {
        Self::Named(spec)
    }
}

/// The transport of a connection. Start from [`TransportConfig::data_center`] or
/// [`TransportConfig::wan`].
#[derive(Clone, Debug)]
pub struct TransportConfig {
    /// The congestion controller.
    pub congestion: Congestion,
    /// The largest UDP payload that we send at once, as far as the peer accepts it and our own
    /// interface carries it. The configuration guarantees that the path carries it. 1200 to 65527
    /// bytes.
    ///
    /// `None` follows the interface: packets to this machine and to hosts on the interface's own
    /// network have the size that it carries. Packets to others have 1452 bytes, or the size that an
    /// earlier connection to the host has found; the interface's size is probed for (RFC 8899) once
    /// the handshake is confirmed. Where the path does not carry a size, it falls back to 1200 bytes
    /// and searches.
    pub packet_size: Option<ByteSize>,
    /// The largest size that is probed for (RFC 8899), as far as the peer accepts it and our own
    /// interface carries it. If it is `None` or not larger, nothing above `packet_size` is probed
    /// for; without a `packet_size` everything that the interface carries.
    pub probe_up_to: Option<ByteSize>,
    /// The time from the end of a search for larger packets to the next one, on a connection in use
    /// (PMTU_RAISE_TIMER, RFC 8899, section 5.1.1); zero for never.
    pub probe_interval: Duration,
    /// The choice among the packet sizes that the path carries.
    pub packet_size_policy: PacketSizePolicy,
    /// The largest UDP payload that we accept, 1200 to 65527 bytes. The peer receives this value or
    /// the size that our interface carries, whichever is less, as `max_udp_payload_size`
    /// ([`Interfaces`](crate::Interfaces)).
    pub max_udp_payload_size: ByteSize,
    /// The receive window of one stream.
    pub stream_window: ByteSize,
    /// The receive window of all streams together.
    pub connection_window: ByteSize,
    /// The bytes that a stream buffers for sending before writes block.
    pub send_buffer: ByteSize,
    /// The most bidirectional streams of the peer open at the same time.
    pub max_bidirectional_streams: u64,
    /// The most unidirectional streams of the peer open at the same time.
    pub max_unidirectional_streams: u64,
    /// The silence after which the connection ends; zero for never (RFC 9000, section 10.1).
    pub idle_timeout: Duration,
    /// The longest duration of a handshake.
    pub handshake_timeout: Duration,
    /// The silence after which a PING is sent; zero for never.
    pub keep_alive: Duration,
    /// The silence after which a client with open streams sends a PING; zero for never. It is at most a
    /// third of the idle timeout, so that a call may take as long as it likes.
    pub stream_keep_alive: Duration,
    /// The longest time between two probe timeouts, where the probe timeout itself is not longer; zero
    /// doubles it without a limit (RFC 9002, section 6.2.1), as the handshake always does.
    pub max_probe_interval: Duration,
    /// A client ends a connection after this many probe timeouts in a row without an acknowledgment; zero
    /// for never: then the idle timeout ends it.
    pub max_probe_timeouts: u32,
    /// The timer granularity (kGranularity, RFC 9002, section 6.1.2).
    pub granularity: Duration,
    /// The RTT assumed before the first sample (kInitialRtt).
    pub initial_rtt: Duration,
    /// The longest delay of an ACK. A Weir peer receives the exact value, others whole
    /// milliseconds.
    pub max_ack_delay: Duration,
    /// How long the ACK of a stream's end waits for the next request or response, which then carries it,
    /// if that is longer than `max_ack_delay`. Holds towards Weir peers, which ask for an ACK where they
    /// cannot wait, and while timers are not exact.
    pub final_ack_delay: Duration,
    /// The number of ack-eliciting packets that triggers an ACK at once.
    pub ack_threshold: u64,
    /// The reordering threshold after which a packet is lost (kPacketThreshold).
    pub packet_threshold: u64,
    /// The idle time after which the congestion controller restarts (RFC 9002, section 7.8), if
    /// longer than a probe timeout.
    pub idle_restart: Duration,
    /// Whether packets are sent with ECT(0), as long as the path carries it.
    pub ecn: bool,
    /// Whether a peer may migrate to another address (`disable_active_migration` otherwise).
    pub allow_migration: bool,
    /// When a client leaves a path by itself, if it has a standby path.
    pub migration: MigrationConfig,
    /// How often a client probes its standby paths while the connection is in use; zero for never.
    pub standby_refresh: Duration,
    /// Whether every deadline is exact. Otherwise probe timeouts, delayed ACKs, idle and closing
    /// periods are rounded up to [`EndpointConfig::timer_tick`], except after a loss and while there
    /// are standby paths.
    pub exact_timers: bool,
    /// Whether packets are paced (RFC 9002, section 7.7).
    pub pacing: bool,
    /// Datagrams (RFC 9221); `None` neither sends nor accepts any.
    pub datagrams: Option<DatagramConfig>,
    /// Whether to ask a supporting peer for about eight ACKs per RTT
    /// (draft-ietf-quic-ack-frequency). A peer's own requests are always followed. On in the WAN
    /// profile, where it saves most ACKs; in a data center a Weir peer sends few of them anyway.
    pub ack_frequency: bool,
    /// Whether we randomize the fixed bit of packets if the peer allows it, and allow the peer the
    /// same (RFC 9287), so that middleboxes do not rely on it.
    pub grease_quic_bit: bool,
    /// Whether the peer may announce by GOAWAY that it serves no more streams. Without it, a call that
    /// reaches a server which shuts down is reset, or may have been executed.
    pub go_away: bool,
}

/// The limits of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramConfig {
    /// The largest DATAGRAM frame that we accept (`max_datagram_frame_size`), including type and
    /// length; 65535 bytes for any that fits a packet.
    pub max_frame_size: ByteSize,
    /// The size of the send queue; beyond it the oldest datagrams are dropped. Each counts 64 bytes
    /// more than its data.
    pub send_buffer: ByteSize,
    /// The size of the receive queue; beyond it the oldest datagrams are dropped.
    pub receive_buffer: ByteSize,
}

impl Default for DatagramConfig {
    fn default() -> Self {
        Self {
            max_frame_size: ByteSize::from_bytes(u16::MAX.into()),
            send_buffer: ByteSize::from_mib(1),
            receive_buffer: ByteSize::from_mib(1),
        }
    }
}

impl TransportConfig {
    /// Returns the profile for fabrics: RTTs of about 50 µs, the interface's packets, and matching
    /// timers.
    pub fn data_center() -> Self {
        Self {
            congestion: Congestion::Named(AlgorithmSpec::default()),
            packet_size: None,
            probe_up_to: None,
            probe_interval: Duration::from_secs(600),
            packet_size_policy: PacketSizePolicy::Largest,
            max_udp_payload_size: ByteSize::from_bytes(LARGEST_UDP_PAYLOAD),
            // 80 Gbps at 100 µs; more only fills buffers and caches.
            stream_window: ByteSize::from_mib(1),
            connection_window: ByteSize::from_mib(4),
            send_buffer: ByteSize::from_mib(1),
            max_bidirectional_streams: 1024,
            max_unidirectional_streams: 1024,
            idle_timeout: Duration::from_secs(30),
            handshake_timeout: Duration::from_secs(10),
            keep_alive: Duration::ZERO,
            stream_keep_alive: Duration::from_secs(1),
            max_probe_interval: Duration::from_millis(100),
            // About a second at RTTs of up to some milliseconds.
            max_probe_timeouts: 16,
            granularity: Duration::from_micros(50),
            initial_rtt: Duration::from_millis(10),
            max_ack_delay: Duration::from_micros(500),
            // A host's calls to another one, over an open connection, are often some ms apart.
            final_ack_delay: Duration::from_millis(4),
            ack_threshold: 128,
            packet_threshold: 3,
            idle_restart: Duration::from_millis(200),
            ecn: true,
            allow_migration: true,
            migration: MigrationConfig::default(),
            standby_refresh: Duration::from_secs(1),
            exact_timers: false,
            pacing: true,
            datagrams: None,
            ack_frequency: false,
            grease_quic_bit: true,
            go_away: true,
        }
    }

    /// Returns the profile for the Internet: the values recommended by RFC 9000 and RFC 9002.
    pub fn wan() -> Self {
        Self {
            packet_size: Some(ByteSize::from_bytes(SMALLEST_MAX_UDP_PAYLOAD as u64)),
            probe_up_to: Some(ByteSize::from_bytes(1452)),
            stream_window: ByteSize::from_mib(4),
            connection_window: ByteSize::from_mib(16),
            granularity: Duration::from_millis(1),
            initial_rtt: Duration::from_millis(333),
            max_ack_delay: Duration::from_millis(25),
            final_ack_delay: Duration::ZERO,
            ack_threshold: 10,
            ack_frequency: true,
            stream_keep_alive: Duration::from_secs(10),
            max_probe_interval: Duration::ZERO,
            max_probe_timeouts: 0,
            ..Self::data_center()
        }
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// The first setting that is out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check_packet_size("max_udp_payload_size", self.max_udp_payload_size)?;
        let sizes = [
            ("packet_size", self.packet_size),
            ("probe_up_to", self.probe_up_to),
        ];
        for (name, size) in sizes {
            size.map_or(Ok(()), |size| check_packet_size(name, size))?;
        }
        self.packet_size_policy.validate()?;
        self.migration.validate()?;
        let windows = [
            ("stream_window", self.stream_window.bytes()),
            ("connection_window", self.connection_window.bytes()),
            ("send_buffer", self.send_buffer.bytes()),
            ("granularity", self.granularity.as_nanos()),
            ("initial_rtt", self.initial_rtt.as_nanos()),
            ("handshake_timeout", self.handshake_timeout.as_nanos()),
            ("ack_threshold", self.ack_threshold),
            ("packet_threshold", self.packet_threshold),
        ];
        let datagrams = self.datagrams.map(|datagrams| {
            [
                ("datagrams.max_frame_size", datagrams.max_frame_size.bytes()),
                ("datagrams.send_buffer", datagrams.send_buffer.bytes()),
                ("datagrams.receive_buffer", datagrams.receive_buffer.bytes()),
            ]
        });
        let mut windows = windows.iter().chain(datagrams.iter().flatten());
        match windows.find(|(_, value)| *value == 0) {
            Some((name, _)) => Err(ConfigError::Zero { name }),
            None => check_ack_delay("max_ack_delay", self.max_ack_delay)
                .and_then(|()| check_ack_delay("final_ack_delay", self.final_ack_delay)),
        }
    }
}

/// The choice of a connection's packet size among those that the path carries.
///
/// With any policy, a packet is never larger than the path carries and the peer accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketSizePolicy {
    /// The largest size.
    #[default]
    Largest,
    /// This UDP payload, 1200 to 65527 bytes, or the largest if the path carries less.
    Fixed(ByteSize),
    /// The rule of Tan et al., *DCQUIC*, section 4.2: 9 KB (8972 bytes of UDP payload) for tasks
    /// below 1 MB, 5 KB (5000 bytes) from 1 MB (1,000,000 bytes) on.
    ///
    /// A task is what the application declares by
    /// [`Connection::set_task_size`](crate::Connection::set_task_size). Undeclared, it is the data
    /// written to one stream since that stream last had no unsent or unacknowledged data: a large
    /// task is known as one after its first megabyte. While any stream has a large task, all
    /// packets follow it, until the peer has acknowledged it.
    ByTask,
}

impl PacketSizePolicy {
    /// # Errors
    /// [`ConfigError::PacketSize`] if the fixed size is not a valid packet size.
    pub(crate) fn validate(self) -> Result<(), ConfigError> {
        match self {
            Self::Fixed(size) => check_packet_size("packet_size_policy", size),
            Self::Largest | Self::ByTask => Ok(()),
        }
    }
}

/// # Errors
/// [`ConfigError::PacketSize`] if UDP or RFC 9000 do not allow packets of this size.
fn check_packet_size(name: &'static str, size: ByteSize) -> Result<(), ConfigError> {
    let allowed = SMALLEST_MAX_UDP_PAYLOAD as u64..=LARGEST_UDP_PAYLOAD;
    if allowed.contains(&size.bytes()) {
        Ok(())
    } else {
        Err(ConfigError::PacketSize { name, size })
    }
}

/// # Errors
/// [`ConfigError::AckDelay`] if the transport parameter cannot encode this delay.
fn check_ack_delay(name: &'static str, delay: Duration) -> Result<(), ConfigError> {
    if delay < Duration::from_millis(1 << 14) {
        Ok(())
    } else {
        Err(ConfigError::AckDelay { name, delay })
    }
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self::data_center()
    }
}

/// A transport setting that is out of range.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// A setting of proactive migration.
    #[error(transparent)]
    Migration(#[from] MigrationConfigError),
    /// A packet size outside the range of UDP and RFC 9000.
    #[error("{name} is {size}: it must be from 1200B to 65527B")]
    PacketSize {
        /// The setting.
        name: &'static str,
        /// Its value.
        size: ByteSize,
    },
    /// A setting that must not be zero.
    #[error("{name} must not be zero")]
    Zero {
        /// The setting.
        name: &'static str,
    },
    /// A client whose first version is not among its versions.
    #[error("a client that begins in {version} must have it among its versions")]
    FirstVersion {
        /// The version.
        version: Version,
    },
    /// An ACK delay that the transport parameter cannot encode.
    #[error("{name} is {delay}: it must be below 16384ms (RFC 9000, section 18.2)")]
    AckDelay {
        /// The setting.
        name: &'static str,
        /// Its value.
        delay: Duration,
    },
}

/// The client configuration of a connection. Start from [`ClientConfig::new`].
#[derive(Clone)]
pub struct ClientConfig {
    /// The source of keys.
    pub crypto: Arc<dyn ClientCrypto>,
    /// The transport.
    pub transport: Arc<TransportConfig>,
    /// Whether to try 0-RTT when a session can be resumed. An attacker can replay 0-RTT data: send
    /// only idempotent requests with it (RFC 9001, section 9.2).
    pub early_data: bool,
    /// The version of the first packets; the default is version 1. A server that does not support
    /// it costs a round trip.
    pub version: Version,
    /// The versions that the connection may use, including `version`, in order of preference; the
    /// default is version 1 alone. The server chooses. If it supports none of them, the connection
    /// ends with [`ConnectionError::NoCommonVersion`](crate::ConnectionError).
    pub versions: Versions,
    /// The store of tokens from servers for later connections; `None` stores none. Share one store
    /// among the connections that share sessions.
    pub tokens: Option<Arc<TokenStore>>,
    /// The store of path secrets: a connection to a server that is in it has no handshake. `None`
    /// always has one, and stores none. Share one store among the connections that share sessions.
    pub known_servers: Option<Arc<KnownServers>>,
    /// Local addresses with a standby path each, as if added by
    /// [`Connection::add_local_address`](crate::Connection::add_local_address). Known from the
    /// start, they bound the packet size that we announce to the peer, which cannot change later.
    pub local_addresses: Vec<SocketAddr>,
}

impl ClientConfig {
    /// Returns a configuration for version 1, without early data, tokens or further local
    /// addresses.
    pub fn new(crypto: Arc<dyn ClientCrypto>, transport: Arc<TransportConfig>) -> Self {
        Self {
            crypto,
            transport,
            early_data: false,
            version: Version::V1,
            versions: Versions::V1,
            tokens: None,
            known_servers: None,
            local_addresses: Vec::new(),
        }
    }
}

/// When a server validates client addresses before it spends resources on them (RFC 9000, section
/// 8.1.2). Validation costs a client a round trip, unless it has a token from an earlier
/// connection. It costs the server hardly any memory or cryptography.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryPolicy {
    /// Never. At most three times the bytes received from an unvalidated address are sent to it.
    Never,
    /// Always.
    Always,
    /// While at least this many handshakes are half open, the sign of a flood from spoofed
    /// addresses. A handshake is half open until a packet arrives that only a client with the
    /// server's answer can have sent.
    UnderLoad {
        /// The threshold.
        half_open: usize,
    },
}

impl RetryPolicy {
    /// Whether a client without a token must validate its address now.
    pub(crate) fn applies(self, half_open: usize) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::UnderLoad {
                half_open: threshold,
            } => half_open >= threshold,
        }
    }
}

impl Default for RetryPolicy {
    /// From 256 half-open handshakes on. A genuine handshake is half open for one RTT: 256 of them
    /// at 100 µs are 2.5 million handshakes per second, more than a machine completes.
    fn default() -> Self {
        Self::UnderLoad { half_open: 256 }
    }
}

/// The server configuration of connections. Start from [`ServerConfig::new`].
#[derive(Clone)]
pub struct ServerConfig {
    /// The source of keys.
    pub crypto: Arc<dyn ServerCrypto>,
    /// The transport.
    pub transport: Arc<TransportConfig>,
    /// The most connections at the same time; further ones are refused.
    pub max_connections: usize,
    /// When clients must validate their address first.
    pub retry: RetryPolicy,
    /// How long a returning client can connect from the same address without validating it again;
    /// zero for never.
    pub token_lifetime: Duration,
    /// The supported versions, in order of preference. A client that starts in one of them and
    /// accepts a preferred one gets that one without extra cost, unless it sends early data.
    pub versions: Versions,
    /// Other addresses of the server that clients should move to after the handshake (RFC 9000,
    /// section 9.6), one of each family.
    pub preferred: PreferredAddresses,
    /// The table of path secrets of clients; `None` offers none. Servers that share an address must
    /// share the table, or have none (`docs/known-peers.md`, section 6).
    pub known_clients: Option<Arc<KnownClients>>,
    /// The connections of each client, and their limits; `None` has no limits. The engines of a server
    /// share it.
    pub clients: Option<Arc<ClientTable>>,
    /// The most clients that wait for a decision ([`Endpoint::decide`](crate::Endpoint::decide)); more
    /// are refused. With zero, the default, none waits: every client is accepted.
    pub max_undecided: usize,
}

/// The preferred addresses of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreferredAddresses {
    /// The IPv4 address.
    pub ipv4: Option<SocketAddrV4>,
    /// The IPv6 address.
    pub ipv6: Option<SocketAddrV6>,
}

impl PreferredAddresses {
    /// Whether there is any.
    pub const fn is_some(&self) -> bool {
        self.ipv4.is_some() || self.ipv6.is_some()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = SocketAddr> + use<> {
        let (ipv4, ipv6) = (self.ipv4.map(SocketAddr::V4), self.ipv6.map(SocketAddr::V6));
        ipv4.into_iter().chain(ipv6)
    }
}

impl ServerConfig {
    /// Returns a configuration for up to 10,000 connections, with Retry under load, tokens valid
    /// for a day, version 1, and version 2 for clients that prefer it.
    pub fn new(crypto: Arc<dyn ServerCrypto>, transport: Arc<TransportConfig>) -> Self {
        Self {
            crypto,
            transport,
            max_connections: 10_000,
            retry: RetryPolicy::default(),
            token_lifetime: Duration::from_secs(24 * 3600),
            versions: Versions::V1_AND_V2,
            preferred: PreferredAddresses::default(),
            known_clients: None,
            clients: None,
            max_undecided: 0,
        }
    }
}

/// Settings for all connections of an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct EndpointConfig {
    /// The layout of the connection IDs that we issue.
    pub connection_ids: ConnectionIdLayout,
    /// The endpoint's secret; `None` derives a unique one from its seed.
    pub secret: Option<EndpointSecret>,
    /// The wall-clock time, since 1970, at [`Time::ZERO`](weir_units::Time::ZERO). The lifetime of
    /// tokens is based on it, so that they are valid on servers with the same secret and after a
    /// restart. If the secret is the endpoint's own, any value works.
    pub epoch: Duration,
    /// The kernel's tick, to which deadlines that need no precision are rounded up: its multiples
    /// of [`Time`](weir_units::Time) are the ticks. Zero if every deadline is exact.
    pub timer_tick: Duration,
    /// How many bytes of UDP payload the receive buffer of each socket takes while nothing is read
    /// from it; Weir peers send no more at once. `None` announces nothing.
    pub receive_burst: Option<ByteSize>,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            connection_ids: ConnectionIdLayout::new(8),
            secret: None,
            epoch: Duration::ZERO,
            timer_tick: Duration::ZERO,
            receive_burst: None,
        }
    }
}
