//! Congestion control for the TCP flows that leave by this machine's interfaces, whoever sends them:
//! processes here, or guests behind a bridge.
//!
//! Programs in the kernel (`/bpf/enforce.bpf.c`) follow each connection from its SYN, report what they
//! see at a bounded rate, and lower the receive windows of the acknowledgments that come in. An
//! [`Enforcer`] hands what they tell to [`weir_tcon::ObservedFlows`], which decides by a policy, and writes
//! the windows into memory that it shares with the programs.
//!
//! Nothing is pinned, and a window that has not been written anew for [`weir_tcon::HOLD`] holds no longer:
//! when the process ends, is killed or hangs, TCP goes on by its own congestion control.
//!
//! ```no_run
//! use weir_enforce::ebpf::{Enforcer, Options, Plane};
//! use weir_enforce::operation::Enforce as _;
//!
//! let policy = weir_scenario::load_policy("policy.toml".as_ref())?;
//! let plane = Plane::attach(&["eth0".to_owned()], &Options::default())?;
//! let mut enforcer = Enforcer::new(plane, policy, &Options::default());
//! loop {
//!     enforcer.step()?;
//! }
//! # #[allow(unreachable_code)]
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(not(bpf_programs))]
mod absent;
#[cfg(bpf_programs)]
mod attachment;
#[cfg(bpf_programs)]
mod caps;
mod enforcer;
#[cfg_attr(
    not(bpf_programs),
    allow(dead_code, reason = "only programs tell of anything")
)]
mod event;
#[cfg_attr(
    not(bpf_programs),
    allow(dead_code, reason = "there is nothing to attach")
)]
mod interface;
#[cfg(bpf_programs)]
mod plane;
#[cfg(bpf_programs)]
#[cfg(test)]
mod tests;

#[cfg(not(bpf_programs))]
pub use absent::Plane;
pub use enforcer::{Enforcer, NoSuchFlow};
#[cfg(bpf_programs)]
pub use plane::DataPlane;

/// Which of the kernel's hooks the programs are put at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hook {
    /// tcx where the kernel has it (Linux 6.6), else clsact.
    #[default]
    Automatic,
    /// tcx: the kernel removes the programs with the process, however it ends.
    Tcx,
    /// clsact: the programs of a process that is killed stay until the next one takes their place, and
    /// do nothing.
    Clsact,
}

/// What can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many connections may be controlled at a time; others pass.
    pub flows: u32,
    /// How many connections may be opening at a time; about the oldest go first.
    pub half_open: u32,
    /// How many reports of flows the kernel makes in a second.
    pub reports_per_second: u32,
    /// Where the programs are put.
    pub hook: Hook,
}

impl Default for Options {
    /// 65,536 flows, 16,384 half-open connections and 20,000 reports.
    fn default() -> Self {
        Self {
            flows: 65_536,
            half_open: 16_384,
            reports_per_second: 20_000,
            hook: Hook::Automatic,
        }
    }
}
