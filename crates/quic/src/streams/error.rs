//! Why reads and writes fail.

/// Why a stream takes no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The send buffer is full: `StreamEvent::Writable` tells when there is room.
    #[error("the stream's send buffer is full")]
    Blocked,
    /// The peer wants no more data, for this reason of its application.
    #[error("the peer stopped the stream with code {0}")]
    Stopped(u64),
    /// There is no such stream that could be written to, or it was finished or reset.
    #[error("the stream cannot be written to: it was finished, reset, or is unknown")]
    Closed,
    /// The stream was opened with early data, which the server rejected.
    #[error("the server rejected early data")]
    EarlyDataRejected,
}

/// Why a stream gives no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Nothing is there yet: `StreamEvent::Readable` tells when there is.
    #[error("the stream has no data yet")]
    Blocked,
    /// The peer gave the stream up, for this reason of its application. It is told once.
    #[error("the peer reset the stream with code {0}")]
    Reset(u64),
    /// There is no such stream that could be read, it was read to its end, or it was stopped.
    #[error("the stream cannot be read: it was read to its end, stopped, or is unknown")]
    Closed,
    /// The stream was opened with early data, which the server rejected.
    #[error("the server rejected early data")]
    EarlyDataRejected,
}
