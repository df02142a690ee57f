//! The kernel's TCP: what a scenario may ask of it, and its sockets.

mod options;
pub(super) mod socket;

pub use options::{Unsupported, kernel_name, unsupported};
