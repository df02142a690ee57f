//! The answer of a host process to its plan. All later messages are those of [`crate::control`].

use serde::{Deserialize, Serialize};

/// A host's answer to its plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum HostAnswer {
    /// The namespace is ready; the message carries the descriptors of the interfaces' other ends.
    Built {
        /// Settings that this kernel does not have.
        refused: Vec<String>,
    },
    /// The namespace could not be created; the reason.
    Failed(String),
}
