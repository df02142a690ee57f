//! Reads the tables `[groups.NAME.workload]`.

use weir_scenario_derive::Keys;
use weir_units::Duration;

use super::{Workload, WorkloadContext};
use crate::document::{Cursor, Node, Reported, Table, Value};
use crate::schema::{Accepts, Fields};

/// The maximum number of epochs of a run.
pub(crate) const MOST_EPOCHS: u32 = 10_000_000;

/// The rate of random arrivals: `mean_interval`, or `load` and `of`.
#[derive(Keys)]
pub(super) struct ArrivalKeys<'a> {
    /// The mean time between two arrivals in the whole group or, with `per = "host"`, at each host; instead of
    /// `load`.
    #[key(accepts = Accepts::POSITIVE_SPAN, absent = "`load` decides")]
    mean_interval: Option<Duration>,
    /// The mean utilization of the links `of` by the group's data, with headers and framing, sent once; instead of
    /// `mean_interval`. Above 1 flows arrive faster than the links carry them.
    #[key(accepts = Accepts::Number(0.001, 10.0), absent = "`mean_interval` decides")]
    load: Option<f64>,
    /// The links that `load` is the mean utilization of: "hosts" for the links from all hosts; "leaf->spine" for
    /// those from `leaf1`, `leaf2` … to `spine1`, `spine2` …; or a port that all flows of the group cross, such
    /// as "bottleneck".
    #[key(
        accepts = Accepts::Other("\"hosts\", two tiers such as \"leaf->spine\", or the name of a port"),
        absent = "an error with `load`",
        read = Ok(at.clone())
    )]
    of: Option<Cursor<'a>>,
}

/// `load` and `of` as written.
pub(crate) struct WrittenLoad<'a> {
    /// The mean utilization.
    pub(crate) load: f64,
    /// Its position.
    pub(crate) at: Cursor<'a>,
    /// The position of the name of the class of links.
    pub(crate) of: Option<Cursor<'a>>,
}

impl<'a> WrittenLoad<'a> {
    /// Reads them from the table of a workload with random arrivals.
    pub(crate) fn read(at: &Cursor<'a>) -> Result<Option<Self>, Reported> {
        let fields = Fields::open_kind(at, &Workload::SECTIONS)?;
        let keys = ArrivalKeys::read_keys(&fields, ())?;
        Ok(keys.load.map(|load| Self {
            load,
            at: fields.error_position("load"),
            of: keys.of,
        }))
    }
}

impl Workload {
    /// Reads a workload: a table, or the `kind` alone if it has no other keys.
    pub(crate) fn read(at: &Cursor<'_>, context: WorkloadContext<'_>) -> Result<Self, Reported> {
        let read =
            |at: &Cursor<'_>| Self::read_keys(&Fields::open_kind(at, &Self::SECTIONS)?, context);
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

/// Returns the mean time between random arrivals; zero if `load` decides, which
/// [`Group::set_load`](crate::Group::set_load) replaces.
pub(super) fn mean_interval(fields: &Fields<'_>) -> Result<Duration, Reported> {
    let keys = ArrivalKeys::read_keys(fields, ())?;
    match (keys.mean_interval, keys.load, keys.of) {
        (Some(interval), None, None) => Ok(interval),
        (Some(interval), None, Some(of)) => Err(of.conflict(
            format!("`of` has no meaning beside `mean_interval`, {interval}"),
            "remove it, or write `load` instead of `mean_interval`",
        )),
        (None, Some(_), _) => Ok(Duration::ZERO),
        _ => Err(fields.at.conflict(
            "one of `mean_interval` and `load` must say how often flows arrive",
            "write one of them",
        )),
    }
}
