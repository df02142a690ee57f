//! Reads the tables `[groups.NAME.workload]`.

use weir_scenario_derive::Keys;
use weir_units::{Duration, Rate};

use super::{Distribution, Workload};
use crate::Topology;
use crate::document::{Cursor, Node, Reported, Table, Value};
use crate::schema::{Accepts, Fields};
use crate::topology::BOTTLENECK;

/// The maximum number of epochs of a run.
pub(crate) const MOST_EPOCHS: u32 = 10_000_000;

/// The rate of random arrivals: exactly one of the first two keys is written.
#[derive(Keys)]
pub(super) struct ArrivalKeys<'a> {
    /// The mean time between two arrivals in the whole group; instead of `load`.
    #[key(accepts = Accepts::POSITIVE_SPAN, absent = "`load` decides")]
    mean_interval: Option<Duration>,
    /// The bytes that arrive, as a fraction of the rate of the port `of`; instead of `mean_interval`.
    #[key(accepts = Accepts::Number(0.001, 10.0), absent = "`mean_interval` decides")]
    load: Option<f64>,
    /// The port whose rate `load` is a fraction of.
    #[key(
        accepts = Accepts::Other("the name of a port"),
        absent = "`\"bottleneck\"`",
        read = Ok(at.clone())
    )]
    of: Option<Cursor<'a>>,
}

impl Workload {
    /// Reads a workload: a table, or the `kind` alone if it has no other keys.
    pub(crate) fn read(at: &Cursor<'_>, topology: &Topology) -> Result<Self, Reported> {
        let read =
            |at: &Cursor<'_>| Self::read_keys(&Fields::open_kind(at, &Self::SECTIONS)?, topology);
        let Value::Text(_) = &at.node.value else {
            return read(at);
        };
        let mut table = Table::default();
        table.set("kind", at.node.position.clone(), at.node.clone());
        let node = Node {
            value: Value::Table(table),
            ..at.node.clone()
        };
        read(&Cursor {
            node: &node,
            ..at.clone()
        })
    }

    pub(super) fn check(&self, fields: &Fields<'_>) -> Result<(), Reported> {
        match *self {
            Self::Transfer {
                rounds: 1,
                interval: Some(_),
                ..
            } => Err(fields.error_position("interval").conflict(
                "one round has no interval to another",
                "remove it, or set `rounds`",
            )),
            Self::Transfer {
                rounds: rounds @ 2..,
                interval: None,
                ..
            } => Err(fields.error_position("rounds").conflict(
                format!("{rounds} rounds need an `interval`"),
                "say how long after the start of one round the next one starts",
            )),
            _ => Ok(()),
        }
    }
}

/// Returns the mean time between random arrivals.
pub(super) fn mean_interval(
    fields: &Fields<'_>,
    topology: &Topology,
) -> Result<Duration, Reported> {
    let keys = ArrivalKeys::read_keys(fields, ())?;
    match (keys.mean_interval, keys.load) {
        (Some(interval), None) => match keys.of {
            None => Ok(interval),
            Some(of) => Err(of.conflict(
                format!("`of` has no meaning beside `mean_interval`, {interval}"),
                "remove it, or write `load` instead of `mean_interval`",
            )),
        },
        (None, Some(load)) => {
            let distribution = Distribution::read(&fields.needed("distribution")?)?;
            let rate = reference_rate(fields, keys.of.as_ref(), topology)?.mul_f64(load);
            // A mean of zero would cause an infinite number of arrivals.
            Ok((rate.time_for(distribution.mean())).max(Duration::from_nanos(1)))
        }
        _ => Err(fields.at.conflict(
            "one of `mean_interval` and `load` must say how often flows arrive",
            "write one of them",
        )),
    }
}

/// Returns the rate of the port that a load refers to.
fn reference_rate(
    fields: &Fields<'_>,
    of: Option<&Cursor<'_>>,
    topology: &Topology,
) -> Result<Rate, Reported> {
    let name = match of {
        Some(at) => at.text("the name of a port")?,
        None => BOTTLENECK,
    };
    match topology.port_by_name(name) {
        Some(port) => Ok(topology.port(port).rate),
        None => {
            let names = topology.ports.iter().map(|port| port.name.as_str());
            Err(fields
                .error_position("of")
                .unknown_name("port", name, names))
        }
    }
}
