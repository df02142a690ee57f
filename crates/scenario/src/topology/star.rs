//! The star: hosts around one switch.

use super::build::{COUNT, FRAMING, MTU};
use super::{Builder, LinkSettings, Node, SharedBuffer};
use crate::Queue;
use crate::document::{At, Fields, Reported};
use crate::schema::{Accepts, Key, Section};

pub(crate) static STAR: Section = Section {
    title: "[star]",
    doc: "Hosts around one switch called `switch`. The ports towards the hosts, `switch->HOST`, have \
          the queue; the hosts' own are unlimited.",
    keys: &[
        Key::required("rate", Accepts::RATE, "the rate of the links"),
        Key::required(
            "delay",
            Accepts::SPAN,
            "the links' propagation delay, one way: a quarter of the round trip between two hosts",
        ),
        MTU,
        FRAMING,
        Key::required(
            "queue",
            Accepts::Other("the name of a queue, or a table that describes one"),
            "the queue of each port towards a host",
        ),
        super::general::SHARED_BUFFER_KEY,
        Key::required(
            "hosts",
            Accepts::Other("tables `[star.hosts.NAME]`"),
            "the hosts",
        ),
    ],
};

pub(crate) static STAR_HOSTS: Section = Section {
    title: "[star.hosts.NAME]",
    doc: "A host, or several equal ones.",
    keys: &[
        COUNT,
        Key::optional(
            "rate",
            Accepts::RATE,
            "the star's `rate`",
            "the rate of each link",
        ),
        Key::optional(
            "delay",
            Accepts::SPAN,
            "the star's `delay`",
            "each link's propagation delay, one way",
        ),
    ],
};

/// Expands `[star]`.
pub(crate) fn read(at: &At<'_>, builder: &mut Builder<'_>) -> Result<(), Reported> {
    let fields = Fields::open(at.clone(), &STAR)?;
    let settings = LinkSettings::read(&fields);
    let queue = builder.needed_queue(&fields);
    let shared = fields.at("shared_buffer").map(|at| SharedBuffer::read(&at));
    let settings = settings?;
    let switch = builder.add_switch(at, "switch")?;
    builder.topology.switches[switch.index()].shared_buffer = shared.transpose()?;
    for (name, at) in fields
        .needed("hosts")?
        .named("tables `[star.hosts.NAME]`")?
    {
        let fields = Fields::open(at, &STAR_HOSTS)?;
        let (count, rate, delay) = (
            fields.optional("count"),
            fields.optional("rate"),
            fields.optional("delay"),
        );
        let settings = LinkSettings {
            rate: rate?.unwrap_or(settings.rate),
            delay: delay?.unwrap_or(settings.delay),
            ..settings
        };
        for host in builder.add_hosts(&fields.at, name, count?)? {
            let ends = (Node::Host(host), Node::Switch(switch));
            let queues = [Queue::UNLIMITED, queue];
            builder.add_link(&fields.at, ends, None, settings, queues)?;
        }
    }
    Ok(())
}
