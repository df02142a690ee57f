//! Super-packets: many segments that travel as one frame (TSO, USO), as the virtio-net header before the
//! frame describes them.
//!
//! A kernel whose interface promises to segment hands over up to 64 KB of a flow at once, with one
//! header and unfinished checksums. A [`SuperFrame`] is such a frame, or an ordinary one, which is a
//! super-packet of one segment. Whoever forwards it looks at its segments one by one, as if a network
//! card had cut them, and [`cut`](SuperFrame::cut)s out the ranges that may still travel together.

mod cut;
mod frame;
mod vlan;
mod vnet;

#[cfg(test)]
pub(crate) mod tests;

pub use cut::{CutFrame, HeaderChanges};
pub use frame::{FrameError, MacAddress, SuperFrame};
pub use vlan::VlanTag;
pub use vnet::{Gso, GsoKind, PartialChecksum, VnetError, VnetHeader};
