//! The leaf-spine network: racks of hosts, each with a leaf, and spines that connect all leaves.

use weir_scenario_derive::Keys;
use weir_units::{Duration, Rate};

use super::build::{Builder, FabricOptions, LinkSettings, MOST_HOSTS, PacketSizes, QUEUE};
use crate::Queue;
use crate::document::{Cursor, Reported};
use crate::schema::{Accepts, Fields};

/// The maximum number of leaves and of spines.
const MOST_SWITCHES: u64 = 1_000;
/// The maximum number of parallel links between two nodes.
pub(super) const MOST_PARALLEL: u64 = 1_000;

/// The keys of a leaf-spine network.
#[derive(Keys)]
#[keys(
    title = "[leaf_spine]",
    doc = "Racks of hosts, each with a switch `leaf1`, `leaf2` …, and switches `spine1`, `spine2` … with links to \
           every leaf. The hosts are `host1`, `host2` …, rack by rack: `host` means all of them, `rack1` those of \
           `leaf1`. All ports of switches have the queue; the hosts' own are unlimited.",
    context = &Builder<'_>
)]
pub(crate) struct LeafSpine {
    /// The number of leaves.
    #[key(accepts = Accepts::Count(1, MOST_SWITCHES))]
    leaves: u32,
    /// The number of spines.
    #[key(accepts = Accepts::Count(1, MOST_SWITCHES))]
    spines: u32,
    /// The number of hosts of each leaf.
    #[key(accepts = Accepts::Count(1, MOST_HOSTS))]
    hosts: u32,
    /// The rate of the hosts' links.
    rate: Rate,
    /// The rate of all links from hosts to a leaf, by that of all its links to spines; instead of `uplink_rate`.
    #[key(accepts = Accepts::Number(0.01, 100.0), absent = "1, unless `uplink_rate` decides")]
    oversubscription: Option<f64>,
    /// The rate of each link between a leaf and a spine; instead of `oversubscription`.
    #[key(absent = "`oversubscription` decides")]
    uplink_rate: Option<Rate>,
    /// The number of parallel links between each leaf and each spine.
    #[key(accepts = Accepts::Count(1, MOST_PARALLEL), default = 1)]
    uplinks: u32,
    /// The propagation delay of the hosts' links, one way.
    #[key(accepts = Accepts::SPAN)]
    delay: Duration,
    /// The propagation delay of the links between leaves and spines, one way.
    #[key(accepts = Accepts::SPAN, absent = "`delay`")]
    uplink_delay: Option<Duration>,
    #[key(flatten)]
    sizes: PacketSizes,
    /// The queue of each port of a switch.
    #[key(accepts = QUEUE, by = Ok(context.needed_queue(fields)))]
    queue: Queue,
    #[key(flatten)]
    switches: FabricOptions,
}

/// Expands `[leaf_spine]`.
pub(crate) fn expand(at: &Cursor<'_>, builder: &mut Builder<'_>) -> Result<(), Reported> {
    let fields = Fields::open(at.clone(), LeafSpine::SECTION)?;
    let network = LeafSpine::read_keys(&fields, &*builder)?;
    let uplink = LinkSettings {
        rate: network.rate_of_uplinks(&fields)?,
        delay: network.uplink_delay.unwrap_or(network.delay),
        sizes: network.sizes,
    };
    let link = LinkSettings {
        rate: network.rate,
        delay: network.delay,
        sizes: network.sizes,
    };
    let leaves = builder.add_switches(at, "leaf", network.leaves, network.switches)?;
    let spines = builder.add_switches(at, "spine", network.spines, network.switches)?;
    let hosts = network.leaves.saturating_mul(network.hosts);
    let hosts = builder.add_hosts(at, "host", Some(hosts))?;
    for (number, (leaf, rack)) in (1..).zip(leaves.iter().zip(hosts.chunks(network.hosts as usize)))
    {
        builder.add_rack(at, (number, *leaf), rack, link, network.queue)?;
    }
    for leaf in leaves {
        for spine in &spines {
            builder.add_links(
                at,
                (leaf, *spine),
                network.uplinks,
                uplink,
                [network.queue; 2],
            )?;
        }
    }
    Ok(())
}

impl LeafSpine {
    /// Returns the rate of each link between a leaf and a spine.
    fn rate_of_uplinks(&self, fields: &Fields<'_>) -> Result<Rate, Reported> {
        let oversubscription = match (self.oversubscription, self.uplink_rate) {
            (None, Some(rate)) => return Ok(rate),
            (Some(_), Some(_)) => {
                return Err(fields.error_position("uplink_rate").conflict(
                    "`oversubscription` and `uplink_rate` both say how fast the links to the spines are",
                    "remove one of them",
                ));
            }
            (oversubscription, None) => oversubscription.unwrap_or(1.0),
        };
        let from_hosts = self.rate.bits_per_second() as f64 * f64::from(self.hosts);
        let links = f64::from(self.spines) * f64::from(self.uplinks);
        let rate =
            Rate::from_bits_per_second((from_hosts / links / oversubscription).round() as u64);
        match Accepts::RATE {
            Accepts::Rate(least, most) if (least..=most).contains(&rate) => Ok(rate),
            accepts => Err(fields.error_position("oversubscription").conflict(
                format!("each link between a leaf and a spine would have {rate}"),
                format!(
                    "it takes {accepts}: set `uplink_rate`, or another number of hosts or spines"
                ),
            )),
        }
    }
}
