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

/// The payload in bytes, and how often each caller makes a call; without that, one after the other. More
/// than a hundred thousand packets a second would measure the switch: it gets each datagram of DCQUIC by
/// itself, but TCP's segments many at a time.
const LOADS: [(usize, Option<Wait>); 5] = [
    (100, Some(Wait::from_millis(10))),
    (1_000, Some(Wait::from_millis(10))),
    (10_000, Some(Wait::from_millis(40))),
    (100, None),
    (1_000, None),
];

/// 64 streams at once while 1 % of all packets are lost in each direction.
pub(crate) fn lossy(identity: &Identity, effort: Effort) -> Result<(), Failure> {
    if !rustix::process::geteuid().is_root() {
        println!("\nSKIPPED: a link with losses takes root");
        return Ok(());
    }
    let title = "64 callers, 1 Gbit/s, 100 µs each way, 1 % of the packets lost each way";
    let mut table = Table::new(title, ["payload", "calls"]);
    for (size, interval) in LOADS {
        let pace = match interval {
            Some(interval) => format!("every {} ms", interval.as_millis()),
            None => "at once".to_owned(),
        };
        let mut row = Row::new([format!("{size} B"), pace]);
        let load = Load {
            size,
            callers: CALLERS,
            interval,
        };
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
