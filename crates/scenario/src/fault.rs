//! Link faults: their kinds and their times.

use std::collections::{HashMap, HashSet};

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

/// The accepted names of host ports.
const HOST_PORTS: Accepts = Accepts::Other(
    "the name of a host's port, a pattern such as \"web*->leaf1\", or a list of them",
);

/// A temporary fault.
#[derive(Clone, Debug, PartialEq, Keys)]
#[keys(context = FaultTargets<'_>, check = table.check_ports(fields, context.topology))]
pub struct Fault {
    /// The ports whose sent packets the fault affects.
    #[key(keys = FaultPortKeys, by = read_fault_ports(fields, context))]
    pub ports: Vec<PortIndex>,
    /// When the fault begins and ends.
    #[key(keys = FaultPeriodKeys, by = FaultPeriod::read(fields, context.duration))]
    pub when: FaultPeriod,
    /// The kind of fault.
    #[key(is = FaultKind::read_keys(fields, ()))]
    pub kind: FaultKind,
}

/// The parts of a scenario that faults refer to.
#[derive(Clone, Copy)]
pub(crate) struct FaultTargets<'t> {
    pub(crate) topology: &'t Topology,
    pub(crate) duration: Duration,
    /// The seed of the run, by which random ports are chosen.
    pub(crate) seed: u64,
}

/// The ports of a fault.
#[derive(Keys)]
#[keys(context = &Topology)]
struct FaultPortKeys {
    /// The ports whose sent packets the fault affects; with `both_ways`, and the opposite ones.
    #[key(accepts = PORTS, read = read_ports(at, context))]
    ports: Vec<PortIndex>,
    /// How many of `ports` the fault affects: random ones, by the `seed`.
    #[key(accepts = Accepts::Count(1, 1_000_000), absent = "all of them")]
    random: Option<u32>,
    /// Whether it affects packets in the other direction of the links too.
    #[key(absent = "false")]
    both_ways: Option<bool>,
}

/// Returns the ports that a fault affects, in the order of the topology if some are chosen.
fn read_fault_ports(
    fields: &Fields<'_>,
    run: FaultTargets<'_>,
) -> Result<Vec<PortIndex>, Reported> {
    let FaultPortKeys {
        mut ports,
        random,
        both_ways,
    } = FaultPortKeys::read_keys(fields, run.topology)?;
    if let Some(random) = random {
        let count = random as usize;
        if count > ports.len() {
            return Err(fields.error_position("random").conflict(
                format!("{count} of {} ports cannot be chosen", ports.len()),
                format!("set `random` up to {}, or name more ports", ports.len()),
            ));
        }
        // Faults at different places of the file choose independently.
        let place = fields.at.name().parse().unwrap_or(0);
        ports.sort_by_key(|port| (scrambled(run.seed, place, port.index() as u64), *port));
        ports.truncate(count);
        ports.sort_unstable();
    }
    if both_ways == Some(true) {
        let mut seen: HashSet<PortIndex> = ports.iter().copied().collect();
        let opposite: Vec<_> = ports.iter().map(|port| port.reverse()).collect();
        ports.extend(opposite.into_iter().filter(|port| seen.insert(*port)));
    }
    Ok(ports)
}

/// Returns a number that is as good as random for each of these: the output of `SplitMix64` (Steele, Lea and Flood,
/// OOPSLA 2014).
fn scrambled(seed: u64, place: u64, port: u64) -> u64 {
    const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;
    [seed, place, port]
        .into_iter()
        .fold(0, |state: u64, value| {
            let mut z = (state ^ value).wrapping_add(GAMMA);
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        })
}

/// When a fault begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum FaultPeriod {
    /// By simulated time.
    Time {
        /// The start of the fault.
        at: Time,
        /// The end of the fault; if absent, the end of the run.
        #[serde(skip_serializing_if = "Option::is_none")]
        until: Option<Time>,
    },
    /// By the epochs of the workload [`epochs`](crate::Workload::Epochs), counted from 0.
    Epochs {
        /// The first epoch with the fault.
        #[serde(rename = "at_epoch")]
        at: u32,
        /// The first epoch after the fault, or the number of epochs for the end of the last one; if
        /// absent, the end of the run.
        #[serde(rename = "until_epoch", skip_serializing_if = "Option::is_none")]
        until: Option<u32>,
    },
}

/// The kind of a fault. Faults of one kind on one port never overlap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Keys)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[keys(title = "[[faults]]", with = Fault)]
pub enum FaultKind {
    /// Every packet is lost.
    Down,
    /// Packets are lost at random.
    Loss {
        /// The probability for each packet.
        #[serde(serialize_with = "serialize_probability")]
        probability: Probability,
    },
    /// Packets are duplicated at random.
    Duplicate {
        /// The probability for each packet.
        #[serde(serialize_with = "serialize_probability")]
        probability: Probability,
    },
    /// Packets are corrupted at random, and dropped by the receiver.
    Corrupt {
        /// The probability for each packet.
        #[serde(serialize_with = "serialize_probability")]
        probability: Probability,
    },
    /// Packets are delayed at random, so that later packets overtake them.
    Reorder {
        /// The probability for each packet.
        #[serde(serialize_with = "serialize_probability")]
        probability: Probability,
        /// The delay of such a packet.
        #[key(accepts = Accepts::POSITIVE_SPAN)]
        delay: Duration,
    },
    /// The link's delay increases.
    Delay {
        /// The additional delay, one way.
        #[key(accepts = Accepts::POSITIVE_SPAN)]
        delay: Duration,
    },
    /// Each packet has a random additional delay; packets stay in order.
    Jitter {
        /// The maximum of the additional delay, which is uniform from zero.
        #[key(accepts = Accepts::POSITIVE_SPAN)]
        jitter: Duration,
    },
    /// The link's rate changes.
    Rate {
        /// The new rate.
        rate: Rate,
    },
    /// A host's address on a link changes once: a lease or a machine has moved. Packets to the old
    /// address are lost. TCP connections over that link fail, which both ends detect by their
    /// time-outs; DCQUIC connections continue from the new address.
    #[keys(with = AddressKeys)]
    Address,
}

impl FaultKind {
    /// Returns its `kind` in a file.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Loss { .. } => "loss",
            Self::Duplicate { .. } => "duplicate",
            Self::Corrupt { .. } => "corrupt",
            Self::Reorder { .. } => "reorder",
            Self::Delay { .. } => "delay",
            Self::Jitter { .. } => "jitter",
            Self::Rate { .. } => "rate",
            Self::Address => "address",
        }
    }
}

/// The start of a fault, by time.
#[derive(Keys)]
struct Begin {
    /// The start of the fault.
    #[key(accepts = Accepts::SPAN, absent = "`at_epoch` says")]
    at: Option<Time>,
}

/// The start of a fault, by epochs.
#[derive(Keys)]
struct BeginEpoch {
    /// The first epoch with the fault, counted from 0; instead of `at`, with a workload `epochs`.
    #[key(accepts = Accepts::Count(0, MOST_EPOCHS as u64), absent = "`at` says")]
    at_epoch: Option<u32>,
}

/// The start and end of a fault: by time or by epochs.
#[derive(Keys)]
struct FaultPeriodKeys {
    #[key(flatten)]
    begin: Begin,
    /// The end of the fault.
    #[key(accepts = Accepts::POSITIVE_SPAN, absent = "until the end")]
    until: Option<Time>,
    #[key(flatten)]
    begin_epoch: BeginEpoch,
    /// The first epoch after the fault; with `at_epoch`.
    #[key(accepts = Accepts::Count(1, MOST_EPOCHS as u64), absent = "until the end")]
    until_epoch: Option<u32>,
}

/// The keys of an address change, which has no end and is read like any other fault.
#[allow(dead_code, reason = "it declares keys alone")]
#[derive(Keys)]
#[keys(declares)]
struct AddressKeys {
    /// The host ports whose address changes.
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
            Some(port) if self.kind == FaultKind::Address => {
                Err(fields.error_position("ports").conflict(
                    format!(
                        "the port `{}` belongs to a switch, which has no address",
                        port.name
                    ),
                    "name ports that send from hosts, such as \"host->switch\"",
                ))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether a later fault of the same kind may begin before this one ends. The start
    /// time of an epoch is not known in advance.
    fn may_overlap(&self, later: &Self) -> bool {
        let (begin, end) = self.when.bounds();
        let (next, _) = later.when.bounds();
        let same_clock = std::mem::discriminant(&self.when) == std::mem::discriminant(&later.when);
        match self.kind {
            // An address change is instantaneous.
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
            return Err(fields.error_position(key).conflict(
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
                Err(fields.error_position("at").conflict(
                    format!("the fault begins at {at}, and the simulation ends at {duration}"),
                    "set `at` to less, or a longer `duration`",
                ))
            }
            Self::Time {
                at,
                until: Some(until),
            } if until <= at => Err(fields.error_position("until").conflict(
                format!("the fault ends at {until} but begins at {at}"),
                "set `until` after `at`",
            )),
            Self::Epochs {
                at,
                until: Some(until),
            } if until <= at => Err(fields.error_position("until_epoch").conflict(
                format!("the fault ends with epoch {until} but begins with epoch {at}"),
                "set `until_epoch` after `at_epoch`",
            )),
            _ => Ok(()),
        }
    }

    /// Returns start and end, as times or as epochs.
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

/// Reports faults that refer to epochs that do not exist.
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

/// Reports faults of one kind that overlap on a port: it would be undefined which one applies.
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
    // A hash table has no defined order.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_files() {
        let (probability, span) = (Probability::ALWAYS, Duration::from_millis(1));
        for kind in [
            FaultKind::Down,
            FaultKind::Loss { probability },
            FaultKind::Duplicate { probability },
            FaultKind::Corrupt { probability },
            FaultKind::Reorder {
                probability,
                delay: span,
            },
            FaultKind::Delay { delay: span },
            FaultKind::Jitter { jitter: span },
            FaultKind::Rate {
                rate: Rate::from_gbps(1),
            },
            FaultKind::Address,
        ] {
            let written = serde_json::to_value(kind).unwrap();
            assert_eq!(written["kind"], kind.name());
        }
    }
}
