//! HTTP/3 as what a channel's connections are used for.

use weir_channel::{Link, Protocol};
use weir_net::{Connection, ConnectionError};

use super::Client;
use crate::APPLICATION_PROTOCOL;
use crate::error::Error;

pub(super) struct Http;

impl Protocol for Http {
    const APPLICATION_PROTOCOL: &'static [u8] = APPLICATION_PROTOCOL;

    type Link = Client;
    type Error = Error;

    async fn establish(&self, connection: Connection) -> Result<Client, Error> {
        Client::new(connection).await
    }
}

impl Link for Client {
    fn is_usable(&self) -> bool {
        !self.peer.is_going_away() && self.connection.takes_calls()
    }

    fn draining(&self) -> impl Future<Output = ()> + Send {
        Client::draining(self)
    }

    fn error(&self) -> Option<ConnectionError> {
        self.connection.error()
    }
}
