//! Cases for connection establishment.

use weir_net::tls::Identity;

use super::{Pairing, Stage, ensure, exchange, pattern, setup};
use crate::stack::{Result, SERVER_NAME, short_pause};
use crate::wire::{Datagram, PacketKind, Record, Toward, Verdict, rule};
use crate::{Direction, Peer};

pub(super) async fn handshake(pairing: Pairing) -> Result<()> {
    let stage = pairing.stage(&setup()?, rule::pass())?;
    let connection = stage.connect().await?;
    exchange(connection.as_ref(), 1, 1_000).await?;
    let retries = stage.wire.count(Toward::Client, PacketKind::Retry);
    ensure(retries == 0, || "a Retry packet was sent".to_owned())
}

pub(super) async fn chacha20(pairing: Pairing) -> Result<()> {
    let mut setup = setup()?;
    setup.chacha20 = true;
    let stage = pairing.stage(&setup, rule::pass())?;
    let connection = stage.connect().await?;
    exchange(connection.as_ref(), 1, 1 << 20).await
}

pub(super) async fn retry(pairing: Pairing) -> Result<()> {
    let mut setup = setup()?;
    setup.retry = true;
    let stage = pairing.stage(&setup, rule::pass())?;
    let connection = stage.connect().await?;
    exchange(connection.as_ref(), 1, 10_000).await?;
    let retries = stage.wire.count(Toward::Client, PacketKind::Retry);
    ensure(retries >= 1, || "no Retry packet was sent".to_owned())
}

/// Makes a first connection, so that the client has a session to resume.
async fn obtain_session(stage: &Stage) -> Result<()> {
    let connection = stage.connect().await?;
    exchange(connection.as_ref(), 1, 1_000).await?;
    // Session tickets may arrive after the first reply.
    short_pause().await;
    connection.close();
    short_pause().await;
    Ok(())
}

pub(super) async fn resumption(pairing: Pairing) -> Result<()> {
    let stage = pairing.stage(&setup()?, rule::pass())?;
    obtain_session(&stage).await?;
    let connection = stage.connect().await?;
    exchange(connection.as_ref(), 2, 10_000).await?;
    let (ours, theirs) = stage.facts(connection.as_ref())?;
    ensure(ours.resumed == Some(true), || {
        "our side sees no resumed session".to_owned()
    })?;
    ensure(theirs.resumed != Some(false), || {
        "their side sees no resumed session".to_owned()
    })
}

pub(super) async fn early_data(pairing: Pairing) -> Result<()> {
    let mut setup = setup()?;
    setup.early_data = true;
    let stage = pairing.stage(&setup, rule::pass())?;
    obtain_session(&stage).await?;
    let data = pattern(2, 1_000);
    let early = stage
        .client
        .connect_early(stage.wire.address(), data.clone());
    let (connection, echoed) = early.await?;
    ensure(echoed == data, || "the echo differs".to_owned())?;
    let packets = stage.wire.count(Toward::Server, PacketKind::ZeroRtt);
    // 0-RTT packets may be coalesced behind an Initial packet, and only the first packet is parsed.
    let inside = stage.wire.count(Toward::Server, PacketKind::Initial);
    ensure(packets + inside > 0, || "no packet was seen".to_owned())?;
    let (ours, theirs) = stage.facts(connection.as_ref())?;
    ensure(ours.early_data == Some(true), || {
        "our side saw no early data taken".to_owned()
    })?;
    ensure(theirs.early_data != Some(false), || {
        "their side saw no early data taken".to_owned()
    })?;
    exchange(connection.as_ref(), 3, 100_000).await
}

pub(super) async fn amplification_limit(pairing: Pairing) -> Result<()> {
    let mut setup = setup()?;
    let names = (0..300).map(|index| format!("name-{index}.of.a.large.certificate"));
    setup.identity = Identity::self_signed(names.chain([SERVER_NAME.to_owned()]))?;
    let size = setup.identity.chain().iter().map(|der| der.len()).sum();
    ensure((8_000..=16_000usize).contains(&size), || {
        format!("the certificate has {size} bytes")
    })?;
    // Once the server starts to send its certificate, the next three client datagrams are dropped.
    let mut lost = None;
    let silence = move |datagram: &Datagram| {
        if datagram.toward == Toward::Client {
            if datagram.bytes.len() >= 1_000 {
                lost.get_or_insert(0);
            }
            return Verdict::Pass;
        }
        match &mut lost {
            Some(lost) if *lost < 3 => {
                *lost += 1;
                Verdict::Lose
            }
            _ => Verdict::Pass,
        }
    };
    let stage = pairing.stage(&setup, Box::new(silence))?;
    let connection = stage.connect().await?;
    exchange(connection.as_ref(), 1, 1_000).await?;
    limit_was_kept(&stage.wire.records())
}

/// Checks the amplification limit up to the first client datagram that arrives after the loss.
fn limit_was_kept(records: &[Record]) -> Result<()> {
    let (mut received, mut sent, mut silent) = (0, 0, false);
    for record in records {
        let length = record.datagram.bytes.len();
        match record.datagram.toward {
            Toward::Client => sent += length,
            Toward::Server if !record.arrived() => silent = true,
            Toward::Server if silent => break,
            Toward::Server => received += length,
        }
        ensure(sent <= 3 * received, || {
            format!("{sent} bytes were sent for {received}")
        })?;
    }
    ensure(silent && sent > 2 * received, || {
        format!("only {sent} bytes were sent for {received}")
    })
}

pub(super) async fn many_connections(pairing: Pairing) -> Result<()> {
    let stage = pairing.stage(&setup()?, rule::pass())?;
    connections(&stage, 50).await
}

/// Opens `count` connections at once and exchanges 1 KB on each.
pub(super) async fn connections(stage: &Stage, count: u64) -> Result<()> {
    let one = |seed| async move {
        let connection = stage.connect().await?;
        exchange(connection.as_ref(), seed, 1_000).await?;
        connection.close();
        Result::Ok(())
    };
    futures_util::future::try_join_all((0..count).map(one)).await?;
    Ok(())
}

pub(super) async fn version_negotiation(pairing: Pairing) -> Result<()> {
    let mut setup = setup()?;
    setup.unknown_version = true;
    let stage = pairing.stage(&setup, rule::pass())?;
    let connected = stage.connect().await;
    let negotiations = stage
        .wire
        .count(Toward::Client, PacketKind::VersionNegotiation);
    ensure(negotiations >= 1, || {
        "no Version Negotiation packet was sent".to_owned()
    })?;
    if (pairing.peer, pairing.direction) == (Peer::Quinn, Direction::OurServer) {
        // quinn reports the mismatch and leaves the retry to its application.
        let Err(error) = connected else {
            return Err("quinn has learned to negotiate".into());
        };
        let is_mismatch = matches!(
            error.downcast_ref(),
            Some(quinn::ConnectionError::VersionMismatch)
        );
        return ensure(is_mismatch, || format!("quinn reports {error}"));
    }
    exchange(connected?.as_ref(), 1, 10_000).await?;
    let records = stage.wire.records();
    let initials = records.iter().filter(|record| {
        record.datagram.toward == Toward::Client
            && PacketKind::of(&record.datagram.bytes) == Some(PacketKind::Initial)
    });
    let versions: Vec<_> = initials
        .map(|initial| initial.datagram.bytes.slice(1..5))
        .collect();
    let all_first = versions.iter().all(|version| version[..] == [0, 0, 0, 1]);
    ensure(!versions.is_empty() && all_first, || {
        format!("the server's versions were {versions:?}")
    })
}
