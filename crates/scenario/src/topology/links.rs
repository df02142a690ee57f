//! `[[links]]`: what connects hosts and switches.

use super::build::{FRAMING, MTU, check_name};
use super::{Builder, LinkSettings};
use crate::document::{At, Fields, Reported};
use crate::schema::{Accepts, Key, Section};

pub(crate) static LINK: Section = Section {
    title: "[[links]]",
    doc: "A link between two nodes, or one for each host of a set: a port that sends from `from` to \
          `to`, and one that sends back.",
    keys: &[
        Key::required(
            "from",
            Accepts::Other(
                "the name of a host, of several hosts or of a switch, or a pattern such as \"spine*\"",
            ),
            "one end",
        ),
        Key::required(
            "to",
            Accepts::Other(
                "the name of a host, of several hosts or of a switch, or a pattern such as \"spine*\"",
            ),
            "the other end",
        ),
        Key::optional(
            "name",
            Accepts::Text,
            "`FROM->TO`",
            "the name of the port from `from` to `to`; the port back is always `TO->FROM`",
        ),
        Key::required("rate", Accepts::RATE, "the rate, both ways"),
        Key::required("delay", Accepts::SPAN, "the propagation delay, each way"),
        MTU,
        FRAMING,
        Key::optional(
            "queue",
            Accepts::Other("the name of a queue, or a table that describes one"),
            "unlimited",
            "the queue of the port from `from` to `to`",
        ),
        Key::optional(
            "reverse_queue",
            Accepts::Other("the name of a queue, or a table that describes one"),
            "unlimited",
            "the queue of the port back",
        ),
    ],
};

/// Reads one `[[links]]`.
pub(super) fn read(at: At<'_>, builder: &mut Builder<'_>) -> Result<(), Reported> {
    let fields = Fields::open(at, &LINK)?;
    let from = fields
        .needed("from")
        .and_then(|at| builder.names.nodes(&at));
    let to = fields.needed("to").and_then(|at| builder.names.nodes(&at));
    let settings = LinkSettings::read(&fields);
    let queues = ["queue", "reverse_queue"].map(|key| builder.optional_queue(&fields, key));
    let name: Option<String> = fields.optional("name")?;
    let (from, to, settings) = (from?, to?, settings?);
    if let Some(name) = &name {
        check_name(&fields.blame("name"), name)?;
        if from.len() * to.len() > 1 {
            return Err(fields.blame("name").conflict(
                format!(
                    "{} links cannot all be called `{name}`",
                    from.len() * to.len()
                ),
                "remove `name`, or write a link of its own for the one that has it",
            ));
        }
    }
    for from in from {
        for to in &to {
            builder.add_link(&fields.at, (from, *to), name.as_deref(), settings, queues)?;
        }
    }
    Ok(())
}
