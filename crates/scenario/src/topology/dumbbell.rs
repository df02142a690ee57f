//! The dumbbell: senders, a bottleneck, and one or several receivers.

use weir_scenario_derive::Keys;
use weir_units::{Duration, Rate};

use super::build::{Builder, Hosts, LinkSettings, MOST_HOSTS, PacketSizes, QUEUE};
use super::{BOTTLENECK, Switch};
use crate::Queue;
use crate::document::{Cursor, Reported};
use crate::schema::{Accepts, Fields};

/// The keys of a dumbbell.
#[derive(Keys)]
#[keys(
    title = "[dumbbell]",
    doc = "Senders behind a switch share one link, the port `bottleneck`, to the host `receiver`; \
           with `[dumbbell.receivers]` it leads to a second switch with several receivers. All other \
           queues are unlimited.",
    context = &Builder<'_>
)]
pub(crate) struct Dumbbell<'a> {
    /// The rate of the bottleneck link.
    rate: Rate,
    /// The bottleneck link's propagation delay, one way.
    #[key(accepts = Accepts::SPAN, default = "1us")]
    delay: Duration,
    #[key(flatten)]
    sizes: PacketSizes,
    /// The queue of the port `bottleneck`.
    #[key(accepts = QUEUE, by = Ok(context.needed_queue(fields)))]
    queue: Queue,
    /// The sending hosts.
    #[key(accepts = Accepts::Other("tables `[dumbbell.senders.NAME]`"), read = Ok(at.clone()))]
    senders: Cursor<'a>,
    /// The receiving hosts.
    #[key(
        accepts = Accepts::TABLE,
        absent = "one host `receiver` at the end of the bottleneck link",
        read = Receivers::read(at, ())
    )]
    receivers: Option<Receivers<'a>>,
}

/// A set of equal senders.
#[derive(Keys)]
#[keys(
    title = "[dumbbell.senders.NAME]",
    doc = "A host, or several equal ones, with a link each to the switch in front of the bottleneck."
)]
pub(crate) struct Sender {
    #[key(flatten)]
    hosts: Hosts,
    /// The rate of each link.
    #[key(absent = "the bottleneck's rate")]
    rate: Option<Rate>,
    /// Each link's propagation delay, one way; instead of `rtt`.
    #[key(accepts = Accepts::SPAN, absent = "`rtt` decides")]
    delay: Option<Duration>,
    /// The round-trip time between sender and receiver without queueing and transmission: the
    /// propagation delay of all links, in both directions.
    #[key(accepts = Accepts::POSITIVE_SPAN, absent = "`delay` decides")]
    rtt: Option<Duration>,
}

/// The receivers, if there are several.
#[derive(Keys)]
#[keys(
    title = "[dumbbell.receivers]",
    doc = "Several receivers, `receiver1`, `receiver2` …, with a link each to a second switch."
)]
pub(crate) struct Receivers<'a> {
    /// The position in the file.
    #[key(is = Ok(fields.at.clone()))]
    at: Cursor<'a>,
    /// The number of receivers.
    #[key(accepts = Accepts::Count(1, MOST_HOSTS))]
    count: u32,
    /// The rate of each link.
    #[key(absent = "the bottleneck's rate")]
    rate: Option<Rate>,
    /// Each link's propagation delay, one way.
    #[key(accepts = Accepts::SPAN, default = "1us")]
    delay: Duration,
}

/// Expands `[dumbbell]`.
pub(crate) fn expand(at: &Cursor<'_>, builder: &mut Builder<'_>) -> Result<(), Reported> {
    let dumbbell = Dumbbell::read(at, &*builder)?;
    let link = |rate: Option<Rate>, delay| LinkSettings {
        rate: rate.unwrap_or(dumbbell.rate),
        delay,
        sizes: dumbbell.sizes,
    };
    let (near, far) = match &dumbbell.receivers {
        None => (
            builder.add_switch(at, Switch::new("switch"))?,
            builder.add_hosts(at, "receiver", None)?[0],
        ),
        Some(_) => (
            builder.add_switch(at, Switch::new("left"))?,
            builder.add_switch(at, Switch::new("right"))?,
        ),
    };
    let queues = [dumbbell.queue, Queue::UNLIMITED];
    let bottleneck = link(None, dumbbell.delay);
    builder.add_link(at, (near, far), Some(BOTTLENECK), bottleneck, queues)?;
    let mut beyond = dumbbell.delay;
    if let Some(receivers) = &dumbbell.receivers {
        let (at, link) = (&receivers.at, link(receivers.rate, receivers.delay));
        for host in builder.add_hosts(at, "receiver", Some(receivers.count))? {
            builder.add_link(at, (far, host), None, link, [Queue::UNLIMITED; 2])?;
        }
        beyond += receivers.delay;
    }
    for (name, at) in (dumbbell.senders).named("tables `[dumbbell.senders.NAME]`")? {
        let fields = Fields::open(at, Sender::SECTION)?;
        let sender = Sender::read_keys(&fields, ())?;
        let link = link(sender.rate, sender.link_delay(&fields, beyond)?);
        for host in builder.add_hosts(&fields.at, name, sender.hosts.count)? {
            builder.add_link(&fields.at, (host, near), None, link, [Queue::UNLIMITED; 2])?;
        }
    }
    Ok(())
}

impl Sender {
    /// Returns the delay of the link: as written, or the round trip less the path beyond the switch.
    fn link_delay(&self, fields: &Fields<'_>, beyond: Duration) -> Result<Duration, Reported> {
        match (self.delay, self.rtt) {
            (Some(delay), None) => Ok(delay),
            (None, Some(rtt)) => Duration::checked_sub(rtt / 2, beyond).ok_or_else(|| {
                fields.error_position("rtt").conflict(
                    format!(
                        "a round trip of {rtt} is shorter than the {beyond} beyond the switch, twice"
                    ),
                    "set a longer `rtt`, or a shorter `delay` in [dumbbell]",
                )
            }),
            (Some(_), Some(_)) => Err(fields.error_position("rtt").conflict(
                "`delay` and `rtt` both say how far the sender is",
                "write one of them",
            )),
            (None, None) => Err(fields.at.conflict(
                "neither `delay` nor `rtt` says how far the sender is",
                "write one of them",
            )),
        }
    }
}
