//! The floor's client.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, Keys, PacketKey, Version};
use weir_traffic::calls::Error;
use weir_traffic::calls::driver::{
    ClientOptions, FirstCall, LocalFuture, RequestClient, RequestConnection, any_port,
};
use weir_traffic::calls::identity::{ALPN, SERVER_NAME};
use weir_traffic::calls::payload::{Body, Request};
use weir_traffic::tls::client_config;
use weir_traffic::transport::Start;

use super::handshake::Handshake;
use super::packet::{Kind, Record, Sealer};
use super::{PACKETS_PER_ACK, WINDOW};
use crate::udp::{Batch, Udp};

pub(super) struct FloorClient {
    config: Arc<ClientConfig>,
    server: SocketAddr,
    spin: bool,
    free: Rc<RefCell<Vec<Endpoint>>>,
}

/// A socket with its buffers; connections use it one after the other.
struct Endpoint {
    udp: Udp,
    server: SocketAddr,
    incoming: Batch,
    outgoing: Vec<u8>,
}

impl FloorClient {
    pub(super) fn new(options: &ClientOptions) -> Result<Self, Error> {
        Ok(Self {
            config: Arc::new(client_config(&options.trust, ALPN, None)?),
            server: options.server,
            spin: options.specification.spin,
            free: Rc::default(),
        })
    }

    fn endpoint(&self) -> Result<Endpoint, Error> {
        if let Some(endpoint) = self.free.borrow_mut().pop() {
            return Ok(endpoint);
        }
        Ok(Endpoint {
            udp: Udp::bind(any_port(self.server), self.spin)?,
            server: self.server,
            incoming: Batch::default(),
            outgoing: Vec::new(),
        })
    }

    fn handshake(&self) -> Result<Handshake, Error> {
        let name = ServerName::try_from(SERVER_NAME)
            .map_err(|error| Error::transport("reading the server's name", error))?;
        let parameters = b"weir-floor".to_vec();
        let tls = ClientConnection::new(Arc::clone(&self.config), Version::V1, name, parameters)?;
        Ok(Handshake::new(tls.into()))
    }
}

impl RequestClient for FloorClient {
    fn open<'a>(
        &'a self,
        start: Start,
        first: FirstCall<'a>,
    ) -> LocalFuture<'a, Result<Box<dyn RequestConnection>, Error>> {
        Box::pin(async move {
            if start != Start::Full {
                return Err(Error::Unsupported {
                    transport: "floor",
                    what: "resume".to_owned(),
                });
            }
            let mut endpoint = self.endpoint()?;
            let keys = endpoint.shake_hands(self.handshake()?).await?;
            let mut connection = Box::new(FloorConnection {
                endpoint,
                sealer: Sealer::new(keys.local),
                opener: keys.remote.packet,
                free: Rc::clone(&self.free),
            });
            match first {
                // The request goes out in the datagram that ends the handshake.
                Some((request, body)) => connection.exchange(request, body).await?,
                None => connection.endpoint.send().await?,
            }
            Ok(connection as Box<dyn RequestConnection>)
        })
    }
}

impl Endpoint {
    async fn send(&self) -> Result<(), Error> {
        send(&self.udp, self.server, &self.outgoing).await
    }

    async fn receive(&mut self) -> Result<(), Error> {
        self.udp
            .receive(&mut self.incoming)
            .await
            .map_err(Error::io("receiving"))
    }

    /// Runs a handshake; its last message stays in the buffer.
    async fn shake_hands(&mut self, mut handshake: Handshake) -> Result<Keys, Error> {
        self.outgoing.clear();
        handshake.write(&mut self.outgoing)?;
        self.send().await?;
        self.outgoing.clear();
        loop {
            self.receive().await?;
            for (_, mut datagram) in self.incoming.datagrams() {
                while let Some((record, rest)) = Record::split(datagram) {
                    datagram = rest;
                    // Data of an earlier connection may still arrive.
                    if matches!(record.kind, Kind::Initial | Kind::Handshake) {
                        handshake.read(record)?;
                        handshake.write(&mut self.outgoing)?;
                    }
                }
            }
            if let Some(keys) = handshake.finish() {
                return Ok(keys);
            }
        }
    }
}

struct FloorConnection {
    endpoint: Endpoint,
    sealer: Sealer,
    opener: Box<dyn PacketKey>,
    free: Rc<RefCell<Vec<Endpoint>>>,
}

impl FloorConnection {
    /// Sends the endpoint's buffer with the request appended, and reads the reply.
    async fn exchange(&mut self, request: Request, body: &mut Body) -> Result<(), Error> {
        let outgoing = &mut self.endpoint.outgoing;
        self.sealer
            .append(Kind::Data, &request.encode(), outgoing)?;
        self.endpoint.send().await?;
        while !body.is_complete() {
            self.endpoint.receive().await?;
            self.take_in(request, body).await?;
        }
        Ok(())
    }

    /// Processes a receive batch and, if the reply is longer than the window, acknowledges it.
    async fn take_in(&mut self, request: Request, body: &mut Body) -> Result<(), Error> {
        let endpoint = &mut self.endpoint;
        let mut due = Due {
            is_enabled: request.size > WINDOW,
            packets: 0,
        };
        for (_, datagram) in endpoint.incoming.datagrams() {
            let Some((record, _)) = Record::split(datagram) else {
                continue;
            };
            if record.kind != Kind::Data {
                continue;
            }
            body.take(record.open(&*self.opener)?);
            due.packets += 1;
            if due.is_now(PACKETS_PER_ACK) {
                let received = request.size - body.remaining();
                acknowledge(&mut self.sealer, received, &mut endpoint.outgoing)?;
                send(&endpoint.udp, endpoint.server, &endpoint.outgoing).await?;
            }
        }
        if due.is_now(1) {
            let received = request.size - body.remaining();
            acknowledge(&mut self.sealer, received, &mut endpoint.outgoing)?;
            endpoint.send().await?;
        }
        Ok(())
    }
}

/// Counts packets that are not acknowledged yet.
struct Due {
    is_enabled: bool,
    packets: u32,
}

impl Due {
    /// Returns whether at least `limit` packets are unacknowledged; if so, resets the count.
    fn is_now(&mut self, limit: u32) -> bool {
        let now = self.is_enabled && self.packets >= limit;
        if now {
            self.packets = 0;
        }
        now
    }
}

async fn send(udp: &Udp, server: SocketAddr, datagram: &[u8]) -> Result<(), Error> {
    udp.send(server, datagram, usize::MAX, None)
        .await
        .map_err(Error::io("sending"))
}

fn acknowledge(sealer: &mut Sealer, received: u64, out: &mut Vec<u8>) -> Result<(), Error> {
    out.clear();
    sealer.append(Kind::Acknowledgement, &received.to_be_bytes(), out)
}

impl RequestConnection for FloorConnection {
    fn call<'a>(
        &'a mut self,
        request: Request,
        body: &'a mut Body,
    ) -> LocalFuture<'a, Result<(), Error>> {
        self.endpoint.outgoing.clear();
        Box::pin(self.exchange(request, body))
    }

    fn close(self: Box<Self>) -> LocalFuture<'static, Result<(), Error>> {
        // At the server, the next handshake from this address replaces the connection.
        self.free.borrow_mut().push(self.endpoint);
        Box::pin(std::future::ready(Ok(())))
    }
}
