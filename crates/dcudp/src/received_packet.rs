//! A data packet on the receiver's side.

use bytes::Bytes;

use crate::packet::MessagePosition;

/// A data packet that has come.
#[derive(Debug)]
pub(crate) struct ReceivedPacket {
    pub(crate) payload: Bytes,
    pub(crate) position: MessagePosition,
    pub(crate) in_order: bool,
    /// Which message, counted.
    pub(crate) message: u64,
    /// Whether it has been read ahead of its turn.
    pub(crate) taken: bool,
}
