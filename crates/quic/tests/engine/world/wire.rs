//! Manual handling of datagrams: taken from a connection, changed, passed to the other side.

use std::net::SocketAddr;

use weir_quic::{ConnectionError, ConnectionHandle, Event, Route};
use weir_units::Duration;
use weir_wire::Ecn;

use super::{CLIENT, SERVER, World, pattern};

impl World {
    /// Returns the next datagram of a client's connection.
    pub(crate) fn datagram(&mut self, client: ConnectionHandle) -> Vec<u8> {
        let mut buffer = Vec::new();
        let now = self.now;
        let connection = self.connection(CLIENT, client);
        connection.poll_transmit(now, &mut buffer, 1).unwrap();
        buffer
    }

    /// Routes a datagram from this address at the server.
    pub(crate) fn route(&mut self, remote: SocketAddr, datagram: &[u8]) -> Route {
        let server = &mut self.hosts[SERVER].endpoint;
        server.route(self.now, remote, None, Ecn::NotEct, &mut datagram.to_vec())
    }

    /// Passes a datagram to a client's connection as if it came from the server.
    pub(crate) fn inject(&mut self, client: ConnectionHandle, mut datagram: Vec<u8>) {
        let (now, remote) = (self.now, self.hosts[SERVER].addresses[0]);
        let connection = self.connection(CLIENT, client);
        connection.handle_datagram(now, remote, None, Ecn::NotEct, &mut datagram);
    }

    /// Returns why a client's connection ended.
    pub(crate) fn closed(&self, client: ConnectionHandle) -> Option<ConnectionError> {
        let events = self.hosts[CLIENT].events.iter();
        events.rev().find_map(|(handle, event)| match event {
            Event::Closed(error) if *handle == client => Some(error.clone()),
            _ => None,
        })
    }

    /// Whether data is transferred in both directions.
    pub(crate) fn moves_data(
        &mut self,
        client: ConnectionHandle,
        server: ConnectionHandle,
    ) -> bool {
        let data = pattern(20_000);
        let limit = Duration::from_secs(5);
        [
            ((CLIENT, client), (SERVER, server)),
            ((SERVER, server), (CLIENT, client)),
        ]
        .into_iter()
        .all(|(from, to)| self.transfer(from, to, &data, limit).as_ref() == Some(&data))
    }
}
