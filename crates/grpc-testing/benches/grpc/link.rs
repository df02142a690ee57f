//! Calls over a link that loses packets, by the lab's switch.

use std::time::Duration as Wait;

use weir_fabric::Probability;
use weir_lab::network::{LinkSettings, NetworkKind};
use weir_units::{Duration, Rate};

use crate::contestant::{Contestant, Identity};
use crate::load::Load;
use crate::server::Server;
use crate::table::{Row, Table};
use crate::{Effort, Failure, load};

/// Measurements take longer where few calls complete.
const LEAST: Wait = Wait::from_secs(3);

const CALLERS: usize = 64;

/// 64 streams at once while 1 % of all packets are lost in each direction: callers that make a call every
/// 10 ms, so that the link is not full, and callers that make one after the other, so that it is.
pub(crate) fn lossy(identity: &Identity, effort: Effort) -> Result<(), Failure> {
    if !rustix::process::geteuid().is_root() {
        println!("\nSKIPPED: a link with losses takes root");
        return Ok(());
    }
    let title = "64 callers, 1 Gbit/s, 100 µs each way, 1 % of the packets lost each way";
    let mut table = Table::new(title, ["payload", "calls"]);
    for (interval, pace) in [
        (Some(Wait::from_millis(10)), "every 10 ms"),
        (None, "at once"),
    ] {
        for (size, name) in [(100, "100 B"), (1_000, "1 KB"), (10_000, "10 KB")] {
            let load = Load {
                size,
                callers: CALLERS,
                interval,
            };
            let mut row = Row::new([name.to_owned(), pace.to_owned()]);
            for _ in 0..effort.rounds {
                let mut round = Vec::new();
                for contestant in Contestant::ALL {
                    round.push(over_link(
                        contestant,
                        identity,
                        load,
                        effort.round.max(LEAST),
                    )?);
                }
                row.add(round);
            }
            table.print(row);
        }
    }
    Ok(())
}

fn over_link(
    contestant: Contestant,
    identity: &Identity,
    load: Load,
    time: Wait,
) -> Result<load::Sample, Failure> {
    let network = NetworkKind::Link(LinkSettings {
        rate: Rate::from_gbps(1),
        delay: Duration::from_micros(100),
        loss: Probability::new(0.01)?,
        ..LinkSettings::default()
    });
    let network = network.create()?;
    let address = network.server_address().to_string();
    let server = network.in_server(|| Server::start(contestant, identity, address))??;
    network.in_client(|| {
        let runtime = load::runtime()?;
        let channel = runtime.block_on(contestant.channel(identity, server.address))?;
        load::run(&runtime, &channel, load, time, || server.cpu())
    })?
}
