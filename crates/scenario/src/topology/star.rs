//! The star: hosts around one switch.

use weir_scenario_derive::Keys;
use weir_units::{Duration, Rate};

use super::Switch;
use super::build::{Builder, Hosts, LinkSettings, PacketSizes, QUEUE};
use super::shared_buffer::SharedMemory;
use crate::Queue;
use crate::document::{Cursor, Reported};
use crate::schema::Accepts;

/// The keys of a star.
#[derive(Keys)]
#[keys(
    title = "[star]",
    doc = "Hosts around one switch called `switch`. The ports towards the hosts, `switch->HOST`, have \
           the queue; the hosts' own are unlimited.",
    context = &Builder<'_>
)]
pub(crate) struct Star<'a> {
    /// The rate of the links.
    rate: Rate,
    /// The links' propagation delay, one way: a quarter of the round trip between two hosts.
    #[key(accepts = Accepts::SPAN)]
    delay: Duration,
    #[key(flatten)]
    sizes: PacketSizes,
    /// The queue of each port towards a host.
    #[key(accepts = QUEUE, by = Ok(context.needed_queue(fields)))]
    queue: Queue,
    #[key(flatten)]
    memory: SharedMemory,
    /// The hosts.
    #[key(accepts = Accepts::Other("tables `[star.hosts.NAME]`"), read = Ok(at.clone()))]
    hosts: Cursor<'a>,
}

/// A set of equal hosts.
#[derive(Keys)]
#[keys(title = "[star.hosts.NAME]", doc = "A host, or several equal ones.")]
pub(crate) struct StarHosts {
    #[key(flatten)]
    hosts: Hosts,
    /// The rate of each link.
    #[key(absent = "the star's `rate`")]
    rate: Option<Rate>,
    /// Each link's propagation delay, one way.
    #[key(accepts = Accepts::SPAN, absent = "the star's `delay`")]
    delay: Option<Duration>,
}

/// Expands `[star]`.
pub(crate) fn expand(at: &Cursor<'_>, builder: &mut Builder<'_>) -> Result<(), Reported> {
    let star = Star::read(at, &*builder)?;
    let switch = Switch {
        shared_buffer: star.memory.shared_buffer,
        ..Switch::new("switch")
    };
    let switch = builder.add_switch(at, switch)?;
    for (name, at) in star.hosts.named("tables `[star.hosts.NAME]`")? {
        let hosts = StarHosts::read(&at, ())?;
        let link = LinkSettings {
            rate: hosts.rate.unwrap_or(star.rate),
            delay: hosts.delay.unwrap_or(star.delay),
            sizes: star.sizes,
        };
        for host in builder.add_hosts(&at, name, hosts.hosts.count)? {
            let queues = [Queue::UNLIMITED, star.queue];
            builder.add_link(&at, (host, switch), None, link, queues)?;
        }
    }
    Ok(())
}
