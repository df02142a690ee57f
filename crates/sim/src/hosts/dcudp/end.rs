//! One end of a DCUDP connection, around the engine.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::BytesMut;
use weir_counters::FlowCounters;
use weir_dcudp::{
    Connection, ConnectionError, ConnectionHandle, Endpoint, Event, Route, TransportConfig,
};
use weir_units::{ByteSize, Time};
use weir_wire::Ecn;

use super::stream::Stream;
use crate::flows::PathView;

/// One end of a DCUDP connection.
#[derive(Debug)]
pub(crate) struct DcudpEnd {
    endpoint: Endpoint,
    /// A server's is there as soon as a client has brought a cookie.
    engine: Option<Engine>,
    peer: SocketAddr,
    stream: Stream,
    /// What the endpoint answers without a connection.
    reply: Option<Vec<u8>>,
    /// Datagrams that arrived with a CE mark.
    marks: u64,
    /// How the connection has ended: in order, or not.
    ending: Option<Option<ConnectionError>>,
    told: Told,
}

/// The connection and its name.
#[derive(Debug)]
struct Engine {
    handle: ConnectionHandle,
    connection: Box<Connection>,
}

/// What the application was told of the connection's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    Nothing,
    Closed,
    Drained,
}

impl DcudpEnd {
    /// The end that connects, at once: the group's configuration was checked.
    pub(super) fn client(
        now: Time,
        mut endpoint: Endpoint,
        transport: Arc<TransportConfig>,
        peer: SocketAddr,
    ) -> Self {
        let connected = endpoint.connect(now, transport, peer, None).ok();
        let engine = connected.map(|(handle, connection)| Engine {
            handle,
            connection: Box::new(connection),
        });
        Self::new(endpoint, engine, peer)
    }

    /// The end that listens.
    pub(super) fn server(endpoint: Endpoint, peer: SocketAddr) -> Self {
        Self::new(endpoint, None, peer)
    }

    fn new(endpoint: Endpoint, engine: Option<Engine>, peer: SocketAddr) -> Self {
        Self {
            endpoint,
            engine,
            peer,
            stream: Stream::default(),
            reply: None,
            marks: 0,
            ending: None,
            told: Told::Nothing,
        }
    }

    /// A datagram arrives.
    pub(in crate::hosts) fn receive(&mut self, now: Time, ecn: Ecn, datagram: &[u8]) {
        self.marks += u64::from(ecn == Ecn::Ce);
        let route = self.endpoint.route(now, self.peer, None, datagram);
        match (route, &mut self.engine) {
            (Route::Connection(handle), Some(engine)) if engine.handle == handle => {
                let datagram = BytesMut::from(datagram);
                engine
                    .connection
                    .handle_datagram(now, self.peer, ecn, datagram);
            }
            (Route::New(handle, connection), None) => {
                self.engine = Some(Engine { handle, connection });
                // A flow is one connection: whoever asks again is late. Without a server nothing can
                // be wrong with its settings.
                let _ = self.endpoint.set_server(None);
            }
            (Route::Reply(reply), _) => self.reply = Some(reply),
            _ => {}
        }
    }

    /// Writes the next datagram to the end of an empty buffer, if there is one to be sent now.
    pub(in crate::hosts) fn next_datagram(
        &mut self,
        now: Time,
        buffer: &mut Vec<u8>,
    ) -> Option<Ecn> {
        if let Some(reply) = self.reply.take() {
            buffer.extend_from_slice(&reply);
            return Some(Ecn::NotEct);
        }
        self.take_events();
        let connection = &mut self.engine.as_mut()?.connection;
        self.stream.write(connection);
        let transmit = connection.poll_transmit(now, buffer, 1)?;
        Some(transmit.ecn)
    }

    /// Reads what there is to be read, and hands on what the endpoint has to know.
    pub(crate) fn take_events(&mut self) {
        let Some(Engine { handle, connection }) = &mut self.engine else {
            return;
        };
        while let Some(event) = connection.poll_event() {
            match event {
                Event::Readable => self.stream.read(connection),
                Event::Writable => self.stream.on_writable(),
                Event::Closed(error) => {
                    self.stream.read(connection);
                    self.ending = Some(error);
                }
                Event::Connected | Event::Mode(_) => {}
            }
        }
        while let Some(event) = connection.poll_endpoint_event() {
            self.endpoint.handle_event(*handle, event);
        }
    }

    /// When [`Self::on_time`] is to be called next.
    #[inline]
    pub(crate) fn next_time(&self) -> Option<Time> {
        self.engine.as_ref()?.connection.next_time()
    }

    pub(crate) fn on_time(&mut self, now: Time) {
        if let Some(engine) = &mut self.engine {
            engine.connection.on_time(now);
        }
    }

    /// Bytes delivered to the application.
    #[inline]
    pub(crate) fn delivered(&self) -> u64 {
        self.stream.delivered()
    }

    /// Whether the connection has just been closed, or has now forgotten all about it.
    pub(crate) fn take_closed(&mut self) -> bool {
        let engine = self.engine.as_ref();
        let state = match engine.is_some_and(|engine| engine.connection.is_drained()) {
            true => Told::Drained,
            false if self.is_closed() => Told::Closed,
            false => Told::Nothing,
        };
        let is_news = state > self.told;
        self.told = state;
        is_news
    }

    /// Whether nothing will be delivered any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.ending.is_some()
    }

    /// Whether it ended before everything was delivered, or so long ago that the peer will not learn
    /// of it any more.
    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.ending, Some(Some(_))) || self.told == Told::Drained
    }

    pub(crate) fn write(&mut self, size: ByteSize) {
        self.stream.send(size);
    }

    pub(crate) fn finish(&mut self) {
        self.stream.finish();
    }

    /// Everything has been delivered.
    pub(crate) fn close(&mut self, now: Time) {
        self.stream.finish();
        if let Some(engine) = &mut self.engine {
            self.stream.write(&mut engine.connection);
            engine.connection.close(now);
        }
    }

    pub(crate) fn achieved(&self) -> FlowCounters {
        let engine = self.engine.as_ref();
        let counters = engine.map(|engine| engine.connection.stats().flow);
        FlowCounters {
            delivered: ByteSize::from_bytes(self.delivered()),
            marks: self.marks,
            ..counters.unwrap_or_default()
        }
    }

    pub(crate) fn path(&self) -> PathView {
        let engine = self.engine.as_ref();
        let connected = engine.filter(|engine| engine.connection.is_established());
        let stats = connected.map(|engine| engine.connection.stats());
        PathView {
            smoothed_rtt: stats.map(|stats| stats.smoothed_rtt),
            min_rtt: stats.map(|stats| stats.min_rtt),
        }
    }
}
