//! One end of a QUIC connection: the engine, and the paths of its datagrams.

use std::net::SocketAddr;

use weir_congestion::AlgorithmSpec;
use weir_counters::FlowCounters;
use weir_quic::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, ConnectionStats, Endpoint, Event,
    Route, ServerConfig,
};
use weir_units::{ByteSize, Time};
use weir_wire::Ecn;

use super::host_paths::HostPaths;
use super::messages::Messages;
use crate::flows::PathView;
use crate::hosts::datagram_slab::DatagramRoute;
use crate::hosts::end::{CloseNotice, DatagramEnd, End};
use crate::packet::{Address, Location};

/// The server name of all connections.
const SERVER_NAME: &str = "server";

/// One end of a QUIC connection.
#[derive(Debug)]
pub(crate) struct QuicEnd {
    endpoint: Endpoint,
    /// On a server it exists once a client has connected.
    connection: Option<Engine>,
    messages: Messages,
    paths: HostPaths,
    /// Whether it is a client that keeps path secrets.
    keeps_secrets: bool,
    /// Whether it closes the connection once the peer has acknowledged everything.
    closes: bool,
    /// A reply of the endpoint without a connection, and its destination.
    reply: Option<(Vec<u8>, SocketAddr)>,
    /// Datagrams that arrived with a CE mark.
    marks: u64,
    /// The error that ended the connection.
    ending: Option<ConnectionError>,
    notified: CloseNotice,
}

/// The connection and its handle.
struct Engine {
    handle: ConnectionHandle,
    connection: Box<Connection>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("handle", &self.handle)
            .finish_non_exhaustive()
    }
}

impl QuicEnd {
    /// Creates the end that connects at once. The group's configuration has been validated; a path exists.
    pub(super) fn client(
        now: Time,
        mut endpoint: Endpoint,
        config: ClientConfig,
        messages: Messages,
        ways: HostPaths,
    ) -> Self {
        let keeps_secrets = config.known_servers.is_some();
        let connected = ways.pairs().next().and_then(|(local, remote)| {
            let connected = endpoint.connect(now, config, remote, Some(local), SERVER_NAME);
            connected.ok()
        });
        let connection = connected.map(|(handle, connection)| Engine { handle, connection });
        Self {
            keeps_secrets,
            ..Self::new(endpoint, connection, messages, ways)
        }
    }

    /// Creates the end that listens.
    pub(super) fn server(
        mut endpoint: Endpoint,
        config: ServerConfig,
        messages: Messages,
        ways: HostPaths,
    ) -> Self {
        endpoint.set_server(Some(config));
        Self::new(endpoint, None, messages, ways)
    }

    fn new(
        endpoint: Endpoint,
        connection: Option<Engine>,
        messages: Messages,
        ways: HostPaths,
    ) -> Self {
        Self {
            endpoint,
            connection,
            messages,
            paths: ways,
            keeps_secrets: false,
            closes: false,
            reply: None,
            marks: 0,
            ending: None,
            notified: CloseNotice::Nothing,
        }
    }

    /// Receives a datagram.
    pub(in crate::hosts) fn receive(
        &mut self,
        now: Time,
        [from, to]: [Location; 2],
        ecn: Ecn,
        datagram: &mut [u8],
    ) {
        let Some((local, remote)) = self.paths.arriving(from, to) else {
            return;
        };
        self.marks += u64::from(ecn == Ecn::Ce);
        let route = self.endpoint.route(now, remote, Some(local), ecn, datagram);
        match (route, &mut self.connection) {
            (Route::Connection(handle), Some(engine)) if engine.handle == handle => {
                let connection = &mut engine.connection;
                connection.handle_datagram(now, remote, Some(local), ecn, datagram);
                connection.end_batch(now);
            }
            (Route::New(handle, mut connection), _) => {
                connection.end_batch(now);
                // A flow is one connection. Only a client without a handshake may begin again, with one.
                if !connection.is_known_peer() {
                    self.endpoint.set_server(None);
                }
                self.connection = Some(Engine { handle, connection });
            }
            (Route::Reply(reply), _) => self.reply = Some((reply, remote)),
            _ => {}
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Time) {
        if let Some(Engine { connection, .. }) = &mut self.connection {
            connection.handle_timeout(now);
        }
    }

    /// Takes over parameters of the congestion control.
    pub(crate) fn set_congestion_parameters(&mut self, spec: &AlgorithmSpec) {
        if let Some(Engine { connection, .. }) = &mut self.connection {
            connection.change_controllers(|controller| controller.set_parameters(spec));
        }
    }

    pub(crate) fn write(&mut self, size: ByteSize) {
        self.messages.send(size);
    }

    pub(crate) fn finish(&mut self) {
        self.messages.finish();
    }

    /// Closes a client's connection, as everything has been delivered; its server learns of it.
    pub(crate) fn close(&mut self, now: Time) {
        let Some(Engine { connection, .. }) = &mut self.connection else {
            return;
        };
        // A real client does not close before it has heard of the delivery, and so of the path secret.
        let meets_server = self.keeps_secrets && !connection.is_known_peer();
        self.closes = meets_server && self.messages.unacknowledged > 0;
        if connection.side().is_client() && !self.closes {
            connection.close(now, 0, b"");
        }
    }

    /// Changes the host's address on the link of this port. A client continues from the new one; a server
    /// becomes unreachable.
    pub(crate) fn readdress(&mut self, now: Time, port: u32) {
        let Some((old, new)) = self.paths.readdress(port) else {
            return;
        };
        let Some(Engine { connection, .. }) = &mut self.connection else {
            return;
        };
        let moved = if connection.local() == Some(old) {
            connection.rebind(now, new).is_ok()
        } else {
            connection.remove_local_address(now, old);
            connection.add_local_address(now, new);
            true
        };
        // Before the handshake is confirmed a client cannot migrate: the change looks like that of a NAT.
        if moved {
            self.paths.note_known(port);
        }
    }

    /// Reads the available data and forwards the connection's events to the endpoint.
    fn take_all_events(&mut self) {
        let Some(Engine { handle, connection }) = &mut self.connection else {
            return;
        };
        while let Some(event) = connection.poll_event() {
            self.messages.on_event(connection, &event);
            if let Event::Closed(error) = event {
                self.ending = Some(error);
            }
        }
        while let Some(event) = connection.poll_endpoint_event() {
            self.endpoint.handle_event(*handle, event);
        }
    }

    /// Whether the connection has begun without a handshake.
    pub(crate) fn is_without_handshake(&self) -> bool {
        let connection = self.connection.as_ref();
        connection.is_some_and(|engine| engine.connection.is_known_peer())
    }

    fn stats(&self) -> Option<ConnectionStats> {
        let engine = self.connection.as_ref()?;
        Some(engine.connection.stats())
    }
}

impl End for QuicEnd {
    fn achieved(&self) -> FlowCounters {
        let stats = self.stats();
        let counters = stats.map(|stats| stats.flow_counters());
        FlowCounters {
            delivered: ByteSize::from_bytes(self.delivered()),
            marks: self.marks,
            ..counters.unwrap_or_default()
        }
    }

    fn path(&self) -> PathView {
        let stats = self.stats().filter(|stats| stats.handshake.is_some());
        let path = stats.as_ref().and_then(|stats| stats.paths.first());
        PathView {
            smoothed_rtt: path.map(|path| path.smoothed_rtt),
            min_rtt: path.map(|path| path.min_rtt),
        }
    }

    fn window(&self) -> Option<ByteSize> {
        let stats = self.stats()?;
        let window = stats.paths.first()?.window;
        (window < ByteSize::MAX).then_some(window)
    }

    fn ce_fraction(&self) -> Option<f64> {
        self.stats()?.paths.first()?.controller.ce_fraction
    }

    fn is_closed(&self) -> bool {
        let connection = self.connection.as_ref();
        connection.is_some_and(|engine| engine.connection.is_closed())
    }

    fn has_failed(&self) -> bool {
        let orderly = match &self.ending {
            None | Some(ConnectionError::Local | ConnectionError::PeerApplication { .. }) => true,
            Some(_) => false,
        };
        !orderly || self.notified == CloseNotice::Drained
    }
}

impl DatagramEnd for QuicEnd {
    #[inline]
    fn take_events(&mut self) {
        if let Some(engine) = &self.connection
            && engine.connection.has_events()
        {
            self.take_all_events();
        }
    }

    #[inline]
    fn port(&self, _: &Address) -> Option<u32> {
        let connection = &self.connection.as_ref()?.connection;
        let host_path = self
            .paths
            .leaving(connection.local(), connection.remote(), Ecn::NotEct);
        host_path.map(|host_path| host_path.port)
    }

    fn next_datagram(
        &mut self,
        now: Time,
        _: &Address,
        buffer: &mut Vec<u8>,
    ) -> Option<DatagramRoute> {
        if let Some((reply, remote)) = self.reply.take() {
            buffer.extend_from_slice(&reply);
            return self.paths.leaving(None, remote, Ecn::NotEct);
        }
        loop {
            self.take_events();
            let Engine { connection, .. } = self.connection.as_mut()?;
            self.messages.write(connection);
            if self.closes && self.messages.unacknowledged == 0 {
                self.closes = false;
                connection.close(now, 0, b"");
            }
            let transmit = connection.poll_transmit(now, buffer, 1)?;
            let departure = self
                .paths
                .leaving(transmit.local, transmit.remote, transmit.ecn);
            if departure.is_some() {
                return departure;
            }
            // No path leads there.
            buffer.clear();
        }
    }

    fn may_send_more(&self, now: Time) -> bool {
        self.connection.as_ref().is_none_or(|engine| {
            engine.connection.has_events() || engine.connection.may_transmit_more(now)
        })
    }

    #[inline]
    fn timeout(&self) -> Option<Time> {
        self.connection.as_ref()?.connection.timeout()
    }

    #[inline]
    fn delivered(&self) -> u64 {
        self.messages.delivered
    }

    fn take_closed(&mut self) -> bool {
        let state = match &self.connection {
            Some(engine) if engine.connection.is_drained() => CloseNotice::Drained,
            Some(engine) if engine.connection.is_closed() => CloseNotice::Closed,
            _ => CloseNotice::Nothing,
        };
        self.notified.advance(state)
    }
}
