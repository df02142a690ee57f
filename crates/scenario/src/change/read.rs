//! Reads the tables `[[changes]]`.

use std::collections::HashMap;

use weir_congestion::Value;
use weir_scenario_derive::Keys;
use weir_units::{Duration, Time};

use super::{
    Change, ChangeSchedule, ChangedSettings, Misfit, QueueChange, SharedBufferChange,
    WorkloadChange,
};
use crate::congestion;
use crate::document::{Cursor, Reported};
use crate::error::{ProblemKind, list};
use crate::queue::Discipline;
use crate::schema::{Accepts, Fields, Section};
use crate::topology::{self, PORTS, matches, read_ports};
use crate::{Group, SharedBuffer, SwitchIndex, Topology, Workload};

const SWITCHES: Accepts = Accepts::Other(
    "the name of a switch, a pattern or a name without its number such as \"leaf\", or a list of them",
);
const GROUPS: Accepts =
    Accepts::Other("the name of a group, a pattern such as \"web*\", or a list of them");

/// The keys of a change.
#[derive(Keys)]
#[keys(
    title = "[[changes]]",
    doc = "New values of settings from a time on, of either `ports`, `switches` or `groups`. `set` has them under the \
           keys that they have elsewhere. The rates, delays and failures of links are `[[faults]]`.",
    declares
)]
#[allow(dead_code, reason = "it declares keys alone")]
pub(crate) struct ChangeKeys {
    /// When the change takes effect: before all else that happens at this time.
    #[key(accepts = Accepts::SPAN)]
    at: Time,
    /// The ports whose queues change.
    #[key(accepts = PORTS, absent = "`switches` or `groups` says")]
    ports: (),
    /// The switches whose shared buffer changes.
    #[key(accepts = SWITCHES, absent = "`ports` or `groups` says")]
    switches: (),
    /// The groups whose congestion control or load changes.
    #[key(accepts = GROUPS, absent = "`ports` or `switches` says")]
    groups: (),
    /// The new values.
    #[key(accepts = Accepts::Other("a table such as { queue.ecn_threshold = \"30 packets\" }"))]
    set: (),
}

/// What `set` has for ports.
#[derive(Keys)]
#[keys(
    title = "[[changes]] set, of ports",
    doc = "New values of ports.",
    declares
)]
#[allow(dead_code, reason = "it declares keys alone")]
struct PortSettings {
    /// New values of their queues.
    #[key(accepts = Accepts::TABLE)]
    queue: (),
}

/// What `set` has for switches.
#[derive(Keys)]
#[keys(
    title = "[[changes]] set, of switches",
    doc = "New values of switches.",
    declares
)]
#[allow(dead_code, reason = "it declares keys alone")]
struct SwitchSettings {
    /// New values of their shared buffers.
    #[key(accepts = Accepts::TABLE)]
    shared_buffer: (),
}

/// What `set` has for groups.
#[derive(Keys)]
#[keys(
    title = "[[changes]] set, of groups",
    doc = "New values of groups, at least one of these.",
    declares
)]
#[allow(dead_code, reason = "it declares keys alone")]
struct GroupSettings {
    /// Parameters of their congestion control, for open flows and those to come: see `docs/algorithms.md` for
    /// those that can change.
    #[key(accepts = Accepts::Other("a table of parameters"), absent = "as before")]
    congestion: (),
    /// How much they send.
    #[key(accepts = Accepts::TABLE, absent = "as before")]
    workload: (),
}

/// The tables of a change.
pub(crate) const SECTIONS: [&Section; 7] = [
    ChangeKeys::SECTION,
    PortSettings::SECTION,
    SwitchSettings::SECTION,
    GroupSettings::SECTION,
    QueueChange::SECTION,
    SharedBufferChange::SECTION,
    WorkloadChange::SECTION,
];

/// The parts of a scenario that changes refer to.
#[derive(Clone, Copy)]
pub(crate) struct ChangeTargets<'s> {
    pub(crate) topology: &'s Topology,
    pub(crate) duration: Duration,
    pub(crate) groups: &'s [Group],
}

/// Reads all changes, and reports those that do not fit what they are for.
pub(crate) fn read_changes(
    file: &Fields<'_>,
    run: ChangeTargets<'_>,
) -> Result<Vec<Change>, Reported> {
    let Some(at) = file.at("changes") else {
        return Ok(Vec::new());
    };
    let changes = at.all("tables `[[changes]]`", |at| read(at, run))?;
    let items = at.items();
    check_conflicts(&items, &changes)?;
    check_fit(&items, &changes, run)?;
    Ok(changes)
}

/// Prepares groups for the changes of parameters that come while they run.
pub(crate) fn prepare(groups: &mut [Group], changes: &[Change]) {
    for change in changes {
        let ChangedSettings::Groups {
            groups: numbers,
            congestion,
            ..
        } = &change.set
        else {
            continue;
        };
        for number in numbers {
            if let Some(spec) = groups[*number].transport.congestion_mut() {
                *spec = spec.prepared_for(congestion);
            }
        }
    }
}

fn read(at: &Cursor<'_>, run: ChangeTargets<'_>) -> Result<Change, Reported> {
    let fields = Fields::open(at.clone(), ChangeKeys::SECTION)?;
    let time = fields.get::<Time>("at")?;
    if time >= Time::ZERO + run.duration {
        return Err(fields.error_position("at").conflict(
            format!(
                "the change is at {time}, and the simulation ends at {}",
                run.duration
            ),
            "set `at` to less, or a longer `duration`",
        ));
    }
    let set = fields.needed("set")?;
    let targets = ["ports", "switches", "groups"].map(|key| fields.at(key));
    let set = match &targets {
        [Some(at), None, None] => queues(at, set, run.topology)?,
        [None, Some(at), None] => shared_buffers(at, set, run.topology)?,
        [None, None, Some(at)] => groups(at, set, run.groups)?,
        _ => {
            return Err(fields.at.conflict(
                "one of `ports`, `switches` and `groups` must say what changes",
                "write one of them",
            ));
        }
    };
    Ok(Change { at: time, set })
}

fn queues(
    at: &Cursor<'_>,
    set: Cursor<'_>,
    topology: &Topology,
) -> Result<ChangedSettings, Reported> {
    let ports = read_ports(at, topology)?;
    let set = Fields::open_changes(set, PortSettings::SECTION, &topology::SECTIONS)?;
    let queue = set.needed("queue")?;
    let fields = Fields::open_changes(queue, QueueChange::SECTION, &Discipline::SECTIONS)?;
    let queue = QueueChange::read_keys(&fields, ())?;
    check_set(&fields)?;
    Ok(ChangedSettings::Queues { ports, queue })
}

fn shared_buffers(
    at: &Cursor<'_>,
    set: Cursor<'_>,
    topology: &Topology,
) -> Result<ChangedSettings, Reported> {
    let switches = read_switches(at, topology)?;
    let set = Fields::open_changes(set, SwitchSettings::SECTION, &topology::SECTIONS)?;
    let buffer = set.needed("shared_buffer")?;
    let wholes = [SharedBuffer::SECTION];
    let fields = Fields::open_changes(buffer, SharedBufferChange::SECTION, &wholes)?;
    let buffer = SharedBufferChange::read_keys(&fields, ())?;
    check_set(&fields)?;
    Ok(ChangedSettings::SharedBuffers { switches, buffer })
}

fn groups(at: &Cursor<'_>, set: Cursor<'_>, all: &[Group]) -> Result<ChangedSettings, Reported> {
    let groups = read_groups(at, all)?;
    let set = Fields::open_changes(set, GroupSettings::SECTION, &[Group::SECTION])?;
    let mut workload = WorkloadChange::default();
    if let Some(at) = set.at("workload") {
        let fields = Fields::open_changes(at, WorkloadChange::SECTION, &Workload::SECTIONS)?;
        workload = WorkloadChange::read_keys(&fields, ())?;
        check_set(&fields)?;
    }
    let mut congestion = Vec::new();
    if let Some(at) = set.at("congestion") {
        for group in &groups {
            congestion = parameters(&at, &all[*group])?;
        }
    }
    check_set(&set)?;
    Ok(ChangedSettings::Groups {
        groups,
        congestion,
        workload,
    })
}

/// Reads parameters of a group's congestion control.
fn parameters(at: &Cursor<'_>, group: &Group) -> Result<Vec<(&'static str, Value)>, Reported> {
    let Some(spec) = group.transport.congestion() else {
        return Err(at.conflict(
            format!(
                "the group `{}` has UDP, without congestion control",
                group.name
            ),
            "name groups with another transport",
        ));
    };
    let values = congestion::read_changes(at, spec)?;
    if values.is_empty() {
        let known = spec.adjustable();
        return Err(nothing_set(at, list(known.into_iter())));
    }
    Ok(values)
}

/// Reports a table without values.
fn check_set(fields: &Fields<'_>) -> Result<(), Reported> {
    let names = fields.section.keys.iter().map(|key| key.name);
    if names.clone().any(|name| fields.has(name)) {
        return Ok(());
    }
    Err(nothing_set(&fields.at, list(names)))
}

fn nothing_set(at: &Cursor<'_>, accepted: String) -> Reported {
    at.conflict("nothing is set", format!("write one of {accepted}"))
}

fn read_switches(at: &Cursor<'_>, topology: &Topology) -> Result<Vec<SwitchIndex>, Reported> {
    let names = || {
        let switches = topology.switches.iter();
        switches.map(|switch| switch.name.as_str())
    };
    at.each_once(
        "switch",
        "the name of a switch, or a list of names",
        |name| topology.switches_named(name),
        |at, name| at.unknown_name("switch", name, names()),
    )
}

fn read_groups(at: &Cursor<'_>, groups: &[Group]) -> Result<Vec<usize>, Reported> {
    let names = || groups.iter().map(|group| group.name.as_str());
    let named = |name: &str| {
        let numbered = names().enumerate();
        let found = numbered.filter(|(_, group)| matches(name, group));
        found.map(|(number, _)| number).collect()
    };
    at.each_once(
        "group",
        "the name of a group, or a list of names",
        named,
        |at, name| at.unknown_name("group", name, names()),
    )
}

impl ChangedSettings {
    /// Returns everything that changes: a number of what has the setting, and the key.
    fn places(&self) -> Vec<(usize, String)> {
        let each = |numbers: Vec<usize>, keys: Vec<String>| {
            let numbers = numbers.into_iter();
            numbers
                .flat_map(|number| keys.iter().map(move |key| (number, key.clone())))
                .collect()
        };
        let named = |table: &str, values: Vec<(&'static str, String)>| {
            let keys = values.into_iter().map(|(key, _)| format!("{table}.{key}"));
            keys.collect::<Vec<_>>()
        };
        match self {
            Self::Queues { ports, queue } => each(
                ports.iter().map(|port| port.index()).collect(),
                named("queue", queue.values()),
            ),
            Self::SharedBuffers { switches, buffer } => each(
                switches.iter().map(|switch| switch.index()).collect(),
                named("shared_buffer", buffer.values()),
            ),
            Self::Groups {
                groups,
                congestion,
                workload,
            } => {
                let mut keys = named("workload", workload.values());
                let parameters = congestion.iter();
                keys.extend(parameters.map(|(name, _)| format!("congestion.{name}")));
                each(groups.clone(), keys)
            }
        }
    }
}

/// Reports two changes of one setting at the same time: it would be undefined which one applies.
fn check_conflicts(items: &[Cursor<'_>], changes: &[Change]) -> Result<(), Reported> {
    let mut seen = HashMap::new();
    for (second, change) in changes.iter().enumerate() {
        for place in change.set.places() {
            let key = place.1.clone();
            if let Some(first) = seen.insert((change.at, place), second)
                && first != second
            {
                return Err(items[second].conflict(
                    format!(
                        "`changes.{first}` sets `{key}` of the same at {}",
                        change.at
                    ),
                    "remove one of them, or change its time",
                ));
            }
        }
    }
    Ok(())
}

/// Applies all changes in the order of their times, and reports the first that does not fit.
fn check_fit(
    items: &[Cursor<'_>],
    changes: &[Change],
    run: ChangeTargets<'_>,
) -> Result<(), Reported> {
    let mut schedule = ChangeSchedule::of(run.topology.clone(), run.groups.to_vec());
    let mut order: Vec<_> = (0..changes.len()).collect();
    order.sort_by_key(|index| changes[*index].at);
    for index in order {
        let (change, at) = (&changes[index], &items[index]);
        if let Err(misfit) = schedule.apply(&change.set) {
            return Err(report(at, misfit, &change.set));
        }
        match &change.set {
            ChangedSettings::Queues { ports, .. } => {
                let fields = Fields::open(inside(at, &["set", "queue"]), QueueChange::SECTION)?;
                for port in ports {
                    let queue = &schedule.port(*port).queue;
                    queue.check(&fields)?;
                    queue.discipline.check(&fields)?;
                }
            }
            ChangedSettings::SharedBuffers { .. } => {}
            ChangedSettings::Groups { groups, .. } => {
                let workload = inside(at, &["set", "workload"]);
                let end = Time::ZERO + run.duration;
                for group in groups {
                    let group = schedule.group(*group);
                    group.check_arrival_count(&workload, change.at.max(group.start), end)?;
                }
            }
        }
    }
    Ok(())
}

fn report(at: &Cursor<'_>, misfit: Misfit, set: &ChangedSettings) -> Reported {
    let table = match set {
        ChangedSettings::Queues { .. } => "queue",
        ChangedSettings::SharedBuffers { .. } => "shared_buffer",
        ChangedSettings::Groups { .. } => "workload",
    };
    let place = inside(at, &["set", table, misfit.key]);
    let Misfit {
        conflict, remedy, ..
    } = misfit;
    place.problem(ProblemKind::Conflict { conflict, remedy })
}

/// Returns the value at a path, as far as there is one.
fn inside<'a>(at: &Cursor<'a>, path: &[&str]) -> Cursor<'a> {
    let mut found = at.clone();
    for key in path {
        let Some(node) = found.node.as_table().and_then(|table| table.get(key)) else {
            break;
        };
        found = found.child(key, node);
    }
    found
}
