//! The general form: `[hosts]`, `[switches]` and `[[links]]`.

use weir_units::ByteSize;

use super::build::COUNT;
use super::tcon::{TCON_KEY, TconRule};
use super::{Builder, SharedBuffer, SharedLimit, links, route};
use crate::document::{At, Fields, Reported};
use crate::schema::{Accepts, Key, Section};

pub(crate) static HOST: Section = Section {
    title: "[hosts.NAME]",
    doc: "A host, or several equal ones.",
    keys: &[COUNT],
};

pub(super) const SHARED_BUFFER_KEY: Key = Key::optional(
    "shared_buffer",
    Accepts::Other("a table with `size` and `alpha` or `per_port`"),
    "each port has the buffer of its queue to itself",
    "memory that the switch's ports share",
);

pub(crate) static SWITCH: Section = Section {
    title: "[switches.NAME]",
    doc: "A switch.",
    keys: &[SHARED_BUFFER_KEY, TCON_KEY],
};

pub(crate) static SHARED_BUFFER: Section = Section {
    title: "[switches.NAME.shared_buffer] and [star.shared_buffer]",
    doc: "Memory that the ports of a switch share. A packet is dropped when there is no room in its \
          queue's own buffer, none in the shared one, or the port holds more than its share.",
    keys: &[
        Key::required("size", Accepts::SIZE, "how much there is"),
        Key::optional(
            "alpha",
            Accepts::Number(0.001, 1000.0),
            "`per_port` decides",
            "a port may hold this many times what is free (Choudhury and Hahne 1998); instead of \
             `per_port`",
        ),
        Key::optional(
            "per_port",
            Accepts::SIZE,
            "`alpha` decides",
            "a port may hold this much; instead of `alpha`",
        ),
    ],
};

impl SharedBuffer {
    pub(super) fn read(at: &At<'_>) -> Result<Self, Reported> {
        let fields = Fields::open(at.clone(), &SHARED_BUFFER)?;
        let (alpha, per_port) = (fields.optional("alpha")?, fields.optional("per_port")?);
        let size: ByteSize = fields.get("size")?;
        let limit = match (alpha, per_port) {
            (Some(alpha), None) => SharedLimit::Dynamic { alpha },
            (None, Some(limit)) if limit > size => {
                return Err(fields.blame("per_port").conflict(
                    format!("{limit} is more than the whole buffer of {size}"),
                    "set `per_port` up to `size`",
                ));
            }
            (None, Some(limit)) => SharedLimit::Static(limit),
            _ => {
                return Err(at.conflict(
                    "one of `alpha` and `per_port` must say what a port may hold",
                    "write one of them",
                ));
            }
        };
        Ok(Self { size, limit })
    }
}

/// Reads the parts of a topology in the general form.
pub(crate) fn read(file: &Fields<'_>, builder: &mut Builder<'_>) -> Result<(), Reported> {
    for (name, at) in file.needed("hosts")?.named("tables `[hosts.NAME]`")? {
        let fields = Fields::open(at, &HOST)?;
        let count = fields.optional("count")?;
        builder.add_hosts(&fields.at, name, count)?;
    }
    if let Some(switches) = file.at("switches") {
        for (name, at) in switches.named("tables `[switches.NAME]`")? {
            let fields = Fields::open(at, &SWITCH)?;
            let shared = fields.at("shared_buffer").map(|at| SharedBuffer::read(&at));
            let switch = builder.add_switch(&fields.at, name)?;
            let rules = match fields.at("tcon") {
                Some(at) => (at.list("tables `[[switches.NAME.tcon]]`")?.into_iter())
                    .map(|at| TconRule::read(at, builder))
                    .collect::<Result<_, _>>()?,
                None => Vec::new(),
            };
            let switch = &mut builder.topology.switches[switch.index()];
            switch.shared_buffer = shared.transpose()?;
            switch.tcon = rules;
        }
    }
    for at in file.needed("links")?.list("tables `[[links]]`")? {
        links::read(at, builder)?;
    }
    if let Some(routes) = file.at("routes") {
        for at in routes.list("tables `[[routes]]`")? {
            let route = route::read(&at, builder)?;
            builder.topology.chosen_routes.push(route);
        }
    }
    Ok(())
}
