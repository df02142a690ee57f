//! Why a case failed.

use std::fmt::Debug;

use tonic::Status;

/// Why a case failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A call failed that should not.
    #[error("a call failed: {0}")]
    Call(#[from] Status),
    /// Something is not as expected.
    #[error("{what}: {found} instead of {expected}")]
    Unexpected {
        /// What was compared.
        what: &'static str,
        /// What the server answered.
        found: String,
        /// What it should have.
        expected: String,
    },
    /// There is no such case.
    #[error("there is no case {0}")]
    NoSuchCase(String),
}

/// Compares what was found.
pub(crate) fn expect<T: Debug + PartialEq>(
    what: &'static str,
    found: T,
    expected: T,
) -> Result<(), Failure> {
    if found == expected {
        return Ok(());
    }
    Err(Failure::Unexpected {
        what,
        found: format!("{found:?}"),
        expected: format!("{expected:?}"),
    })
}
