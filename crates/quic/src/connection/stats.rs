//! Statistics of a connection.

use std::net::SocketAddr;

use weir_congestion::Snapshot;
use weir_counters::FlowCounters;
use weir_units::{ByteSize, Duration, Rate, Time};

use super::datagrams::DatagramStats;
use crate::PathId;
use crate::observe::Totals;
use crate::path::{MtuPhase, Path};

/// Statistics of a connection so far.
#[derive(Clone, Debug)]
pub struct ConnectionStats {
    /// How long the handshake took; `None` while it is not complete.
    pub handshake: Option<Duration>,
    /// Dropped packets: duplicates, not authentic, without keys, or for another connection.
    pub packets_dropped: u64,
    /// Streams that are open.
    pub open_streams: usize,
    /// PTO expirations.
    pub probe_timeouts: u64,
    /// Key updates, started by either side.
    pub key_updates: u64,
    /// Statistics of datagrams.
    pub datagrams: DatagramStats,
    /// ACK_FREQUENCY frames from the peer that changed how its packets are acknowledged.
    pub ack_requests: u64,
    /// Packets sent that carry nothing but an acknowledgment.
    pub ack_packets_sent: u64,
    /// Sums over current and closed paths.
    pub totals: Totals,
    /// The paths, the one in use first.
    pub paths: Vec<PathSnapshot>,
}

impl ConnectionStats {
    /// Returns the counters that every transport keeps. Delivered bytes are not included: the
    /// application reads them from streams. CE marks are those that the peer reported for our
    /// packets.
    pub fn flow_counters(&self) -> FlowCounters {
        FlowCounters {
            retransmits: self.totals.packets_lost,
            retransmitted: self.totals.bytes_retransmitted,
            timeouts: self.probe_timeouts,
            marks: self.totals.ce_marks,
            ..FlowCounters::ZERO
        }
    }
}

/// A snapshot of a path.
#[derive(Clone, Debug)]
pub struct PathSnapshot {
    /// Its ID.
    pub id: PathId,
    /// Our address, where it is known.
    pub local: Option<SocketAddr>,
    /// Whether the peer has been reached over it.
    pub validated: bool,
    /// The peer's address.
    pub remote: SocketAddr,
    /// The largest UDP payload sent.
    pub mtu: ByteSize,
    /// The largest UDP payload that MTU discovery or the configured size allows on the path; a
    /// [`PacketSizePolicy`](crate::PacketSizePolicy) may choose a smaller one.
    pub carried: ByteSize,
    /// The upper bound of MTU discovery, set by the peer and our configuration.
    pub mtu_limit: ByteSize,
    /// The phase of MTU discovery on the path.
    pub mtu_phase: MtuPhase,
    /// MTU probes sent.
    pub mtu_probes_sent: u64,
    /// MTU probes lost.
    pub mtu_probes_lost: u64,
    /// Black holes: how often the path stopped carrying a size in use.
    pub black_holes: u64,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// Its mean deviation.
    pub rtt_variation: Duration,
    /// The smallest round-trip time seen.
    pub min_rtt: Duration,
    /// The latest sample.
    pub latest_rtt: Duration,
    /// The congestion window.
    pub window: ByteSize,
    /// Bytes in flight.
    pub in_flight: ByteSize,
    /// The pacing rate, where the algorithm sets one.
    pub pacing_rate: Option<Rate>,
    /// The congestion control algorithm's name.
    pub algorithm: &'static str,
    /// A snapshot of the algorithm's state.
    pub controller: Snapshot,
    /// Whether packets are sent with ECT(0).
    pub ecn: bool,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Packets declared lost, spurious losses included.
    pub packets_lost: u64,
    /// Packets acknowledged after they had been declared lost.
    pub spurious_losses: u64,
    /// UDP payload sent.
    pub bytes_sent: ByteSize,
    /// UDP payload received.
    pub bytes_received: ByteSize,
    /// UDP payload declared lost.
    pub bytes_lost: ByteSize,
    /// Packets of ours that arrived with a CE mark.
    pub ce_marks: u64,
    /// Congestion events (losses or marks) passed to the controller.
    pub congestion_events: u64,
    /// PTO expirations on the path.
    pub probe_timeouts: u64,
}

impl PathSnapshot {
    pub(super) fn of(path: &Path) -> Self {
        let stats = &path.stats;
        Self {
            id: path.id,
            local: path.local,
            validated: path.validated,
            remote: path.remote,
            mtu: ByteSize::from_bytes(path.mtu as u64),
            carried: ByteSize::from_bytes(path.discovery.current as u64),
            mtu_limit: ByteSize::from_bytes(path.discovery.limit() as u64),
            mtu_phase: path.discovery.phase,
            mtu_probes_sent: path.discovery.stats.probes_sent,
            mtu_probes_lost: path.discovery.stats.probes_lost,
            black_holes: path.discovery.stats.black_holes,
            smoothed_rtt: path.rtt.smoothed,
            rtt_variation: path.rtt.variation,
            min_rtt: path.rtt.min,
            latest_rtt: path.rtt.latest,
            window: path.window(),
            in_flight: ByteSize::from_bytes(path.in_flight),
            pacing_rate: path.controller.pacing_rate(),
            algorithm: path.controller.name(),
            controller: path.controller.snapshot(),
            ecn: path.ecn.is_in_use(),
            packets_sent: stats.packets_sent,
            packets_received: stats.packets_received,
            packets_lost: stats.packets_lost,
            spurious_losses: stats.spurious_losses,
            bytes_sent: ByteSize::from_bytes(path.sent),
            bytes_received: ByteSize::from_bytes(path.received),
            bytes_lost: ByteSize::from_bytes(stats.bytes_lost),
            ce_marks: stats.ce_marks,
            congestion_events: stats.congestion_events,
            probe_timeouts: stats.probe_timeouts,
        }
    }
}

/// The running counts.
#[derive(Debug)]
pub(super) struct Counters {
    pub(super) started: Time,
    pub(super) handshake: Option<Duration>,
    pub(super) packets_dropped: u64,
    pub(super) packets_not_authentic: u64,
    pub(super) probe_timeouts: u64,
    pub(super) ack_requests: u64,
    pub(super) ack_packets_sent: u64,
    /// Bytes of stream and handshake data that had to be sent again.
    pub(super) retransmitted: u64,
    /// Counters of closed paths.
    pub(super) left: Totals,
    /// Whether an authentic packet has arrived.
    pub(super) authenticated: bool,
}

impl Counters {
    pub(super) fn new(started: Time) -> Self {
        Self {
            started,
            handshake: None,
            packets_dropped: 0,
            packets_not_authentic: 0,
            probe_timeouts: 0,
            ack_requests: 0,
            ack_packets_sent: 0,
            retransmitted: 0,
            left: Totals::default(),
            authenticated: false,
        }
    }
}
