//! What packet headers say. Today: the ECN codepoint of the IP header.

mod ecn;

pub use ecn::Ecn;
