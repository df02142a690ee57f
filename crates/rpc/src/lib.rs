//! RPC on DCQUIC.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod executed;
mod metadata;
mod random;
mod status;
pub mod trace;
pub mod wire;

pub use executed::Executed;
pub use metadata::{Metadata, MetadataError};
pub use random::NoRandomness;
pub use status::{Code, Status};
