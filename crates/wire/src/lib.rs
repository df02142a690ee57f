//! What packet headers say: the ECN codepoint of IP, the fields of TCP.

mod ecn;
pub mod tcp;

pub use ecn::Ecn;
