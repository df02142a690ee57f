//! The sockets of an endpoint: what comes by them goes to its connections, and what connections have
//! to send goes out by the one that it belongs to.

use std::io;
use std::iter;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::select_all;
use quiche::{Connection, Header, RecvInfo};
use tokio::time::timeout;
use weir_traffic::calls::Error;

use super::connection::{ID_LENGTH, expire};
use super::send::Outgoing;
use crate::udp::{Batch, Udp};

/// What a connection is kept in while sockets drive it.
pub trait Driven {
    /// Does something with the connection.
    fn with<T>(&mut self, act: impl FnOnce(&mut Connection) -> T) -> T;
}

impl Driven for Connection {
    fn with<T>(&mut self, act: impl FnOnce(&mut Connection) -> T) -> T {
        act(self)
    }
}

/// A socket, and what has come by it.
pub struct Port {
    pub(super) udp: Udp,
    pub(super) incoming: Batch,
}

impl Port {
    /// Opens a socket. Called within a tokio runtime.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub fn bind(address: SocketAddr) -> Result<Self, Error> {
        Ok(Self {
            udp: Udp::bind(address, false)?,
            incoming: Batch::default(),
        })
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.udp.address()
    }

    async fn receive(&mut self) -> io::Result<&mut Self> {
        self.udp.receive(&mut self.incoming).await?;
        Ok(self)
    }

    /// Gives datagrams to their connections. What belongs to none is dropped: connections that used
    /// the socket before may still get some.
    fn distribute(&mut self, connections: &mut [impl Driven]) {
        let to = self.address();
        for (from, datagram) in self.incoming.datagrams() {
            let Ok(header) = Header::from_slice(datagram, ID_LENGTH) else {
                continue;
            };
            let is_of = |connection: &mut Connection| {
                connection.source_ids().any(|own| *own == header.dcid)
            };
            let mut all = connections.iter_mut();
            if let Some(its) = all.find_map(|driven| driven.with(is_of).then_some(driven)) {
                // An error closes the connection, which everyone who waits finds.
                let _ = its.with(|connection| connection.recv(datagram, RecvInfo { from, to }));
            }
        }
    }
}

/// The sockets of an endpoint: one, and more after a client has moved.
pub struct Sockets {
    newest: Port,
    older: Vec<Port>,
    outgoing: Outgoing,
}

impl Sockets {
    /// Begins with one.
    #[must_use]
    pub fn new(port: Port) -> Self {
        Self {
            newest: port,
            older: Vec::new(),
            outgoing: Outgoing::new(),
        }
    }

    /// Takes another one in.
    pub fn add(&mut self, port: Port) {
        self.older.push(std::mem::replace(&mut self.newest, port));
    }

    /// Where the newest is.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.newest.address()
    }

    /// Waits for datagrams or for the first timer of the connections, and tells them. It may be
    /// dropped at any time: nothing that has come is lost.
    ///
    /// # Errors
    /// What the system says. Connections that fail are over, no more.
    pub async fn step(&mut self, connections: &mut [impl Driven]) -> Result<(), Error> {
        let timeouts = connections
            .iter_mut()
            .filter_map(|driven| driven.with(|connection| connection.timeout()));
        let limit = timeouts.min();
        match self.receive(limit).await? {
            Some(port) => port.distribute(connections),
            None => {
                for driven in connections {
                    driven.with(expire);
                }
            }
        }
        Ok(())
    }

    /// Waits for datagrams; `None` if the limit was first.
    pub(super) async fn receive(
        &mut self,
        limit: Option<Duration>,
    ) -> Result<Option<&mut Port>, Error> {
        let receive = self.receive_any();
        let received = match limit {
            Some(limit) => match timeout(limit, receive).await {
                Ok(received) => received,
                Err(_) => return Ok(None),
            },
            None => receive.await,
        };
        received.map(Some).map_err(Error::io("receiving"))
    }

    async fn receive_any(&mut self) -> io::Result<&mut Port> {
        if self.older.is_empty() {
            return self.newest.receive().await;
        }
        let all = iter::once(&mut self.newest).chain(&mut self.older);
        let receiving = all.map(|port| Box::pin(port.receive()));
        select_all(receiving).await.0
    }

    /// Sends all that the connection allows.
    ///
    /// # Errors
    /// What the system or quiche says.
    pub async fn flush(&mut self, driven: &mut impl Driven) -> Result<(), Error> {
        self.send(driven).await.map_err(Error::io("sending"))
    }

    async fn send(&mut self, driven: &mut impl Driven) -> io::Result<()> {
        while let Some(built) = driven.with(|connection| self.outgoing.build(connection))? {
            let mut all = iter::once(&self.newest).chain(&self.older);
            if let Some(port) = all.find(|port| port.address() == built.from) {
                let contents = self.outgoing.contents(&built);
                port.udp
                    .send(built.to, contents, built.segment, None)
                    .await?;
            }
        }
        Ok(())
    }
}
