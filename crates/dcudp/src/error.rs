//! Errors of connections, reads and writes.

use weir_units::Duration;

use crate::packet::Refusal;

/// A protocol violation by the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Violation {
    /// It acknowledged data that was never sent.
    #[error("the peer acknowledged data that were never sent")]
    AckOfUnsent,
    /// It reported the loss of data that was never sent.
    #[error("the peer misses data that were never sent")]
    NakOfUnsent,
    /// It answered an ACK that was never sent.
    #[error("the peer answered an ACK that was never sent")]
    Ack2OfUnsent,
    /// It exceeded the receive window.
    #[error("the peer sent more than it was allowed to")]
    FlowControl,
    /// It sent data after the end, or two ends.
    #[error("the peer sent data after their end")]
    DataAfterEnd,
    /// It sent a packet larger than negotiated.
    #[error("the peer sent a packet larger than agreed")]
    PacketTooLarge,
    /// Its message fragments do not fit together, or form a message larger than any buffer.
    #[error("the parts of the peer's messages do not fit together")]
    Message,
    /// It sent message fragments on a stream, or packets without data.
    #[error("the peer sent packets that are no part of a stream")]
    NotAStream,
    /// It switched modes faster than congestion can come and go.
    #[error("the peer switches between the modes all the time")]
    ModeFlapping,
    /// It closed the connection as finished before the end of its data arrived.
    #[error("the peer finished before its data had ended")]
    EarlyFinish,
}

/// The reason why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ConnectionError {
    /// No server answered the handshake.
    #[error("no handshake within {0}")]
    HandshakeTimeout(Duration),
    /// The server refused the connection.
    #[error("the server refused the connection: {}", in_words(*.0))]
    Refused(Refusal),
    /// The peer sent nothing.
    #[error("the peer was silent for {0}")]
    IdleTimeout(Duration),
    /// Data in flight made no progress.
    #[error("no data came through for {0}")]
    Stalled(Duration),
    /// An orderly close took too long.
    #[error("the connection could not be closed in order within {0}")]
    CloseTimeout(Duration),
    /// The peer violated the protocol.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// The peer reported a violation by this end.
    #[error("the peer closed the connection over a broken rule")]
    PeerViolation,
    /// The peer closed the connection after a timeout.
    #[error("the peer gave the connection up: it timed out there")]
    PeerTimeout,
    /// The peer's application aborted.
    #[error("the peer's application gave up with code {0}")]
    PeerAborted(u32),
    /// The peer closed, with all its own data delivered, before it had received all of ours.
    #[error("the peer closed before it had taken all data")]
    PeerClosed,
    /// This application aborted.
    #[error("given up by this application")]
    Aborted,
}

const fn in_words(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Busy => "it has as many as it may have",
        Refusal::Version => "it does not speak this version",
        Refusal::Mode => "it wants the other one of streams and messages",
        Refusal::Authentication => "one end has a pre-shared key and the other one has none",
    }
}

/// The reason why nothing was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// No data yet; [`Event::Readable`](crate::Event::Readable) follows.
    #[error("there is nothing to read yet")]
    Blocked,
    /// The peer's data has ended.
    #[error("the data have ended")]
    Ended,
    /// A stream read on a message connection, or vice versa.
    #[error("the connection carries the other one of streams and messages")]
    WrongKind,
    /// The connection ended before the data was complete.
    #[error(transparent)]
    Closed(ConnectionError),
}

/// The reason why nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The send buffer is full; [`Event::Writable`](crate::Event::Writable) follows.
    #[error("the send buffer is full")]
    Blocked,
    /// The application has finished its data.
    #[error("the data have been ended")]
    Ended,
    /// The message is larger than the peer's buffer.
    #[error("the message is larger than the {limit} bytes that the peer can take")]
    TooLarge {
        /// The largest accepted message.
        limit: usize,
    },
    /// A stream write on a message connection, or vice versa.
    #[error("the connection carries the other one of streams and messages")]
    WrongKind,
    /// The connection has ended.
    #[error("the connection is over")]
    Closed(Option<ConnectionError>),
}
