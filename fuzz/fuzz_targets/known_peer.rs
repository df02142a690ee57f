//! Fuzzes the first packets of known peers at a server, and Control packets at a client: nothing
//! panics, a changed packet begins no connection, and the original one still does.

#![no_main]

use std::net::SocketAddr;
use std::sync::Arc;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use weir_quic::crypto::seeded::{SeededClient, SeededServer};
use weir_quic::packet::{Header, write_control_header};
use weir_quic::{
    ClientConfig, Connection, Direction, Endpoint, EndpointConfig, KnownClients,
    KnownClientsConfig, KnownServers, Route, ServerConfig, TransportConfig,
};
use weir_units::Time;
use weir_wire::Ecn;

const NOW: Time = Time::from_nanos(1_000_000_000);

#[derive(Arbitrary, Debug)]
struct Input {
    /// Positions and bits to flip.
    flips: Vec<(u16, u8)>,
    /// Where the packet is cut.
    length: Option<u16>,
    /// Bytes after the header of a Control packet.
    control: Vec<u8>,
    /// A datagram of the version of known peers.
    garbage: Vec<u8>,
}

fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 4000))
}

struct Pair {
    client: Endpoint,
    server: Endpoint,
    config: ClientConfig,
}

impl Pair {
    /// Two endpoints that share a secret.
    fn new() -> Self {
        let transport = Arc::new(TransportConfig::data_center());
        let clients = KnownClients::new(KnownClientsConfig::default(), NOW);
        let server = ServerConfig {
            known_clients: Some(Arc::new(clients)),
            ..ServerConfig::new(Arc::new(SeededServer::new(1)), transport.clone())
        };
        let config = ClientConfig {
            known_servers: Some(Arc::new(KnownServers::new(1))),
            ..ClientConfig::new(Arc::new(SeededClient::new(1)), transport)
        };
        let mut pair = Self {
            client: Endpoint::new(EndpointConfig::default(), None, [1; 32]),
            server: Endpoint::new(EndpointConfig::default(), Some(server), [2; 32]),
            config,
        };
        pair.meet();
        pair
    }

    fn connect(&mut self) -> Connection {
        let (config, local) = (self.config.clone(), Some(address(1)));
        let begun = self
            .client
            .connect(NOW, config, address(2), local, "server");
        *begun.unwrap().1
    }

    fn meet(&mut self) {
        let mut client = self.connect();
        let mut server: Option<Box<Connection>> = None;
        for _ in 0..6 {
            for mut datagram in datagrams(&mut client) {
                match &mut server {
                    Some(server) => {
                        let local = Some(address(2));
                        server.handle_datagram(NOW, address(1), local, Ecn::NotEct, &mut datagram);
                    }
                    None => {
                        if let Route::New(_, begun) = self.route(&mut datagram) {
                            server = Some(begun);
                        }
                    }
                }
            }
            let Some(server) = &mut server else { return };
            for mut datagram in datagrams(server) {
                let local = Some(address(1));
                client.handle_datagram(NOW, address(2), local, Ecn::NotEct, &mut datagram);
            }
            client.end_batch(NOW);
            server.end_batch(NOW);
        }
    }

    fn route(&mut self, datagram: &mut [u8]) -> Route {
        let local = Some(address(2));
        self.server
            .route(NOW, address(1), local, Ecn::NotEct, datagram)
    }
}

fn datagrams(connection: &mut Connection) -> Vec<Vec<u8>> {
    let mut sent = Vec::new();
    let mut buffer = Vec::new();
    while let Some(transmit) = connection.poll_transmit(NOW, &mut buffer, 64) {
        let segment = transmit.segment_size.unwrap_or(transmit.size);
        sent.extend(buffer.chunks(segment).map(<[u8]>::to_vec));
        buffer.clear();
    }
    sent
}

fuzz_target!(|input: Input| {
    let mut pair = Pair::new();
    let mut client = pair.connect();
    assert!(client.is_known_peer());
    let stream = client.open(Direction::Bidirectional).unwrap();
    client.write(stream, b"request").unwrap();
    let first = datagrams(&mut client).remove(0);

    let mut changed = first.clone();
    for (position, bits) in input.flips {
        let position = usize::from(position) % changed.len();
        changed[position] ^= bits;
    }
    if let Some(length) = input.length {
        changed.truncate(usize::from(length) % (changed.len() + 1));
    }
    let is_changed = changed != first;
    let begun = matches!(pair.route(&mut changed), Route::New(..));
    assert!(
        !(begun && is_changed),
        "a changed packet began a connection"
    );
    let mut garbage = vec![0xc0, 0x57, 0x45, 0x49, 0x01];
    garbage.extend_from_slice(&input.garbage);
    assert!(!matches!(pair.route(&mut garbage), Route::New(..)));
    let mut original = first.clone();
    assert_eq!(matches!(pair.route(&mut original), Route::New(..)), !begun);

    let header = Header::decode(&first, 8).unwrap();
    let mut control = Vec::new();
    write_control_header(
        &mut control,
        header.source.as_bytes(),
        header.destination.as_bytes(),
    );
    control.extend_from_slice(&input.control);
    client.handle_datagram(NOW, address(2), Some(address(1)), Ecn::NotEct, &mut control);
    client.end_batch(NOW);
    datagrams(&mut client);
});
