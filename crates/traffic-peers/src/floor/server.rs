//! The floor's server.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use rustls::ServerConfig;
use rustls::quic::{PacketKey, ServerConnection, Version};
use weir_traffic::calls::Error;
use weir_traffic::calls::driver::LocalFuture;
use weir_traffic::calls::identity::ALPN;
use weir_traffic::calls::payload::{Library, Reply, Request};
use weir_traffic::tls::{EarlyData, Identity, server_config};

use super::WINDOW;
use super::handshake::Handshake;
use super::packet::{Batcher, Kind, Record, Sealer};
use crate::udp::{Batch, Udp};

/// Returns the server's future.
pub(super) fn serve(
    udp: Udp,
    packet_size: usize,
    identity: &Identity,
) -> Result<LocalFuture<'static, Result<(), Error>>, Error> {
    let server = Server {
        config: Arc::new(server_config(identity, ALPN, 1, EarlyData::Refused)?),
        library: Library::default(),
        batcher: Batcher::new(packet_size),
        udp,
    };
    Ok(Box::pin(server.run()))
}

struct Server {
    udp: Udp,
    config: Arc<ServerConfig>,
    library: Library,
    batcher: Batcher,
}

/// The state of a client, keyed by its address.
enum Session {
    Handshaking(Box<Handshake>),
    Open(Exchange),
}

/// An open connection and the reply being sent.
struct Exchange {
    sealer: Sealer,
    opener: Box<dyn PacketKey>,
    rest: Option<Reply>,
    chunk: Bytes,
    sent: u64,
    acknowledged: u64,
}

impl Server {
    async fn run(mut self) -> Result<(), Error> {
        let mut sessions: HashMap<SocketAddr, Session> = HashMap::new();
        let mut incoming = Batch::default();
        let mut flight = Vec::new();
        let mut touched: Vec<SocketAddr> = Vec::new();
        loop {
            self.udp
                .receive(&mut incoming)
                .await
                .map_err(Error::io("receiving"))?;
            touched.clear();
            for (from, datagram) in incoming.datagrams() {
                if !touched.contains(&from) {
                    touched.push(from);
                }
                flight.clear();
                // A malformed datagram ends its session, not the server.
                if self
                    .take_in(&mut sessions, from, datagram, &mut flight)
                    .is_err()
                {
                    sessions.remove(&from);
                } else if !flight.is_empty() {
                    self.udp
                        .send(from, &flight, usize::MAX, None)
                        .await
                        .map_err(Error::io("sending"))?;
                }
            }
            for from in &touched {
                if let Some(Session::Open(exchange)) = sessions.get_mut(from) {
                    self.send(*from, exchange).await?;
                }
            }
        }
    }

    fn take_in(
        &self,
        sessions: &mut HashMap<SocketAddr, Session>,
        from: SocketAddr,
        mut datagram: &mut [u8],
        flight: &mut Vec<u8>,
    ) -> Result<(), Error> {
        while let Some((record, rest)) = Record::split(datagram) {
            datagram = rest;
            if record.kind == Kind::Initial {
                let config = Arc::clone(&self.config);
                let tls = ServerConnection::new(config, Version::V1, b"weir-floor".to_vec())?;
                sessions.insert(
                    from,
                    Session::Handshaking(Box::new(Handshake::new(tls.into()))),
                );
            }
            let Some(session) = sessions.get_mut(&from) else {
                return Ok(());
            };
            match session {
                Session::Handshaking(handshake) => {
                    handshake.read(record)?;
                    handshake.write(flight)?;
                    if let Some(keys) = handshake.finish() {
                        *session = Session::Open(Exchange {
                            sealer: Sealer::new(keys.local),
                            opener: keys.remote.packet,
                            rest: None,
                            chunk: Bytes::new(),
                            sent: 0,
                            acknowledged: 0,
                        });
                    }
                }
                Session::Open(exchange) => exchange.take_in(record, &self.library)?,
            }
        }
        Ok(())
    }

    /// Sends as much of the reply as the window allows.
    async fn send(&mut self, to: SocketAddr, exchange: &mut Exchange) -> Result<(), Error> {
        while exchange.sent - exchange.acknowledged < WINDOW {
            if exchange.chunk.is_empty() {
                let Some(chunk) = exchange.rest.as_mut().and_then(Iterator::next) else {
                    return Ok(());
                };
                exchange.chunk = chunk;
            }
            let packet_size = self.batcher.packet_size();
            let (batch, taken) = self.batcher.build(&mut exchange.sealer, &exchange.chunk)?;
            self.udp
                .send(to, batch, packet_size, None)
                .await
                .map_err(Error::io("sending"))?;
            let _ = exchange.chunk.split_to(taken);
            exchange.sent += taken as u64;
        }
        Ok(())
    }
}

impl Exchange {
    fn take_in(&mut self, record: Record<'_>, library: &Library) -> Result<(), Error> {
        let kind = record.kind;
        let payload = record.open(&*self.opener)?;
        match kind {
            Kind::Data => {
                let request = Request::decode(payload)?;
                self.rest = Some(library.reply(request));
                self.chunk = Bytes::new();
                self.sent = 0;
                self.acknowledged = 0;
            }
            Kind::Acknowledgement => {
                let received = payload.try_into().map_err(|_| Error::MalformedRequest)?;
                let received = u64::from_be_bytes(received);
                self.acknowledged = received.clamp(self.acknowledged, self.sent);
            }
            Kind::Initial | Kind::Handshake => return Err(Error::MalformedRequest),
        }
        Ok(())
    }
}
