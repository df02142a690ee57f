//! Errors of requests and bodies.

use std::fmt;
use std::sync::Arc;

use h3::error::{Code, StreamError};
use weir_net::{ConnectionError, Executed};

/// An error of any type, as bodies and services have them.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// An error code of HTTP/3 (RFC 9114, section 8.1), or another one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub u64);

impl ErrorCode {
    /// No error: the connection or request is not needed any more.
    pub const NO_ERROR: Self = Self(0x100);
    /// An error inside the sender.
    pub const INTERNAL_ERROR: Self = Self(0x102);
    /// The receiver asks for too much of the sender.
    pub const EXCESSIVE_LOAD: Self = Self(0x107);
    /// The server did not look at the request.
    pub const REQUEST_REJECTED: Self = Self(0x10b);
    /// The request, or its response, is not wanted any more.
    pub const REQUEST_CANCELLED: Self = Self(0x10c);
    /// The request ended before it was complete.
    pub const REQUEST_INCOMPLETE: Self = Self(0x10d);
    /// A malformed request or response.
    pub const MESSAGE_ERROR: Self = Self(0x10e);
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Code::from(self.0).fmt(f)
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Code::from(self.0).fmt(f)
    }
}

/// Why a request, or a body, did not come to its end.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The peer gave the request or the response up.
    #[error("the peer gave the stream up: {0}")]
    Stream(ErrorCode),
    /// The connection is over, or takes no new requests.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The peer broke the rules of HTTP/3, or h3 could not follow it.
    #[error("HTTP/3: {0}")]
    Protocol(String),
    /// The request's header or trailers are larger than the server takes: nothing was sent.
    #[error("a request header of {size} bytes, where the server takes {limit}")]
    RequestHeader {
        /// Its size, as RFC 9114, section 4.2.2, counts it.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// A header or trailer section that arrived is too large.
    #[error("a header section of {size} bytes, where {limit} are allowed")]
    HeaderTooLarge {
        /// Its size, as RFC 9114, section 4.2.2, counts it.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The body is not as long as its `content-length` says.
    #[error("a body of {received} bytes, where content-length says {expected}")]
    ContentLength {
        /// What the header says, in bytes.
        expected: u64,
        /// The bytes that came.
        received: u64,
    },
    /// The body to be sent failed.
    #[error("the body to be sent failed: {0}")]
    Body(Arc<dyn std::error::Error + Send + Sync>),
    /// A request's body that arrives over TCP (feature `http2`) broke off, or is malformed.
    #[error("HTTP over TCP: {0}")]
    Tcp(String),
    /// No server can be reached.
    #[error("no server: {0}")]
    NoServer(String),
}

impl Error {
    /// Returns whether the server may have executed the request.
    pub fn executed(&self) -> Executed {
        match self {
            Self::Stream(ErrorCode::REQUEST_REJECTED)
            | Self::RequestHeader { .. }
            | Self::NoServer(_) => Executed::No,
            Self::Connection(error) => error.executed(),
            _ => Executed::Maybe,
        }
    }

    /// Returns the code with which the peer gave the stream up, if it did.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Stream(code) => Some(*code),
            _ => None,
        }
    }

    /// An error of a stream of this connection.
    pub(crate) fn of_stream(error: StreamError, connection: &weir_net::Connection) -> Self {
        match error {
            StreamError::RemoteTerminate { code } => Self::Stream(ErrorCode(code.value())),
            StreamError::HeaderTooBig {
                actual_size,
                max_size,
            } => Self::HeaderTooLarge {
                size: actual_size,
                limit: max_size,
            },
            StreamError::RemoteClosing => Self::Connection(ConnectionError::Draining {
                remote: connection.remote_address(),
            }),
            error => match connection.error() {
                Some(error) => Self::Connection(error),
                None => Self::Protocol(error.to_string()),
            },
        }
    }

    /// An error of the connection as such.
    pub(crate) fn of_connection(
        error: h3::error::ConnectionError,
        connection: &weir_net::Connection,
    ) -> Self {
        match connection.error() {
            Some(error) => Self::Connection(error),
            None => Self::Protocol(error.to_string()),
        }
    }
}
