//! The reasons why a network cannot be made.

use std::io;

use rustix::io::Errno;

/// Why a network cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// Network namespaces need a privilege that this process lacks.
    #[error("network namespaces take root")]
    Privilege,
    /// The kernel has no network namespaces.
    #[error("this kernel has no network namespaces (CONFIG_NET_NS)")]
    NoNamespaces,
    /// A system call failed.
    #[error("{doing}: {source}")]
    System {
        /// The operation that failed.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The scenario of the link is invalid.
    #[error("the scenario of the link: {0}")]
    Scenario(String),
    /// The link's hosts cannot be planned.
    #[error("the plan of the link: {0}")]
    Plan(#[from] crate::plan::PlanError),
    /// The interface of a link's host could not be made.
    #[error(transparent)]
    Host(#[from] crate::host::HostError),
    /// The switch of a link could not start.
    #[error(transparent)]
    Switch(#[from] crate::switch::SwitchError),
}

impl NetworkError {
    /// Returns a function that wraps the error of an operation, for `map_err`.
    pub(super) fn system<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System {
            doing,
            source: source.into(),
        }
    }

    /// Converts the error of making a namespace.
    pub(super) fn of_namespace(errno: Errno) -> Self {
        match errno {
            Errno::PERM => Self::Privilege,
            Errno::INVAL => Self::NoNamespaces,
            errno => Self::system("making a network namespace")(errno),
        }
    }
}
