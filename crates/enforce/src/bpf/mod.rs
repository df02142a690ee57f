//! Congestion controls added to the kernel's TCP: DCTCP and D2TCP, by BPF `struct_ops`.
//!
//! The programs are C, in `/bpf`. The crate's feature `bpf` compiles them in if clang is installed.
//! Without them everything here still builds, and [`Dctcp::register`] reports the missing packages.
//!
//! ```no_run
//! use weir_enforce::bpf::{self, Dctcp, Parameters};
//!
//! let registered = Dctcp::register("weir_dctcp", &Parameters::default())?;
//! // Until it is dropped, any socket can use it: TCP_CONGESTION, or its namespace's default.
//! assert!(bpf::kernel_offers(registered.name())?);
//! # Ok::<(), bpf::BpfError>(())
//! ```
//!
//! A congestion control belongs to the whole machine, not to a network namespace, and its name has to
//! be unused. Both ends of a connection need it, because only its receiver echoes the CE marks
//! exactly. It needs ECN to be negotiated (`net.ipv4.tcp_ecn` 1, or 2 on the listener's side), and
//! falls back to Reno without it.

#[cfg(not(bpf_programs))]
mod absent;
#[cfg(bpf_programs)]
pub(crate) mod clsact;
mod congestion;
mod error;
#[cfg_attr(
    not(bpf_programs),
    allow(dead_code, reason = "only programs tell of flows")
)]
pub(crate) mod flow_key;
#[cfg_attr(
    not(bpf_programs),
    allow(dead_code, reason = "there is nothing to attach")
)]
pub(crate) mod interface;
#[cfg(bpf_programs)]
pub(crate) mod loader;
#[cfg(bpf_programs)]
pub(crate) mod mapped_words;
mod parameters;
mod socket;
mod socket_map;
pub(crate) mod tcx;

#[cfg(not(bpf_programs))]
use absent as loader;

#[cfg(not(bpf_programs))]
pub(crate) use absent::{has_filters, remove_filters};
#[cfg(bpf_programs)]
pub(crate) use clsact::{has_filters, remove_filters};
pub use congestion::{D2tcp, Dctcp, RegisteredAlgorithm, kernel_offers};
pub use error::BpfError;
pub use parameters::Parameters;
pub use socket::{Deadlines, Observation, Observations};
