//! What keeps the switch from working.

use std::io;

use thiserror::Error;

/// Why there is no switch, or no longer.
#[derive(Debug, Error)]
pub enum SwitchError {
    /// The scenario's network cannot be built.
    #[error(transparent)]
    Network(#[from] weir_network::NetworkError),
    /// The system refused something.
    #[error("{action}: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// The switch's thread ended before it was told to.
    #[error("the switch has stopped by itself")]
    Gone,
}

impl SwitchError {
    /// The error of a system call.
    pub(super) fn at<E: Into<io::Error>>(action: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System {
            action,
            source: source.into(),
        }
    }
}
