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

/// The counters as a connection keeps them: those that count every segment beside its state, and the others
/// apart, from their first event on.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoredCounters {
    pub(crate) segments_received: u64,
    pub(crate) acks_sent: u64,
    pub(crate) ce_received: u64,
    pub(crate) ece_received: u64,
    /// Segments sent without data that are no pure ACKs.
    pub(crate) other_segments_sent: u64,
    /// All other counts.
    rare: Option<Box<RareCounters>>,
}

/// The counters of losses and of what is rarer: small, as after a burst all flows may have them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RareCounters {
    pub(crate) retransmitted_segments: u64,
    pub(crate) retransmitted: ByteSize,
    pub(crate) lost: ByteSize,
    pub(crate) duplicate_segments: u64,
    pub(crate) out_of_order_segments: u64,
    pub(crate) fast_recoveries: u32,
    pub(crate) timeouts: u32,
    pub(crate) tail_loss_probes: u32,
    pub(crate) spurious_recoveries: u32,
    pub(crate) window_probes: u32,
    pub(crate) keep_alive_probes: u32,
    pub(crate) unacceptable_segments: u32,
}

/// The counters of the sending half, which lie beside its state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SentCounters {
    pub(crate) data_segments: u64,
    pub(crate) ece_acknowledged: ByteSize,
    pub(crate) cwr: u64,
}

impl StoredCounters {
    /// Returns the counters of rare events, to change them.
    pub(crate) fn rare(&mut self) -> &mut RareCounters {
        self.rare.get_or_insert_default()
    }

    /// Returns the address of the first counter of rare events that all transports have.
    pub(crate) fn rare_address(&self) -> *const u8 {
        let rare = self.rare.as_deref();
        rare.map_or(std::ptr::null(), |rare| {
            std::ptr::from_ref(&rare.retransmitted_segments).cast()
        })
    }

    /// Returns the counters that all transports have, without delivered data.
    pub(crate) fn flow_counters(&self) -> FlowCounters {
        let rare = self.rare.as_deref();
        FlowCounters {
            retransmits: rare.map_or(0, |rare| rare.retransmitted_segments),
            retransmitted: rare.map_or(ByteSize::ZERO, |rare| rare.retransmitted),
            timeouts: rare.map_or(0, |rare| u64::from(rare.timeouts)),
            marks: self.ce_received,
            ..FlowCounters::ZERO
        }
    }

    /// Returns all counters, with those of the sending half.
    pub(crate) fn total(&self, sent: &SentCounters) -> Counters {
        let rare = self.rare.as_deref().copied().unwrap_or_default();
        Counters {
            segments_sent: sent.data_segments + self.acks_sent + self.other_segments_sent,
            data_segments_sent: sent.data_segments,
            acks_sent: self.acks_sent,
            segments_received: self.segments_received,
            ce_received: self.ce_received,
            ece_received: self.ece_received,
            ece_acknowledged: sent.ece_acknowledged,
            cwr_sent: sent.cwr,
            retransmitted_segments: rare.retransmitted_segments,
            retransmitted: rare.retransmitted,
            lost: rare.lost,
            duplicate_segments: rare.duplicate_segments,
            out_of_order_segments: rare.out_of_order_segments,
            fast_recoveries: rare.fast_recoveries.into(),
            timeouts: rare.timeouts.into(),
            tail_loss_probes: rare.tail_loss_probes.into(),
            spurious_recoveries: rare.spurious_recoveries.into(),
            window_probes: rare.window_probes.into(),
            keep_alive_probes: rare.keep_alive_probes.into(),
            unacceptable_segments: rare.unacceptable_segments.into(),
        }
    }
}
