//! Reading the tables `[groups.NAME.workload]`.

use weir_units::{ByteSize, Duration, Rate};

use super::{Distribution, Workload};
use crate::Topology;
use crate::document::{At, Fields, Node, Reported, Table, Value, section_by_kind};
use crate::error::{ProblemKind, list, nearest};
use crate::schema::{Accepts, Key};
use crate::topology::BOTTLENECK;

/// The most epochs of a run.
pub(crate) const MOST_EPOCHS: u32 = 10_000_000;

pub(super) const MEAN_INTERVAL: Key = Key::optional(
    "mean_interval",
    Accepts::POSITIVE_SPAN,
    "`load` decides",
    "The mean time between two arrivals in the whole group; instead of `load`.",
);

pub(super) const LOAD: Key = Key::optional(
    "load",
    Accepts::Number(0.001, 10.0),
    "`mean_interval` decides",
    "The bytes that arrive, as a fraction of the rate of the port `of`; instead of `mean_interval`.",
);

pub(super) const OF: Key = Key::optional(
    "of",
    Accepts::Other("the name of a port"),
    "`\"bottleneck\"`",
    "The port whose rate `load` is a fraction of.",
);

impl Workload {
    /// Reads a workload: a table, or the `kind` alone for one without other keys.
    pub(crate) fn read(at: &At<'_>, topology: &Topology) -> Result<Self, Reported> {
        let Value::Text(_) = &at.node.value else {
            return Self::read_table(at, topology);
        };
        let mut table = Table::default();
        table.set("kind", at.node.place.clone(), at.node.clone());
        let node = Node {
            value: Value::Table(table),
            ..at.node.clone()
        };
        let at = At {
            node: &node,
            key: at.key.clone(),
            problems: at.problems,
        };
        Self::read_table(&at, topology)
    }

    fn read_table(at: &At<'_>, topology: &Topology) -> Result<Self, Reported> {
        let section = section_by_kind(at, &Self::SECTIONS)?;
        let fields = Fields::open(at.clone(), section)?;
        let workload = Self::read_keys(&fields, topology)?;
        workload.check(&fields)?;
        Ok(workload)
    }

    fn check(&self, fields: &Fields<'_>) -> Result<(), Reported> {
        match *self {
            Self::Transfer {
                rounds: 1,
                interval: Some(_),
                ..
            } => Err(fields.blame("interval").conflict(
                "one round has no interval to another",
                "remove it, or set `rounds`",
            )),
            Self::Transfer {
                rounds: rounds @ 2..,
                interval: None,
                ..
            } => Err(fields.blame("rounds").conflict(
                format!("{rounds} rounds need an `interval`"),
                "say how long after the start of one round the next one starts",
            )),
            _ => Ok(()),
        }
    }
}

/// The size of a constant rate's packets.
pub(super) fn packet(fields: &Fields<'_>, topology: &Topology) -> Result<ByteSize, Reported> {
    let mtu = topology.smallest_mtu();
    let packet = fields.optional("packet")?.unwrap_or(mtu);
    if packet > mtu {
        return Err(fields.blame("packet").conflict(
            format!("packets of {packet} exceed the smallest MTU, {mtu}"),
            "set a smaller `packet`, or a larger `mtu`",
        ));
    }
    Ok(packet)
}

pub(super) fn distribution(fields: &Fields<'_>, _: &Topology) -> Result<Distribution, Reported> {
    let at = fields.needed("distribution")?;
    Distribution::read(&at)
}

/// How often flows arrive at random.
pub(super) fn mean_interval(
    fields: &Fields<'_>,
    topology: &Topology,
) -> Result<Duration, Reported> {
    let (interval, load) = (
        fields.optional::<Duration>("mean_interval")?,
        fields.optional::<f64>("load")?,
    );
    match (interval, load) {
        (Some(interval), None) if fields.has("of") => Err(fields.blame("of").conflict(
            format!("`of` has no meaning beside `mean_interval`, {interval}"),
            "remove it, or write `load` instead of `mean_interval`",
        )),
        (Some(interval), None) => Ok(interval),
        (None, Some(load)) => {
            let distribution = distribution(fields, topology)?;
            let rate = reference_rate(fields, topology)?.mul_f64(load);
            // An empty mean would make an infinite number of arrivals.
            Ok((rate.time_for(distribution.mean())).max(Duration::from_nanos(1)))
        }
        _ => Err(fields.at.conflict(
            "one of `mean_interval` and `load` must say how often flows arrive",
            "write one of them",
        )),
    }
}

/// The rate of the port that a load is a fraction of.
fn reference_rate(fields: &Fields<'_>, topology: &Topology) -> Result<Rate, Reported> {
    let name = match fields.at("of") {
        Some(at) => at.text("the name of a port")?,
        None => BOTTLENECK,
    };
    match topology.port_by_name(name) {
        Some(port) => Ok(topology.port(port).rate),
        None => {
            let names = || topology.ports.iter().map(|port| port.name.as_str());
            Err(fields.blame("of").problem(ProblemKind::UnknownName {
                what: "port",
                name: name.to_owned(),
                existing: list(names()),
                nearest: nearest(name, names()),
            }))
        }
    }
}
