//! What can go wrong while transports are measured.

use std::io;

use weir_units::Duration;

/// Why a measurement, or the whole run, could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A transport was asked for that no driver goes by.
    #[error("unknown transport {name:?}; there are {known}")]
    UnknownTransport {
        /// What was asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// The text that selects a transport, placement or phase does not parse.
    #[error("{text:?}: {reason}")]
    Specification {
        /// The text.
        text: String,
        /// What is wrong with it and what would be right.
        reason: String,
    },
    /// A transport was given a setting that it cannot honour.
    #[error("{transport} cannot {what}")]
    Unsupported {
        /// The transport.
        transport: &'static str,
        /// What it was asked to do.
        what: String,
    },
    /// A transport's library reported an error.
    #[error("{doing}: {source}")]
    Transport {
        /// What was being done.
        doing: &'static str,
        /// What the library said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// TLS failed below a transport of the measurement's own.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// There is no client, server or connection.
    #[error(transparent)]
    Connection(#[from] crate::Error),
    /// A system call failed.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A certificate could not be made or read.
    #[error("certificate: {0}")]
    Certificate(String),
    /// A request does not have the form of [`payload::Request`](crate::calls::payload::Request).
    #[error("malformed request")]
    MalformedRequest,
    /// A reply ended early, or went on after its end.
    #[error("the reply has {received} bytes instead of {expected}")]
    Length {
        /// Bytes that came.
        received: u64,
        /// Bytes that were asked for.
        expected: u64,
    },
    /// A reply has the right length and the wrong content.
    #[error("the reply's content is not what was asked for (at byte {at})")]
    Content {
        /// Offset of the first chunk that differs.
        at: u64,
    },
    /// Something took longer than the limit that was set for it.
    #[error("{what} took longer than {} ms", limit.as_millis())]
    Stalled {
        /// What did.
        what: String,
        /// The limit.
        limit: Duration,
    },
    /// A worker process reported an error.
    #[error("{worker}: {message}")]
    Worker {
        /// Which one.
        worker: String,
        /// What it said.
        message: String,
    },
    /// A worker process ended without being told to.
    #[error("{worker} ended unexpectedly ({status})")]
    WorkerEnded {
        /// Which one.
        worker: String,
        /// Its exit status, if known.
        status: String,
    },
    /// A message between the bench and a worker could not be written or read.
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
