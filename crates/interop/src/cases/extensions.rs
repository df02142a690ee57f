//! Cases for key updates, ECN, datagrams and large packets.

use quinn_udp::EcnCodepoint;

use super::{Pairing, Stage, ensure, exchange, pattern, setup};
use crate::stack::{Connection, Result};
use crate::wire::{Toward, rule};
use crate::{Direction, Peer};

/// The number of packets checked at the end of each direction.
const LAST: usize = 50;

pub(super) async fn key_update(pairing: Pairing) -> Result<()> {
    let stage = pairing.stage(&setup()?, rule::pass())?;
    let connection = stage.connect().await?;
    exchange(connection.as_ref(), 1, 100_000).await?;
    // quinn starts one key update by itself, after a random number of packets (10 to 1,000), and no
    // other one within three of its PTOs, which include our longest ACK delay.
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    let before = updates(&stage, connection.as_ref())?;
    // quiche and s2n-quic cannot start a key update; they follow ours.
    let client_begins = match pairing.direction {
        Direction::OurClient => true,
        Direction::OurServer => pairing.peer == Peer::Quinn,
    };
    if client_begins {
        connection.update_keys().await?;
    } else {
        stage.server.update_keys().await?;
    }
    exchange(connection.as_ref(), 2, 100_000).await?;
    exchange(connection.as_ref(), 3, 100_000).await?;
    let after = updates(&stage, connection.as_ref())?;
    ensure(after == before + 1, || {
        format!("{before} key updates became {after}")
    })
}

/// Returns the number of key updates so far. Fails if the two sides disagree.
fn updates(stage: &Stage, connection: &dyn Connection) -> Result<u64> {
    let (ours, theirs) = stage.facts(connection)?;
    let ours = ours
        .key_updates
        .ok_or("our side does not count its key updates")?;
    ensure(
        theirs.key_updates.is_none_or(|theirs| theirs == ours),
        || {
            format!(
                "our side counts {ours} key updates, theirs {:?}",
                theirs.key_updates
            )
        },
    )?;
    Ok(ours)
}

pub(super) async fn ecn(pairing: Pairing) -> Result<()> {
    let stage = pairing.stage(&setup()?, rule::mark_every(20))?;
    let connection = stage.connect().await?;
    exchange(connection.as_ref(), 1, 3 << 20).await?;
    let records = stage.wire.records();
    for toward in [Toward::Server, Toward::Client] {
        let mut last = records.iter().rev().map(|record| &record.datagram);
        let ect = last
            .by_ref()
            .filter(|datagram| datagram.toward == toward)
            .take(LAST)
            .filter(|datagram| datagram.ecn == Some(EcnCodepoint::Ect0))
            .count();
        // Only probes and pure ACKs may be Not-ECT.
        ensure(ect > LAST / 2, || {
            format!("of the last {LAST} packets toward the {toward:?} {ect} are ECT(0)")
        })?;
    }
    drop(records);
    let (ours, theirs) = stage.facts(connection.as_ref())?;
    ensure(ours.ecn_works == Some(true), || {
        "ECN failed for us".to_owned()
    })?;
    ensure(ours.ecn_marks > Some(0), || {
        "no mark was reported to us".to_owned()
    })?;
    ensure(theirs.ecn_works != Some(false), || {
        "ECN failed for them".to_owned()
    })?;
    ensure(theirs.ecn_marks != Some(0), || {
        "no mark was reported to them".to_owned()
    })
}

pub(super) async fn large_packets(pairing: Pairing, size: u16, transfer: usize) -> Result<()> {
    let mut setup = setup()?;
    setup.packet_size = Some(size);
    let stage = pairing.stage(&setup, rule::pass())?;
    let connection = stage.connect().await?;
    exchange(connection.as_ref(), 1, transfer).await?;
    let records = stage.wire.records();
    for toward in [Toward::Server, Toward::Client] {
        let datagrams = records.iter().map(|record| &record.datagram);
        let lengths = datagrams
            .filter(|datagram| datagram.toward == toward)
            .map(|datagram| datagram.bytes.len());
        let largest = lengths.max().unwrap_or(0);
        // Path MTU discovery stops slightly below the largest size.
        let wanted = usize::from(size) * 12 / 13;
        ensure(largest >= wanted, || {
            format!("the largest datagram toward the {toward:?} has {largest} bytes")
        })?;
    }
    Ok(())
}

pub(super) async fn datagrams(pairing: Pairing) -> Result<()> {
    let stage = pairing.stage(&setup()?, rule::pass())?;
    let connection = stage.connect().await?;
    for (seed, size) in [0, 1, 100, 1_000, 1_100].into_iter().enumerate() {
        let data = pattern(seed as u64, size);
        let echoed = connection.datagram(data.clone()).await?;
        ensure(echoed == data, || {
            format!("a datagram of {size} bytes came back with {}", echoed.len())
        })?;
    }
    Ok(())
}
