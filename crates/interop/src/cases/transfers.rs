//! Cases that transfer data on one stream or many.

use std::net::{IpAddr, Ipv6Addr};

use super::{Pairing, exchange, setup};
use crate::stack::{Connection, Result};
use crate::wire::rule;

pub(super) async fn transfer(pairing: Pairing) -> Result<()> {
    let stage = pairing.stage(&setup()?, rule::pass())?;
    let connection = stage.connect().await?;
    let connection = connection.as_ref();
    tokio::try_join!(
        exchange(connection, 1, 2 << 20),
        exchange(connection, 2, 3 << 20),
        exchange(connection, 3, 5 << 20),
    )?;
    Ok(())
}

pub(super) async fn multiplexing(pairing: Pairing) -> Result<()> {
    let stage = pairing.stage(&setup()?, rule::pass())?;
    let connection = stage.connect().await?;
    streams(connection.as_ref(), 1_000, 32).await
}

pub(super) async fn many_streams(pairing: Pairing) -> Result<()> {
    let stage = pairing.stage(&setup()?, rule::pass())?;
    let connection = stage.connect().await?;
    streams(connection.as_ref(), 200, 20_000).await
}

pub(super) async fn ipv6(pairing: Pairing) -> Result<()> {
    let mut setup = setup()?;
    setup.ip = IpAddr::V6(Ipv6Addr::LOCALHOST);
    let stage = pairing.stage(&setup, rule::pass())?;
    let connection = stage.connect().await?;
    exchange(connection.as_ref(), 1, 1 << 20).await
}

/// Echoes `size` bytes on each of `count` concurrent streams.
async fn streams(connection: &dyn Connection, count: u64, size: usize) -> Result<()> {
    let exchanges = (0..count).map(|seed| exchange(connection, seed, size));
    futures_util::future::try_join_all(exchanges).await?;
    Ok(())
}
