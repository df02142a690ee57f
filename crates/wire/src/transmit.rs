//! The batch that an engine passes to a socket.

use std::io::IoSlice;
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

/// The contents of a batch: its datagrams one after the other.
#[derive(Debug)]
pub enum BatchContents<'b> {
    /// In one place.
    Whole(&'b [u8]),
    /// In several, in this order. Parts need not end where datagrams do.
    Parts(Vec<IoSlice<'b>>),
}

impl BatchContents<'_> {
    /// Copies the contents to one place.
    pub fn to_vec(&self) -> Vec<u8> {
        match self {
            Self::Whole(bytes) => bytes.to_vec(),
            Self::Parts(parts) => parts.iter().flat_map(|part| part.iter().copied()).collect(),
        }
    }
}
