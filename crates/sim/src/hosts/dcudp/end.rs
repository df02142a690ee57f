//! One end of a DCUDP connection: a wrapper around the engine.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::BytesMut;
use weir_congestion::AlgorithmSpec;
use weir_counters::FlowCounters;
use weir_dcudp::{
    Connection, ConnectionError, ConnectionHandle, Endpoint, Event, Route, TransportConfig,
};
use weir_units::{ByteSize, Time};
use weir_wire::Ecn;

use super::stream::Stream;
use crate::flows::PathView;
use crate::hosts::datagram_slab::DatagramRoute;
use crate::hosts::end::{CloseNotice, DatagramEnd, End};
use crate::packet::{Address, Location};

/// One end of a DCUDP connection.
#[derive(Debug)]
pub(crate) struct DcudpEnd {
    endpoint: Endpoint,
    /// On a server it exists once a client has presented a cookie.
    engine: Option<Engine>,
    peer: SocketAddr,
    stream: Stream,
    /// A reply of the endpoint without a connection.
    reply: Option<Vec<u8>>,
    /// Parameters that have changed before there was a connection.
    parameters: Option<AlgorithmSpec>,
    /// Datagrams that arrived with a CE mark.
    marks: u64,
    /// The end of the connection: orderly (`Some(None)`), or by an error.
    ending: Option<Option<ConnectionError>>,
    told: CloseNotice,
}

/// The connection and its handle.
#[derive(Debug)]
struct Engine {
    handle: ConnectionHandle,
    connection: Box<Connection>,
}

impl DcudpEnd {
    /// Creates the end that connects at once; the group's configuration has been validated.
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

    /// Creates the end that listens.
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
            parameters: None,
            marks: 0,
            ending: None,
            told: CloseNotice::Nothing,
        }
    }

    /// Receives a datagram.
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
            (Route::New(handle, mut connection), None) => {
                if let Some(spec) = self.parameters.take() {
                    connection.set_congestion_parameters(&spec);
                }
                self.engine = Some(Engine { handle, connection });
                // A flow is one connection: later requests are refused. Without a server there are no
                // settings to reject.
                let _ = self.endpoint.set_server(None);
            }
            (Route::Reply(reply), _) => self.reply = Some(reply),
            _ => {}
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Time) {
        if let Some(engine) = &mut self.engine {
            engine.connection.handle_timeout(now);
        }
    }

    /// Takes over parameters of the congestion control.
    pub(crate) fn set_congestion_parameters(&mut self, spec: &AlgorithmSpec) {
        match &mut self.engine {
            Some(engine) => engine.connection.set_congestion_parameters(spec),
            None => self.parameters = Some(spec.clone()),
        }
    }

    pub(crate) fn write(&mut self, size: ByteSize) {
        self.stream.send(size);
    }

    pub(crate) fn finish(&mut self) {
        self.stream.finish();
    }

    /// Closes the connection: everything has been delivered.
    pub(crate) fn close(&mut self, now: Time) {
        self.stream.finish();
        if let Some(engine) = &mut self.engine {
            self.stream.write(&mut engine.connection);
            engine.connection.close(now);
        }
    }
}

impl End for DcudpEnd {
    fn achieved(&self) -> FlowCounters {
        let engine = self.engine.as_ref();
        let counters = engine.map(|engine| engine.connection.stats().flow);
        FlowCounters {
            delivered: ByteSize::from_bytes(self.delivered()),
            marks: self.marks,
            ..counters.unwrap_or_default()
        }
    }

    fn path(&self) -> PathView {
        let engine = self.engine.as_ref();
        let connected = engine.filter(|engine| engine.connection.is_established());
        let stats = connected.map(|engine| engine.connection.stats());
        PathView {
            smoothed_rtt: stats.map(|stats| stats.smoothed_rtt),
            min_rtt: stats.map(|stats| stats.min_rtt),
        }
    }

    fn ce_fraction(&self) -> Option<f64> {
        let engine = self.engine.as_ref()?;
        engine.connection.stats().controller.ce_fraction
    }

    fn is_closed(&self) -> bool {
        self.ending.is_some()
    }

    fn has_failed(&self) -> bool {
        matches!(self.ending, Some(Some(_))) || self.told == CloseNotice::Drained
    }
}

impl DatagramEnd for DcudpEnd {
    fn take_events(&mut self) {
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

    fn port(&self, address: &Address) -> Option<u32> {
        Some(address.port)
    }

    fn next_datagram(
        &mut self,
        now: Time,
        address: &Address,
        buffer: &mut Vec<u8>,
    ) -> Option<DatagramRoute> {
        let location = |number| Location {
            number,
            generation: 0,
        };
        let ecn = match self.reply.take() {
            Some(reply) => {
                buffer.extend_from_slice(&reply);
                Ecn::NotEct
            }
            None => {
                self.take_events();
                let connection = &mut self.engine.as_mut()?.connection;
                self.stream.write(connection);
                connection.poll_transmit(now, buffer, 1)?.ecn
            }
        };
        Some(DatagramRoute {
            from: location(address.source),
            to: location(address.destination),
            port: address.port,
            ecn,
        })
    }

    #[inline]
    fn timeout(&self) -> Option<Time> {
        self.engine.as_ref()?.connection.timeout()
    }

    #[inline]
    fn delivered(&self) -> u64 {
        self.stream.delivered
    }

    fn take_closed(&mut self) -> bool {
        let engine = self.engine.as_ref();
        let state = if engine.is_some_and(|engine| engine.connection.is_drained()) {
            CloseNotice::Drained
        } else if self.is_closed() {
            CloseNotice::Closed
        } else {
            CloseNotice::Nothing
        };
        self.told.advance(state)
    }
}
