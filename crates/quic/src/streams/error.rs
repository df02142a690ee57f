//! Errors of reads and writes.

/// Why a write to a stream failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The send buffer is full: `StreamEvent::Writable` reports when there is room.
    #[error("the stream's send buffer is full")]
    Blocked,
    /// The peer stopped the stream with this application error code.
    #[error("the peer stopped the stream with code {0}")]
    Stopped(u64),
    /// The stream does not exist, cannot be written to, or was finished or reset.
    #[error("the stream cannot be written to: it was finished, reset, or is unknown")]
    Closed,
    /// The stream was opened with early data, which the server rejected.
    #[error("the server rejected early data")]
    EarlyDataRejected,
    /// The peer goes away and has executed nothing of the stream.
    #[error("the peer accepts no more streams, and has executed nothing of this one")]
    Refused,
}

/// Why a read from a stream failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// No data has arrived yet: `StreamEvent::Readable` reports when it has.
    #[error("the stream has no data yet")]
    Blocked,
    /// The peer reset the stream with this application error code. Reported once.
    #[error("the peer reset the stream with code {0}")]
    Reset(u64),
    /// The stream does not exist, cannot be read, was read to its end, or was stopped.
    #[error("the stream cannot be read: it was read to its end, stopped, or is unknown")]
    Closed,
    /// The stream was opened with early data, which the server rejected.
    #[error("the server rejected early data")]
    EarlyDataRejected,
    /// The peer goes away and has executed nothing of the stream.
    #[error("the peer accepts no more streams, and has executed nothing of this one")]
    Refused,
}
