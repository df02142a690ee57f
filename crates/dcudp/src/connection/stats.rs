//! The statistics of a connection.

use weir_congestion::Snapshot;
use weir_counters::FlowCounters;
use weir_units::{ByteSize, Duration, Rate};

use super::Connection;
use crate::error::ConnectionError;
use crate::mode::Mode;

/// The counters of a connection.
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

/// The current state of a connection, and its counters since the start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConnectionStats {
    /// The sender's mode.
    pub mode: Mode,
    /// Number of mode switches.
    pub mode_switches: u64,
    /// The sending rate of data packets, in UDP payload.
    pub rate: Rate,
    /// The smoothed RTT.
    pub smoothed_rtt: Duration,
    /// The minimum RTT.
    pub min_rtt: Duration,
    /// UDP payload in flight, as far as known.
    pub in_flight: ByteSize,
    /// Payload in the send buffer: not acknowledged or not sent.
    pub unacknowledged: ByteSize,
    /// The name of the congestion control algorithm.
    pub algorithm: &'static str,
    /// The state of the congestion controller.
    pub controller: Snapshot,
    /// The largest UDP payload.
    pub packet_size: ByteSize,
    /// Datagrams of all kinds sent.
    pub datagrams_sent: u64,
    /// Datagrams received from the peer.
    pub datagrams_received: u64,
    /// Data packets sent, retransmissions included.
    pub data_packets_sent: u64,
    /// The counters that all transports have. Delivered data is not included: the application
    /// receives it. Marks are those of our packets, as reported by the peer.
    pub flow: FlowCounters,
    /// Payload sent, retransmissions included.
    pub payload_sent: ByteSize,
    /// Data packets received, duplicates included.
    pub data_packets_received: u64,
    /// Duplicate data packets received.
    pub duplicates: u64,
    /// The interarrival jitter of data packets received (RFC 3550, section 6.4.1).
    pub jitter: Duration,
    /// Data packets received with a CE mark.
    pub ce_marked: u64,
    /// ACK packets sent.
    pub acks_sent: u64,
    /// ACK packets received.
    pub acks_received: u64,
    /// NAK packets sent.
    pub naks_sent: u64,
    /// NAK packets received.
    pub naks_received: u64,
    /// Keep-alive requests sent.
    pub requests_sent: u64,
    /// Packets that could not be decoded.
    pub malformed: u64,
    /// Packets that failed authentication.
    pub unauthentic: u64,
    /// Datagrams from an address other than the peer's.
    pub foreign: u64,
    /// Packets for another connection, or before this one was established.
    pub early: u64,
}

impl Connection {
    /// Returns the statistics.
    pub fn stats(&self) -> ConnectionStats {
        let (counters, sender) = (&self.counters, &self.sender);
        ConnectionStats {
            mode: sender.mode,
            mode_switches: sender.switches,
            rate: sender.rate(&self.rtt),
            smoothed_rtt: self.rtt.smoothed,
            min_rtt: self.rtt.idle(),
            in_flight: sender.in_flight(),
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
            jitter: self.receiver.jitter.value(),
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

    /// Returns the error that ended the connection; `None` while it is open or after an orderly
    /// close.
    pub fn error(&self) -> Option<ConnectionError> {
        self.counters.error
    }
}
