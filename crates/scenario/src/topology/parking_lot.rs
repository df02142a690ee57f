//! The parking lot: switches in a row. Flows along all of it compete with others at every hop.

use weir_scenario_derive::Keys;
use weir_units::{Duration, Rate};

use super::BOTTLENECK;
use super::build::{Builder, FabricOptions, LinkSettings, MOST_HOSTS, PacketSizes, QUEUE};
use crate::Queue;
use crate::document::{Cursor, Reported};
use crate::schema::Accepts;

/// The maximum number of hops.
const MOST_HOPS: u64 = 1_000;

/// The keys of a parking lot.
#[derive(Keys)]
#[keys(
    title = "[parking_lot]",
    doc = "Switches in a row, `switch1`, `switch2` …, linked by the ports `bottleneck1`, `bottleneck2` …. The hosts \
           `sender` are at the first switch and `receiver` at the last one: their flows cross all bottlenecks. At each \
           bottleneck a host of `entry` is in front, and a host of `exit` behind: `entry1` and `exit1` at \
           `bottleneck1`, and so on. All other queues are unlimited.",
    context = &Builder<'_>
)]
pub(crate) struct ParkingLot {
    /// The number of bottlenecks.
    #[key(accepts = Accepts::Count(1, MOST_HOPS))]
    hops: u32,
    /// The number of hosts `sender1` … at the first switch, and of hosts `receiver1` … at the last one.
    #[key(accepts = Accepts::Count(1, MOST_HOSTS), default = 1)]
    pairs: u32,
    /// The rate of the bottlenecks.
    rate: Rate,
    /// The propagation delay of each bottleneck, one way.
    #[key(accepts = Accepts::SPAN)]
    delay: Duration,
    /// The rate of the hosts' links.
    #[key(absent = "the bottlenecks' rate")]
    host_rate: Option<Rate>,
    /// The propagation delay of the hosts' links, one way.
    #[key(accepts = Accepts::SPAN, default = "1us")]
    host_delay: Duration,
    #[key(flatten)]
    sizes: PacketSizes,
    /// The queue of each bottleneck.
    #[key(accepts = QUEUE, by = Ok(context.needed_queue(fields)))]
    queue: Queue,
}

/// Expands `[parking_lot]`.
pub(crate) fn expand(at: &Cursor<'_>, builder: &mut Builder<'_>) -> Result<(), Reported> {
    let row = ParkingLot::read(at, &*builder)?;
    let bottleneck = LinkSettings {
        rate: row.rate,
        delay: row.delay,
        sizes: row.sizes,
    };
    let link = LinkSettings {
        rate: row.host_rate.unwrap_or(row.rate),
        delay: row.host_delay,
        sizes: row.sizes,
    };
    let switches = builder.add_switches(at, "switch", row.hops + 1, FabricOptions::default())?;
    for (number, ends) in (1..).zip(switches.windows(2)) {
        let name = format!("{BOTTLENECK}{number}");
        let queues = [row.queue, Queue::UNLIMITED];
        builder.add_link(at, (ends[0], ends[1]), Some(&name), bottleneck, queues)?;
    }
    let (first, last) = (switches[0], switches[row.hops as usize]);
    let (fronts, behinds) = (&switches[..], &switches[1..]);
    let sets = [
        ("sender", vec![first; row.pairs as usize]),
        ("receiver", vec![last; row.pairs as usize]),
        ("entry", fronts[..row.hops as usize].to_vec()),
        ("exit", behinds.to_vec()),
    ];
    for (name, switches) in sets {
        let hosts = builder.add_hosts(at, name, Some(switches.len() as u32))?;
        for ends in hosts.into_iter().zip(switches) {
            builder.add_link(at, ends, None, link, [Queue::UNLIMITED; 2])?;
        }
    }
    Ok(())
}
