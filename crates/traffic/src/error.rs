//! Why there is no connection, whatever would have carried it.

use std::net::SocketAddr;

use weir_units::Duration;

/// Why a client or listener could not be made, or a connection did not come about.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting cannot be honoured here.
    #[error("{0}")]
    Setting(String),
    /// The address is in use already.
    #[error("{0} is in use already")]
    AddressInUse(SocketAddr),
    /// Nobody listens there.
    #[error("{peer} refuses the connection")]
    Refused {
        /// The server's address.
        peer: SocketAddr,
    },
    /// Nobody answers.
    #[error("no answer from {peer}")]
    NoAnswer {
        /// The server's address.
        peer: SocketAddr,
    },
    /// The server shows another certificate than the one that is trusted.
    #[error("the server at {peer} shows another certificate")]
    WrongCertificate {
        /// The server's address.
        peer: SocketAddr,
    },
    /// The server did not take the data that the client sent before the handshake ended.
    #[error("the server refused early data")]
    EarlyDataRefused,
    /// No session ticket came within the time that was allowed.
    #[error("no session ticket came within {} ms", .0.as_millis())]
    NoTicket(Duration),
    /// Something failed.
    #[error("{doing}: {source}")]
    Failed {
        /// What was being done.
        doing: &'static str,
        /// What the system or the library said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// A setting that cannot be honoured.
    pub fn setting(problem: impl ToString) -> Self {
        Self::Setting(problem.to_string())
    }

    /// Returns a function that tells what was being done, for `map_err`.
    pub fn failed<E>(doing: &'static str) -> impl FnOnce(E) -> Self
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        move |source| Self::Failed {
            doing,
            source: source.into(),
        }
    }
}
