//! The connections of a quiche server.

use std::collections::HashMap;
use std::time::Duration;

use quiche::{Config, Connection, ConnectionId, Header, RecvInfo, Type};
use weir_traffic::calls::Error;

use super::connection::{ID_LENGTH, expire, is_over, new_connection_id, offer_connection_ids};
use super::{Application, Service, Sockets};

/// The prefix of Retry tokens. They are for tests only: a token can be forged after seeing one.
const TOKEN: &[u8] = b"weir";

/// All connections, and the configuration to accept new ones with.
pub(super) struct Clients<A: Application> {
    config: Config,
    service: Service,
    application: A,
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

/// The result of processing a datagram.
pub(super) enum Received {
    /// The datagram belongs to the connection at this index.
    Connection(usize),
    /// The datagram is answered with this packet; no state is kept.
    Answer(Vec<u8>),
}

impl<A: Application> Clients<A> {
    pub(super) fn new(config: Config, service: Service, application: A) -> Self {
        Self {
            config,
            service,
            application,
            by_id: HashMap::new(),
            peers: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Returns the time left until the first timer expires.
    pub(super) fn timeout(&self) -> Option<Duration> {
        let all = self.peers.iter().flatten();
        all.filter_map(|peer| peer.connection.timeout()).min()
    }

    /// Runs expired timers and appends the indices of their connections to `touched`.
    pub(super) fn expire(&mut self, touched: &mut Vec<usize>) {
        for (index, peer) in self.peers.iter_mut().enumerate() {
            if let Some(peer) = peer
                && expire(&mut peer.connection)
            {
                touched.push(index);
            }
        }
    }

    /// Passes a datagram to its connection; creates one if needed. Drops malformed datagrams.
    pub(super) fn take_in(&mut self, info: RecvInfo, datagram: &mut [u8]) -> Option<Received> {
        let header = Header::from_slice(datagram, ID_LENGTH).ok()?;
        let taken = match self.by_id.get(&header.dcid) {
            Some(index) => Received::Connection(*index),
            None => self.admit(info, &header).ok()?,
        };
        if let Received::Connection(index) = taken {
            let peer = self.peers.get_mut(index)?.as_mut()?;
            // An error closes the connection, which `attend` detects.
            let _ = peer.connection.recv(datagram, info);
        }
        Some(taken)
    }

    /// Processes a packet that belongs to no connection: negotiates, retries or accepts.
    fn admit(&mut self, info: RecvInfo, header: &Header<'_>) -> quiche::Result<Received> {
        // The meaning of all other bits depends on the version (RFC 8999).
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
            // After a Retry packet the client uses the connection ID from that packet.
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
    ) -> quiche::Result<Received> {
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
        Ok(Received::Connection(index))
    }

    /// Reads from and writes to a connection after datagrams or timers, and removes it when closed.
    pub(super) async fn attend(
        &mut self,
        index: usize,
        sockets: &mut Sockets,
    ) -> Result<(), Error> {
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
            sockets.flush(connection).await?;
            // Sending frees buffer space for more of a reply. No progress: the window is full.
            if !progress {
                break;
            }
        }
        if is_over(connection) {
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

fn answer(write: impl FnOnce(&mut [u8]) -> quiche::Result<usize>) -> quiche::Result<Received> {
    let mut out = vec![0; 256];
    let length = write(&mut out)?;
    out.truncate(length);
    Ok(Received::Answer(out))
}
