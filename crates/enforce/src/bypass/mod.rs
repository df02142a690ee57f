//! Fail-open: while the process that forwards a cable's frames is dead or hangs, programs in the kernel
//! (`/bpf/bypass.bpf.c`) send the frames of each interface straight out of the other one.
//!
//! The forwarding thread beats at least every [`INTERVAL`]. The programs forward as soon as the last beat is
//! [`STALE`] old or the process's sockets are closed, until they have seen [`BEATS`] further beats. They
//! are attached without a link or a pin (tcx, Linux 6.6), so they outlive the process, whatever its mount
//! namespace, and go with the interfaces; the next process replaces them in place. Both interfaces are set
//! promiscuous meanwhile, as frames for others would not arrive otherwise. A clean end, or
//! [`clean`](crate::operation::clean), removes all of it.
//!
//! The same programs have a fast path: while the process lives, frames without TCP, and those of connections
//! that no rule controls, go straight across too.

#[cfg(not(bpf_programs))]
mod absent;
#[cfg(bpf_programs)]
mod armed;
mod counts;
#[cfg(bpf_programs)]
mod fast_path;
mod leftover;
mod promiscuous;
#[cfg_attr(not(bpf_programs), allow(dead_code, reason = "nobody looks for beats"))]
mod pulse;
#[cfg(bpf_programs)]
#[cfg(test)]
mod tests;

use std::io;

use crate::bpf::BpfError;

#[cfg(not(bpf_programs))]
pub(crate) use absent::{Bypass, FastPath};
#[cfg(bpf_programs)]
pub(crate) use armed::Bypass;
pub use counts::{BypassCounts, FastPathCounts};
#[cfg(bpf_programs)]
pub(crate) use fast_path::FastPath;
pub(crate) use leftover::{Leftover, remove};
pub use pulse::{BEATS, INTERVAL, LATE, STALE};
pub(crate) use pulse::{Pause, monotonic};

/// The names in `bpf/bypass.bpf.c`.
const PROGRAM: &str = "weir_bypass";
const CABLE: &str = "weir_cable";

/// The words of `struct cable`.
const WORDS: usize = 16;

/// The indices of the words of `struct cable`.
#[cfg_attr(not(bpf_programs), allow(dead_code, reason = "only programs count"))]
#[derive(Clone, Copy, Debug)]
enum Word {
    BeatAt = 0,
    Beats = 1,
    IsBypassed = 2,
    ResumesAt = 3,
    Times = 4,
    Since = 5,
    Frames = 6,
    Ends = 7,
    /// A note for the next process: which ends were set promiscuous for the bypass, one bit each.
    Promiscuous = 8,
    /// Whether frames that the process would forward unchanged go straight across.
    HasFastPath = 15,
}

/// Returns whether the programs forward frames: after enough beats the next frame ends that.
#[cfg(bpf_programs)]
fn is_active(word: impl Fn(Word) -> u64) -> bool {
    word(Word::IsBypassed) != 0 && word(Word::Beats) < word(Word::ResumesAt)
}

/// How a bypass was armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arming {
    /// Nothing forwarded these interfaces' frames before.
    Fresh,
    /// The bypass of a process that has died forwarded them, and did until this one took over.
    TookOver,
}

/// A cable cannot be made to fail open, or a bypass cannot be removed.
#[derive(Debug, thiserror::Error)]
pub enum BypassError {
    /// The programs cannot be loaded.
    #[error(transparent)]
    Programs(#[from] BpfError),
    /// The kernel has no tcx.
    #[error("the kernel has no tcx, which Linux 6.6 has")]
    NoTcx,
    /// The process may not see which programs are attached.
    #[error("to see whether a killed process has left a bypass takes root or CAP_NET_ADMIN")]
    MayNotLook,
    /// The process may not see whose a program is.
    #[error(
        "an interface has a program of no living process, perhaps the bypass of one that was killed, by which \
         frames would pass twice: to tell takes root or CAP_SYS_ADMIN"
    )]
    MayNotOpen,
    /// A system call failed.
    #[error("{doing}: {source}")]
    System {
        /// The operation that failed.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl BypassError {
    fn of(doing: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::System { doing, source }
    }

    /// Returns the error of asking for the programs at an interface.
    fn of_query(source: io::Error) -> Self {
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::MayNotLook,
            Some(libc::EINVAL) => Self::NoTcx,
            _ => Self::of("asking for the programs at an interface")(source),
        }
    }

    /// Returns the error of opening one of them.
    fn of_open(source: io::Error) -> Self {
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::MayNotOpen,
            _ => Self::of("opening a program at an interface")(source),
        }
    }
}
