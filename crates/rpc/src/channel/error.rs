//! Why a call has no response.

use weir_net::{ConnectionError, SHUT_DOWN};
use weir_units::{ByteSize, Duration};

use crate::executed::Executed;
use crate::frames::FrameError;
use crate::metadata::MetadataError;
use crate::status::{Code, Status};
use crate::wire::{FrameType, WireError};

/// Why a call has no response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The server answered with a status.
    #[error("{status}")]
    Status {
        /// The status.
        status: Status,
        /// Whether the server executed the call; it says so.
        executed: Executed,
    },
    /// The deadline passed.
    #[error("no response within {after}; the call {executed}")]
    DeadlinePassed {
        /// The time that the call had.
        after: Duration,
        /// Whether the server executed the call.
        executed: Executed,
    },
    /// No server can be reached.
    #[error("no server can be reached: {0}")]
    NoServer(String),
    /// The connection was over, or draining, before the call was sent.
    #[error("the call was not sent: {0}")]
    NotBegun(ConnectionError),
    /// The connection ended.
    #[error("{error}; the call {executed}")]
    Connection {
        /// Why it ended.
        error: ConnectionError,
        /// Whether the server executed the call.
        executed: Executed,
    },
    /// The server gave the call up without a status, with a code. After [`SHUT_DOWN`] it was not
    /// executed.
    #[error("the server gave the call up, with code {0:#x}")]
    Reset(u64),
    /// A response message is larger than the channel takes.
    #[error("the response is larger than {0}")]
    ResponseTooLarge(ByteSize),
    /// What the server sent is no response.
    #[error("the server sent no valid response: {0}")]
    Malformed(WireError),
    /// The call cannot be made: the method's name is none.
    #[error("{0:?} is no method: names are 1 to 255 printable ASCII characters without space")]
    Method(String),
    /// The call cannot be made: its metadata are none.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
}

impl CallError {
    /// Returns whether the server executed the call. After [`Executed::No`] it may be made again;
    /// after [`Executed::Maybe`] and [`Executed::Yes`] only if it may safely happen twice.
    pub const fn executed(&self) -> Executed {
        match self {
            Self::Status { executed, .. }
            | Self::DeadlinePassed { executed, .. }
            | Self::Connection { executed, .. } => *executed,
            Self::NoServer(_) | Self::NotBegun(_) | Self::Method(_) | Self::Metadata(_) => {
                Executed::No
            }
            Self::Reset(SHUT_DOWN) => Executed::No,
            Self::Reset(_) | Self::Malformed(_) => Executed::Maybe,
            // There is no message before the handler began.
            Self::ResponseTooLarge(_) => Executed::Yes,
        }
    }

    /// Returns the status code that says most about the error.
    pub const fn code(&self) -> Code {
        match self {
            Self::Status { status, .. } => status.code,
            Self::DeadlinePassed { .. } => Code::DeadlineExceeded,
            Self::NoServer(_) | Self::NotBegun(_) | Self::Connection { .. } => Code::Unavailable,
            Self::Reset(SHUT_DOWN) => Code::Unavailable,
            Self::Reset(_) => Code::Aborted,
            Self::ResponseTooLarge(_) => Code::ResourceExhausted,
            Self::Malformed(_) => Code::Internal,
            Self::Method(_) | Self::Metadata(_) => Code::InvalidArgument,
        }
    }

    pub(super) fn connection(error: ConnectionError) -> Self {
        Self::Connection {
            executed: error.executed().into(),
            error,
        }
    }

    /// Returns the error of a response that does not arrive.
    pub(super) fn not_received(error: FrameError) -> Self {
        use weir_net::ReadError;

        match error {
            FrameError::Wire(WireError::TooLarge {
                frame: FrameType::Message,
                limit,
                ..
            }) => Self::ResponseTooLarge(limit),
            FrameError::Wire(error) => Self::Malformed(error),
            FrameError::Read(ReadError::Connection(error)) => Self::connection(error),
            FrameError::Read(ReadError::Reset(code)) => Self::Reset(code),
            // The stream was given up on this side, or does not carry early data.
            FrameError::Read(
                ReadError::Stopped | ReadError::EarlyDataRejected | ReadError::TooLong { .. },
            ) => Self::Reset(0),
        }
    }
}

/// A handler that cannot do its work because a call of its own failed.
impl From<CallError> for Status {
    fn from(error: CallError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}
