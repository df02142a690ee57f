//! What the director and the agents in the hosts say to each other: [`HostCommand`]s one way, [`AgentEvent`]s
//! the other, each a line of JSON on a stream socket.
//!
//! The order of a run: an agent says [`AgentEvent::Ready`]; servers are started ([`HostCommand::Start`]) and
//! say where they listen ([`AgentEvent::Listening`]); clients are started with these addresses;
//! [`HostCommand::Begin`] sets the time at which everything begins. A client ends by itself or at its
//! `stop`, a server at [`HostCommand::Stop`]; both say [`AgentEvent::Finished`] once. The last word of an agent
//! is [`AgentEvent::Stopped`].
//!
//! Times are since the epoch that [`HostCommand::Begin`] sets, on `CLOCK_MONOTONIC`, which is one clock in
//! all network namespaces of a machine.

mod event;
mod host_command;
#[cfg(test)]
mod tests;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use event::{AgentEvent, Completion, FlowFailure, FlowOutcome, FlowSample, HostSample};
pub use host_command::{FlowOrder, HostChange, HostCommand, LiveTransport, Role};

/// A line that is no message.
#[derive(Debug, thiserror::Error)]
#[error("a control message cannot be read: {0}")]
pub struct MessageError(#[from] serde_json::Error);

/// A message as a line, its end included.
///
/// # Errors
/// [`MessageError`] where the message has no text form, which those of this module all have.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, MessageError> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// The message of a line, with or without its end.
///
/// # Errors
/// [`MessageError`] where the line is something else.
pub fn decode<Message: DeserializeOwned>(line: &[u8]) -> Result<Message, MessageError> {
    Ok(serde_json::from_slice(line)?)
}
