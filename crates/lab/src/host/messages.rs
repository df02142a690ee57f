//! What a host process answers when it has its plan; after that it speaks as [`crate::control`] has it.

use serde::{Deserialize, Serialize};

/// What a host answers to its plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum HostAnswer {
    /// The namespace is as planned; the interfaces' other ends come with this.
    Built {
        /// Settings that this kernel does not have.
        refused: Vec<String>,
    },
    /// It cannot be: why.
    Failed(String),
}
