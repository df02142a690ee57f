//! What can go wrong in a test, and what to do about it.

use std::io;
use std::net::SocketAddr;

use weir_units::Duration;

/// Why there is no test, or no result of one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No transport of that name.
    #[error("no transport is called `{name}`; there are {known}")]
    UnknownTransport {
        /// The name that was given.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// A setting of the test is wrong.
    #[error("{name}: {problem}")]
    Parameter {
        /// The setting.
        name: &'static str,
        /// What is wrong with it and what would be right.
        problem: String,
    },
    /// Another program listens on the address.
    #[error("{0} is in use: stop the program that listens there or choose another port")]
    AddressInUse(SocketAddr),
    /// The address cannot be listened on for another reason.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The server's name leads nowhere.
    #[error("cannot find `{host}`: {source}")]
    UnknownHost {
        /// The name.
        host: String,
        /// The system's error.
        source: io::Error,
    },
    /// The server cannot be reached.
    #[error("cannot connect to {host} port {port}: {source}; is `weir perf server` running there?")]
    Connect {
        /// The server's name or address.
        host: String,
        /// The server's port.
        port: u16,
        /// The system's error.
        source: io::Error,
    },
    /// The server does not answer at all.
    #[error(
        "{host} port {port} does not answer within {limit}: is the address right, and does the \
         network let it through?"
    )]
    NoAnswer {
        /// The server's name or address.
        host: String,
        /// The server's port.
        port: u16,
        /// The time that was allowed.
        limit: Duration,
    },
    /// Something did not happen in the time that was allowed.
    #[error("{what} took longer than {limit}")]
    TimedOut {
        /// What.
        what: &'static str,
        /// The time that was allowed.
        limit: Duration,
    },
    /// No stream moved a byte in the time that was allowed.
    #[error("no data arrived or left for {0}: the test has stalled")]
    Stalled(Duration),
    /// The server's certificate is not the pinned one.
    #[error(
        "the server at {address} shows another certificate than the pinned one: \
         compare the pin with the fingerprint that the server printed"
    )]
    WrongPin {
        /// The server's address.
        address: SocketAddr,
    },
    /// A transport that shows a certificate needs a pin.
    #[error("{0} needs the fingerprint that the server printed, to pin its certificate")]
    PinMissing(&'static str),
    /// Nothing came back, as from a server with another key.
    #[error(
        "the server does not answer to this key: does its --key-file hold the same one, and does UDP \
         get through?"
    )]
    WrongKey,
    /// The client has a key, the server none.
    #[error("the client has a key, and this server has none: start it with the same --key-file")]
    KeyUnknown,
    /// The server has a key, the client none.
    #[error("this server takes only clients with its key: give the client the same --key-file")]
    KeyNeeded,
    /// A data connection failed.
    #[error("{doing}: {source}")]
    Stream {
        /// What was being done.
        doing: &'static str,
        /// The transport's error.
        source: io::Error,
    },
    /// The server does not want to run the test.
    #[error("the server refuses the test: {0}")]
    Refused(String),
    /// The other side reports that the test failed there.
    #[error("the test failed on the other side: {0}")]
    Peer(String),
    /// The other side went away.
    #[error("the other side closed the connection while {0}")]
    Closed(&'static str),
    /// What came on the control connection is not this protocol.
    #[error("client and server do not speak the same version of weir perf: {0}")]
    Protocol(String),
    /// A certificate could not be made or used.
    #[error("certificate: {0}")]
    Certificate(String),
    /// A task of the test ended in an unforeseen way.
    #[error("internal error: {0}")]
    Internal(String),
}

impl Error {
    pub(super) fn parameter(name: &'static str, problem: String) -> Self {
        Self::Parameter { name, problem }
    }

    /// For `map_err` on the operations of a data connection.
    pub(super) fn stream(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Stream { doing, source }
    }

    pub(super) fn certificate(error: impl ToString) -> Self {
        Self::Certificate(error.to_string())
    }

    pub(super) fn listening(address: SocketAddr, error: crate::Error) -> Self {
        match error {
            crate::Error::AddressInUse(address) => Self::AddressInUse(address),
            crate::Error::Failed { source, .. } => Self::Listen {
                address,
                source: io::Error::other(source),
            },
            error => Self::Listen {
                address,
                source: io::Error::other(error),
            },
        }
    }
}

impl From<crate::Error> for Error {
    fn from(error: crate::Error) -> Self {
        match error {
            crate::Error::WrongCertificate { peer } => Self::WrongPin { address: peer },
            crate::Error::Failed { doing, source } => Self::Stream {
                doing,
                source: io::Error::other(source),
            },
            error => Self::Stream {
                doing: "opening a data connection",
                source: io::Error::other(error),
            },
        }
    }
}
