//! Errors of the connection of an agent or a sender to its controller.

use crate::connect::Refusal;
use crate::translate::DecodeError;

/// Why an agent has no controller.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The controller cannot be reached, or fails authentication.
    #[error("cannot connect: {}", crate::controller::with_causes(.0))]
    Connect(#[from] tonic::transport::Error),
    /// It refuses this end's certificate.
    #[error("cannot connect: {0}")]
    Certificate(String),
    /// Its certificate is not accepted any more.
    #[error("the controller is refused: {0}")]
    Controller(String),
    /// It refuses the agent, or has ended.
    #[error("{}", .0.message())]
    Refused(Box<tonic::Status>),
    /// A message is invalid.
    #[error("the controller's message makes no sense: {0}")]
    Malformed(#[from] DecodeError),
    /// The controller has been silent.
    #[error("nothing was heard of the controller for a lease")]
    Silent,
    /// An order is too old to be obeyed.
    #[error("an order came so late that it no longer holds")]
    Stale,
    /// One of the two does not keep up with the other.
    #[error("more is waiting than there is room for")]
    Full,
    /// The controller has closed the connection.
    #[error("the controller has closed the connection")]
    Closed,
}

impl From<Refusal> for AgentError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::ByController(reason) => Self::Certificate(reason),
            Refusal::OfController(reason) => Self::Controller(reason),
        }
    }
}

impl From<tonic::Status> for AgentError {
    fn from(status: tonic::Status) -> Self {
        Self::Refused(Box::new(status))
    }
}
