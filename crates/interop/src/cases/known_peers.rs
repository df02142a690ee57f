//! Cases for known peers: connections without a handshake, and peers that do not have them.

use std::time::Duration;

use weir_net::{Executed, KnownServersCounters};

use super::{Pairing, Stage, ensure, exchange, setup};
use crate::Direction;
use crate::stack::{self, Client, Result, short_pause};
use crate::wire::{PacketKind, Toward, Wire, rule};

/// A client that has not heard of a server for a second sends a first datagram that other stacks answer.
const SILENCE: Duration = Duration::from_millis(1_100);

/// The size below which a server does not answer an unknown version (RFC 9000, section 6.1).
const ANSWERED: usize = 1_200;

/// Later connections, to see that a client has remembered something.
const LATER: u64 = 3;

pub(super) async fn known_peers(pairing: Pairing) -> Result<()> {
    strangers(pairing).await?;
    if pairing.direction == Direction::OurClient {
        connection(pairing).await?;
        call(pairing).await?;
    }
    Ok(())
}

/// A connection that has sent no data before the server's answer: it goes on.
async fn connection(pairing: Pairing) -> Result<()> {
    let stage = replaced(pairing).await?;
    let mark = stage.wire.records().len();
    let connection = stage.connect().await?;
    // It sends a PING, and has the parameters of the new server when it has forgotten the old one.
    until(|| known(stage.client.as_ref()).is_ok_and(|known| known.held == 0)).await;
    exchange(connection.as_ref(), 2, 10_000).await?;
    connection.close();
    one_round_trip_was_lost(&stage.wire, mark)?;
    remembered(&stage).await
}

/// A call in the first datagram. The client cannot know that the old server has not executed it, as the
/// Version Negotiation packet is not authenticated.
async fn call(pairing: Pairing) -> Result<()> {
    let stage = replaced(pairing).await?;
    let mark = stage.wire.records().len();
    let connection = stage.connect().await?;
    let Err(error) = exchange(connection.as_ref(), 2, 100).await else {
        return Err("data of the first datagram were sent again".into());
    };
    let executed = connection.facts().executed;
    ensure(executed == Some(Executed::Maybe), || {
        format!("the first call: {error}, {executed:?}")
    })?;
    one_round_trip_was_lost(&stage.wire, mark)?;
    remembered(&stage).await
}

/// Two sides of which only ours has known peers, and that do not know each other.
async fn strangers(pairing: Pairing) -> Result<()> {
    let mut setup = setup()?;
    setup.known_peers = true;
    let stage = pairing.stage(&setup, rule::pass())?;
    for seed in 0..LATER {
        let connection = stage.connect().await?;
        exchange(connection.as_ref(), seed, 10_000).await?;
        short_pause().await;
        connection.close();
    }
    let tried = stage.wire.count(Toward::Server, PacketKind::Known);
    let negotiations = stage
        .wire
        .count(Toward::Client, PacketKind::VersionNegotiation);
    ensure((tried, negotiations) == (0, 0), || {
        format!("{tried} packets without a handshake, {negotiations} Version Negotiation packets")
    })?;
    if let Some(clients) = stage.server.known_clients() {
        ensure((clients.held, clients.accepted) == (0, 0), || {
            format!("our server remembers a client without known peers: {clients:?}")
        })?;
    }
    if let Some(servers) = stage.client.known_servers() {
        ensure((servers.held, servers.begun) == (0, 0), || {
            format!("our client remembers a server without known peers: {servers:?}")
        })?;
    }
    Ok(())
}

/// Their server at the address of one of ours that the client knows.
async fn replaced(pairing: Pairing) -> Result<Stage> {
    let mut setup = setup()?;
    setup.known_peers = true;
    let server = stack::ours().serve(&setup)?;
    let wire = Wire::lay(server.address()?, rule::pass())?;
    let mut stage = Stage {
        direction: pairing.direction,
        client: stack::ours().client(&setup)?,
        server,
        wire,
    };
    let connection = stage.connect().await?;
    until(|| known(stage.client.as_ref()).is_ok_and(|known| known.held == 1)).await;
    connection.close();
    let connection = stage.connect().await?;
    exchange(connection.as_ref(), 1, 1_000).await?;
    connection.close();
    let accepted = stage.server.known_clients().map(|known| known.accepted);
    let tried = stage.wire.count(Toward::Server, PacketKind::Known);
    ensure(accepted == Some(1) && tried > 0, || {
        "our server is not known".to_owned()
    })?;
    tokio::time::sleep(SILENCE).await;
    stage.server = pairing.peer.stack().serve(&setup)?;
    stage.wire.replace_server(stage.server.address()?);
    Ok(stage)
}

/// Checks that the first datagram after `mark` was large enough to be answered, and that the client has gone
/// on in version 1 after the Version Negotiation packet.
fn one_round_trip_was_lost(wire: &Wire, mark: usize) -> Result<()> {
    let records = wire.records();
    let datagrams = records.iter().skip(mark).map(|record| &record.datagram);
    let kinds = datagrams.map(|datagram| {
        let kind = PacketKind::of(&datagram.bytes);
        (datagram.toward, kind, datagram.bytes.len())
    });
    // The end of the last connection to the old server comes before.
    let kinds: Vec<_> = kinds
        .skip_while(|(_, kind, _)| *kind == Some(PacketKind::Short))
        .collect();
    let mut before = kinds.iter().take_while(|(toward, kind, _)| {
        (*toward, *kind) != (Toward::Server, Some(PacketKind::Initial))
    });
    let asked = before.next().is_some_and(|(toward, kind, length)| {
        (*toward, *kind) == (Toward::Server, Some(PacketKind::Known)) && *length >= ANSWERED
    });
    let answered = before.any(|(toward, kind, _)| {
        (*toward, *kind) == (Toward::Client, Some(PacketKind::VersionNegotiation))
    });
    ensure(asked && answered, || {
        format!("the client and the server have sent {kinds:?}")
    })
}

/// Checks that later connections begin in version 1.
async fn remembered(stage: &Stage) -> Result<()> {
    let before = known(stage.client.as_ref())?;
    ensure(
        (before.held, before.begun, before.hints) == (0, 2, 1),
        || format!("the client has noted {before:?}"),
    )?;
    let mark = stage.wire.records().len();
    for seed in 0..LATER {
        let connection = stage.connect().await?;
        exchange(connection.as_ref(), seed, 10_000).await?;
        connection.close();
    }
    let after = known(stage.client.as_ref())?;
    ensure(before == after, || {
        format!("the client has noted {after:?} after {before:?}")
    })?;
    let records = stage.wire.records();
    let mut later = records.iter().skip(mark).map(|record| &record.datagram);
    let tried_again = later.any(|datagram| {
        let kind = PacketKind::of(&datagram.bytes);
        matches!(
            kind,
            Some(PacketKind::Known | PacketKind::VersionNegotiation)
        )
    });
    ensure(!tried_again, || {
        "the client has tried without a handshake again".to_owned()
    })
}

fn known(client: &dyn Client) -> Result<KnownServersCounters> {
    Ok(client.known_servers().ok_or("the client is not ours")?)
}

/// Waits until a condition holds; the case has a time limit.
async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        short_pause().await;
    }
}
