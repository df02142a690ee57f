//! Errors in building a simulation.

use thiserror::Error;
use weir_network::NetworkError;
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
