//! What a channel's connections are used for.

use std::convert::Infallible;

use weir_channel::Protocol;
use weir_net::Connection;

use crate::wire::APPLICATION_PROTOCOL;

/// `weir-rpc/1`: a call is a stream, and a connection needs nothing besides.
pub(super) struct Rpc;

impl Protocol for Rpc {
    const APPLICATION_PROTOCOL: &'static [u8] = APPLICATION_PROTOCOL;

    type Link = Connection;
    type Error = Infallible;

    async fn establish(&self, connection: Connection) -> Result<Connection, Infallible> {
        Ok(connection)
    }
}
