//! Request and response: one bidirectional stream per call.
//!
//! The client sends its request and the stream's end, the server the response and its end. An
//! abandoned call is reset and stopped with a code, so that neither side works on it further. On
//! the wire that is plain QUIC; any QUIC stack can be the peer.

mod call;
mod incoming;
mod response;
mod serve;

pub use call::{Call, CallError};
pub use incoming::{IncomingCall, Request, RequestError, Responder};
pub use response::Response;
pub use serve::ServeOptions;

use weir_units::ByteSize;

/// Default size limit of requests and responses.
pub const DEFAULT_SIZE_LIMIT: ByteSize = ByteSize::from_mib(64);

/// Code with which a client cancels a call.
pub const CALL_CANCELLED: u64 = 0x5745_0001;
/// Code with which a client abandons a call whose deadline has passed.
pub const CALL_DEADLINE: u64 = 0x5745_0002;
/// Code with which either side refuses a message that is larger than its limit.
pub const MESSAGE_TOO_LARGE: u64 = 0x5745_0003;
/// Code with which a server abandons a call that it received and does not answer.
pub const CALL_UNANSWERED: u64 = 0x5745_0004;

/// Code with which a server abandons a call whose handler panicked.
pub const CALL_FAILED: u64 = 0x5745_0005;

/// A server's refusal to answer a call, with an application code for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("refused with code {0}")]
pub struct Refusal(pub u64);
