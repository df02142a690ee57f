//! Faults: what goes wrong on links, and when.

use std::collections::HashMap;

use serde::Serialize;
use weir_fabric::Probability;
use weir_scenario_derive::Keys;
use weir_units::{Duration, Rate, Time};

use crate::document::{Cursor, Reported};
use crate::queue::serialize_probability;
use crate::schema::{Accepts, Fields};
use crate::topology::{Node, PORTS, read_ports};
use crate::workload::MOST_EPOCHS;
use crate::{Group, PortIndex, Topology};

/// What names ports of hosts.
const HOST_PORTS: Accepts = Accepts::Other(
    "the name of a host's port, a pattern such as \"web*->leaf1\", or a list of them",
);

/// Something that goes wrong for a while.
#[derive(Clone, Debug, PartialEq, Keys)]
#[keys(context = FaultTargets<'_>, check = table.check_ports(fields, context.topology))]
pub struct Fault {
    /// The ports whose packets meet the fault, after they have been sent; name both ports of a link
    /// for both directions.
    #[key(accepts = PORTS, read = read_ports(at, context.topology))]
    pub ports: Vec<PortIndex>,
    /// When.
    #[key(keys = FaultPeriodKeys, by = FaultPeriod::read(fields, context.duration))]
    pub when: FaultPeriod,
    /// What.
    #[key(is = FaultKind::read_keys(fields, ()))]
    pub kind: FaultKind,
}

/// What faults happen to.
#[derive(Clone, Copy)]
pub(crate) struct FaultTargets<'t> {
    pub(crate) topology: &'t Topology,
    pub(crate) duration: Duration,
}

/// When a fault begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum FaultPeriod {
    /// By time.
    Time {
        /// From then on.
        at: Time,
        /// Until then; without, until the end.
        #[serde(skip_serializing_if = "Option::is_none")]
        until: Option<Time>,
    },
    /// By the epochs of the workload [`epochs`](crate::Workload::Epochs), counted from 0.
    Epochs {
        /// From the beginning of this one on.
        #[serde(rename = "at_epoch")]
        at: u32,
        /// Until the beginning of this one, or the end of the last; without, until the end.
        #[serde(rename = "until_epoch", skip_serializing_if = "Option::is_none")]
        until: Option<u32>,
    },
}

/// What goes wrong. Faults of one kind on one port never overlap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Keys)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[keys(title = "[[faults]]", with = Fault)]
pub enum FaultKind {
    /// Every packet is lost.
    Down,
    /// Packets are lost at random.
    Loss {
        /// How probably.
        #[serde(serialize_with = "serialize_probability")]
        probability: Probability,
    },
    /// Packets arrive twice at random.
    Duplicate {
        /// How probably.
        #[serde(serialize_with = "serialize_probability")]
        probability: Probability,
    },
    /// Packets are damaged at random, and dropped by the receiver.
    Corrupt {
        /// How probably.
        #[serde(serialize_with = "serialize_probability")]
        probability: Probability,
    },
    /// Packets fall behind those sent after them, at random.
    Reorder {
        /// How probably.
        #[serde(serialize_with = "serialize_probability")]
        probability: Probability,
        /// How long they are held back.
        #[key(accepts = Accepts::POSITIVE_SPAN)]
        delay: Duration,
    },
    /// The link is longer.
    Delay {
        /// The additional delay, one way.
        #[key(accepts = Accepts::POSITIVE_SPAN)]
        delay: Duration,
    },
    /// Packets are delayed by random spans, in order.
    Jitter {
        /// The longest such span; they are uniform from zero.
        #[key(accepts = Accepts::POSITIVE_SPAN)]
        jitter: Duration,
    },
    /// The link sends at another rate.
    Rate {
        /// The rate.
        rate: Rate,
    },
    /// A host gets another address on a link, once: a lease or a machine has moved. Packets to the
    /// old address reach nobody. TCP's connections over that link are dead from then on, and their
    /// ends find out by their time-outs; DCQUIC's go on from the new address.
    #[keys(with = AddressKeys)]
    Address,
}

/// When a fault begins, by time.
#[derive(Keys)]
struct Begin {
    /// From when.
    #[key(accepts = Accepts::SPAN, absent = "`at_epoch` says")]
    at: Option<Time>,
}

/// When a fault begins, by epochs.
#[derive(Keys)]
struct BeginEpoch {
    /// From the beginning of which epoch, counted from 0; instead of `at`, beside a workload `epochs`.
    #[key(accepts = Accepts::Count(0, MOST_EPOCHS as u64), absent = "`at` says")]
    at_epoch: Option<u32>,
}

/// When a fault begins and ends: by time or by epochs.
#[derive(Keys)]
struct FaultPeriodKeys {
    #[key(flatten)]
    begin: Begin,
    /// Until when.
    #[key(accepts = Accepts::POSITIVE_SPAN, absent = "until the end")]
    until: Option<Time>,
    #[key(flatten)]
    begin_epoch: BeginEpoch,
    /// Until the beginning of which epoch; with `at_epoch`.
    #[key(accepts = Accepts::Count(1, MOST_EPOCHS as u64), absent = "until the end")]
    until_epoch: Option<u32>,
}

/// The keys of a change of address, which is over at once and is read as any fault.
#[allow(dead_code, reason = "it declares keys alone")]
#[derive(Keys)]
#[keys(declares)]
struct AddressKeys {
    /// The hosts' ports whose address changes.
    #[key(accepts = HOST_PORTS)]
    ports: Vec<PortIndex>,
    #[key(flatten)]
    begin: Begin,
    #[key(flatten)]
    begin_epoch: BeginEpoch,
}

impl Fault {
    pub(crate) fn read(at: &Cursor<'_>, run: FaultTargets<'_>) -> Result<Self, Reported> {
        Self::read_keys(&Fields::open_kind(at, &FaultKind::SECTIONS)?, run)
    }

    /// Only hosts have addresses.
    fn check_ports(&self, fields: &Fields<'_>, topology: &Topology) -> Result<(), Reported> {
        let mut ports = self.ports.iter().map(|port| topology.port(*port));
        let of_switch = ports.find(|port| matches!(port.from, Node::Switch(_)));
        match of_switch {
            Some(port) if self.kind == FaultKind::Address => Err(fields.blame("ports").conflict(
                format!(
                    "the port `{}` belongs to a switch, which has no address",
                    port.name
                ),
                "name ports that send from hosts, such as \"host->switch\"",
            )),
            _ => Ok(()),
        }
    }

    /// Whether a later fault of the same kind begins before this one is over, as far as one can know:
    /// when an epoch begins nobody does.
    fn may_overlap(&self, later: &Self) -> bool {
        let (begin, end) = self.when.bounds();
        let (next, _) = later.when.bounds();
        let same_clock = std::mem::discriminant(&self.when) == std::mem::discriminant(&later.when);
        match self.kind {
            // A change is over at once.
            FaultKind::Address => same_clock && begin == next,
            _ => !same_clock || next < end,
        }
    }
}

impl FaultPeriod {
    fn read(fields: &Fields<'_>, duration: Duration) -> Result<Self, Reported> {
        let keys = FaultPeriodKeys::read_keys(fields, ())?;
        let (until, until_epoch) = (keys.until, keys.until_epoch);
        let (when, useless) = match (keys.begin.at, keys.begin_epoch.at_epoch) {
            (Some(at), None) => (Self::Time { at, until }, until_epoch.map(|_| "until_epoch")),
            (None, Some(at)) => {
                let until = until_epoch;
                (Self::Epochs { at, until }, keys.until.map(|_| "until"))
            }
            _ => {
                return Err(fields.at.conflict(
                    "one of `at` and `at_epoch` must say when the fault begins",
                    "write one of them",
                ));
            }
        };
        if let Some(key) = useless {
            return Err(fields.blame(key).conflict(
                "a fault ends by what it begins by",
                "write `until` with `at`, and `until_epoch` with `at_epoch`",
            ));
        }
        when.check(fields, duration)?;
        Ok(when)
    }

    fn check(self, fields: &Fields<'_>, duration: Duration) -> Result<(), Reported> {
        match self {
            Self::Time { at, .. } if at >= Time::ZERO + duration => {
                Err(fields.blame("at").conflict(
                    format!("the fault begins at {at}, and the simulation ends at {duration}"),
                    "set `at` to less, or a longer `duration`",
                ))
            }
            Self::Time {
                at,
                until: Some(until),
            } if until <= at => Err(fields.blame("until").conflict(
                format!("the fault ends at {until} but begins at {at}"),
                "set `until` after `at`",
            )),
            Self::Epochs {
                at,
                until: Some(until),
            } if until <= at => Err(fields.blame("until_epoch").conflict(
                format!("the fault ends with epoch {until} but begins with epoch {at}"),
                "set `until_epoch` after `at_epoch`",
            )),
            _ => Ok(()),
        }
    }

    /// Beginning and end, of those that are by time or of those by epochs.
    fn bounds(self) -> (u64, u64) {
        match self {
            Self::Time { at, until } => (
                at.as_nanos(),
                until.map_or(u64::MAX, weir_units::Time::as_nanos),
            ),
            Self::Epochs { at, until } => (at.into(), until.map_or(u64::MAX, u64::from)),
        }
    }
}

/// Reports faults by epochs that there are not.
pub(crate) fn check_epochs(
    items: &[Cursor<'_>],
    faults: &[Fault],
    groups: &[Group],
) -> Result<(), Reported> {
    let count = groups.iter().find_map(|group| group.workload.epochs());
    for (at, fault) in items.iter().zip(faults) {
        let FaultPeriod::Epochs { at: begin, until } = fault.when else {
            continue;
        };
        match count {
            None => {
                return Err(at.conflict(
                    "the fault goes by epochs, and no group has the workload `epochs`",
                    "write `at` and `until`, or give a group that workload",
                ));
            }
            Some(count) if begin >= count || until.is_some_and(|until| until > count) => {
                return Err(at.conflict(
                    format!("there are {count} epochs, from 0 on"),
                    format!("set `at_epoch` below {count}, and `until_epoch` up to {count}"),
                ));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Reports faults of one kind that meet on a port: which one holds nobody could tell.
pub(crate) fn check_overlaps(
    items: &[Cursor<'_>],
    faults: &[Fault],
    topology: &Topology,
) -> Result<(), Reported> {
    let mut by_place: HashMap<_, Vec<usize>> = HashMap::new();
    for (index, fault) in faults.iter().enumerate() {
        for port in &fault.ports {
            let key = (std::mem::discriminant(&fault.kind), *port);
            by_place.entry(key).or_default().push(index);
        }
    }
    let mut overlaps = Vec::new();
    for ((_, port), mut indices) in by_place {
        indices.sort_by_key(|index| faults[*index].when.bounds());
        for pair in indices.windows(2) {
            if faults[pair[0]].may_overlap(&faults[pair[1]]) {
                overlaps.push((pair[0].max(pair[1]), pair[0].min(pair[1]), port));
            }
        }
    }
    // A hash table has no order of its own.
    overlaps.sort_unstable();
    let Some((second, first, port)) = overlaps.first() else {
        return Ok(());
    };
    let port = &topology.port(*port).name;
    Err(items[*second].conflict(
        format!("the port `{port}` still has another fault of this kind, `faults.{first}`"),
        "end one before the other begins",
    ))
}
