//! What a connection tells those who watch it: packets, losses, figures and decisions, as they
//! happen.
//!
//! Each event is declared here once. An [`Observer`] writes them to a log, counts them or asserts
//! something about them; one is handed in for each connection by [`Observers`]
//! ([`Endpoint::set_observers`](crate::Endpoint::set_observers)). Same inputs, same events.
//!
//! Observations are borrowed and made only where somebody listens: a connection without an observer
//! pays one branch per packet.

use std::net::SocketAddr;

use weir_congestion::Snapshot;
use weir_units::{ByteSize, Duration, Rate, Time};
use weir_wire::Ecn;

use crate::frame::Frames;
use crate::migration::Decision;
use crate::path::EcnPhase;
use crate::transport_parameters::TransportParameters;
use crate::{ConnectionError, ConnectionId, Level, PathEvent, PathId, Side, Space};

/// Watches one connection.
pub trait Observer: Send {
    /// What it wants to hear of; asked once, when the connection begins.
    fn interest(&self) -> Interest {
        Interest::Everything
    }

    /// Something happened. Times never go backwards. The first event is [`Observation::Started`];
    /// after [`Phase::Drained`], or with the connection, the observer is dropped.
    fn on_event(&mut self, now: Time, event: &Observation<'_>);
}

/// How much an observer wants to hear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Every packet.
    Everything,
    /// All but packets that are sent, received or dropped one by one: [`Observation::Metrics`] has
    /// their sums.
    Changes,
}

/// Decides who watches which connection.
pub trait Observers: Send + Sync {
    /// An observer for a connection that begins; `None` where it is of no interest. On servers that
    /// is asked before anything is known to be authentic: nothing dear should be done before
    /// [`Observation::Started`].
    fn observe(&self, subject: &Subject) -> Option<Box<dyn Observer>>;
}

/// Which connection is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Which end of it this is.
    pub side: Side,
    /// The destination connection ID of the client's first packet, which names the connection on
    /// both sides.
    pub original_destination: ConnectionId,
    /// The connection ID by which the peer knows this side during the handshake.
    pub local_id: ConnectionId,
    /// Our address, where it is known.
    pub local: Option<SocketAddr>,
    /// The peer's address.
    pub remote: SocketAddr,
}

/// Something that happened on a connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum Observation<'a> {
    /// The connection begins: a client's at once, a server's with the first authentic packet.
    Started(&'a Subject),
    /// One side declared its transport parameters.
    ParametersSet {
        /// Whose they are: [`Subject::side`] for our own.
        by: Side,
        /// The parameters.
        parameters: &'a TransportParameters,
    },
    /// The handshake, or the end, has come that far.
    Phase(Phase),
    /// A packet was sealed; it leaves with the batch.
    PacketSent(Packet<'a>),
    /// An authentic packet arrived; its frames come before what they change.
    PacketReceived(Packet<'a>),
    /// A packet, or a datagram without any, was dropped.
    PacketDropped {
        /// Its bytes, as they stood in the datagram.
        size: usize,
        /// Why.
        reason: DropReason,
    },
    /// A packet of ours was declared lost.
    PacketLost(LostPacket),
    /// Figures changed. At most once for each receive batch, batch sent and timer.
    Metrics(&'a Metrics),
    /// The congestion controller of the path in use does something else now.
    CongestionStateUpdated {
        /// The path.
        path: PathId,
        /// What it did; `None` at first.
        old: Option<&'static str>,
        /// What it does: the phase of [`Snapshot`].
        new: &'static str,
    },
    /// More or less is known of ECN on the path in use.
    EcnStateUpdated {
        /// The path.
        path: PathId,
        /// What was known; `None` at first.
        old: Option<EcnValidation>,
        /// What is known.
        new: EcnValidation,
    },
    /// The largest UDP payload on the path in use changed.
    MtuUpdated {
        /// The path.
        path: PathId,
        /// What it was, in bytes.
        old: usize,
        /// What it is, in bytes.
        new: usize,
        /// Whether the search for a larger one is over for now.
        done: bool,
    },
    /// The 1-RTT keys were updated.
    KeysUpdated {
        /// How many updates there were: the key phase (RFC 9001, section 6).
        phase: u64,
    },
    /// There is another path.
    PathOpened(&'a PathAddresses),
    /// Something about the ways to the peer.
    Path(PathEvent, &'a PathAddresses),
    /// The migration monitor has the connection move: why, and the figures.
    Moving(&'a Decision),
    /// The connection is over.
    Closed(&'a ConnectionError),
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Our side of the handshake is complete.
    HandshakeComplete,
    /// The peer's side too (RFC 9001, section 4.1.2).
    HandshakeConfirmed,
    /// We closed, and repeat that to what still comes.
    Closing,
    /// The peer closed.
    Draining,
    /// Nothing is left to do.
    Drained,
}

/// A packet without its protection.
#[derive(Clone, Debug)]
pub struct Packet<'a> {
    /// Its encryption level, which tells its type.
    pub level: Level,
    /// Its number.
    pub number: u64,
    /// Its bytes, header and tag included.
    pub size: usize,
    /// The path that it goes or came over.
    pub path: PathId,
    /// The ECN codepoint with which it came; what it is sent with.
    pub ecn: Ecn,
    /// Whether it probes the path's MTU; known of packets that are sent.
    pub is_mtu_probe: bool,
    /// Its frames. Those of a packet that arrived may be malformed, which ends the connection.
    pub frames: Frames<'a>,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// Its header cannot be read, or has a bit that it may not have.
    Malformed,
    /// It is addressed to another connection.
    UnknownConnectionId,
    /// Its keys are not there yet, or not any more.
    KeyUnavailable,
    /// It is not authentic.
    DecryptionFailure,
    /// It was received before.
    Duplicate,
    /// It came from an address from which nothing is taken now.
    UnexpectedAddress,
    /// What it carries cannot be kept now; it will be sent again.
    NoRoom,
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
    /// Why.
    pub cause: LossReason,
}

/// Why a packet was declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossReason {
    /// Enough later packets were acknowledged (RFC 9002, section 6.1.1).
    Reordering,
    /// A later packet was acknowledged and enough time has passed (RFC 9002, section 6.1.2).
    Time,
    /// So many packets are outstanding that the oldest are given up.
    Outnumbered,
    /// The path does not carry packets of its size.
    TooLarge,
    /// The path that it was sent on is not in use any more.
    PathLeft,
}

/// What is known of ECN on a path (RFC 9000, section 13.4.2 and appendix A.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnValidation {
    /// ECN is not wanted.
    Off,
    /// The first packets are sent with ECT(0).
    Testing,
    /// They have been sent; none is acknowledged.
    Unknown,
    /// The path carries ECN.
    Capable,
    /// The path or the peer does not.
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

/// Which addresses a path joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathAddresses {
    /// Its name.
    pub path: PathId,
    /// Our address, where it is known.
    pub local: Option<SocketAddr>,
    /// The peer's address.
    pub remote: SocketAddr,
}

/// The figures of the path in use, and the sums of the connection.
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
    /// Probe timeouts since the peer was last heard.
    pub pto_count: u32,
    /// The congestion window.
    pub window: ByteSize,
    /// Bytes in flight.
    pub in_flight: ByteSize,
    /// The rate at which packets leave, where the algorithm sets one.
    pub pacing_rate: Option<Rate>,
    /// What the algorithm shows of itself.
    pub controller: Snapshot,
    /// What the connection counted, over all its paths.
    pub totals: Totals,
}

/// Sums over all paths that a connection has and had. They never become smaller.
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
    /// Stream and handshake data that had to be sent again: lost, or copied into probes.
    pub bytes_retransmitted: ByteSize,
    /// Packets of ours that arrived with a CE mark.
    pub ce_marks: u64,
    /// How often a controller was told of losses or marks.
    pub congestion_events: u64,
    /// PTO expirations.
    pub probe_timeouts: u64,
    /// How often a path turned out not to carry a size that was in use.
    pub black_holes: u64,
}
