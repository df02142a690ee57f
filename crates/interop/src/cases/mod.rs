//! The implementation of the cases.

use std::net::{IpAddr, Ipv4Addr};

use bytes::Bytes;
use weir_net::tls::Identity;

use crate::stack::{
    self, Client, Connection, ConnectionStatus, Peer, Result, SERVER_NAME, Server, Setup,
};
use crate::wire::{Rule, Wire, rule};
use crate::{Case, Direction};

mod addresses;
mod extensions;
mod faults;
mod handshakes;
mod known_peers;
mod transfers;

/// The other stack and the direction of a case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pairing {
    pub(crate) peer: Peer,
    pub(crate) direction: Direction,
}

/// Runs a case.
pub(crate) async fn run(case: Case, pairing: Pairing) -> Result<()> {
    match case {
        Case::Handshake => handshakes::handshake(pairing).await,
        Case::Transfer => transfers::transfer(pairing).await,
        Case::LongRtt => faults::long_round_trip(pairing).await,
        Case::ChaCha20 => handshakes::chacha20(pairing).await,
        Case::Multiplexing => transfers::multiplexing(pairing).await,
        Case::Retry => handshakes::retry(pairing).await,
        Case::Resumption => handshakes::resumption(pairing).await,
        Case::ZeroRtt => handshakes::early_data(pairing).await,
        Case::Http3 | Case::V2 => Err("nobody supports it".into()),
        Case::Blackhole => faults::black_hole(pairing).await,
        Case::KeyUpdate => extensions::key_update(pairing).await,
        Case::Ecn => extensions::ecn(pairing).await,
        Case::AmplificationLimit => handshakes::amplification_limit(pairing).await,
        Case::HandshakeLoss => faults::handshakes(pairing, rule::lose(30, 1)).await,
        Case::TransferLoss => faults::transfer(pairing, rule::lose(2, 2)).await,
        Case::HandshakeCorruption => faults::handshakes(pairing, rule::corrupt(30, 3)).await,
        Case::TransferCorruption => faults::transfer(pairing, rule::corrupt(2, 4)).await,
        Case::Ipv6 => transfers::ipv6(pairing).await,
        Case::RebindPort => addresses::rebind(pairing, [127, 0, 0, 1]).await,
        Case::RebindAddress => addresses::rebind(pairing, [127, 0, 0, 2]).await,
        Case::ConnectionMigration => addresses::migration(pairing).await,
        Case::MultiConnect => handshakes::many_connections(pairing).await,
        Case::VersionNegotiation => handshakes::version_negotiation(pairing).await,
        Case::ManyStreams => transfers::many_streams(pairing).await,
        Case::Packets9Kb => extensions::large_packets(pairing, 8_972, 3 << 20).await,
        Case::Packets65Kb => extensions::large_packets(pairing, 65_000, 10 << 20).await,
        Case::Datagram => extensions::datagrams(pairing).await,
        Case::KnownPeers => known_peers::known_peers(pairing).await,
    }
}

/// Returns the setup that most cases start from.
pub(crate) fn setup() -> Result<Setup> {
    Ok(Setup {
        ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
        identity: Identity::self_signed([SERVER_NAME])?,
        retry: false,
        early_data: false,
        chacha20: false,
        unknown_version: false,
        known_peers: false,
        packet_size: None,
        key_log: None,
    })
}

/// A client, a server, and the wire between them.
pub(crate) struct Stage {
    direction: Direction,
    pub(crate) client: Box<dyn Client>,
    pub(crate) server: Box<dyn Server>,
    pub(crate) wire: Wire,
}

impl Pairing {
    /// Starts the server, the forwarder and the client.
    pub(crate) fn stage(self, setup: &Setup, rule: Rule) -> Result<Stage> {
        let (client, server) = match self.direction {
            Direction::OurClient => (stack::ours(), self.peer.stack()),
            Direction::OurServer => (self.peer.stack(), stack::ours()),
        };
        let server = server.serve(setup)?;
        let wire = Wire::lay(server.address()?, rule)?;
        Ok(Stage {
            direction: self.direction,
            client: client.client(setup)?,
            server,
            wire,
        })
    }
}

impl Stage {
    pub(crate) async fn connect(&self) -> Result<Box<dyn Connection>> {
        self.client.connect(self.wire.address()).await
    }

    /// Returns the server's view of its newest connection.
    fn server_facts(&self) -> Result<ConnectionStatus> {
        Ok(self.server.newest().ok_or("the server has no connection")?)
    }

    /// Returns our side's view of the connection and the other side's.
    fn facts(&self, connection: &dyn Connection) -> Result<(ConnectionStatus, ConnectionStatus)> {
        let (client, server) = (connection.facts(), self.server_facts()?);
        Ok(match self.direction {
            Direction::OurClient => (client, server),
            Direction::OurServer => (server, client),
        })
    }
}

/// Sends `size` bytes and checks their echo.
pub(crate) async fn exchange(connection: &dyn Connection, seed: u64, size: usize) -> Result<()> {
    let data = pattern(seed, size);
    let echoed = connection.echo(data.clone()).await?;
    ensure(echoed == data, || {
        format!("{size} bytes came back as {} others", echoed.len())
    })
}

/// Fails with the text of `otherwise` unless `holds`.
fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<()> {
    if holds {
        Ok(())
    } else {
        Err(otherwise().into())
    }
}

/// Returns `length` pseudo-random bytes generated from `seed`.
fn pattern(seed: u64, length: usize) -> Bytes {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes.into()
}
