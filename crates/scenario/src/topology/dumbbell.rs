//! The dumbbell: senders, a bottleneck, and one receiver or several.

use weir_units::Duration;

use super::build::{COUNT, FRAMING, MTU};
use super::{Builder, LinkSettings, Node};
use crate::Queue;
use crate::document::{At, Fields, Reported};
use crate::schema::{Accepts, Key, Literal, Section};

/// The name of the port where packets queue.
pub(crate) const BOTTLENECK: &str = "bottleneck";

pub(crate) static DUMBBELL: Section = Section {
    title: "[dumbbell]",
    doc: "Senders behind a switch share one link, the port `bottleneck`, to the host `receiver`; \
          with `[dumbbell.receivers]` it leads to a second switch with several receivers. All other \
          queues are unlimited.",
    keys: &[
        Key::required("rate", Accepts::RATE, "the rate of the bottleneck link"),
        Key::default(
            "delay",
            Accepts::SPAN,
            Literal::Text("1us"),
            "the bottleneck link's propagation delay, one way",
        ),
        MTU,
        FRAMING,
        Key::required(
            "queue",
            Accepts::Other("the name of a queue, or a table that describes one"),
            "the queue of the port `bottleneck`",
        ),
        Key::required(
            "senders",
            Accepts::Other("tables `[dumbbell.senders.NAME]`"),
            "the hosts that send",
        ),
        Key::optional(
            "receivers",
            Accepts::Other("a table"),
            "one host `receiver` at the end of the bottleneck link",
            "the hosts that receive",
        ),
    ],
};

pub(crate) static SENDERS: Section = Section {
    title: "[dumbbell.senders.NAME]",
    doc: "A host, or several equal ones, with a link each to the switch in front of the bottleneck.",
    keys: &[
        COUNT,
        Key::optional(
            "rate",
            Accepts::RATE,
            "the bottleneck's rate",
            "the rate of each link",
        ),
        Key::optional(
            "delay",
            Accepts::SPAN,
            "`rtt` decides",
            "each link's propagation delay, one way; instead of `rtt`",
        ),
        Key::optional(
            "rtt",
            Accepts::POSITIVE_SPAN,
            "`delay` decides",
            "the round trip between sender and receiver when no packet waits or is being sent: the \
             propagation delay of all links, both ways",
        ),
    ],
};

pub(crate) static RECEIVERS: Section = Section {
    title: "[dumbbell.receivers]",
    doc: "Several receivers, `receiver1`, `receiver2` …, with a link each to a second switch.",
    keys: &[
        Key::required(
            "count",
            Accepts::Count(1, super::build::MOST_HOSTS),
            "how many",
        ),
        Key::optional(
            "rate",
            Accepts::RATE,
            "the bottleneck's rate",
            "the rate of each link",
        ),
        Key::default(
            "delay",
            Accepts::SPAN,
            Literal::Text("1us"),
            "each link's propagation delay, one way",
        ),
    ],
};

/// Expands `[dumbbell]`.
pub(crate) fn read(at: &At<'_>, builder: &mut Builder<'_>) -> Result<(), Reported> {
    let fields = Fields::open(at.clone(), &DUMBBELL)?;
    let settings = LinkSettings::read(&fields);
    let queue = builder.needed_queue(&fields);
    let settings = settings?;
    let receivers = match fields.at("receivers") {
        Some(at) => Some(Fields::open(at, &RECEIVERS)?),
        None => None,
    };

    let switch = match receivers {
        None => "switch",
        Some(_) => "left",
    };
    let switch = Node::Switch(builder.add_switch(at, switch)?);
    let mut beyond = settings.delay;
    let far = match &receivers {
        None => Node::Host(builder.add_hosts(at, "receiver", None)?[0]),
        Some(_) => Node::Switch(builder.add_switch(at, "right")?),
    };
    let queues = [queue, Queue::UNLIMITED];
    builder.add_link(at, (switch, far), Some(BOTTLENECK), settings, queues)?;
    if let Some(receivers) = &receivers {
        beyond += read_receivers(receivers, builder, far, settings)?;
    }
    read_senders(&fields, builder, switch, settings, beyond)
}

/// Adds the receivers and says how far they are from their switch.
fn read_receivers(
    fields: &Fields<'_>,
    builder: &mut Builder<'_>,
    switch: Node,
    bottleneck: LinkSettings,
) -> Result<Duration, Reported> {
    let (count, rate, delay) = (
        fields.get("count"),
        fields.optional("rate"),
        fields.get("delay"),
    );
    let settings = LinkSettings {
        rate: rate?.unwrap_or(bottleneck.rate),
        delay: delay?,
        ..bottleneck
    };
    for host in builder.add_hosts(&fields.at, "receiver", Some(count?))? {
        let ends = (switch, Node::Host(host));
        builder.add_link(&fields.at, ends, None, settings, [Queue::UNLIMITED; 2])?;
    }
    Ok(settings.delay)
}

fn read_senders(
    fields: &Fields<'_>,
    builder: &mut Builder<'_>,
    switch: Node,
    bottleneck: LinkSettings,
    beyond: Duration,
) -> Result<(), Reported> {
    let senders = fields.needed("senders")?;
    for (name, at) in senders.named("tables `[dumbbell.senders.NAME]`")? {
        let fields = Fields::open(at, &SENDERS)?;
        let (count, rate) = (fields.optional("count"), fields.optional("rate"));
        let settings = LinkSettings {
            rate: rate?.unwrap_or(bottleneck.rate),
            delay: sender_delay(&fields, beyond)?,
            ..bottleneck
        };
        for host in builder.add_hosts(&fields.at, name, count?)? {
            let ends = (Node::Host(host), switch);
            builder.add_link(&fields.at, ends, None, settings, [Queue::UNLIMITED; 2])?;
        }
    }
    Ok(())
}

/// The delay of a sender's link: as written, or what is left of its round trip.
fn sender_delay(fields: &Fields<'_>, beyond: Duration) -> Result<Duration, Reported> {
    let (delay, rtt) = (
        fields.optional::<Duration>("delay")?,
        fields.optional::<Duration>("rtt")?,
    );
    match (delay, rtt) {
        (Some(delay), None) => Ok(delay),
        (None, Some(rtt)) => Duration::checked_sub(rtt / 2, beyond).ok_or_else(|| {
            fields.blame("rtt").conflict(
                format!(
                    "a round trip of {rtt} is shorter than the {beyond} beyond the switch, twice"
                ),
                "set a longer `rtt`, or a shorter `delay` in [dumbbell]",
            )
        }),
        (Some(_), Some(_)) => Err(fields.blame("rtt").conflict(
            "`delay` and `rtt` both say how far the sender is",
            "write one of them",
        )),
        (None, None) => Err(fields.at.conflict(
            "neither `delay` nor `rtt` says how far the sender is",
            "write one of them",
        )),
    }
}
