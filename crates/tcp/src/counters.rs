//! The counters of a connection.

use weir_counters::FlowCounters;
use weir_units::ByteSize;

/// The counters of one end of a connection. A burst counts as the segments into which it is split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments sent, of any kind.
    pub segments_sent: u64,
    /// Segments sent that carry data or FIN, retransmissions included.
    pub data_segments_sent: u64,
    /// Segments retransmitted, probes included.
    pub retransmitted_segments: u64,
    /// Data retransmitted.
    pub retransmitted: ByteSize,
    /// Data declared lost, counted once per declaration.
    pub lost: ByteSize,
    /// Fast recoveries entered (RFC 5681, RFC 6675).
    pub fast_recoveries: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Tail loss probes (RFC 8985, section 7).
    pub tail_loss_probes: u64,
    /// Recoveries and timeouts that turned out spurious (RFC 5682, RFC 4015, RFC 3708).
    pub spurious_recoveries: u64,
    /// Probes of a closed window (RFC 9293, section 3.8.6.1).
    pub window_probes: u64,
    /// Keep-alive probes.
    pub keep_alive_probes: u64,
    /// Pure ACKs sent.
    pub acks_sent: u64,
    /// Segments received, of any kind, including dropped ones.
    pub segments_received: u64,
    /// Segments received that were not acceptable (RFC 9293, section 3.10.7.4).
    pub unacceptable_segments: u64,
    /// Data segments received that had arrived before, wholly or in part.
    pub duplicate_segments: u64,
    /// Data segments received out of order.
    pub out_of_order_segments: u64,
    /// Data segments received with a CE mark.
    pub ce_received: u64,
    /// ACKs received with ECE.
    pub ece_received: u64,
    /// Data newly acknowledged by ACKs with ECE.
    pub ece_acknowledged: ByteSize,
    /// Window reductions on an ECE echo, counted as CWR flags sent (RFC 3168, section 6.1.2).
    pub cwr_sent: u64,
}

impl Counters {
    /// Returns the counters that all transports have. Delivered data is not included: see
    /// [`received`](crate::Connection::received).
    pub fn flow_counters(&self) -> FlowCounters {
        FlowCounters {
            retransmits: self.retransmitted_segments,
            retransmitted: self.retransmitted,
            timeouts: self.timeouts,
            marks: self.ce_received,
            ..FlowCounters::ZERO
        }
    }
}
