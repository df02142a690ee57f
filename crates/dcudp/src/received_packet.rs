//! A data packet on the receiver's side.

use bytes::Bytes;

use crate::packet::MessagePosition;

/// A received data packet.
#[derive(Debug)]
pub(crate) struct ReceivedPacket {
    pub(crate) payload: Bytes,
    pub(crate) position: MessagePosition,
    pub(crate) in_order: bool,
    /// The message count.
    pub(crate) message: u64,
    /// Whether it has been read out of order.
    pub(crate) taken: bool,
}
