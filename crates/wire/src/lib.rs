//! What packet headers say: the ECN codepoint of IP, the fields of TCP, the flow that a packet belongs
//! to; and the checksums over them.

mod checksum;
mod ecn;
mod flow;
pub mod tcp;

pub use checksum::Checksum;
pub use ecn::Ecn;
pub use flow::FlowKey;
