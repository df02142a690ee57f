//! One QUIC connection: it takes datagrams, time and application calls, and returns datagrams and
//! events.
//!
//! | file | what it does |
//! |---|---|
//! | `receive` | parses datagrams into frames and applies them |
//! | `transmit`, `packet_builder` | write batches of datagrams; build one packet |
//! | `handshake` | drives the session, installs keys, checks the peer's parameters |
//! | `timers` | computes the next timeout and handles it |
//! | `close` | ends the connection |
//! | `go_away` | ends it once what has begun is done (GOAWAY) |
//! | `application` | streams, statistics and settings for the application |
//! | `packet_size` | chooses the packet size: MTU discovery, and the size of tasks |
//! | `control_frames`, `frame_fates` | queue the connection's own frames; handle ACK and loss of sent frames |
//! | `validation`, `version`, `reset` | Retry and tokens, the version of QUIC, stateless resets |
//! | `paths` | paths to the peer: standby, validation, migration |
//! | `proactive` | feeds the migration monitor and carries out its decisions |
//! | `datagrams` | messages outside streams (RFC 9221) |
//! | `ack_frequency`, `key_update` | requests about ACKs, key updates by the application |
//! | `state_reporter` | reports to the observer |
//! | `known` | a connection without a handshake, its way back to one, the secrets of later ones |
//! | `keys`, `ids`, `crypto_stream` | keys by level and phase, connection IDs, handshake bytes |

mod ack_frequency;
mod application;
mod close;
mod control_frames;
mod crypto_stream;
mod datagrams;
mod frame_fates;
mod go_away;
mod handshake;
mod ids;
mod key_update;
mod keys;
mod known;
mod liveness;
mod packet_builder;
mod packet_size;
mod paths;
mod proactive;
mod readiness;
mod receive;
mod reset;
mod state_reporter;
mod stats;
mod timers;
mod transmit;
mod validation;
mod version;

use std::net::SocketAddr;
use std::sync::Arc;

use rand_chacha::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};
use smallvec::SmallVec;
use weir_congestion::{Context, Deadline};
use weir_units::{ByteSize, Duration, Time};

pub use datagrams::{DatagramStats, SendDatagramError};
pub use go_away::GoAway;
pub use key_update::UpdateKeysError;
pub(crate) use known::{KnownRole, KnownSetup, KnownStart, session as known_session};
pub(crate) use state_reporter::StateReporter;
pub use stats::{ConnectionStats, PathSnapshot};
pub(crate) use validation::{ClientSetup, ServerSetup};

use crate::config::{PathEndpoints, TransportConfig};
use crate::crypto::{KeyChange, Provider, Session};
use crate::event::{EndpointEvent, Event};
use crate::inline_queue::InlineQueue;
use crate::interfaces::{Interfaces, SMALLEST_MAX_UDP_PAYLOAD};
use crate::migration::MigrationMonitor;
use crate::path::{Path, PathConfig};
use crate::recovery::{AckPolicy, Precision, ReceivedPackets, Recovery, RecoveryConfig};
use crate::secret::{EndpointKeys, ResetToken};
use crate::streams::{Streams, StreamsConfig};
use crate::transport_parameters::TransportParameters;
use crate::{ConnectionId, ConnectionIdLayout, PathId, Side, Version};
use close::LifeCycle;
use control_frames::ControlFrames;
use crypto_stream::CryptoStream;
use datagrams::Datagrams;
use ids::{LocalIds, RemoteIds};
use keys::KeySet;
use packet_size::initial_size;

/// One end of a QUIC connection.
///
/// The caller keeps this order: pass in a batch with [`Connection::handle_datagram`] and
/// [`Connection::end_batch`], take events and endpoint events, then send the datagrams of
/// [`Connection::poll_transmit`] until it returns `None`. Call [`Connection::handle_timeout`] when
/// [`Connection::timeout`] is reached.
pub struct Connection {
    side: Side,
    config: Arc<TransportConfig>,
    rng: ChaCha12Rng,
    state: LifeCycle,
    leaving: go_away::Leaving,
    session: Box<dyn Session>,
    keys: KeySet,
    recovery: Recovery,
    /// Paths to the peer; the first one is in use.
    paths: Vec<Path>,
    sizing: packet_size::PacketSizing,
    table: paths::PathTable,
    /// Watches the path in use, on clients with a standby path.
    monitor: Option<Box<MigrationMonitor>>,
    /// The deadline that the congestion controller received last.
    deadline: Option<Deadline>,
    /// An external cap on bytes in flight, on every path.
    window_cap: Option<ByteSize>,
    streams: Streams,
    crypto: [CryptoStream; 3],
    received: [ReceivedPackets; 3],
    remote_ids: RemoteIds,
    control: ControlFrames,
    /// Reports to the observer.
    reporter: Option<Box<StateReporter>>,
    datagrams: Datagrams,
    local_ids: LocalIds,
    /// Whether the peer is to get spare connection IDs.
    spare_ids_wanted: bool,
    /// The client's first destination ID; on a server, the first one after a Retry packet. Initial
    /// packets may use it as their destination.
    original_destination: ConnectionId,
    version: Version,
    /// The version of the client's first packets and of its early data.
    first_version: Version,
    /// Whether a Version Negotiation packet made the client restart the handshake.
    renegotiated: bool,
    /// What we announced to the peer.
    accepted: Accepted,
    /// The packet sizes that our own interfaces carry.
    interfaces: Arc<Interfaces>,
    provider: Arc<dyn Provider>,
    endpoint_keys: Arc<EndpointKeys>,
    validation: validation::Validation,
    known: known::KnownPeerState,
    /// Reset tokens of the peer that the endpoint has registered for this connection.
    reset_tokens: SmallVec<[ResetToken; 1]>,
    /// The peer's transport parameters; defaults until they arrive.
    peer: TransportParameters,
    peer_known: bool,
    handshake: handshake::HandshakeProgress,
    timers: timers::Timers,
    unreachable: liveness::Unreachable,
    events: InlineQueue<Event>,
    endpoint_events: InlineQueue<EndpointEvent>,
    /// PTO probes still to be sent, by space.
    probes: [u8; 3],
    /// Streams that the peer opened with early data, by direction.
    early_streams: [u64; 2],
    /// Whether the last STREAM frame of this receive batch ended its stream.
    batch_finished: bool,
    /// Bytes received in this batch.
    batch_bytes: u64,
    /// The next packet number to skip.
    skip_at: u64,
    /// ACK-only packets since the last ack-eliciting one.
    ack_only_streak: u32,
    counters: stats::Counters,
}

/// What our interfaces and sockets accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// The largest UDP payload.
    pub(crate) payload: ByteSize,
    /// How many bytes of UDP payload the receive buffer takes.
    pub(crate) burst: Option<ByteSize>,
}

/// The endpoint's settings for a new connection.
pub(crate) struct Setup {
    pub(crate) config: Arc<TransportConfig>,
    pub(crate) seed: [u8; 32],
    pub(crate) remote: SocketAddr,
    pub(crate) local: Option<SocketAddr>,
    pub(crate) original_destination: ConnectionId,
    pub(crate) id_layout: ConnectionIdLayout,
    pub(crate) local_id: ConnectionId,
    pub(crate) remote_id: ConnectionId,
    pub(crate) version: Version,
    /// What we announce to the peer.
    pub(crate) accepted: Accepted,
    pub(crate) interfaces: Arc<Interfaces>,
    /// Which deadlines are exact.
    pub(crate) precision: Precision,
    /// The packet size that earlier connections to the peer have found.
    pub(crate) found_size: Option<ByteSize>,
    pub(crate) keys: Arc<EndpointKeys>,
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) reporter: Option<Box<StateReporter>>,
    /// On clients.
    pub(crate) client: Option<ClientSetup>,
    /// On servers.
    pub(crate) server: Option<ServerSetup>,
    pub(crate) known: KnownSetup,
}

impl Connection {
    pub(crate) fn new(now: Time, mut setup: Setup, session: Box<dyn Session>) -> Self {
        let remembered = setup.known.remembered.take();
        let Setup {
            config,
            remote,
            local,
            version,
            provider,
            ..
        } = setup;
        let side = if setup.client.is_some() {
            Side::Client
        } else {
            Side::Server
        };
        let has_handshake = matches!(setup.known.start, KnownStart::Handshake);
        let key_id = match setup.known.start {
            KnownStart::Client(_, key_id) => Some(key_id),
            KnownStart::Handshake | KnownStart::Server(_) => None,
        };
        let initial_keys = || provider.initial_keys(version, &setup.original_destination, side);
        let mut rng = ChaCha12Rng::from_seed(setup.seed);
        let expected_size = initial_size(
            &config,
            &setup.interfaces,
            (local, remote),
            setup.found_size,
        );
        let context = Context {
            packet_size: expected_size,
            seed: rng.next_u64(),
            is_paced: config.pacing,
        };
        let controller = config
            .congestion
            .build(&PathEndpoints { local, remote }, &context);
        let skip_at = u64::from(rng.next_u32() & 0x7f);
        let path = Path::new(
            PathId::FIRST,
            remote,
            local,
            controller,
            &path_config(&config, side),
        );
        let streams = Streams::new(side, streams_config(&config));
        let received = [
            AckPolicy::IMMEDIATE,
            AckPolicy::IMMEDIATE,
            ack_policy(&config),
        ]
        .map(ReceivedPackets::new);
        let remote_ids = RemoteIds::new(setup.remote_id);
        let mut control = ControlFrames::default();
        let mut local_ids = LocalIds::new(setup.id_layout, setup.local_id);
        if let Some(id) = setup.server.as_ref().and_then(|server| server.preferred_id) {
            local_ids.issue_preferred(id);
            control.note_id_sent(1);
        }
        let mut connection = Self {
            side,
            rng,
            state: LifeCycle::Open,
            leaving: go_away::Leaving::default(),
            session,
            keys: KeySet {
                initial: has_handshake.then(initial_keys),
                ..KeySet::default()
            },
            recovery: Recovery::new(recovery_config(&config, side), setup.precision),
            paths: vec![path],
            sizing: packet_size::PacketSizing::new(
                config.packet_size_policy,
                setup.found_size.map(|size| (remote.ip(), size)),
            ),
            table: paths::PathTable::new(local),
            monitor: None,
            deadline: None,
            window_cap: None,
            streams,
            crypto: Default::default(),
            received,
            remote_ids,
            control,
            reporter: setup.reporter,
            datagrams: Datagrams::new(config.datagrams),
            local_ids,
            spare_ids_wanted: false,
            original_destination: setup.original_destination,
            version,
            first_version: version,
            renegotiated: false,
            accepted: setup.accepted,
            interfaces: setup.interfaces,
            provider,
            endpoint_keys: setup.keys,
            validation: validation::Validation::new(setup.client, setup.server),
            known: known::KnownPeerState::new(setup.known),
            reset_tokens: SmallVec::new(),
            peer: TransportParameters::default(),
            peer_known: false,
            handshake: handshake::HandshakeProgress::default(),
            timers: timers::Timers::new(now, &config),
            unreachable: liveness::Unreachable::default(),
            events: InlineQueue::default(),
            endpoint_events: InlineQueue::default(),
            probes: [0; 3],
            early_streams: [0; 2],
            batch_finished: false,
            batch_bytes: 0,
            skip_at,
            ack_only_streak: 0,
            counters: stats::Counters::new(now),
            config,
        };
        if connection.is_known() {
            connection.path_mut().validated = true;
        }
        if side.is_client()
            && let Some(reporter) = &mut connection.reporter
        {
            reporter.start(now);
        }
        if has_handshake {
            connection.take_token();
            connection.drive_session(now);
        } else if let Some(peer) = remembered {
            connection.begin_known(now, key_id, peer);
        }
        connection.report_changes(now);
        connection
    }

    /// Returns the transport parameters for `config`, with what our interfaces and sockets accept and
    /// the rounding of our deadlines.
    pub(crate) fn parameters(
        config: &TransportConfig,
        accepted: Accepted,
        precision: &Precision,
        source: ConnectionId,
        original_destination: Option<ConnectionId>,
    ) -> TransportParameters {
        TransportParameters {
            original_destination_connection_id: original_destination,
            initial_source_connection_id: Some(source),
            max_idle_timeout: config.idle_timeout,
            max_udp_payload_size: accepted.payload.bytes(),
            receive_burst: accepted.burst.map(ByteSize::bytes),
            initial_max_data: config.connection_window.bytes(),
            initial_max_stream_data_bidi_local: config.stream_window.bytes(),
            initial_max_stream_data_bidi_remote: config.stream_window.bytes(),
            initial_max_stream_data_uni: config.stream_window.bytes(),
            initial_max_streams_bidi: config.max_bidirectional_streams,
            initial_max_streams_uni: config.max_unidirectional_streams,
            ack_delay_exponent: ACK_DELAY_EXPONENT,
            max_ack_delay: longest_ack_delay(config, precision),
            fine_max_ack_delay: Some(config.max_ack_delay),
            min_ack_delay: Some(min_ack_delay(config)),
            max_datagram_frame_size: config
                .datagrams
                .map_or(0, |datagrams| datagrams.max_frame_size.bytes()),
            grease_quic_bit: config.grease_quic_bit,
            go_away: config.go_away,
            disable_active_migration: !config.allow_migration,
            active_connection_id_limit: ids::ACTIVE_ID_LIMIT,
            ..TransportParameters::default()
        }
    }

    /// Returns the next event for the application.
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some(event) = self.streams.poll_event() {
            return Some(Event::Stream(event));
        }
        self.events.pop_front()
    }

    /// Returns the next event for the endpoint.
    pub fn poll_endpoint_event(&mut self) -> Option<EndpointEvent> {
        if self.remote_ids.take_in_use_changed() {
            self.note_reset_tokens();
        }
        self.endpoint_events
            .pop_front()
            .or_else(|| self.report_loss())
    }

    fn report_loss(&mut self) -> Option<EndpointEvent> {
        let is_due = self.recovery.precision.take_loss_to_report();
        is_due.then_some(EndpointEvent::PacketsLost)
    }

    fn path(&self) -> &Path {
        &self.paths[0]
    }

    fn path_mut(&mut self) -> &mut Path {
        &mut self.paths[0]
    }

    fn install_keys(&mut self, change: KeyChange) {
        self.keys.install(change);
    }
}

/// ACK delays travel in whole microseconds.
const ACK_DELAY_EXPONENT: u8 = 0;

/// Returns the longest delay of an ACK of ours at any time.
fn longest_ack_delay(config: &TransportConfig, precision: &Precision) -> Duration {
    if precision.tick().is_zero() {
        return config.max_ack_delay;
    }
    config.max_ack_delay.max(config.final_ack_delay) + precision.tick()
}

/// The smallest ACK delay that the peer may request: our timer granularity.
fn min_ack_delay(config: &TransportConfig) -> Duration {
    config.granularity.min(config.max_ack_delay)
}

fn path_config(config: &TransportConfig, side: Side) -> PathConfig {
    PathConfig {
        mtu: SMALLEST_MAX_UDP_PAYLOAD,
        initial_rtt: config.initial_rtt,
        granularity: config.granularity,
        ecn: config.ecn,
        // A client chose its peer. A server must not be used to attack third parties (RFC 9000,
        // section 8.1).
        validated: side.is_client(),
    }
}

fn streams_config(config: &TransportConfig) -> StreamsConfig {
    StreamsConfig {
        max_data: config.connection_window.bytes(),
        stream_window: config.stream_window.bytes(),
        max_bidirectional: config.max_bidirectional_streams,
        max_unidirectional: config.max_unidirectional_streams,
        send_buffer: config.send_buffer.bytes(),
    }
}

fn recovery_config(config: &TransportConfig, side: Side) -> RecoveryConfig {
    RecoveryConfig {
        max_probe_interval: config.max_probe_interval,
        side,
        granularity: config.granularity,
        packet_threshold: config.packet_threshold,
        persistent_congestion_threshold: 3,
        idle_restart: config.idle_restart,
    }
}

fn ack_policy(config: &TransportConfig) -> AckPolicy {
    AckPolicy {
        max_ack_delay: config.max_ack_delay,
        final_delay: config.final_ack_delay,
        threshold: config.ack_threshold,
        exponent: ACK_DELAY_EXPONENT,
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("side", &self.side)
            .field("remote", &self.path().remote)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
