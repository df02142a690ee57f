//! Errors in building a simulation, and in running it.

use thiserror::Error;
use weir_network::NetworkError;
use weir_results::OutputError;
use weir_tcp::ConfigError;
use weir_units::{Duration, Time};

/// A scenario that cannot be simulated.
#[derive(Clone, Debug, Error)]
pub enum BuildError {
    /// TCP cannot work with a group's options.
    #[error("group `{group}`: {source}")]
    Tcp {
        /// The group's name.
        group: String,
        /// TCP's error.
        source: ConfigError,
    },
    /// QUIC cannot work with a group's options.
    #[error("group `{group}`: {source}")]
    Quic {
        /// The group's name.
        group: String,
        /// QUIC's error.
        source: weir_quic::ConfigError,
    },
    /// DCUDP cannot work with a group's options.
    #[error("group `{group}`: {source}")]
    Dcudp {
        /// The group's name.
        group: String,
        /// DCUDP's error.
        source: weir_dcudp::ConfigError,
    },
    /// The network cannot be built.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The duration exceeds the range of the event queue.
    #[error(
        "with so many ports and flows no more than {limit} can be simulated; `duration` is {duration}"
    )]
    TooLong {
        /// The scenario's duration.
        duration: Duration,
        /// The first time that cannot be simulated.
        limit: Time,
    },
}

/// A simulation that cannot go on.
#[derive(Debug, Error)]
pub enum RunError {
    /// The recorder cannot write.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A plug-in's controller failed.
    #[error(transparent)]
    Plugin(#[from] ControllerFailure),
}

/// The failure of a plug-in's controller: an exception, a trap, or a window that is none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("congestion control `{plugin}`, {}{}: {message}", place(user, *flow), time(*at))]
pub struct ControllerFailure {
    /// What the scenario calls the plug-in.
    pub plugin: String,
    /// The name of the group that has this congestion control, or of the switch.
    pub user: String,
    /// The number of the flow within its group, if the flow is known.
    pub flow: Option<u64>,
    /// When it failed; `None` if it could not be built, or at an event without a time.
    pub at: Option<Time>,
    /// What happened.
    pub message: String,
}

fn place(user: &str, flow: Option<u64>) -> String {
    match flow {
        Some(flow) => format!("flow {flow} of `{user}`"),
        None => format!("`{user}`"),
    }
}

fn time(at: Option<Time>) -> String {
    at.map(|at| format!(", at {at}")).unwrap_or_default()
}
