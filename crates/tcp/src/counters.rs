//! What a connection counts.

use weir_counters::FlowCounters;
use weir_units::ByteSize;

/// What one end of a connection has sent, received and noticed. A burst counts as the segments that
/// it is cut into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments sent, of any kind.
    pub segments_sent: u64,
    /// Segments sent that carry data or FIN, retransmissions included.
    pub data_segments_sent: u64,
    /// Segments that were sent again, probes included.
    pub retransmitted_segments: u64,
    /// Data that was sent again.
    pub retransmitted: ByteSize,
    /// Data that was declared lost, as often as it was.
    pub lost: ByteSize,
    /// Fast recoveries entered (RFC 5681, RFC 6675).
    pub fast_recoveries: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// Tail loss probes (RFC 8985, section 7).
    pub tail_loss_probes: u64,
    /// Recoveries and time-outs that turned out unnecessary (RFC 5682, RFC 4015, RFC 3708).
    pub spurious_recoveries: u64,
    /// Probes of a closed window (RFC 9293, section 3.8.6.1).
    pub window_probes: u64,
    /// Keep-alive probes.
    pub keep_alive_probes: u64,
    /// Pure ACKs sent.
    pub acks_sent: u64,
    /// Segments received, of any kind and also those that were dropped.
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
    /// Windows that were reduced on an ECE echo as far as CWR tells (RFC 3168, section 6.1.2).
    pub cwr_sent: u64,
}

impl Counters {
    /// Those that every transport has. What was delivered is not among them: the connection tells what
    /// it has [`received`](crate::Connection::received).
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
