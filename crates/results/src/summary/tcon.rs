//! What a switch with transparent congestion control did.

use std::fmt;

use serde::{Deserialize, Serialize};
use weir_units::ByteSize;

use crate::serialized::bytes;

/// What a switch with transparent congestion control did, from the beginning of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TconSummary {
    /// Flows that it controlled: one for each way of a connection.
    pub flows: u64,
    /// Segments that were lost and that it sent again.
    pub masked_losses: u64,
    /// Its retransmission time-outs.
    pub timeouts: u64,
    /// Acknowledgments whose window it lowered.
    pub lowered_windows: u64,
    /// Acknowledgments that it kept from the senders.
    pub withheld_acks: u64,
    /// Acknowledgments with an ECN echo that it kept from the senders.
    pub echoes: u64,
    /// Segments that senders sent again although it had them.
    pub repeated: u64,
    /// Segments that it could not keep.
    pub unkept: u64,
    /// Segments of connections whose SYN it had not seen, or had to forget.
    pub unknown: u64,
    /// The most packets that it kept at a time.
    pub kept_max_packets: u64,
    /// Their IP lengths, summed.
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
