//! Congestion control for all TCP flows that leave by this machine's interfaces, from local processes or
//! from guests behind a bridge.
//!
//! Programs in the kernel (`/bpf/enforce.bpf.c`) follow each connection from its SYN, send reports at a
//! bounded rate, and lower the receive windows of incoming acknowledgments. An [`Enforcer`] passes the
//! reports to [`weir_tcon::ObservedFlows`], which applies a policy, and writes the windows into memory
//! that it shares with the programs.
//!
//! Nothing is pinned, and a window that is not refreshed expires after [`weir_tcon::HOLD`]: when the
//! process ends, is killed or hangs, TCP continues with its own congestion control.
//!
//! ```no_run
//! use weir_enforce::ebpf::{DataPlane, Enforcer, Options};
//! use weir_enforce::operation::Enforce as _;
//!
//! let policy = weir_scenario::load_policy("policy.toml".as_ref())?;
//! let plane = DataPlane::attach(&["eth0".to_owned()], &Options::default())?;
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
mod check;
mod enforcer;
#[cfg_attr(
    not(bpf_programs),
    allow(dead_code, reason = "only programs tell of anything")
)]
mod event;
#[cfg(bpf_programs)]
mod plane;
#[cfg(bpf_programs)]
mod socket_pacing;
#[cfg(bpf_programs)]
#[cfg(test)]
mod tests;

#[cfg(not(bpf_programs))]
pub use absent::DataPlane;
pub use check::check_rule;
pub use enforcer::Enforcer;
#[cfg(bpf_programs)]
pub use plane::DataPlane;

/// The kernel hook that the programs attach to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hook {
    /// tcx where the kernel has it (Linux 6.6), else clsact.
    #[default]
    Automatic,
    /// tcx: the kernel removes the programs with the process, however it ends.
    Tcx,
    /// clsact: the programs of a killed process stay until the next one replaces them, but have no
    /// effect. The qdisc goes with the programs if Weir made it.
    Clsact,
}

/// The options of the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The number of connections that can be controlled at a time; others pass. As many that open, and young
    /// ones, are followed, rounded up to a power of two.
    pub flows: u32,
    /// The number of flow reports that the kernel makes per second.
    pub reports_per_second: u32,
    /// The hook.
    pub hook: Hook,
}

impl Default for Options {
    /// Returns 65,536 flows and 20,000 reports.
    fn default() -> Self {
        Self {
            flows: 65_536,
            reports_per_second: 20_000,
            hook: Hook::Automatic,
        }
    }
}
