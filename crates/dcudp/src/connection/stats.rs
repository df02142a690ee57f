//! What an onlooker may know.

use weir_congestion::Snapshot;
use weir_counters::FlowCounters;
use weir_units::{ByteSize, Duration, Rate};

use super::Connection;
use crate::error::ConnectionError;
use crate::mode::Mode;

/// What has been counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) datagrams_sent: u64,
    pub(super) datagrams_received: u64,
    pub(super) data_sent: u64,
    pub(super) data_received: u64,
    pub(super) payload_sent: u64,
    pub(super) duplicates: u64,
    pub(super) marked: u64,
    pub(super) acks_sent: u64,
    pub(super) acks_received: u64,
    pub(super) naks_sent: u64,
    pub(super) naks_received: u64,
    pub(super) requests_sent: u64,
    pub(super) malformed: u64,
    pub(super) unauthentic: u64,
    pub(super) foreign: u64,
    pub(super) early: u64,
    pub(super) error: Option<ConnectionError>,
}

/// A connection as it is now, and what it has counted since it began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConnectionStats {
    /// The sender's mode.
    pub mode: Mode,
    /// How often it has changed.
    pub mode_switches: u64,
    /// The rate at which data packets leave, in UDP payload.
    pub rate: Rate,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// The smallest round-trip time seen.
    pub min_rtt: Duration,
    /// UDP payload on the way, as far as is known.
    pub in_flight: ByteSize,
    /// Payload that is kept until it is acknowledged, or has not been sent.
    pub unacknowledged: ByteSize,
    /// The congestion control's name.
    pub algorithm: &'static str,
    /// What the congestion controller shows of itself.
    pub controller: Snapshot,
    /// The largest UDP payload.
    pub packet_size: ByteSize,
    /// Datagrams of all kinds sent.
    pub datagrams_sent: u64,
    /// Datagrams of the peer's that came.
    pub datagrams_received: u64,
    /// Data packets sent, retransmissions included.
    pub data_packets_sent: u64,
    /// What every transport counts. What was delivered is not among it: the application receives it.
    /// Marks are those of our packets, by the peer's account.
    pub flow: FlowCounters,
    /// Payload sent, retransmissions included.
    pub payload_sent: ByteSize,
    /// Data packets that came, copies included.
    pub data_packets_received: u64,
    /// Those that had come before.
    pub duplicates: u64,
    /// Those that came with a CE mark.
    pub ce_marked: u64,
    /// ACK packets sent.
    pub acks_sent: u64,
    /// ACK packets that came.
    pub acks_received: u64,
    /// NAK packets sent.
    pub naks_sent: u64,
    /// NAK packets that came.
    pub naks_received: u64,
    /// Keep-alive packets that asked for one.
    pub requests_sent: u64,
    /// Packets that could not be read.
    pub malformed: u64,
    /// Packets that were not sealed or signed by the peer.
    pub unauthentic: u64,
    /// Datagrams from another address than the peer's.
    pub foreign: u64,
    /// Packets for another connection, or before this one had begun.
    pub early: u64,
}

impl Connection {
    /// What an onlooker may know.
    pub fn stats(&self) -> ConnectionStats {
        let (counters, sender) = (&self.counters, &self.sender);
        ConnectionStats {
            mode: sender.mode,
            mode_switches: sender.switches,
            rate: sender.rate(&self.rtt),
            smoothed_rtt: self.rtt.smoothed,
            min_rtt: self.rtt.idle(),
            in_flight: sender.buffer.in_flight,
            unacknowledged: ByteSize::from_bytes(sender.buffer.unacknowledged() as u64),
            algorithm: sender.controller().name(),
            controller: sender.controller().snapshot(),
            packet_size: self.packet_size,
            datagrams_sent: counters.datagrams_sent,
            datagrams_received: counters.datagrams_received,
            data_packets_sent: counters.data_sent,
            flow: sender.counters,
            payload_sent: ByteSize::from_bytes(counters.payload_sent),
            data_packets_received: counters.data_received,
            duplicates: counters.duplicates,
            ce_marked: counters.marked,
            acks_sent: counters.acks_sent,
            acks_received: counters.acks_received,
            naks_sent: counters.naks_sent,
            naks_received: counters.naks_received,
            requests_sent: counters.requests_sent,
            malformed: counters.malformed,
            unauthentic: counters.unauthentic,
            foreign: counters.foreign,
            early: counters.early,
        }
    }

    /// Why the connection is over, where it is and not in order.
    pub fn error(&self) -> Option<ConnectionError> {
        self.counters.error
    }
}
