//! The server's side: one socket, one loop, and an application on top of it.

use std::net::SocketAddr;

use quiche::{Config, Connection, RecvInfo};
use weir_traffic::calls::Error;

use super::clients::{Clients, Taken};
use super::{Port, Sockets};

/// What a server does with its connections.
pub trait Application {
    /// What it keeps of each connection.
    type Session;

    /// Takes a connection in, before its first packet.
    fn begin(&mut self, connection: &mut Connection) -> Self::Session;

    /// Reads what has come. Called after packets and timers.
    fn receive(&mut self, connection: &mut Connection, session: &mut Self::Session);

    /// Writes as much as the connection takes; whether it took anything. Called until it did not.
    fn send(&mut self, connection: &mut Connection, session: &mut Self::Session) -> bool;
}

/// What a server offers its clients beside its configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Service {
    /// It asks every client to show that it receives at its address (RFC 9000, section 8.1.2).
    pub retry: bool,
    /// It gives as many connection IDs as a client wants, without which none can migrate.
    pub spare_ids: bool,
}

/// A server with its socket.
pub struct Server<A: Application> {
    sockets: Sockets,
    clients: Clients<A>,
}

impl<A: Application> Server<A> {
    /// Opens the socket. Called within a tokio runtime.
    ///
    /// # Errors
    /// When the address cannot be bound.
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

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.sockets.address()
    }

    /// Serves until the socket fails. A client that misbehaves ends its connection, not the server.
    ///
    /// # Errors
    /// What the system says.
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

/// Gives datagrams to their connections, new ones if need be.
async fn take_in<A: Application>(
    clients: &mut Clients<A>,
    port: &mut Port,
    touched: &mut Vec<usize>,
) {
    let Port { udp, incoming } = port;
    let to = udp.address();
    for (from, datagram) in incoming.datagrams() {
        match clients.take_in(RecvInfo { from, to }, datagram) {
            Some(Taken::Connection(index)) if !touched.contains(&index) => touched.push(index),
            Some(Taken::Answer(answer)) => {
                // A failure is a loss.
                let _ = udp.send(from, &answer, usize::MAX, None).await;
            }
            Some(Taken::Connection(_)) | None => {}
        }
    }
}
