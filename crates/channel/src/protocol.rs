//! What the connections of a channel are used for.

use std::error::Error;
use std::future::Future;

use weir_net::{Connection, ConnectionError};

/// What the connections of a channel are used for: their ALPN, and what is made of one once it is
/// established.
pub trait Protocol: Send + Sync + 'static {
    /// The ALPN of the connections. The endpoint's TLS configuration has to offer it; a server that
    /// chooses another one gets no calls.
    const APPLICATION_PROTOCOL: &'static [u8];

    /// A connection in use.
    type Link: Link;

    /// Why a connection cannot be used.
    type Error: Error + Send;

    /// Makes a link of a connection that is established. The future is dropped where that takes
    /// longer than connecting may take, or the name does not stand for the server any more.
    ///
    /// # Errors
    /// Where the connection cannot be used. It is then tried again later, as if there was none.
    fn establish(
        &self,
        connection: Connection,
    ) -> impl Future<Output = Result<Self::Link, Self::Error>> + Send;
}

/// A connection in use. Clones are handles to the same one; calls that run keep theirs.
pub trait Link: Clone + Send + Sync + 'static {
    /// Returns whether new calls may use it; once they may not, never again. Every call asks this,
    /// under a lock that changes of connections wait for.
    fn is_usable(&self) -> bool;

    /// Waits until it is not [usable](Link::is_usable) any more, because it is lost or drains.
    fn draining(&self) -> impl Future<Output = ()> + Send;

    /// Returns why it is lost, if it is.
    fn error(&self) -> Option<ConnectionError>;
}

impl Link for Connection {
    fn is_usable(&self) -> bool {
        self.takes_calls()
    }

    fn draining(&self) -> impl Future<Output = ()> + Send {
        Connection::draining(self)
    }

    fn error(&self) -> Option<ConnectionError> {
        Connection::error(self)
    }
}
