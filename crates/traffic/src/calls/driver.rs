//! The interface that a transport implements to be measured.
//!
//! A [`Driver`] creates servers and clients. A server answers every [`Request`] with the reply from
//! [`Library::reply`](crate::calls::payload::Library::reply). A [`RequestClient`] opens
//! connections, and a [`RequestConnection`] makes calls, one at a time. Every
//! [`Preset`](crate::calls::preset::Preset) of a [`Transport`](crate::transport::Transport) is a
//! driver; a stack with a cheaper event loop of its own implements the traits directly. Each
//! process runs one side on one thread, on a current-thread tokio runtime, so the futures need not
//! be `Send`.
//!
//! Drivers pass a reply to the [`Body`] in the chunks that their stack delivers, without a further
//! copy.

use std::fmt;
use std::future::Future;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use weir_net::tls::Identity;

use crate::calls::error::Error;
use crate::calls::payload::{Body, Request};
use crate::calls::specification::TransportSpecification;
use crate::tls::{Tickets, Trust};
use crate::transport::Start;

/// A future that stays on its thread.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// The operation that a measurement times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// A new connection until the client may send. No resumption.
    Handshake,
    /// A new connection and one call on it. No resumption.
    Fresh,
    /// A new connection with a ticket of an earlier one, and one call whose request is early data.
    Resumed,
    /// A new connection without a handshake, by the secret of an earlier one, and one call.
    Known,
    /// One call on an open connection.
    Established,
}

impl Phase {
    /// All phases, in the order of a report.
    pub const ALL: [Self; 5] = [
        Self::Handshake,
        Self::Fresh,
        Self::Resumed,
        Self::Known,
        Self::Established,
    ];

    /// Returns the phase of a baseline that this one is compared with: a baseline has no connections
    /// without a handshake, so they stand beside its fresh ones.
    #[must_use]
    pub fn baseline(self) -> Self {
        match self {
            Self::Known => Self::Fresh,
            phase => phase,
        }
    }

    /// Returns its name in reports and on command lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Fresh => "fresh",
            Self::Resumed => "resumed",
            Self::Known => "known",
            Self::Established => "established",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Phase {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|phase| phase.name() == text)
            .ok_or_else(|| Error::Specification {
                text: text.to_owned(),
                reason: "a phase is handshake, fresh, resumed, known or established".to_owned(),
            })
    }
}

/// The options of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The transport's settings.
    pub specification: TransportSpecification,
    /// The address to listen on; port 0 lets the system choose.
    pub bind: SocketAddr,
    /// Its certificate and key.
    pub identity: Identity,
    /// Whether it accepts early data and answers it before the handshake is complete.
    pub early_data: bool,
}

/// The options of a client.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The transport's settings.
    pub specification: TransportSpecification,
    /// The server's address.
    pub server: SocketAddr,
    /// The certificate that the client trusts.
    pub trust: Trust,
    /// What it keeps of a connection for later ones.
    pub memory: ClientMemory,
}

/// What a client keeps of a connection for later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientMemory {
    /// Nothing, and it offers to keep nothing.
    Nothing,
    /// Tickets, for [`Start::Resumed`].
    Tickets,
    /// The secrets of known peers, for [`Start::Known`].
    Secrets,
}

impl ClientOptions {
    /// Returns a new store of tickets for a client that keeps them.
    #[must_use]
    pub fn tickets(&self) -> Option<Arc<Tickets>> {
        let keeps = self.memory == ClientMemory::Tickets;
        keeps.then(Arc::<Tickets>::default)
    }
}

/// The local address from which a client reaches the server: any port, and loopback for loopback.
#[must_use]
pub fn any_port(server: SocketAddr) -> SocketAddr {
    match (server, server.ip().is_loopback()) {
        (SocketAddr::V4(_), true) => (Ipv4Addr::LOCALHOST, 0).into(),
        (SocketAddr::V4(_), false) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        (SocketAddr::V6(_), true) => (Ipv6Addr::LOCALHOST, 0).into(),
        (SocketAddr::V6(_), false) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

/// A listening server.
pub struct Listening {
    /// The listening address.
    pub address: SocketAddr,
    /// The future that serves; it ends only with a fatal error of the server.
    pub serve: LocalFuture<'static, Result<(), Error>>,
    /// Notes for readers of the results, such as the congestion control in use.
    pub notes: Vec<String>,
}

/// The call that accompanies the opening of a connection.
pub type FirstCall<'a> = Option<(Request, &'a mut Body)>;

/// A transport that can be measured.
pub trait Driver {
    /// Returns its name on command lines.
    fn name(&self) -> &'static str;

    /// Returns its library and version.
    fn version(&self) -> String;

    /// Returns whether it supports the phase.
    fn supports(&self, phase: Phase) -> bool;

    /// Returns whether the server is authenticated and the traffic is encrypted.
    fn is_authenticated(&self) -> bool {
        true
    }

    /// Starts a server. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The address cannot be bound, or a setting is not supported.
    fn listen(&self, options: &ServerOptions) -> Result<Listening, Error>;

    /// Creates a client; nothing is sent yet. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// A setting is not supported.
    fn client(&self, options: &ClientOptions) -> Result<Box<dyn RequestClient>, Error>;
}

/// The client's side of a transport.
pub trait RequestClient {
    /// Opens a connection and makes the first call on it, if one is given. With [`Start::Resumed`]
    /// the request is sent as early data, and it is an error if the server rejects that.
    ///
    /// Without a call it resolves as soon as the client may send application data that only the
    /// authenticated server can read.
    fn open<'a>(
        &'a self,
        start: Start,
        first: FirstCall<'a>,
    ) -> LocalFuture<'a, Result<Box<dyn RequestConnection>, Error>>;
}

/// An open connection.
pub trait RequestConnection {
    /// Sends a request and reads the reply to its end. The caller verifies the body.
    fn call<'a>(
        &'a mut self,
        request: Request,
        body: &'a mut Body,
    ) -> LocalFuture<'a, Result<(), Error>>;

    /// Closes the connection and notifies the peer. A client that keeps tickets or secrets has
    /// received one when this returns. The time belongs to no call; new connections report it as their teardown.
    fn close(self: Box<Self>) -> LocalFuture<'static, Result<(), Error>>;
}

/// The available transports, by name.
#[derive(Default)]
pub struct Drivers {
    drivers: Vec<Box<dyn Driver>>,
}

impl Drivers {
    /// Adds a transport.
    #[must_use]
    pub fn with(mut self, driver: impl Driver + 'static) -> Self {
        self.drivers.push(Box::new(driver));
        self
    }

    /// Returns all transports, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Driver> {
        self.drivers.iter().map(Box::as_ref)
    }

    /// Returns the transport with that name.
    ///
    /// # Errors
    /// [`Error::UnknownTransport`] lists the available ones.
    pub fn get(&self, name: &str) -> Result<&dyn Driver, Error> {
        self.iter()
            .find(|driver| driver.name() == name)
            .ok_or_else(|| Error::UnknownTransport {
                name: name.to_owned(),
                known: self
                    .iter()
                    .map(|driver| driver.name())
                    .collect::<Vec<_>>()
                    .join(", "),
            })
    }
}
