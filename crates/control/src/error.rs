//! Why somebody who is attached has no controller.

use crate::translate::DecodeError;

/// Why an agent has no controller.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// It cannot be reached, or is not what it should be.
    #[error("cannot connect: {}", crate::controller::with_causes(.0))]
    Connect(#[from] tonic::transport::Error),
    /// It does not let the agent in, or has ended.
    #[error("{}", .0.message())]
    Refused(Box<tonic::Status>),
    /// It says something that makes no sense.
    #[error("the controller's message makes no sense: {0}")]
    Garbled(#[from] DecodeError),
    /// Nothing is heard of it.
    #[error("nothing was heard of the controller for a lease")]
    Silent,
    /// What it says is too old to be obeyed.
    #[error("an order came so late that it no longer holds")]
    Stale,
    /// One of the two does not keep up with the other.
    #[error("more is waiting than there is room for")]
    Full,
    /// It has closed the connection.
    #[error("the controller has closed the connection")]
    Closed,
}

impl From<tonic::Status> for AgentError {
    fn from(status: tonic::Status) -> Self {
        Self::Refused(Box::new(status))
    }
}
