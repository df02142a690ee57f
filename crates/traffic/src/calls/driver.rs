//! What a transport has to offer to be measured.
//!
//! A [`Driver`] makes servers and clients. A server answers every [`Request`] with the reply that
//! [`Library::reply`](crate::calls::payload::Library::reply) gives. A [`RequestClient`] opens
//! connections, and a [`RequestConnection`] makes calls, one at a time. Every
//! [`Preset`](crate::calls::preset::Preset) of a [`Transport`](crate::transport::Transport) is a driver;
//! a stack whose own loop is its cheapest way implements one by itself. Each process runs one side on
//! one thread, on a current-thread tokio runtime; hence the futures need not be `Send`.
//!
//! Drivers hand a reply to the [`Body`] in whatever chunks their stack delivers, without a further
//! copy.

use std::fmt;
use std::future::Future;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use weir_net::tls::Identity;

use crate::calls::error::Error;
use crate::calls::payload::{Body, Request};
use crate::calls::specification::TransportSpecification;
use crate::tls::Trust;
use crate::transport::Start;

/// A future that stays on its thread.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// What one measurement is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// A new connection until the client may send, nothing more. No resumption.
    Handshake,
    /// A new connection and one call on it. No resumption.
    Fresh,
    /// The same with a ticket of an earlier connection, the request sent as early data.
    Resumed,
    /// One call on an open connection.
    Established,
}

impl Phase {
    /// All of them, in the order in which a report shows them.
    pub const ALL: [Self; 4] = [
        Self::Handshake,
        Self::Fresh,
        Self::Resumed,
        Self::Established,
    ];

    /// Its name in reports and on command lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Fresh => "fresh",
            Self::Resumed => "resumed",
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
                reason: "a phase is handshake, fresh, resumed or established".to_owned(),
            })
    }
}

/// What a server is told.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The transport's settings.
    pub specification: TransportSpecification,
    /// Where to listen; port 0 lets the system choose.
    pub bind: SocketAddr,
    /// Its certificate and key.
    pub identity: Identity,
    /// Whether it accepts early data and answers it before the handshake has ended.
    pub early_data: bool,
}

/// What a client is told.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The transport's settings.
    pub specification: TransportSpecification,
    /// The server's address.
    pub server: SocketAddr,
    /// Which certificate the client believes.
    pub trust: Trust,
    /// Whether it keeps tickets, for [`Start::Resumed`]. Without, it offers and keeps none.
    pub resumption: bool,
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
    /// Where it listens.
    pub address: SocketAddr,
    /// What serves; it ends only with an error that ends the server.
    pub serve: LocalFuture<'static, Result<(), Error>>,
    /// What a reader of the results should know, such as the congestion control in use.
    pub notes: Vec<String>,
}

/// The call that goes with the opening of a connection.
pub type FirstCall<'a> = Option<(Request, &'a mut Body)>;

/// A transport that can be measured.
pub trait Driver {
    /// Its name, as people type it.
    fn name(&self) -> &'static str;

    /// The library that does the work, with its version.
    fn version(&self) -> String;

    /// Whether it can do the phase at all.
    fn supports(&self, phase: Phase) -> bool;

    /// Whether the server proves who it is and the traffic is encrypted.
    fn is_authenticated(&self) -> bool {
        true
    }

    /// Starts a server. Called within a tokio runtime.
    ///
    /// # Errors
    /// When the address cannot be bound, or a setting cannot be honoured.
    fn listen(&self, options: &ServerOptions) -> Result<Listening, Error>;

    /// Makes a client; nothing is sent yet. Called within a tokio runtime.
    ///
    /// # Errors
    /// When a setting cannot be honoured.
    fn client(&self, options: &ClientOptions) -> Result<Box<dyn RequestClient>, Error>;
}

/// The client's side of a transport.
pub trait RequestClient {
    /// Opens a connection and, if one is given, makes the first call on it. With [`Start::Resumed`]
    /// its request goes out as early data, and it is an error if the server refuses that.
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

    /// Closes the connection and tells the peer. A client that keeps tickets has one when this
    /// returns. Never part of a measured time.
    fn close(self: Box<Self>) -> LocalFuture<'static, Result<(), Error>>;
}

/// The transports at hand, by name.
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

    /// All of them, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Driver> {
        self.drivers.iter().map(Box::as_ref)
    }

    /// The transport of that name.
    ///
    /// # Errors
    /// [`Error::UnknownTransport`] lists those that exist.
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
