//! Super-packets: many segments in one frame (TSO, USO), described by the virtio-net header before the
//! frame.
//!
//! A kernel whose interface offers segmentation hands over up to 64 KB of a flow at once, with one
//! header and partial checksums. A [`SuperFrame`] is such a frame, or an ordinary one, which is a
//! super-packet of one segment. A forwarder reads its segments one by one, as if a network card had
//! cut them, and [`cut`](SuperFrame::cut)s out the ranges that can still be sent together.

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
