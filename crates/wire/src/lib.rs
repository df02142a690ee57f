//! What packet headers say: the ECN codepoint of IP, the fields of TCP, the flow that a packet belongs to.

mod ecn;
mod flow;
pub mod tcp;

pub use ecn::Ecn;
pub use flow::FlowKey;
