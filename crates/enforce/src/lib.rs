//! Weir on real interfaces. [`port`]s receive and send frames, with the super-packets of segmentation
//! [`offload`]. Their [`segment`]s are packets that a switch and its elements handle one by one.
//! [`inline`] puts an element between two ports, with a [`bypass`] for when its process is dead. [`bpf`] adds congestion controls to the kernel's TCP.
//! [`ebpf`] controls the congestion of all TCP flows that leave by this machine's interfaces, and [`cgroup`]
//! chooses the kernel's own congestion control for the sockets of a control group.
//! [`redirect`] leads a control group's connections to a listener of this process.
//! [`operation`] is the operator's interface to the enforcers of [`ebpf`], [`inline`] and [`cgroup`].
//!
//! ```no_run
//! use weir_enforce::offload::SuperFrame;
//! use weir_enforce::port::Tap;
//!
//! // In the network namespace of the calling thread.
//! let tap = Tap::create("eth0")?;
//! let mut frame = SuperFrame::with_capacity(SuperFrame::LARGEST);
//! while let Some(length) = tap.receive(frame.buffer_mut())? {
//!     if frame.parse(length).is_err() {
//!         continue;
//!     }
// Marks every other segment of a burst and sends it back, one by one.
//!     for index in (0..frame.segments()).step_by(2) {
//!         let segment = frame.cut(index..index + 1, weir_wire::Ecn::Ce, [2, 0, 0, 0, 0, 1]);
//!         tap.send(&segment.slices())?;
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod bpf;
pub mod bypass;
pub mod cgroup;
mod claim;
pub mod ebpf;
pub mod inline;
mod mounts;
mod namespace;
pub mod offload;
pub mod operation;
pub mod port;
pub mod redirect;
pub mod segment;

pub use claim::ClaimError;
