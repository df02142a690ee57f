//! The fat-tree of k-port switches (Al-Fares, Loukissas and Vahdat, SIGCOMM 2008).

use weir_scenario_derive::Keys;
use weir_units::{Duration, Rate};

use super::build::{Builder, FabricOptions, LinkSettings, PacketSizes, QUEUE};
use crate::Queue;
use crate::document::{Cursor, Reported};
use crate::schema::{Accepts, Fields};

/// The maximum number of ports of a switch: 8,192 hosts. Routing tables have an entry for each host.
const MOST_PORTS: u64 = 32;

/// The keys of a fat-tree.
#[derive(Keys)]
#[keys(
    title = "[fat_tree]",
    doc = "A fat-tree of switches with `k` ports (Al-Fares et al., SIGCOMM 2008): `k` pods of `k`/2 switches \
           `edge1` … and `k`/2 switches `aggregation1` …, below (`k`/2)² switches `core1` …; the links of a tier carry \
           as much as those of the next. The hosts are `host1`, `host2` …, `k`³/4 of them, pod by pod: `host` means \
           all of them, `pod1` those of the first pod, `rack1` those of `edge1`. All ports of switches have the \
           queue; the hosts' own are unlimited.",
    context = &Builder<'_>
)]
pub(crate) struct FatTree {
    /// The number of ports of each switch, and of pods; even.
    #[key(accepts = Accepts::Count(2, MOST_PORTS))]
    k: u32,
    /// The rate of the links.
    rate: Rate,
    /// The links' propagation delay, one way.
    #[key(accepts = Accepts::SPAN)]
    delay: Duration,
    #[key(flatten)]
    sizes: PacketSizes,
    /// The queue of each port of a switch.
    #[key(accepts = QUEUE, by = Ok(context.needed_queue(fields)))]
    queue: Queue,
    #[key(flatten)]
    switches: FabricOptions,
}

/// Expands `[fat_tree]`.
pub(crate) fn expand(at: &Cursor<'_>, builder: &mut Builder<'_>) -> Result<(), Reported> {
    let fields = Fields::open(at.clone(), FatTree::SECTION)?;
    let tree = FatTree::read_keys(&fields, &*builder)?;
    if !tree.k.is_multiple_of(2) {
        return Err(fields.error_position("k").conflict(
            format!(
                "switches with {} ports have no half of them for either side",
                tree.k
            ),
            format!("set `k` to {} or {}", tree.k - 1, tree.k + 1),
        ));
    }
    let (k, half) = (tree.k, tree.k / 2);
    let edges = builder.add_switches(at, "edge", k * half, tree.switches)?;
    let aggregations = builder.add_switches(at, "aggregation", k * half, tree.switches)?;
    let cores = builder.add_switches(at, "core", half * half, tree.switches)?;
    let hosts = builder.add_hosts(at, "host", Some(k * half * half))?;
    let link = LinkSettings {
        rate: tree.rate,
        delay: tree.delay,
        sizes: tree.sizes,
    };
    let half = half as usize;
    for (number, pod) in (1..).zip(hosts.chunks(half * half)) {
        builder.name_hosts(at, &format!("pod{number}"), pod)?;
    }
    for (number, (edge, rack)) in (1..).zip(edges.iter().zip(hosts.chunks(half))) {
        builder.add_rack(at, (number, *edge), rack, link, tree.queue)?;
    }
    for (edges, aggregations) in edges.chunks(half).zip(aggregations.chunks(half)) {
        for edge in edges {
            for aggregation in aggregations {
                builder.add_link(at, (*edge, *aggregation), None, link, [tree.queue; 2])?;
            }
        }
        // The first switch of each pod has the first k/2 cores, and so on.
        for (aggregation, cores) in aggregations.iter().zip(cores.chunks(half)) {
            for core in cores {
                builder.add_link(at, (*aggregation, *core), None, link, [tree.queue; 2])?;
            }
        }
    }
    Ok(())
}
