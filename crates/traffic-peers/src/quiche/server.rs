//! The server's side: one socket, all connections, one loop.

use std::collections::HashMap;
use std::net::SocketAddr;

use bytes::Bytes;
use quiche::{Config, Connection, ConnectionId, Header};
use tokio::time::timeout;
use weir_traffic::calls::Error;
use weir_traffic::calls::payload::{Library, Reply, Request};

use super::send::Outgoing;
use super::{ID_LENGTH, new_connection_id, received_from};
use crate::udp::{Batch, Udp};

/// Serves until the socket fails. A client that misbehaves ends its connection, not the server.
pub(super) async fn serve(udp: Udp, config: Config) -> Result<(), Error> {
    let mut server = Server {
        udp,
        config,
        library: Library::default(),
        outgoing: Outgoing::new(),
        by_id: HashMap::new(),
        peers: Vec::new(),
        free: Vec::new(),
    };
    let mut incoming = Batch::new();
    let mut touched = Vec::new();
    loop {
        touched.clear();
        if server.wait(&mut incoming).await? {
            for (from, datagram) in incoming.datagrams() {
                if let Some(index) = server.take_in(from, datagram)
                    && !touched.contains(&index)
                {
                    touched.push(index);
                }
            }
        } else {
            server.expire(&mut touched);
        }
        for index in &touched {
            server.attend(*index).await?;
        }
    }
}

struct Server {
    udp: Udp,
    config: Config,
    library: Library,
    outgoing: Outgoing,
    /// Index into `peers` by each connection ID that a client may use.
    by_id: HashMap<ConnectionId<'static>, usize>,
    peers: Vec<Option<Peer>>,
    free: Vec<usize>,
}

/// One client's connection.
struct Peer {
    connection: Connection,
    ids: Vec<ConnectionId<'static>>,
    exchanges: HashMap<u64, Exchange>,
}

/// A request as far as it has come, then the reply as far as it has not gone.
enum Exchange {
    Request(Vec<u8>),
    Reply { rest: Reply, chunk: Bytes },
}

impl Server {
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
    fn take_in(&mut self, from: SocketAddr, datagram: &mut [u8]) -> Option<usize> {
        let header = Header::from_slice(datagram, ID_LENGTH).ok()?;
        let index = match self.by_id.get(&header.dcid) {
            Some(index) => *index,
            None if header.ty == quiche::Type::Initial => self.accept(from, &header).ok()?,
            None => return None,
        };
        let info = received_from(&self.udp, from);
        let peer = self.peers.get_mut(index)?.as_mut()?;
        // An error closes the connection, which `attend` finds.
        let _ = peer.connection.recv(datagram, info);
        Some(index)
    }

    fn accept(&mut self, from: SocketAddr, header: &Header<'_>) -> Result<usize, Error> {
        let id = new_connection_id()?;
        let connection = quiche::accept(&id, None, self.udp.address(), from, &mut self.config)
            .map_err(|error| Error::transport("accepting", error))?;
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
                exchanges: HashMap::new(),
            });
        }
        Ok(index)
    }

    /// Does what a connection has to do after datagrams or timers.
    async fn attend(&mut self, index: usize) -> Result<(), Error> {
        let Some(Some(peer)) = self.peers.get_mut(index) else {
            return Ok(());
        };
        if !peer.read_requests(&self.library) {
            // Malformed requests: the code is the application's to choose.
            let _ = peer.connection.close(true, 1, b"malformed request");
        }
        loop {
            let progress = peer.write_replies();
            self.outgoing
                .flush(&self.udp, &mut peer.connection)
                .await
                .map_err(Error::io("sending"))?;
            // Sending makes room for more of a reply; without progress the window is full.
            if !progress {
                break;
            }
        }
        if peer.connection.is_closed() || peer.connection.is_draining() {
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

impl Peer {
    /// Takes in requests; false if one is malformed.
    fn read_requests(&mut self, library: &Library) -> bool {
        if !self.connection.is_established() && !self.connection.is_in_early_data() {
            return true;
        }
        let mut buffer = [0; Request::LENGTH + 1];
        for stream in self.connection.readable() {
            while let Ok((length, ended)) = self.connection.stream_recv(stream, &mut buffer) {
                let exchange = self
                    .exchanges
                    .entry(stream)
                    .or_insert_with(|| Exchange::Request(Vec::with_capacity(Request::LENGTH)));
                let Exchange::Request(request) = exchange else {
                    return false;
                };
                request.extend_from_slice(buffer.get(..length).unwrap_or_default());
                if request.len() > Request::LENGTH {
                    return false;
                }
                if ended {
                    let Ok(request) = Request::decode(request) else {
                        return false;
                    };
                    *exchange = Exchange::Reply {
                        rest: library.reply(request),
                        chunk: Bytes::new(),
                    };
                }
            }
        }
        true
    }

    /// Writes as much of the replies as the connection takes; whether it took anything.
    fn write_replies(&mut self) -> bool {
        let mut progress = false;
        let connection = &mut self.connection;
        self.exchanges.retain(|stream, exchange| {
            let Exchange::Reply { rest, chunk } = exchange else {
                return true;
            };
            loop {
                if chunk.is_empty() {
                    *chunk = rest.next().unwrap_or_default();
                }
                let is_last = rest.remaining() == 0;
                match connection.stream_send(*stream, chunk, is_last) {
                    Ok(taken) => {
                        progress |= taken > 0;
                        let whole = taken == chunk.len();
                        let _ = chunk.split_to(taken);
                        if !whole {
                            return true;
                        }
                        if is_last {
                            return false;
                        }
                    }
                    Err(quiche::Error::Done) => return true,
                    // The client has reset the stream or gone.
                    Err(_) => return false,
                }
            }
        });
        progress
    }
}
