//! The server's side: one socket, all connections, one loop, and an application on top of it.

use std::collections::HashMap;
use std::net::SocketAddr;

use quiche::{Config, Connection, ConnectionId, Header, RecvInfo, Type};
use tokio::time::timeout;
use weir_traffic::calls::Error;

use super::send::Outgoing;
use super::{ID_LENGTH, new_connection_id, offer_connection_ids, received_from};
use crate::udp::{Batch, Udp};

/// Begins our tokens. They are for tests: whoever sees one could make another.
const TOKEN: &[u8] = b"weir";

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
    udp: Udp,
    config: Config,
    service: Service,
    application: A,
    outgoing: Outgoing,
    /// Index into `peers` by each connection ID that a client may use.
    by_id: HashMap<ConnectionId<'static>, usize>,
    peers: Vec<Option<Peer<A::Session>>>,
    free: Vec<usize>,
}

/// One client's connection.
struct Peer<S> {
    connection: Connection,
    ids: Vec<ConnectionId<'static>>,
    session: S,
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
            udp: Udp::bind(address, false)?,
            config,
            service,
            application,
            outgoing: Outgoing::new(),
            by_id: HashMap::new(),
            peers: Vec::new(),
            free: Vec::new(),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.udp.address()
    }

    /// Serves until the socket fails. A client that misbehaves ends its connection, not the server.
    ///
    /// # Errors
    /// What the system says.
    pub async fn run(mut self) -> Result<(), Error> {
        let mut incoming = Batch::new();
        let mut touched = Vec::new();
        loop {
            touched.clear();
            if self.wait(&mut incoming).await? {
                for (from, datagram) in incoming.datagrams() {
                    if let Some(index) = self.take_in(from, datagram).await
                        && !touched.contains(&index)
                    {
                        touched.push(index);
                    }
                }
            } else {
                self.expire(&mut touched);
            }
            for index in &touched {
                self.attend(*index).await?;
            }
        }
    }

    /// Waits for datagrams; false if a timer was first.
    async fn wait(&mut self, incoming: &mut Batch) -> Result<bool, Error> {
        let next = self
            .peers
            .iter()
            .flatten()
            .filter_map(|peer| peer.connection.timeout())
            .min();
        let receive = self.udp.receive(incoming);
        let received = match next {
            Some(limit) => match timeout(limit, receive).await {
                Ok(received) => received,
                Err(_) => return Ok(false),
            },
            None => receive.await,
        };
        received.map_err(Error::io("receiving"))?;
        Ok(true)
    }

    fn expire(&mut self, touched: &mut Vec<usize>) {
        for (index, peer) in self.peers.iter_mut().enumerate() {
            if let Some(peer) = peer
                && peer.connection.timeout().is_some_and(|left| left.is_zero())
            {
                peer.connection.on_timeout();
                touched.push(index);
            }
        }
    }

    /// Gives a datagram to its connection, a new one if need be. Garbage is dropped.
    async fn take_in(&mut self, from: SocketAddr, datagram: &mut [u8]) -> Option<usize> {
        let header = Header::from_slice(datagram, ID_LENGTH).ok()?;
        let info = received_from(&self.udp, from);
        let index = match self.by_id.get(&header.dcid) {
            Some(index) => *index,
            None => match self.admit(info, &header).ok()? {
                Admission::Connection(index) => index,
                Admission::Answer(answer) => {
                    // A failure is a loss.
                    let _ = self.udp.send(from, &answer, usize::MAX).await;
                    return None;
                }
            },
        };
        let peer = self.peers.get_mut(index)?.as_mut()?;
        // An error closes the connection, which `attend` finds.
        let _ = peer.connection.recv(datagram, info);
        Some(index)
    }

    /// Decides about a packet of no connection.
    fn admit(&mut self, info: RecvInfo, header: &Header<'_>) -> quiche::Result<Admission> {
        // Only the version says what the other bits mean (RFC 8999).
        if header.ty != Type::Short && !quiche::version_is_supported(header.version) {
            return answer(|out| quiche::negotiate_version(&header.scid, &header.dcid, out));
        }
        if header.ty != Type::Initial {
            return Err(quiche::Error::InvalidPacket);
        }
        let new = new_connection_id().map_err(|_| quiche::Error::CryptoFail)?;
        if !self.service.retry {
            return self.accept(info, header, new, None);
        }
        let token = header.token.as_deref().unwrap_or_default();
        match token.strip_prefix(TOKEN) {
            // After a Retry packet the client uses the ID that it gave.
            Some(original) => {
                let given = header.dcid.clone().into_owned();
                self.accept(info, header, given, Some(ConnectionId::from_ref(original)))
            }
            None => {
                let token = [TOKEN, &header.dcid].concat();
                let (scid, dcid, version) = (&header.scid, &header.dcid, header.version);
                answer(|out| quiche::retry(scid, dcid, &new, &token, version, out))
            }
        }
    }

    fn accept(
        &mut self,
        info: RecvInfo,
        header: &Header<'_>,
        id: ConnectionId<'static>,
        original: Option<ConnectionId<'_>>,
    ) -> quiche::Result<Admission> {
        let config = &mut self.config;
        let mut connection = quiche::accept(&id, original.as_ref(), info.to, info.from, config)?;
        let session = self.application.begin(&mut connection);
        let ids = vec![id, header.dcid.clone().into_owned()];
        let index = self.free.pop().unwrap_or_else(|| {
            self.peers.push(None);
            self.peers.len() - 1
        });
        for id in &ids {
            self.by_id.insert(id.clone(), index);
        }
        if let Some(place) = self.peers.get_mut(index) {
            *place = Some(Peer {
                connection,
                ids,
                session,
            });
        }
        Ok(Admission::Connection(index))
    }

    /// Does what a connection has to do after datagrams or timers.
    async fn attend(&mut self, index: usize) -> Result<(), Error> {
        let Some(Some(peer)) = self.peers.get_mut(index) else {
            return Ok(());
        };
        let connection = &mut peer.connection;
        self.application.receive(connection, &mut peer.session);
        if self.service.spare_ids {
            while let Some(id) = connection.retired_scid_next() {
                self.by_id.remove(&id);
            }
            offer_connection_ids(connection, |id| {
                self.by_id.insert(id.clone(), index);
                peer.ids.push(id);
            });
        }
        loop {
            let progress = self.application.send(connection, &mut peer.session);
            self.outgoing
                .flush(&self.udp, connection)
                .await
                .map_err(Error::io("sending"))?;
            // Sending makes room for more of a reply; without progress the window is full.
            if !progress {
                break;
            }
        }
        if connection.is_closed() || connection.is_draining() {
            for id in &peer.ids {
                self.by_id.remove(id);
            }
            if let Some(place) = self.peers.get_mut(index) {
                *place = None;
            }
            self.free.push(index);
        }
        Ok(())
    }
}

/// What becomes of a packet of no connection.
enum Admission {
    /// It begins this one.
    Connection(usize),
    /// It is answered, and nothing is kept.
    Answer(Vec<u8>),
}

fn answer(write: impl FnOnce(&mut [u8]) -> quiche::Result<usize>) -> quiche::Result<Admission> {
    let mut out = vec![0; 256];
    let length = write(&mut out)?;
    out.truncate(length);
    Ok(Admission::Answer(out))
}
