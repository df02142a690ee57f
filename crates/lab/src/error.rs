//! The errors of a live run.

use std::io;

use thiserror::Error;
use weir_enforce::bpf::BpfError;
use weir_results::OutputError;

use crate::plan::PlanError;

/// A live run could not start, or was aborted.
#[derive(Debug, Error)]
pub enum LabError {
    /// The scenario does not fit, or this machine cannot run it.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A congestion control that the kernel does not have.
    #[error("group `{group}`: the congestion control `{congestion}`: {source}")]
    Congestion {
        /// The group's name.
        group: String,
        /// The congestion control it asks for.
        congestion: String,
        /// Why it is not available.
        source: CongestionError,
    },
    /// A host could not be created.
    #[error("host `{host}` cannot be made: {problem}")]
    Host {
        /// Its name.
        host: String,
        /// Why.
        problem: String,
    },
    /// A host process ended early.
    #[error("the process of host `{host}` ended before its time ({how}): the run is broken off")]
    HostGone {
        /// Its name.
        host: String,
        /// The exit status that its parent receives.
        how: String,
    },
    /// No host answers.
    #[error("the hosts do not answer: the run is broken off")]
    Unresponsive,
    /// A host sent an invalid message.
    #[error("host `{host}` sent what is no message: {source}")]
    Message {
        /// Its name.
        host: String,
        /// Why.
        source: crate::control::MessageError,
    },
    /// A fault could not be injected in a host.
    #[error("host `{host}`: {problem}")]
    Change {
        /// Its name.
        host: String,
        /// The change, and why it failed.
        problem: String,
    },
    /// The switch cannot run.
    #[error(transparent)]
    Switch(#[from] crate::switch::SwitchError),
    /// A system call failed.
    #[error("{doing}: {source}")]
    System {
        /// The operation that failed.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl LabError {
    /// Returns a function for `map_err`.
    pub(crate) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { doing, source }
    }
}

/// Why a congestion control is not available.
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
