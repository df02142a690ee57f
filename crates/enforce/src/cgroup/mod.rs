//! The kernel's own congestion control, chosen by policy for each socket of a control group.
//!
//! Programs (`/bpf/cgroup.bpf.c`) run when a connection of the control group is established, find the first
//! rule that matches, and set what it says in the socket: its congestion control (the kernel's, or Weir's
//! programs of DCTCP and D2TCP), its initial and its largest window, its rate, times and DSCP. An iterator
//! does the same to sockets that are open. No packet is touched.
//!
//! What a socket had before is kept with it. It gets that back when the [`Enforcer`] is dropped; when its
//! process is killed, from a guardian process (see [`guard`]); and when that is killed too, from the next
//! enforcer or [`clean`].
//!
//! ```no_run
//! use weir_enforce::cgroup::{Enforcer, Options};
//! use weir_enforce::operation::Enforce as _;
//!
//! let policy = weir_scenario::load_policy("policy.toml".as_ref())?;
//! let mut enforcer = Enforcer::attach("/web".as_ref(), policy, Options::default())?;
//! loop {
//!     enforcer.step()?;
//! }
//! # #[allow(unreachable_code)]
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(not(bpf_programs))]
mod absent;
mod algorithm;
mod check;
mod counts;
mod enforcer;
mod error;
pub(crate) mod group;
mod guardian;
mod leftover;
mod pins;
#[cfg(bpf_programs)]
mod programs;
mod record;
mod registered;
mod rules;
mod slots;
mod user;

#[cfg(not(bpf_programs))]
use absent as programs;

pub use check::RuleCheck;
pub use enforcer::{Enforcer, Options};
pub use error::CgroupError;
pub use guardian::{GuardianCommand, guard};
pub use leftover::{CleanedSockets, clean};
