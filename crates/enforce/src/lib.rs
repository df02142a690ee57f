//! Real interfaces: [`port`]s that frames come in and go out by, and the super-packets that segmentation
//! [`offload`] hands through them; their [`segment`]s as packets that a switch and its elements treat one by
//! one; an element between two ports, [`inline`]; congestion controls for the kernel's TCP, by [`bpf`];
//! congestion control for whatever TCP sends through this machine's interfaces, by [`ebpf`]; and what an
//! operator has of the latter and of the former as a command, in [`operation`].
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
//!     // Every other segment of a burst is marked and sent back, one by one.
//!     for index in (0..frame.segments()).step_by(2) {
//!         let segment = frame.cut(index..index + 1, weir_wire::Ecn::Ce, [2, 0, 0, 0, 0, 1]);
//!         tap.send(&segment.slices())?;
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod bpf;
pub mod ebpf;
pub mod inline;
pub mod offload;
pub mod operation;
pub mod port;
pub mod segment;
