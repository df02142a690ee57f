//! Connections of a control group's processes, led to a listener of this process.
//!
//! Programs (`/bpf/redirect.bpf.c`) run when a process of the control group connects a TCP socket. A
//! destination that a [`Target`] names is replaced by the listener on loopback; [`Originals`] tells the
//! listener where an accepted connection was to go, and the application's `getpeername` returns that too.
//! Left alone are loopback, sockets that are bound to an interface, this process's own connections, and
//! those of other network namespaces, whose loopback is not the listener's.
//!
//! Nothing is pinned: when the process ends, also by SIGKILL, the kernel removes the programs, and
//! connections go where they want again.
//!
//! ```no_run
//! use weir_enforce::redirect::{Listeners, Redirection, Target};
//!
//! let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
//! let target: Target = "10.0.0.0/8:6379".parse()?;
//! let listeners = Listeners { ipv4: Some(listener.local_addr()?.port()), ipv6: None };
//! let redirection = Redirection::attach("/web".as_ref(), listeners, &[target.redirected()])?;
//! let (_connection, source) = listener.accept()?;
//! let _destination = redirection.originals().take(source);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(not(bpf_programs))]
mod absent;
#[cfg(bpf_programs)]
mod programs;
#[cfg_attr(
    not(bpf_programs),
    allow(dead_code, reason = "only programs read records")
)]
mod record;
mod target;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

#[cfg(not(bpf_programs))]
use absent as programs;

use crate::cgroup::CgroupError;
use crate::cgroup::group::ControlGroup;

pub use target::{Target, TargetError, TargetRule};

/// The most targets.
pub const MOST_TARGETS: usize = 64;

/// The ports of the listeners on 127.0.0.1 and on ::1, in the caller's network namespace. Connections of a
/// family without one are left alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listeners {
    /// On 127.0.0.1.
    pub ipv4: Option<u16>,
    /// On ::1.
    pub ipv6: Option<u16>,
}

/// The programs at a control group; dropping it removes them.
#[derive(Debug)]
pub struct Redirection {
    programs: programs::Programs,
    originals: Originals,
}

/// Where redirected connections were to go. Clones share the table.
#[derive(Clone, Debug)]
pub struct Originals(Arc<programs::Table>);

impl Redirection {
    /// Redirects the connections that processes of a control group, and of those below it, make from now on.
    /// The first rule that matches a destination decides, and one that no rule matches is left alone. The
    /// control group's path is absolute, or below the root of the hierarchy.
    ///
    /// # Errors
    /// [`CgroupError`].
    pub fn attach(
        cgroup: &Path,
        listeners: Listeners,
        rules: &[TargetRule],
    ) -> Result<Self, CgroupError> {
        if rules.len() > MOST_TARGETS {
            return Err(CgroupError::TooManyRules {
                found: rules.len(),
                most: MOST_TARGETS,
            });
        }
        programs::check_permission()?;
        let group = ControlGroup::open(cgroup)?;
        let (programs, table) = programs::attach(&group, listeners, rules)?;
        Ok(Self {
            programs,
            originals: Originals(Arc::new(table)),
        })
    }

    /// Returns where redirected connections were to go.
    pub fn originals(&self) -> Originals {
        self.originals.clone()
    }

    /// Removes the programs: connections that are made from now on are left alone. Those that the listener
    /// has not accepted yet are known still.
    pub fn detach(&mut self) {
        self.programs.detach();
    }
}

impl Originals {
    /// Returns where the connection was to go that the listener has accepted from this address, once. `None`
    /// for one that was not redirected.
    pub fn take(&self, source: SocketAddr) -> Option<SocketAddr> {
        self.0.take(source)
    }
}
