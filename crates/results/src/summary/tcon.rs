//! Counters of a switch with transparent congestion control.

use std::fmt;

use serde::{Deserialize, Serialize};
use weir_units::ByteSize;

use crate::serialized::bytes;

/// The counters of a switch with transparent congestion control, from the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TconSummary {
    /// Controlled flows, one for each direction of a connection.
    pub flows: u64,
    /// Lost segments that the switch retransmitted.
    pub masked_losses: u64,
    /// Retransmission time-outs of the switch.
    pub timeouts: u64,
    /// ACKs whose window the switch lowered.
    pub lowered_windows: u64,
    /// ACKs that the switch withheld from the senders.
    pub withheld_acks: u64,
    /// ACKs with an ECN echo that the switch withheld from the senders.
    pub echoes: u64,
    /// Segments that senders retransmitted although the switch had a copy.
    pub repeated: u64,
    /// Segments that the switch could not buffer.
    pub unkept: u64,
    /// Segments of connections whose SYN the switch did not see, or whose state it had to discard.
    pub unknown: u64,
    /// The maximum number of packets buffered at a time.
    pub kept_max_packets: u64,
    /// The maximum of the sum of their IP lengths.
    #[serde(with = "bytes")]
    pub kept_max_bytes: ByteSize,
}

impl fmt::Display for TconSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            flows,
            masked_losses,
            timeouts,
            lowered_windows,
            withheld_acks,
            echoes,
            repeated,
            unkept,
            kept_max_packets,
            kept_max_bytes,
            ..
        } = self;
        write!(
            f,
            "{flows} flows, {masked_losses} losses mended, {timeouts} time-outs, {lowered_windows} \
             windows lowered, {withheld_acks} ACKs withheld, {echoes} echoes hidden, {repeated} sent \
             again by senders, {unkept} not kept; at most {kept_max_packets} packets ({kept_max_bytes}) \
             kept"
        )
    }
}
