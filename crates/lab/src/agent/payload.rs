//! The payload of flows.

/// The block that is sent repeatedly, and the size of one read.
pub(super) static BLOCK: [u8; 64 * 1024] = [0; 64 * 1024];
