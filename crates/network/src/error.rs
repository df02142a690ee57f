//! Errors in building a network.

use thiserror::Error;
use weir_fabric::{BufferError, SwitchError};

/// An error in building a network.
#[derive(Clone, Debug, Error)]
pub enum NetworkError {
    /// A switch cannot be built.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// A shared buffer cannot be built.
    #[error(transparent)]
    Buffer(#[from] BufferError),
}
