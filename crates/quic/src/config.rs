//! What an operator may set about a connection and an endpoint.

use std::fmt;
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::sync::Arc;

use weir_congestion::{AlgorithmSpec, Context, Controller};
use weir_units::{ByteSize, Duration};

use crate::crypto::{ClientCrypto, ServerCrypto};
use crate::interfaces::{LARGEST_UDP_PAYLOAD, SMALLEST_MAX_UDP_PAYLOAD};
use crate::migration::{MigrationConfig, MigrationConfigError};
use crate::{EndpointSecret, TokenStore, Version, Versions};

/// Makes a congestion controller for a path.
pub type ControllerFactory = dyn Fn(&Context) -> Box<dyn Controller> + Send + Sync;

/// Between which addresses a path leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathEnds {
    /// Ours; `None` where only the kernel knows it.
    pub local: Option<SocketAddr>,
    /// The peer's.
    pub remote: SocketAddr,
}

/// Makes a congestion controller for a path between two addresses.
pub type ControllerChoice = dyn Fn(&PathEnds, &Context) -> Box<dyn Controller> + Send + Sync;

/// Which congestion controller a connection gets.
#[derive(Clone)]
pub enum Congestion {
    /// One of the registry, by name and parameters.
    Named(AlgorithmSpec),
    /// One of the caller's own making.
    Custom(Arc<ControllerFactory>),
    /// One that depends on where the path leads.
    Chosen(Arc<ControllerChoice>),
}

impl Congestion {
    /// The controller of a path between two addresses.
    pub fn build(&self, ends: &PathEnds, context: &Context) -> Box<dyn Controller> {
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
    /// interface carries it: the operator's word that the path does. 1200 to 65527 bytes.
    pub packet_size: ByteSize,
    /// Up to which size larger packets are probed for (RFC 8899), as far as the peer accepts them
    /// and our own interface carries them; nothing above `packet_size` where there is no such size,
    /// or none above it.
    pub probe_up_to: Option<ByteSize>,
    /// How long after a search for larger packets the next one begins, on a connection that is in
    /// use (PMTU_RAISE_TIMER, RFC 8899, section 5.1.1); zero for never.
    pub probe_interval: Duration,
    /// Which of the sizes that the path carries packets have.
    pub packet_size_policy: PacketSizePolicy,
    /// The largest UDP payload that we accept, 1200 to 65527 bytes. The peer is told
    /// (`max_udp_payload_size`) this or what our interface carries, whichever is less
    /// ([`Interfaces`](crate::Interfaces)).
    pub max_udp_payload_size: ByteSize,
    /// How much the peer may send on one stream before we have read it.
    pub stream_window: ByteSize,
    /// How much the peer may send on all streams before we have read it.
    pub connection_window: ByteSize,
    /// How much a stream buffers for sending before writes wait.
    pub send_buffer: ByteSize,
    /// How many bidirectional streams the peer may have open at once.
    pub max_bidirectional_streams: u64,
    /// How many unidirectional streams the peer may have open at once.
    pub max_unidirectional_streams: u64,
    /// Silence after which the connection ends; zero for never (RFC 9000, section 10.1).
    pub idle_timeout: Duration,
    /// How long a handshake may take.
    pub handshake_timeout: Duration,
    /// Silence after which a PING is sent; zero for never.
    pub keep_alive: Duration,
    /// The resolution of timers (kGranularity, RFC 9002, section 6.1.2).
    pub granularity: Duration,
    /// The round-trip time assumed before the first sample (kInitialRtt).
    pub initial_rtt: Duration,
    /// How long an acknowledgment may be held back. A Weir peer learns it exactly, others in
    /// whole milliseconds.
    pub max_ack_delay: Duration,
    /// An acknowledgment is sent at once when this many ack-eliciting packets wait for one.
    pub ack_threshold: u64,
    /// How far packets may overtake each other before one counts as lost (kPacketThreshold).
    pub packet_threshold: u64,
    /// Silence after which the congestion controller starts anew (RFC 9002, section 7.8), where
    /// that is longer than a probe timeout.
    pub idle_restart: Duration,
    /// Whether packets are sent with ECT(0), as long as the path carries it.
    pub ecn: bool,
    /// Whether a peer may go on from another address (`disable_active_migration` otherwise).
    pub allow_migration: bool,
    /// When a client leaves a path by itself, where it holds another one ready.
    pub migration: MigrationConfig,
    /// How often a client asks whether the paths that it holds ready still work, as long as the
    /// connection is used; zero for never.
    pub standby_refresh: Duration,
    /// Whether packets are paced (RFC 9002, section 7.7).
    pub pacing: bool,
    /// Datagrams (RFC 9221); `None` neither sends nor takes any.
    pub datagrams: Option<DatagramConfig>,
    /// Whether a peer that can is asked to acknowledge some eight times in a round trip
    /// (draft-ietf-quic-ack-frequency). What a peer asks of us is always heeded. On in the WAN
    /// profile, where it saves most ACKs; in a data center a Weir peer sends few of them by itself.
    pub ack_frequency: bool,
    /// Whether the fixed bit of packets is of any value where the peer allows it, and the peer is
    /// allowed to do the same (RFC 9287): so that nothing on the way comes to rely on it.
    pub grease_quic_bit: bool,
}

/// What datagrams may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramConfig {
    /// The largest DATAGRAM frame that we take (`max_datagram_frame_size`), its type and length
    /// included; 65535 bytes for any that fits a packet.
    pub max_frame_size: ByteSize,
    /// How much waits to be sent; beyond it the oldest datagrams are forgotten. Each counts 64 bytes
    /// more than it has.
    pub send_buffer: ByteSize,
    /// How much waits to be read; beyond it the oldest datagrams are forgotten.
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
    /// For fabrics: round trips of some 50 µs, Ethernet packets, and timers that follow.
    pub fn data_center() -> Self {
        Self {
            congestion: Congestion::Named(AlgorithmSpec::default()),
            packet_size: ByteSize::from_bytes(1452),
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
            granularity: Duration::from_micros(50),
            initial_rtt: Duration::from_millis(10),
            max_ack_delay: Duration::from_micros(500),
            ack_threshold: 128,
            packet_threshold: 3,
            idle_restart: Duration::from_millis(200),
            ecn: true,
            allow_migration: true,
            migration: MigrationConfig::default(),
            standby_refresh: Duration::from_secs(1),
            pacing: true,
            datagrams: None,
            ack_frequency: false,
            grease_quic_bit: true,
        }
    }

    /// For the Internet: the values that RFC 9000 and RFC 9002 recommend.
    pub fn wan() -> Self {
        Self {
            packet_size: ByteSize::from_bytes(SMALLEST_MAX_UDP_PAYLOAD as u64),
            probe_up_to: Some(ByteSize::from_bytes(1452)),
            stream_window: ByteSize::from_mib(4),
            connection_window: ByteSize::from_mib(16),
            granularity: Duration::from_millis(1),
            initial_rtt: Duration::from_millis(333),
            max_ack_delay: Duration::from_millis(25),
            ack_threshold: 10,
            ack_frequency: true,
            ..Self::data_center()
        }
    }

    /// Checks what a caller may have set wrongly.
    ///
    /// # Errors
    /// The first setting that is out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check_packet_size("packet_size", self.packet_size)?;
        check_packet_size("max_udp_payload_size", self.max_udp_payload_size)?;
        if let Some(size) = self.probe_up_to {
            check_packet_size("probe_up_to", size)?;
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
            None if self.max_ack_delay >= Duration::from_millis(1 << 14) => {
                Err(ConfigError::AckDelay {
                    delay: self.max_ack_delay,
                })
            }
            None => Ok(()),
        }
    }
}

/// Which of the sizes that the path carries a connection's packets have.
///
/// Whatever the policy, a packet is never larger than the path carries and the peer accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketSizePolicy {
    /// The largest.
    #[default]
    Largest,
    /// This UDP payload, 1200 to 65527 bytes, or the largest where the path carries less.
    Fixed(ByteSize),
    /// The rule of Tan et al., *DCQUIC*, section 4.2: 9 KB (8972 bytes of UDP payload) for tasks
    /// below 1 MB, 5 KB (5000 bytes) from 1 MB (1,000,000 bytes) on.
    ///
    /// A task is what the application declares by [`Connection::set_task_size`](crate::Connection::set_task_size). Undeclared, it is
    /// what was written to one stream since that stream last had nothing that waited or was not
    /// acknowledged: a large task is known as one after its first megabyte. All packets follow the
    /// large task, where there is one on any stream, until the peer has acknowledged it.
    ByTask,
}

impl PacketSizePolicy {
    /// # Errors
    /// [`ConfigError::PacketSize`] where no packet may have the fixed size.
    pub(crate) fn validate(self) -> Result<(), ConfigError> {
        match self {
            Self::Fixed(size) => check_packet_size("packet_size_policy", size),
            Self::Largest | Self::ByTask => Ok(()),
        }
    }
}

/// # Errors
/// [`ConfigError::PacketSize`] where UDP or RFC 9000 do not allow packets of this size.
fn check_packet_size(name: &'static str, size: ByteSize) -> Result<(), ConfigError> {
    let allowed = SMALLEST_MAX_UDP_PAYLOAD as u64..=LARGEST_UDP_PAYLOAD;
    if allowed.contains(&size.bytes()) {
        Ok(())
    } else {
        Err(ConfigError::PacketSize { name, size })
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
    /// A packet size outside what UDP and RFC 9000 allow.
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
    /// A client that would not go on in the version that it begins in.
    #[error("a client that begins in {version} must have it among its versions")]
    FirstVersion {
        /// The version.
        version: Version,
    },
    /// An ACK delay that the transport parameter cannot carry.
    #[error("max_ack_delay is {delay}: it must be below 16384ms (RFC 9000, section 18.2)")]
    AckDelay {
        /// Its value.
        delay: Duration,
    },
}

/// What a client needs for a connection. Start from [`ClientConfig::new`].
#[derive(Clone)]
pub struct ClientConfig {
    /// Where keys come from.
    pub crypto: Arc<dyn ClientCrypto>,
    /// The transport.
    pub transport: Arc<TransportConfig>,
    /// Whether 0-RTT is tried where a session can be resumed. What is sent so can be replayed by
    /// an attacker: only idempotent requests belong there (RFC 9001, section 9.2).
    pub early_data: bool,
    /// The version of the first packets; version 1 unless told. A server that does not speak it
    /// costs a round trip.
    pub version: Version,
    /// The versions in which the connection may go on, `version` among them, in order of preference;
    /// version 1 alone unless told. The server chooses; where it speaks none of them but others, the
    /// connection ends with [`ConnectionError::NoCommonVersion`](crate::ConnectionError).
    pub versions: Versions,
    /// The tokens that servers gave for later connections; `None` keeps none. Share one store among
    /// the connections that share sessions.
    pub tokens: Option<Arc<TokenStore>>,
    /// Addresses of ours from which paths are held ready, as
    /// [`Connection::add_local_address`](crate::Connection::add_local_address) would ask for them one
    /// by one. Known from the beginning, they bound the size of packets that the peer is told we
    /// accept, which cannot change later.
    pub local_addresses: Vec<SocketAddr>,
}

impl ClientConfig {
    /// Version 1, without early data, tokens, or other addresses of ours.
    pub fn new(crypto: Arc<dyn ClientCrypto>, transport: Arc<TransportConfig>) -> Self {
        Self {
            crypto,
            transport,
            early_data: false,
            version: Version::V1,
            versions: Versions::V1,
            tokens: None,
            local_addresses: Vec::new(),
        }
    }
}

/// When a server has clients prove that they receive at their address before it does anything for
/// them (RFC 9000, section 8.1.2). That costs a client a round trip, unless it has a token from an
/// earlier connection, and the server neither memory nor cryptography worth mentioning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryPolicy {
    /// Never. What is sent to an address that is not proven stays below three times of what came
    /// from there.
    Never,
    /// Always.
    Always,
    /// As long as at least so many handshakes are half open, which is what a flood of packets from
    /// invented addresses looks like. A handshake is half open until something arrives that only a
    /// client can have sent that got the server's answer.
    UnderLoad {
        /// The threshold.
        half_open: usize,
    },
}

impl RetryPolicy {
    /// Whether a client without a token has to prove its address now.
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
    /// From 256 handshakes half open. A genuine one is so for one round trip: 256 of them at
    /// 100 µs are 2.5 million handshakes per second, more than a machine completes.
    fn default() -> Self {
        Self::UnderLoad { half_open: 256 }
    }
}

/// What a server needs for its connections. Start from [`ServerConfig::new`].
#[derive(Clone)]
pub struct ServerConfig {
    /// Where keys come from.
    pub crypto: Arc<dyn ServerCrypto>,
    /// The transport.
    pub transport: Arc<TransportConfig>,
    /// How many connections there may be at once; further ones are refused.
    pub max_connections: usize,
    /// When clients have to prove their address first.
    pub retry: RetryPolicy,
    /// How long a client that was here can begin connections from the same address without proving
    /// it again; zero for never.
    pub token_lifetime: Duration,
    /// The versions that are spoken, in order of preference. A client that begins in one of them and
    /// takes one that is preferred gets that one at no cost, unless it sends early data.
    pub versions: Versions,
    /// Other addresses of the server at which clients should go on once the handshake is over
    /// (RFC 9000, section 9.6), one of each family.
    pub preferred: PreferredAddresses,
}

/// At which addresses a server would rather be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreferredAddresses {
    /// By IPv4.
    pub ipv4: Option<SocketAddrV4>,
    /// By IPv6.
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
    /// Up to 10,000 connections; Retry under load; tokens that hold for a day; version 1, and
    /// version 2 for clients that want it.
    pub fn new(crypto: Arc<dyn ServerCrypto>, transport: Arc<TransportConfig>) -> Self {
        Self {
            crypto,
            transport,
            max_connections: 10_000,
            retry: RetryPolicy::default(),
            token_lifetime: Duration::from_secs(24 * 3600),
            versions: Versions::V1_AND_V2,
            preferred: PreferredAddresses::default(),
        }
    }
}

/// What concerns all connections of an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct EndpointConfig {
    /// The length of the connection IDs that we issue, 4 to 20 bytes.
    pub connection_id_length: usize,
    /// The endpoint's secret; `None` makes one from its seed, which nobody else has.
    pub secret: Option<EndpointSecret>,
    /// The time of the wall clock, since 1970, at [`Time::ZERO`](weir_units::Time::ZERO). The
    /// lifetime of tokens counts by it, so that they hold on servers with the same secret and after
    /// a restart. Any value will do where the secret is the endpoint's own.
    pub epoch: Duration,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            connection_id_length: 8,
            secret: None,
            epoch: Duration::ZERO,
        }
    }
}
