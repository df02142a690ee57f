//! Packet headers: the fields of IP with its ECN codepoint, those of TCP, the flow key of a packet,
//! the checksums over them, and the few rewrites that Weir makes. A [`Transmit`] is the batch that
//! a transport's engine passes to a socket, with [`BatchContents`].

mod checksum;
mod ecn;
mod flow;
pub mod ip;
pub mod tcp;
mod transmit;

pub use checksum::Checksum;
pub use ecn::Ecn;
pub use flow::FlowKey;
pub use transmit::{BatchContents, Transmit};
