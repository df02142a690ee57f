//! The errors of a test, with remedies.

use std::io;
use std::net::SocketAddr;

use weir_units::Duration;

/// The reason why a test, or its result, is not available.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The transport's name is unknown.
    #[error("no transport is called `{name}`; there are {known}")]
    UnknownTransport {
        /// The given name.
        name: String,
        /// The available names.
        known: String,
    },
    /// The profile's name is unknown.
    #[error("no profile is called `{name}`; there are {known}")]
    UnknownProfile {
        /// The given name.
        name: String,
        /// The available names.
        known: String,
    },
    /// A setting of the test is wrong.
    #[error("{name}: {problem}")]
    Parameter {
        /// The setting.
        name: &'static str,
        /// The mistake and the remedy.
        problem: String,
    },
    /// Another program listens on this address.
    #[error("{0} is in use: stop the program that listens there or choose another port")]
    AddressInUse(SocketAddr),
    /// Listening on the address fails for another reason.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The server's name cannot be resolved.
    #[error("cannot find `{host}`: {source}")]
    UnknownHost {
        /// The name.
        host: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The server cannot be reached.
    #[error("cannot connect to {host} port {port}: {source}; is `weir perf server` running there?")]
    Connect {
        /// The server's name or address.
        host: String,
        /// The server's port.
        port: u16,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The server does not answer at all.
    #[error(
        "{host} port {port} does not answer within {limit}: is the address right, and does each \
         firewall on the way let TCP port {port} through?"
    )]
    NoAnswer {
        /// The server's name or address.
        host: String,
        /// The server's port.
        port: u16,
        /// The time limit.
        limit: Duration,
    },
    /// The test was arranged over TCP, but its data connection was not answered over UDP.
    #[error(
        "{host} answers on TCP port {port}, but not on UDP port {port} within {limit}: firewalls often \
         let only TCP through; open UDP port {port}, or measure with --transport tcp"
    )]
    UdpUnanswered {
        /// The server's name or address.
        host: String,
        /// The server's port.
        port: u16,
        /// The time limit.
        limit: Duration,
    },
    /// An operation exceeded its time limit.
    #[error("{what} took longer than {limit}")]
    TimedOut {
        /// The operation.
        what: &'static str,
        /// The time limit.
        limit: Duration,
    },
    /// No stream transferred a byte within the time limit.
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
    /// A transport with a certificate needs a pin.
    #[error("{0} needs the fingerprint that the server printed, to pin its certificate")]
    PinMissing(&'static str),
    /// The server does not answer, as if it had another key.
    #[error(
        "the server does not answer to this key: does its --key-file hold the same one, and do the \
         firewalls on the way let UDP through?"
    )]
    WrongKey,
    /// The client has a key, but the server has none.
    #[error("the client has a key, and this server has none: start it with the same --key-file")]
    KeyUnknown,
    /// The server has a key, but the client has none.
    #[error("this server takes only clients with its key: give the client the same --key-file")]
    KeyNeeded,
    /// A data connection failed.
    #[error("{doing}: {source}")]
    Stream {
        /// The operation that failed.
        doing: &'static str,
        /// The transport's error.
        source: io::Error,
    },
    /// The server rejects the test.
    #[error("the server refuses the test: {0}")]
    Refused(String),
    /// The other side reports that the test failed there.
    #[error("the test failed on the other side: {0}")]
    Peer(String),
    /// The other side closed the connection.
    #[error("the other side closed the connection while {0}")]
    Closed(&'static str),
    /// The control connection received data that does not match this protocol.
    #[error("client and server do not speak the same version of weir perf: {0}")]
    Protocol(String),
    /// A certificate could not be created or used.
    #[error("certificate: {0}")]
    Certificate(String),
    /// A task of the test ended unexpectedly.
    #[error("internal error: {0}")]
    Internal(String),
}

impl Error {
    pub(super) fn parameter(name: &'static str, problem: String) -> Self {
        Self::Parameter { name, problem }
    }

    /// Returns a function for `map_err` on the operations of a data connection.
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
