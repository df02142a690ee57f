//! What keeps a live run from its results.

use std::io;

use thiserror::Error;
use weir_enforce::bpf::BpfError;
use weir_results::OutputError;

use crate::plan::PlanError;

/// A live run that cannot be carried out, or broke off.
#[derive(Debug, Error)]
pub enum LabError {
    /// The scenario, or this machine.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A congestion control that the kernel does not have.
    #[error("group `{group}`: the congestion control `{congestion}`: {source}")]
    Congestion {
        /// The group's name.
        group: String,
        /// What it wants.
        congestion: String,
        /// Why it cannot be had.
        source: CongestionError,
    },
    /// A host could not be made.
    #[error("host `{host}` cannot be made: {problem}")]
    Host {
        /// Its name.
        host: String,
        /// Why.
        problem: String,
    },
    /// A host process is gone before its time.
    #[error("the process of host `{host}` ended before its time ({how}): the run is broken off")]
    HostGone {
        /// Its name.
        host: String,
        /// What its parent is told.
        how: String,
    },
    /// Nobody says anything.
    #[error("the hosts do not answer: the run is broken off")]
    Silence,
    /// A host says what makes no sense.
    #[error("host `{host}` sent what is no message: {source}")]
    Message {
        /// Its name.
        host: String,
        /// Why.
        source: crate::control::MessageError,
    },
    /// A fault could not be brought about in a host.
    #[error("host `{host}`: {problem}")]
    Change {
        /// Its name.
        host: String,
        /// What and why.
        problem: String,
    },
    /// The switch cannot run.
    #[error(transparent)]
    Switch(#[from] crate::switch::SwitchError),
    /// The system refuses.
    #[error("{doing}: {source}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl LabError {
    /// For `map_err`.
    pub(crate) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { doing, source }
    }
}

/// Why a congestion control cannot be had.
#[derive(Debug, Error)]
pub enum CongestionError {
    /// The kernel does not know it.
    #[error(
        "the kernel's TCP has none of this name; `cubic`, `newreno`, `bbr` and `dctcp` are possible, and any \
         with `transport = \"quic\"`"
    )]
    Unknown,
    /// It cannot be registered.
    #[error(
        "{0}; `cubic`, `newreno` and `bbr` work without, so does any with `transport = \"quic\"`, and `weir run` \
         simulates the scenario as it is"
    )]
    Bpf(#[from] BpfError),
}
