//! The batch that an engine passes to a socket.

use std::net::SocketAddr;

use crate::Ecn;

/// A batch of datagrams to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The destination.
    pub remote: SocketAddr,
    /// The source address, where that is known: the one that the peer knows, or that it sent to.
    pub local: Option<SocketAddr>,
    /// The ECN codepoint of all datagrams.
    pub ecn: Ecn,
    /// Total bytes.
    pub size: usize,
    /// The size of each datagram but the last, where there are several.
    pub segment_size: Option<usize>,
}
