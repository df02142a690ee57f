//! `[[links]]`: the links between hosts and switches.

use serde::Serialize;
use weir_scenario_derive::Keys;
use weir_units::{Duration, Rate};

use super::build::{Builder, LinkSettings, PacketSizes, QUEUE};
use super::leaf_spine::MOST_PARALLEL;
use super::names::check_name;
use super::{Node, Port, Topology};
use crate::Queue;
use crate::document::{Cursor, Reported};
use crate::schema::{Accepts, Fields};

const NODES: Accepts = Accepts::Other(
    "the name of a host, of several hosts or of a switch, or a pattern such as \"spine*\"",
);

/// Links as written in a file: with node names when serialized, with nodes when read.
#[derive(Serialize, Keys)]
#[keys(
    title = "[[links]]",
    doc = "A link between two nodes, or one for each host of a set: a port that sends from `from` to \
           `to`, and one that sends back.",
    context = &Builder<'_>
)]
pub(crate) struct Link<E = Vec<Node>> {
    /// One end.
    #[key(accepts = NODES, read = context.names.nodes(at))]
    from: E,
    /// The other end.
    #[key(accepts = NODES, read = context.names.nodes(at))]
    to: E,
    /// The name of the port from `from` to `to`; the port back is always `TO->FROM`.
    #[key(accepts = Accepts::Text, absent = "`FROM->TO`")]
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The number of equal parallel links between two nodes, among which flows are spread. The ports of
    /// several are `FROM->TO:1`, `FROM->TO:2` … and `TO->FROM:1` ….
    #[key(accepts = Accepts::Count(1, MOST_PARALLEL), default = 1)]
    #[serde(skip_serializing_if = "is_one")]
    count: u32,
    /// The rate, both ways.
    rate: Rate,
    /// The propagation delay, each way.
    #[key(accepts = Accepts::SPAN)]
    delay: Duration,
    #[key(flatten)]
    #[serde(flatten)]
    sizes: PacketSizes,
    /// The queue of the port from `from` to `to`.
    #[key(
        accepts = QUEUE,
        absent = "unlimited",
        or = Queue::UNLIMITED,
        read = Ok(context.queue(at))
    )]
    #[serde(skip_serializing_if = "Queue::is_unlimited")]
    queue: Queue,
    /// The queue of the port back.
    #[key(
        accepts = QUEUE,
        absent = "unlimited",
        or = Queue::UNLIMITED,
        read = Ok(context.queue(at))
    )]
    #[serde(skip_serializing_if = "Queue::is_unlimited")]
    reverse_queue: Queue,
}

/// Reads one `[[links]]`.
pub(super) fn read(at: Cursor<'_>, builder: &mut Builder<'_>) -> Result<(), Reported> {
    let fields = Fields::open(at, Link::SECTION)?;
    let link = Link::read_keys(&fields, &*builder)?;
    let pairs = link.from.len() * link.to.len();
    let (name, count) = (link.name.as_deref(), pairs * link.count as usize);
    if let Some(name) = name {
        check_name(&fields.error_position("name"), name)?;
        if count > 1 {
            return Err(fields.error_position("name").conflict(
                format!("{count} links cannot all be called `{name}`"),
                "remove `name`, or write a link of its own for the one that has it",
            ));
        }
    }
    let settings = LinkSettings {
        rate: link.rate,
        delay: link.delay,
        sizes: link.sizes,
    };
    let queues = [link.queue, link.reverse_queue];
    for from in link.from {
        for to in &link.to {
            if name.is_some() {
                builder.add_link(&fields.at, (from, *to), name, settings, queues)?;
            } else {
                builder.add_links(&fields.at, (from, *to), link.count, settings, queues)?;
            }
        }
    }
    Ok(())
}

impl<'t> Link<&'t str> {
    /// Returns the links of a topology.
    pub(crate) fn all(topology: &'t Topology) -> Vec<Self> {
        let pairs: Vec<_> = topology.ports.chunks_exact(2).collect();
        // Parallel links follow one another.
        let parallel = pairs.chunk_by(|one, other| {
            let ends = |pair: &[Port]| (pair[0].from, pair[0].to);
            ends(one) == ends(other)
        });
        parallel
            .map(|links| {
                let (there, back) = (&links[0][0], &links[0][1]);
                let (from, to) = (topology.name(there.from), topology.name(there.to));
                let named = links.len() == 1 && there.name != format!("{from}->{to}");
                Self {
                    from,
                    to,
                    name: named.then(|| there.name.clone()),
                    count: links.len() as u32,
                    rate: there.rate,
                    delay: there.delay,
                    sizes: PacketSizes {
                        mtu: there.mtu,
                        framing: there.framing,
                    },
                    queue: there.queue,
                    reverse_queue: back.queue,
                }
            })
            .collect()
    }
}

fn is_one(count: &u32) -> bool {
    *count == 1
}
