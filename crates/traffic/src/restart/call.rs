//! One call of a client, whatever its transport.

use super::REQUEST;
use crate::transport::Start;

/// How far a call has come.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Whether the server may have the request.
    pub(super) sent: bool,
    /// Whether the answer was another call's.
    pub(super) wrong: bool,
    /// How the connection began, if that is known.
    pub(super) start: Option<Start>,
}

/// A call has failed; [`Progress`] has what matters.
#[derive(Debug, thiserror::Error)]
#[error("a call failed: {0}")]
pub(super) struct Failed(Box<dyn std::error::Error + Send + Sync>);

impl Failed {
    pub(super) fn new(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(error.into())
    }
}

impl Progress {
    /// Checks an answer.
    pub(super) fn check(&mut self, request: &[u8], answer: &[u8]) -> Result<(), Failed> {
        self.wrong = request != answer;
        if self.wrong {
            return Err(Failed::new("the answer is another call's"));
        }
        Ok(())
    }
}

/// Returns the request of the call with this number.
pub(super) fn request(number: u64) -> [u8; REQUEST] {
    let mut request = [0; REQUEST];
    request[..8].copy_from_slice(&number.to_le_bytes());
    request
}
