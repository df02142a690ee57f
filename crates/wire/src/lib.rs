//! What packet headers say: the ECN codepoint of IP, the fields of TCP; and the checksums over them.

mod checksum;
mod ecn;
pub mod tcp;

pub use checksum::Checksum;
pub use ecn::Ecn;
