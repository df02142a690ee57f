//! The errors of the switch.

use std::io;

use thiserror::Error;

/// The switch could not start, or has stopped.
#[derive(Debug, Error)]
pub enum SwitchError {
    /// The scenario's network cannot be built.
    #[error(transparent)]
    Network(#[from] weir_network::NetworkError),
    /// A system call failed.
    #[error("{action}: {source}")]
    System {
        /// The operation that failed.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The switch's thread ended early.
    #[error("the switch has stopped by itself")]
    Gone,
}

impl SwitchError {
    /// Returns the error of a system call.
    pub(super) fn at<E: Into<io::Error>>(action: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System {
            action,
            source: source.into(),
        }
    }
}
