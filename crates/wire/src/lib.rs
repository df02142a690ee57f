//! What packet headers say: the fields of IP with its ECN codepoint, those of TCP, the flow that a packet
//! belongs to; the checksums over them, and the few rewrites that we make. A [`Transmit`] is what a transport's
//! engine hands to a socket.

mod checksum;
mod ecn;
mod flow;
pub mod ip;
pub mod tcp;
mod transmit;

pub use checksum::Checksum;
pub use ecn::Ecn;
pub use flow::FlowKey;
pub use transmit::Transmit;
