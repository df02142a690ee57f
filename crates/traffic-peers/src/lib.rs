//! The QUIC stacks that Weir is compared with, and the floor: the minimal cost of the same transfer.
//!
//! quinn and s2n-quic are [`Transport`](weir_traffic::transport::Transport)s with a
//! [`Preset`](weir_traffic::calls::preset::Preset) each. quiche and the floor are state machines that
//! own their sockets and run in their own loops, as a
//! [`Driver`](weir_traffic::calls::driver::Driver) each. `make bench` runs the program `weir-peers all`,
//! which measures them beside the transports of `weir_traffic`.
//!
//! The stacks have their own crate, so that the rest of the workspace builds without them.

pub mod floor;
pub mod quiche;
pub mod quinn;
pub mod s2n;
mod settings;
mod udp;

pub use udp::{Batch, Udp};

use weir_traffic::calls::{Drivers, standard_drivers};

/// Returns all drivers that can be measured.
#[must_use]
pub fn drivers() -> Drivers {
    standard_drivers()
        .with(quinn::Quinn)
        .with(quiche::Quiche)
        .with(s2n::S2n)
        .with(floor::Floor)
}
