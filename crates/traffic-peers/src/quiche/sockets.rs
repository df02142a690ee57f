//! The sockets of an endpoint. They pass received datagrams to its connections, and send each packet
//! from the socket of its path.

use std::io;
use std::iter;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::select_all;
use quiche::{Connection, Header, RecvInfo};
use tokio::time::timeout;
use weir_traffic::calls::Error;

use super::connection::{ID_LENGTH, expire};
use super::send::SendBatch;
use crate::udp::{Batch, Udp};

/// The most batches of a closed connection that are sent at once.
const MOST_AFTER_CLOSE: usize = 8;

/// A container of a connection that [`Sockets`] can drive.
pub trait Driven {
    /// Calls `act` with the connection.
    fn with<T>(&mut self, act: impl FnOnce(&mut Connection) -> T) -> T;
}

impl Driven for Connection {
    fn with<T>(&mut self, act: impl FnOnce(&mut Connection) -> T) -> T {
        act(self)
    }
}

/// A socket and the datagrams received from it.
pub struct Port {
    pub(super) udp: Udp,
    pub(super) incoming: Batch,
}

impl Port {
    /// Opens a socket. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// Fails if the address cannot be bound.
    pub fn bind(address: SocketAddr) -> Result<Self, Error> {
        Ok(Self {
            udp: Udp::bind(address, false)?,
            incoming: Batch::default(),
        })
    }

    /// Returns the local address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.udp.address()
    }

    async fn receive(&mut self) -> io::Result<&mut Self> {
        self.udp.receive(&mut self.incoming).await?;
        Ok(self)
    }

    /// Passes datagrams to their connections. Drops datagrams that belong to none, such as late ones of
    /// a connection that used the socket before.
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
                // An error closes the connection, which its users detect.
                let _ = its.with(|connection| connection.recv(datagram, RecvInfo { from, to }));
            }
        }
    }
}

/// The sockets of an endpoint: one, and more after a client has migrated.
pub struct Sockets {
    newest: Port,
    older: Vec<Port>,
    outgoing: SendBatch,
}

impl Sockets {
    /// Starts with one socket.
    #[must_use]
    pub fn new(port: Port) -> Self {
        Self {
            newest: port,
            older: Vec::new(),
            outgoing: SendBatch::new(),
        }
    }

    /// Adds a socket, which becomes the newest.
    pub fn add(&mut self, port: Port) {
        self.older.push(std::mem::replace(&mut self.newest, port));
    }

    /// Returns the local address of the newest socket.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.newest.address()
    }

    /// Waits for datagrams or for the first timer of the connections, and processes them. Cancel safe:
    /// no received datagram is lost.
    ///
    /// # Errors
    /// Returns the kernel's error. A connection error only closes that connection.
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

    /// Waits for datagrams; `None` if `limit` expires first.
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

    /// Sends all packets that the connection allows.
    ///
    /// # Errors
    /// Returns the kernel's or quiche's error.
    pub async fn flush(&mut self, driven: &mut impl Driven) -> Result<(), Error> {
        self.send(driven).await.map_err(Error::io("sending"))
    }

    async fn send(&mut self, driven: &mut impl Driven) -> io::Result<()> {
        let mut after_close = 0;
        while let Some(built) = driven.with(|connection| self.outgoing.build(connection))? {
            // A quiche that owes a handshake probe when its application closes it has packets without end:
            // it sends ACKs alone, which do not count as the probe, and no close before 1-RTT packets.
            after_close +=
                usize::from(driven.with(|connection| connection.local_error().is_some()));
            if after_close > MOST_AFTER_CLOSE {
                break;
            }
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
