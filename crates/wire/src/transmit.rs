//! What an engine hands to a socket.

use std::net::SocketAddr;

use crate::Ecn;

/// A batch of datagrams to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Where to.
    pub remote: SocketAddr,
    /// From which of our addresses, where that is known: the one that the peer was told of, or
    /// that it sent to.
    pub local: Option<SocketAddr>,
    /// The ECN codepoint of all of them.
    pub ecn: Ecn,
    /// Bytes in all.
    pub size: usize,
    /// The size of each datagram but the last, where there are several.
    pub segment_size: Option<usize>,
}
