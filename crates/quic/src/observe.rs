//! The events that an observer of a connection receives: packets, losses, metrics and decisions.
//!
//! Each event is declared here once. An [`Observer`] writes them to a log, counts them or checks
//! them. [`Observers`] provides one for each connection
//! ([`Endpoint::set_observers`](crate::Endpoint::set_observers)). Same inputs, same events.
//!
//! Observations are borrowed and created only for an observer: a connection without one pays one
//! branch per packet.

use std::net::SocketAddr;

use weir_congestion::Snapshot;
use weir_units::{ByteSize, Duration, Rate, Time};
use weir_wire::Ecn;

use crate::frame::Frames;
use crate::migration::Decision;
use crate::path::EcnPhase;
use crate::transport_parameters::TransportParameters;
use crate::{ConnectionError, ConnectionId, Level, PathEvent, PathId, Side, Space};

/// Receives the events of one connection.
pub trait Observer: Send {
    /// Returns the events that it wants; called once, when the connection starts.
    fn interest(&self) -> Interest {
        Interest::Everything
    }

    /// Handles an event. Times never go backwards. The first event is [`Observation::Started`];
    /// after [`Phase::Drained`], or with the connection, the observer is dropped.
    fn on_event(&mut self, now: Time, event: &Observation<'_>);
}

/// The events that an observer wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Every packet.
    Everything,
    /// All but single packets that are sent, received or dropped: [`Observation::Metrics`] has
    /// their sums.
    Changes,
}

/// Selects the connections to observe.
pub trait Observers: Send + Sync {
    /// Returns the observer of a new connection, or `None`. On servers this is called before any
    /// packet is authentic: avoid expensive work before [`Observation::Started`].
    fn observe(&self, subject: &Subject) -> Option<Box<dyn Observer>>;
}

/// The observed connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The observed side.
    pub side: Side,
    /// The destination connection ID of the client's first packet, which identifies the connection
    /// on both sides.
    pub original_destination: ConnectionId,
    /// The connection ID that the peer uses for this side during the handshake.
    pub local_id: ConnectionId,
    /// Our address, if known.
    pub local: Option<SocketAddr>,
    /// The peer's address.
    pub remote: SocketAddr,
}

/// An event of a connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum Observation<'a> {
    /// The connection starts: a client's at once, a server's with the first authentic packet.
    Started(&'a Subject),
    /// One side declared its transport parameters.
    ParametersSet {
        /// The side that declared them: [`Subject::side`] for our own.
        by: Side,
        /// The parameters.
        parameters: &'a TransportParameters,
    },
    /// The handshake, or the end, reached a phase.
    Phase(Phase),
    /// A packet was sealed; it is sent with the batch.
    PacketSent(Packet<'a>),
    /// An authentic packet arrived; this event precedes the effects of its frames.
    PacketReceived(Packet<'a>),
    /// A packet, or a datagram without one, was dropped.
    PacketDropped {
        /// Its bytes in the datagram.
        size: usize,
        /// The reason.
        reason: DropReason,
    },
    /// A packet of ours was declared lost.
    PacketLost(LostPacket),
    /// Metrics changed. At most once per receive batch, sent batch and timer.
    Metrics(&'a Metrics),
    /// The congestion controller of the path in use changed its phase.
    CongestionStateUpdated {
        /// The path.
        path: PathId,
        /// The old phase; `None` at first.
        old: Option<&'static str>,
        /// The new phase, as in [`Snapshot`].
        new: &'static str,
    },
    /// The state of ECN validation on the path in use changed.
    EcnStateUpdated {
        /// The path.
        path: PathId,
        /// The old state; `None` at first.
        old: Option<EcnValidation>,
        /// The new state.
        new: EcnValidation,
    },
    /// The largest UDP payload on the path in use changed.
    MtuUpdated {
        /// The path.
        path: PathId,
        /// The old size in bytes.
        old: usize,
        /// The new size in bytes.
        new: usize,
        /// Whether the search for a larger one has ended for now.
        done: bool,
    },
    /// The 1-RTT keys were updated.
    KeysUpdated {
        /// The number of updates: the key phase (RFC 9001, section 6).
        phase: u64,
    },
    /// A path was opened.
    PathOpened(&'a PathAddresses),
    /// A path event.
    Path(PathEvent, &'a PathAddresses),
    /// The migration monitor moves the connection: the cause and the metrics.
    Moving(&'a Decision),
    /// The connection has ended.
    Closed(&'a ConnectionError),
}

/// A phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Our side of the handshake is complete.
    HandshakeComplete,
    /// The peer's side is complete too (RFC 9001, section 4.1.2).
    HandshakeConfirmed,
    /// We closed, and repeat CONNECTION_CLOSE for packets that still arrive.
    Closing,
    /// The peer closed.
    Draining,
    /// The connection has ended completely.
    Drained,
}

/// A packet without its protection.
#[derive(Clone, Debug)]
pub struct Packet<'a> {
    /// Its encryption level, which determines its type.
    pub level: Level,
    /// Its number.
    pub number: u64,
    /// Its bytes, header and tag included.
    pub size: usize,
    /// The path that it is sent or received on.
    pub path: PathId,
    /// The ECN codepoint that it is sent or was received with.
    pub ecn: Ecn,
    /// Whether it probes the path's MTU; set only for sent packets.
    pub is_mtu_probe: bool,
    /// Its frames. Those of a received packet may be malformed, which ends the connection.
    pub frames: Frames<'a>,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// Its header is malformed, or a bit of it has an invalid value.
    Malformed,
    /// It is addressed to another connection.
    UnknownConnectionId,
    /// Its keys are not available yet, or not any more.
    KeyUnavailable,
    /// It is not authentic.
    DecryptionFailure,
    /// It was received before.
    Duplicate,
    /// It came from an address that is not accepted now.
    UnexpectedAddress,
    /// Its content cannot be stored now; it will be sent again.
    NoRoom,
    /// A Retry packet whose token leaves no room for the handshake in an Initial packet.
    TokenTooLong,
}

/// A packet of ours that was declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPacket {
    /// The space of its number.
    pub space: Space,
    /// Its number.
    pub number: u64,
    /// Its bytes.
    pub size: u32,
    /// The path that it was sent on.
    pub path: PathId,
    /// Whether it probed the path's MTU.
    pub is_mtu_probe: bool,
    /// The reason.
    pub cause: LossReason,
}

/// Why a packet was declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossReason {
    /// Enough later packets were acknowledged (RFC 9002, section 6.1.1).
    Reordering,
    /// A later packet was acknowledged and enough time has passed (RFC 9002, section 6.1.2).
    Time,
    /// Too many packets are outstanding; the oldest are given up.
    TooManyOutstanding,
    /// The path does not carry packets of its size.
    TooLarge,
    /// The path that it was sent on is not in use any more.
    PathLeft,
}

/// The state of ECN validation on a path (RFC 9000, section 13.4.2 and appendix A.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnValidation {
    /// ECN is switched off.
    Off,
    /// The first packets are sent with ECT(0).
    Testing,
    /// The test packets have been sent; none is acknowledged.
    Unknown,
    /// The path carries ECN.
    Capable,
    /// The path or the peer does not support ECN.
    Failed,
}

impl From<EcnPhase> for EcnValidation {
    fn from(phase: EcnPhase) -> Self {
        match phase {
            EcnPhase::Off => Self::Off,
            EcnPhase::Testing => Self::Testing,
            EcnPhase::Unknown => Self::Unknown,
            EcnPhase::Capable => Self::Capable,
            EcnPhase::Failed => Self::Failed,
        }
    }
}

/// The addresses of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathAddresses {
    /// Its ID.
    pub path: PathId,
    /// Our address, if known.
    pub local: Option<SocketAddr>,
    /// The peer's address.
    pub remote: SocketAddr,
}

/// The metrics of the path in use, and the totals of the connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metrics {
    /// The path in use.
    pub path: PathId,
    /// The smallest round-trip time seen; `None` before there is a sample.
    pub min_rtt: Option<Duration>,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// The latest sample.
    pub latest_rtt: Duration,
    /// The mean deviation.
    pub rtt_variation: Duration,
    /// Samples taken on this path.
    pub rtt_samples: u64,
    /// Probe timeouts since the last packet from the peer.
    pub pto_count: u32,
    /// The congestion window.
    pub window: ByteSize,
    /// Bytes in flight.
    pub in_flight: ByteSize,
    /// The pacing rate, if the algorithm sets one.
    pub pacing_rate: Option<Rate>,
    /// A snapshot of the algorithm's state.
    pub controller: Snapshot,
    /// The totals of the connection, over all its paths.
    pub totals: Totals,
}

/// Sums over current and closed paths of a connection. They never decrease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// UDP datagrams sent.
    pub datagrams_sent: u64,
    /// UDP datagrams received.
    pub datagrams_received: u64,
    /// UDP payload sent.
    pub bytes_sent: ByteSize,
    /// UDP payload received.
    pub bytes_received: ByteSize,
    /// QUIC packets sent.
    pub packets_sent: u64,
    /// QUIC packets received that were authentic.
    pub packets_received: u64,
    /// Packets that were dropped.
    pub packets_dropped: u64,
    /// Packets declared lost, the spurious losses included.
    pub packets_lost: u64,
    /// Packets acknowledged after they had been declared lost.
    pub spurious_losses: u64,
    /// UDP payload declared lost.
    pub bytes_lost: ByteSize,
    /// Stream and handshake data sent again: lost, or copied into probes.
    pub bytes_retransmitted: ByteSize,
    /// Packets of ours that arrived with a CE mark.
    pub ce_marks: u64,
    /// Congestion events (losses or marks) passed to controllers.
    pub congestion_events: u64,
    /// PTO expirations.
    pub probe_timeouts: u64,
    /// Black holes: how often a path stopped carrying a size in use.
    pub black_holes: u64,
}
