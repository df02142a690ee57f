//! The errors of measuring transports.

use std::io;

use weir_units::Duration;

/// The reason why a measurement, or the whole run, failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No driver has the requested name.
    #[error("unknown transport {name:?}; there are {known}")]
    UnknownTransport {
        /// The requested name.
        name: String,
        /// The available names.
        known: String,
    },
    /// The text of a transport, placement or phase is invalid.
    #[error("{text:?}: {reason}")]
    Specification {
        /// The text.
        text: String,
        /// The mistake and the remedy.
        reason: String,
    },
    /// A transport does not support a setting.
    #[error("{transport} cannot {what}")]
    Unsupported {
        /// The transport.
        transport: &'static str,
        /// The unsupported setting or operation.
        what: String,
    },
    /// A transport's library reported an error.
    #[error("{doing}: {source}")]
    Transport {
        /// The operation that failed.
        doing: &'static str,
        /// The library's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// TLS failed below a transport of this crate.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// A client, server or connection could not be created.
    #[error(transparent)]
    Connection(#[from] crate::Error),
    /// A system call failed.
    #[error("{doing}: {source}")]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A certificate could not be created or read.
    #[error("certificate: {0}")]
    Certificate(String),
    /// A request is not an encoded [`payload::Request`](crate::calls::payload::Request).
    #[error("malformed request")]
    MalformedRequest,
    /// A reply is too short or too long.
    #[error("the reply has {received} bytes instead of {expected}")]
    Length {
        /// Bytes received.
        received: u64,
        /// Bytes requested.
        expected: u64,
    },
    /// A reply has the right length but wrong content.
    #[error("the reply's content is not what was asked for (at byte {at})")]
    Content {
        /// The offset of the first chunk that differs.
        at: u64,
    },
    /// An operation exceeded its time limit.
    #[error("{what} took longer than {} ms", limit.as_millis())]
    Stalled {
        /// The operation.
        what: String,
        /// The limit.
        limit: Duration,
    },
    /// A load is a part of what a transport can carry, but that was not measured.
    #[error("the load is a part of what {reference} can carry, which was not measured")]
    NoRate {
        /// The transport.
        reference: String,
    },
    /// A worker process reported an error.
    #[error("{worker}: {message}")]
    Worker {
        /// The worker.
        worker: String,
        /// Its message.
        message: String,
    },
    /// A worker process ended unexpectedly.
    #[error("{worker} ended unexpectedly ({status})")]
    WorkerEnded {
        /// The worker.
        worker: String,
        /// Its exit status, if known.
        status: String,
    },
    /// A message between the benchmark and a worker could not be encoded or decoded.
    #[error("message between processes: {0}")]
    Message(#[from] serde_json::Error),
}

impl Error {
    /// Wraps an error of a transport's library.
    pub fn transport(
        doing: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Transport {
            doing,
            source: source.into(),
        }
    }

    /// Returns a function that wraps an I/O error, for `map_err`.
    pub fn io(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }
}
