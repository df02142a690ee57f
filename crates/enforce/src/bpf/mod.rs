//! Congestion controls that the kernel's TCP gets from us: DCTCP and D2TCP, by BPF `struct_ops`.
//!
//! The programs are C, in `/bpf`; they are compiled into this crate by its feature `bpf` where clang
//! is there. Without them everything here still builds, and [`Dctcp::register`] answers what is
//! missing.
//!
//! ```no_run
//! use weir_enforce::bpf::{self, Dctcp, Parameters};
//!
//! let registered = Dctcp::register("weir_dctcp", &Parameters::default())?;
//! // Until it is dropped, any socket can have it: TCP_CONGESTION, or its namespace's default.
//! assert!(bpf::kernel_offers(registered.name())?);
//! # Ok::<(), bpf::BpfError>(())
//! ```
//!
//! A congestion control is the whole machine's, not a network namespace's, and its name has to be
//! free. Both ends of a connection need it: the receiver echoes the marks exactly only with it. It
//! needs ECN to be negotiated (`net.ipv4.tcp_ecn` 1, or 2 on the side that listens) and is Reno
//! where it is not.

#[cfg(not(bpf_programs))]
mod absent;
mod congestion;
mod error;
#[cfg(bpf_programs)]
pub(crate) mod loader;
mod parameters;
mod socket;
mod socket_map;

#[cfg(not(bpf_programs))]
use absent as loader;

pub use congestion::{D2tcp, Dctcp, RegisteredAlgorithm, kernel_offers};
pub use error::BpfError;
pub use parameters::Parameters;
pub use socket::{Deadlines, Observation, Observations};
