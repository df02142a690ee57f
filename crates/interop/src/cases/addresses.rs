//! Clients whose address changes.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Pairing, Stage, ensure, exchange, setup};
use crate::stack::Result;
use crate::wire::{PacketKind, Toward, rule};
use crate::{Direction, Peer};

/// With this datagram of the client's its address changes, in the middle of the transfer.
const REBOUND: usize = 700;

/// Silence after which the NAT forgets, and how long the client is silent for it.
const SILENCE: Duration = Duration::from_millis(200);

/// The client appears at a new port of `address`.
pub(super) async fn rebind(pairing: Pairing, address: [u8; 4]) -> Result<()> {
    // A quiche server whose client's address changes while much is in flight both ways often sends
    // nothing more but probes, to its own client too. It is asked for less.
    let is_delicate = (pairing.peer, pairing.direction) == (Peer::Quiche, Direction::OurClient);
    let rule = if is_delicate {
        rule::rebind_after_silence(SILENCE, address.into())
    } else {
        rule::rebind(REBOUND, address.into())
    };
    let stage = pairing.stage(&setup()?, rule)?;
    let connection = stage.connect().await?;
    exchange(connection.as_ref(), 0, 1_000).await?;
    let before = stage.server_facts()?.peer;
    if is_delicate {
        tokio::time::sleep(SILENCE * 2).await;
    }
    exchange(connection.as_ref(), 1, 3 << 20).await?;
    exchange(connection.as_ref(), 2, 1_000).await?;
    server_has_followed(&stage, before)
}

pub(super) async fn migration(pairing: Pairing) -> Result<()> {
    let stage = pairing.stage(&setup()?, rule::pass())?;
    let connection = stage.connect().await?;
    exchange(connection.as_ref(), 1, 500_000).await?;
    let before = stage.server_facts()?.peer;
    stage.client.migrate().await?;
    exchange(connection.as_ref(), 2, 500_000).await?;
    exchange(connection.as_ref(), 3, 1_000).await?;
    server_has_followed(&stage, before)?;
    let records = stage.wire.records();
    let clients: BTreeSet<_> = records
        .iter()
        .map(|record| record.datagram.client)
        .collect();
    ensure(clients.len() == 2, || {
        format!("clients were at {clients:?}")
    })?;
    if pairing.direction == Direction::OurClient {
        // RFC 9000, section 9.5: no connection ID from two addresses.
        let short = records
            .iter()
            .map(|record| &record.datagram)
            .filter(|datagram| {
                datagram.toward == Toward::Server
                    && PacketKind::of(&datagram.bytes) == Some(PacketKind::Short)
            });
        // Long enough to tell connection IDs apart.
        let ids: BTreeSet<_> = short
            .map(|datagram| (datagram.bytes.slice(1..5), datagram.client))
            .collect();
        let distinct: BTreeSet<_> = ids.iter().map(|(id, _)| id).collect();
        ensure(distinct.len() == ids.len(), || {
            "a connection ID was used from two addresses".to_owned()
        })?;
    }
    Ok(())
}

/// The server sees the client where it was last, and that is not where it was at first.
fn server_has_followed(stage: &Stage, before: Option<std::net::SocketAddr>) -> Result<()> {
    let now = stage.server_facts()?.peer;
    let records = stage.wire.records();
    let mut of_client = records
        .iter()
        .rev()
        .filter(|record| record.datagram.toward == Toward::Server);
    let last = of_client.next().map(|record| record.seen_as);
    ensure(now != before, || {
        format!("the server still sends to {before:?}")
    })?;
    ensure(now.is_some() && now == last, || {
        format!("the server sends to {now:?}, and the client is at {last:?}")
    })
}
