//! Request and response: one bidirectional stream per call.
//!
//! A client sends its request and the stream's end, a server the response and its end. A call
//! that nobody waits for any more is reset and stopped with a code, so that neither side works
//! on it further. Over the wire that is plain QUIC; any QUIC stack can be the other side.

mod call;
mod incoming;
mod serve;

pub use call::{Call, CallError};
pub use incoming::{IncomingCall, Request, RequestError, Responder};
pub use serve::ServeOptions;

use weir_units::ByteSize;

/// How large requests and responses may be unless a limit is set.
pub const DEFAULT_SIZE_LIMIT: ByteSize = ByteSize::from_mib(64);

/// With this code a client abandons a call that it does not wait for any more.
pub const CALL_CANCELLED: u64 = 0x5745_0001;
/// With this code a client abandons a call whose deadline has passed.
pub const CALL_DEADLINE: u64 = 0x5745_0002;
/// With this code either side refuses a message that is larger than its limit.
pub const MESSAGE_TOO_LARGE: u64 = 0x5745_0003;
/// With this code a server abandons a call that it received and does not answer.
pub const CALL_UNANSWERED: u64 = 0x5745_0004;

/// A server's refusal to answer a call, with a code of the application's for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("refused with code {0}")]
pub struct Refusal(pub u64);
