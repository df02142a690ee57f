//! The control protocol between the director and the agents in the hosts. The director sends
//! [`HostCommand`]s, the agents [`AgentEvent`]s; each is a line of JSON on a stream socket.
//!
//! The sequence of a run: an agent sends [`AgentEvent::Ready`]; servers are started
//! ([`HostCommand::Start`]) and report their addresses ([`AgentEvent::Listening`]); clients are started
//! with these addresses; [`HostCommand::Begin`] sets the epoch of the run. A client ends by itself or at
//! its `stop`, a server at [`HostCommand::Stop`]; each sends [`AgentEvent::Finished`] once. The last
//! event of an agent is [`AgentEvent::Stopped`].
//!
//! Times are relative to the epoch that [`HostCommand::Begin`] sets, on `CLOCK_MONOTONIC`, which is the
//! same clock in all network namespaces of a machine.

mod event;
mod host_command;
mod load_factors;
#[cfg(test)]
mod tests;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use event::{AgentEvent, Completion, FlowFailure, FlowOutcome, FlowSample, HostSample};
pub use host_command::{FlowOrder, HostChange, HostCommand, LiveTransport, Role};
pub use load_factors::LoadFactors;

/// A line is not a valid message.
#[derive(Debug, thiserror::Error)]
#[error("a control message cannot be read: {0}")]
pub struct MessageError(#[from] serde_json::Error);

/// Encodes a message as a line, with its newline.
///
/// # Errors
/// [`MessageError`] if the message has no JSON form; all messages of this module have one.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, MessageError> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// Decodes the message of a line, with or without its newline.
///
/// # Errors
/// [`MessageError`] if the line is not such a message.
pub fn decode<Message: DeserializeOwned>(line: &[u8]) -> Result<Message, MessageError> {
    Ok(serde_json::from_slice(line)?)
}
