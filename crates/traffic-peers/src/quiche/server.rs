//! The quiche server: one socket, one loop, and an application on top.

use std::net::SocketAddr;

use quiche::{Config, Connection, RecvInfo};
use weir_traffic::calls::Error;

use super::clients::{Clients, Received};
use super::{Port, Sockets};

/// The application that a server runs on its connections.
pub trait Application {
    /// The application's state per connection.
    type Session;

    /// Returns the state of a new connection. Called before its first packet is processed.
    fn begin(&mut self, connection: &mut Connection) -> Self::Session;

    /// Reads received data. Called after packets and timers.
    fn receive(&mut self, connection: &mut Connection, session: &mut Self::Session);

    /// Writes as much as the connection accepts. Returns whether it accepted any; called until it does
    /// not.
    fn send(&mut self, connection: &mut Connection, session: &mut Self::Session) -> bool;
}

/// Server options beyond the quiche configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Service {
    /// Validates every client's address with a Retry packet (RFC 9000, section 8.1.2).
    pub retry: bool,
    /// Issues as many connection IDs as a client accepts; a client cannot migrate without them.
    pub spare_ids: bool,
}

/// A server with its socket.
pub struct Server<A: Application> {
    sockets: Sockets,
    clients: Clients<A>,
}

impl<A: Application> Server<A> {
    /// Opens the socket. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// Fails if the address cannot be bound.
    pub fn bind(
        address: SocketAddr,
        config: Config,
        service: Service,
        application: A,
    ) -> Result<Self, Error> {
        Ok(Self {
            sockets: Sockets::new(Port::bind(address)?),
            clients: Clients::new(config, service, application),
        })
    }

    /// Returns the listening address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.sockets.address()
    }

    /// Serves until the socket fails. A misbehaving client loses its connection; the server goes on.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub async fn run(mut self) -> Result<(), Error> {
        let mut touched = Vec::new();
        loop {
            touched.clear();
            let limit = self.clients.timeout();
            match self.sockets.receive(limit).await? {
                Some(port) => take_in(&mut self.clients, port, &mut touched).await,
                None => self.clients.expire(&mut touched),
            }
            for index in &touched {
                self.clients.attend(*index, &mut self.sockets).await?;
            }
        }
    }
}

/// Passes datagrams to their connections; creates new ones if needed.
async fn take_in<A: Application>(
    clients: &mut Clients<A>,
    port: &mut Port,
    touched: &mut Vec<usize>,
) {
    let Port { udp, incoming } = port;
    let to = udp.address();
    for (from, datagram) in incoming.datagrams() {
        match clients.take_in(RecvInfo { from, to }, datagram) {
            Some(Received::Connection(index)) if !touched.contains(&index) => touched.push(index),
            Some(Received::Answer(answer)) => {
                // A failed send counts as packet loss.
                let _ = udp.send(from, &answer, usize::MAX, None).await;
            }
            Some(Received::Connection(_)) | None => {}
        }
    }
}
