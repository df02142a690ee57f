//! The error of creating a connection, for all transports.

use std::net::SocketAddr;

use weir_units::Duration;

/// The reason why a client, listener or connection could not be created.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting is not supported here.
    #[error("{0}")]
    Setting(String),
    /// The address is in use already.
    #[error("{0} is in use already")]
    AddressInUse(SocketAddr),
    /// The server refuses connections on this port.
    #[error("{peer} refuses the connection")]
    Refused {
        /// The server's address.
        peer: SocketAddr,
    },
    /// The server does not answer.
    #[error("no answer from {peer}")]
    NoAnswer {
        /// The server's address.
        peer: SocketAddr,
    },
    /// The server's certificate is not the trusted one.
    #[error("the server at {peer} shows another certificate")]
    WrongCertificate {
        /// The server's address.
        peer: SocketAddr,
    },
    /// The server rejected the data that the client sent before the handshake was complete.
    #[error("the server refused early data")]
    EarlyDataRefused,
    /// The server did not accept the secret of an earlier connection.
    #[error("the server refused a connection without a handshake")]
    SecretRefused,
    /// No session ticket, or no secret of a known peer, arrived within the time limit.
    #[error("no session ticket or secret came within {} ms", .0.as_millis())]
    NoTicket(Duration),
    /// An operation failed.
    #[error("{doing}: {source}")]
    Failed {
        /// The operation.
        doing: &'static str,
        /// The error of the operating system or the library.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// Returns the error of an unsupported setting.
    pub fn setting(problem: impl ToString) -> Self {
        Self::Setting(problem.to_string())
    }

    /// Returns a function that adds the operation to an error, for `map_err`.
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
