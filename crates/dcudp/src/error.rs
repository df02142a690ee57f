//! What can go wrong with a connection.

use weir_units::Duration;

use crate::packet::Refusal;

/// A rule that the peer broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Violation {
    /// It acknowledged data that were never sent.
    #[error("the peer acknowledged data that were never sent")]
    AckOfUnsent,
    /// It reported the loss of data that were never sent.
    #[error("the peer misses data that were never sent")]
    NakOfUnsent,
    /// It answered an ACK that was never sent.
    #[error("the peer answered an ACK that was never sent")]
    Ack2OfUnsent,
    /// It sent more than there was room for.
    #[error("the peer sent more than it was allowed to")]
    FlowControl,
    /// It sent data after their end, or two ends.
    #[error("the peer sent data after their end")]
    DataAfterEnd,
    /// It sent a packet larger than agreed.
    #[error("the peer sent a packet larger than agreed")]
    PacketTooLarge,
    /// The parts of its messages do not fit together, or make a message that no buffer holds.
    #[error("the parts of the peer's messages do not fit together")]
    Message,
    /// It sent parts of messages on a stream, or packets without data.
    #[error("the peer sent packets that are no part of a stream")]
    NotAStream,
    /// It switched between the modes faster than any congestion comes and goes.
    #[error("the peer switches between the modes all the time")]
    ModeFlapping,
    /// It closed the connection as finished, with the end of its data missing here.
    #[error("the peer finished before its data had ended")]
    EarlyFinish,
}

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ConnectionError {
    /// No server answered the handshake.
    #[error("no handshake within {0}")]
    HandshakeTimeout(Duration),
    /// The server takes no connection.
    #[error("the server refused the connection: {}", in_words(*.0))]
    Refused(Refusal),
    /// Nothing was heard of the peer.
    #[error("the peer was silent for {0}")]
    IdleTimeout(Duration),
    /// Data on the way made no progress.
    #[error("no data came through for {0}")]
    Stalled(Duration),
    /// An orderly close took too long.
    #[error("the connection could not be closed in order within {0}")]
    CloseTimeout(Duration),
    /// The peer broke a rule.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// The peer says that this end broke a rule.
    #[error("the peer closed the connection over a broken rule")]
    PeerViolation,
    /// The peer gave the connection up for lack of answers.
    #[error("the peer gave the connection up: it timed out there")]
    PeerTimeout,
    /// The peer's application gave up.
    #[error("the peer's application gave up with code {0}")]
    PeerAborted(u32),
    /// The peer closed, with all its own data delivered, before it had taken all of ours.
    #[error("the peer closed before it had taken all data")]
    PeerClosed,
    /// Our application gave up.
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

/// Why nothing was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Nothing has come; [`Event::Readable`](crate::Event::Readable) tells when.
    #[error("there is nothing to read yet")]
    Blocked,
    /// The peer has said all that it had to say.
    #[error("the data have ended")]
    Ended,
    /// The connection carries the other one of streams and messages.
    #[error("the connection carries the other one of streams and messages")]
    WrongKind,
    /// The connection is over, and the data are not complete.
    #[error(transparent)]
    Closed(ConnectionError),
}

/// Why nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// There is no room; [`Event::Writable`](crate::Event::Writable) tells when.
    #[error("the send buffer is full")]
    Blocked,
    /// The application has ended its data.
    #[error("the data have been ended")]
    Ended,
    /// The message is larger than the peer's buffer.
    #[error("the message is larger than the {limit} bytes that the peer can take")]
    TooLarge {
        /// The largest one.
        limit: usize,
    },
    /// The connection carries the other one of streams and messages.
    #[error("the connection carries the other one of streams and messages")]
    WrongKind,
    /// The connection is over.
    #[error("the connection is over")]
    Closed(Option<ConnectionError>),
}
