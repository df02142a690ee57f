//! The payload of flows.

/// What is sent, again and again, and how much is read at a time.
pub(super) static BLOCK: [u8; 64 * 1024] = [0; 64 * 1024];
