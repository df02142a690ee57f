//! Cases in which the client's address changes.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Pairing, Stage, ensure, exchange, setup};
use crate::stack::Result;
use crate::wire::{PacketKind, Toward, rule};
use crate::{Direction, Peer};

/// The number of the client datagram at which the address changes, in the middle of the transfer.
const REBOUND: usize = 700;

/// Idle time after which the NAT drops its mapping; the client pauses for twice as long.
const SILENCE: Duration = Duration::from_millis(200);

/// Moves the client to a new port of `address` in the NAT.
pub(super) async fn rebind(pairing: Pairing, address: [u8; 4]) -> Result<()> {
    // If the client's address changes with much data in flight in both directions, a quiche server
    // often sends only probes from then on, even to quiche's client. So rebind while idle.
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
    server_uses_new_address(&stage, before)
}

pub(super) async fn migration(pairing: Pairing) -> Result<()> {
    let stage = pairing.stage(&setup()?, rule::pass())?;
    let connection = stage.connect().await?;
    exchange(connection.as_ref(), 1, 500_000).await?;
    let before = stage.server_facts()?.peer;
    stage.client.migrate().await?;
    exchange(connection.as_ref(), 2, 500_000).await?;
    exchange(connection.as_ref(), 3, 1_000).await?;
    server_uses_new_address(&stage, before)?;
    let records = stage.wire.records();
    let clients: BTreeSet<_> = records
        .iter()
        .map(|record| record.datagram.client)
        .collect();
    ensure(clients.len() == 2, || {
        format!("clients were at {clients:?}")
    })?;
    if pairing.direction == Direction::OurClient {
        // RFC 9000, section 9.5: a connection ID is never used from two addresses.
        let short = records
            .iter()
            .map(|record| &record.datagram)
            .filter(|datagram| {
                datagram.toward == Toward::Server
                    && PacketKind::of(&datagram.bytes) == Some(PacketKind::Short)
            });
        // Four bytes are enough to distinguish connection IDs.
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

/// Checks that the server sends to the client's newest address, and that this differs from `before`.
fn server_uses_new_address(stage: &Stage, before: Option<std::net::SocketAddr>) -> Result<()> {
    let now = stage.server_facts()?.peer;
    let records = stage.wire.records();
    let mut of_client = records
        .iter()
        .rev()
        .filter(|record| record.datagram.toward == Toward::Server);
    let last = of_client.next().map(|record| record.address_after_nat);
    ensure(now != before, || {
        format!("the server still sends to {before:?}")
    })?;
    ensure(now.is_some() && now == last, || {
        format!("the server sends to {now:?}, and the client is at {last:?}")
    })
}
