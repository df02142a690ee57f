//! Cases with delay, loss, corruption and a black hole.

use std::time::Duration;

use super::{Pairing, ensure, exchange, handshakes, setup};
use crate::stack::Result;
use crate::wire::{Rule, Toward, Verdict, rule};

const ONE_WAY: Duration = Duration::from_millis(375);
const DARKNESS: Duration = Duration::from_secs(1);

pub(super) async fn long_round_trip(pairing: Pairing) -> Result<()> {
    let stage = pairing.stage(&setup()?, rule::delay(ONE_WAY))?;
    let connection = stage.connect().await?;
    exchange(connection.as_ref(), 1, 1_000).await?;
    let records = stage.wire.records();
    let first = |toward| {
        let mut datagrams = records.iter().map(|record| &record.datagram);
        let first = datagrams.find(|datagram| datagram.toward == toward);
        first.map(|datagram| datagram.at)
    };
    let (asked, answered) = (first(Toward::Server), first(Toward::Client));
    let (Some(asked), Some(answered)) = (asked, answered) else {
        return Err("nothing was sent".into());
    };
    ensure(answered >= asked + ONE_WAY, || {
        "the server answered before it was asked".to_owned()
    })
}

pub(super) async fn handshakes(pairing: Pairing, rule: Rule) -> Result<()> {
    let stage = pairing.stage(&setup()?, rule)?;
    handshakes::connections(&stage, 10).await?;
    rule_was_applied(&stage.wire.records())
}

pub(super) async fn transfer(pairing: Pairing, rule: Rule) -> Result<()> {
    let stage = pairing.stage(&setup()?, rule)?;
    let connection = stage.connect().await?;
    exchange(connection.as_ref(), 1, 2 << 20).await?;
    rule_was_applied(&stage.wire.records())
}

pub(super) async fn black_hole(pairing: Pairing) -> Result<()> {
    let mut since = None;
    let rule = move |datagram: &crate::wire::Datagram| {
        if datagram.number >= 300 {
            since.get_or_insert(datagram.at);
        }
        match since {
            Some(since) if datagram.at < since + DARKNESS => Verdict::Lose,
            _ => Verdict::Pass,
        }
    };
    let stage = pairing.stage(&setup()?, Box::new(rule))?;
    let connection = stage.connect().await?;
    exchange(connection.as_ref(), 1, 3 << 20).await?;
    rule_was_applied(&stage.wire.records())
}

/// Checks that the rule affected at least one datagram.
fn rule_was_applied(records: &[crate::wire::Record]) -> Result<()> {
    let changed = records.iter().any(|record| record.verdict != Verdict::Pass);
    ensure(changed, || "nothing happened to any datagram".to_owned())
}
