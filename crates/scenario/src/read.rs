//! Reads a whole scenario file, in the order in which its parts depend on each other.

use weir_scenario_derive::Keys;
use weir_units::Duration;

use crate::change::{ChangeTargets, prepare, read_changes};
use crate::document::{Cursor, Node, Problems, Reported, substitute};
use crate::error::ProblemKind;
use crate::fault::{self, FaultTargets, check_overlaps};
use crate::group::{check_epochs, check_flows};
use crate::measurements::MeasurementTargets;
use crate::schema::{Accepts, Fields};
use crate::topology::{self, Builder, Queues, check_name};
use crate::{Fault, Group, LiveOptions, Measurements, Queue, Scenario, SedOptions};

/// The keys at the top of a file.
#[derive(Keys)]
#[keys(
    title = "the top of the file",
    doc = "What the experiment is, and its parts. The network is one of `[dumbbell]`, `[star]`, \
           `[leaf_spine]`, `[fat_tree]`, `[parking_lot]` and the general form: `[hosts]`, `[switches]`, `[[links]]` \
           and, if needed, `[[routes]]`.",
    with = Heading,
    declares
)]
#[allow(dead_code, reason = "it declares keys alone")]
pub(crate) struct File {
    /// Values that are defined once and used elsewhere as `"$name"`.
    #[key(
        accepts = Accepts::Other("a table of values under names of your choice"),
        absent = "none"
    )]
    parameters: (),
    /// The network, as a dumbbell.
    #[key(accepts = Accepts::TABLE, absent = "another form")]
    dumbbell: (),
    /// The network, as a star.
    #[key(accepts = Accepts::TABLE, absent = "another form")]
    star: (),
    /// The network, as leaves and spines.
    #[key(accepts = Accepts::TABLE, absent = "another form")]
    leaf_spine: (),
    /// The network, as a fat-tree.
    #[key(accepts = Accepts::TABLE, absent = "another form")]
    fat_tree: (),
    /// The network, as a parking lot.
    #[key(accepts = Accepts::TABLE, absent = "another form")]
    parking_lot: (),
    /// The network's hosts, in the general form.
    #[key(accepts = Accepts::Other("tables `[hosts.NAME]`"), absent = "another form")]
    hosts: (),
    /// The network's switches, in the general form.
    #[key(accepts = Accepts::Other("tables `[switches.NAME]`"), absent = "none")]
    switches: (),
    /// The network's links, in the general form.
    #[key(accepts = Accepts::Other("tables `[[links]]`"), absent = "another form")]
    links: (),
    /// Routes other than the shortest paths, in the general form.
    #[key(accepts = Accepts::Other("tables `[[routes]]`"), absent = "shortest paths")]
    routes: (),
    /// Named queues; `"unlimited"` is a queue that never drops.
    #[key(accepts = Accepts::Other("tables `[queues.NAME]`"), absent = "none")]
    queues: (),
    /// The flows.
    #[key(accepts = Accepts::Other("tables `[groups.NAME]`"))]
    groups: (),
    /// Faults of links; faults of one kind on one port must not overlap.
    #[key(accepts = Accepts::Other("tables `[[faults]]`"), absent = "none")]
    faults: (),
    /// Changes of settings at times of the run; at one time a setting may change once.
    #[key(accepts = Accepts::Other("tables `[[changes]]`"), absent = "none")]
    changes: (),
    /// The measured ports and groups.
    #[key(accepts = Accepts::TABLE, absent = "its defaults")]
    measurements: (),
    /// A controller that assigns windows to flows.
    #[key(accepts = Accepts::TABLE, absent = "none")]
    sed: (),
    /// Options of `weir run --live` only.
    #[key(accepts = Accepts::TABLE, absent = "its defaults")]
    live: (),
    /// The same experiment with other values: by name `"path.to.key" = value`, or in the grid
    /// `"path.to.key" = [values]`, of which every combination is a variant.
    #[key(
        accepts = Accepts::Other("tables `[variants.NAME]` and `[variants.grid]`"),
        absent = "none"
    )]
    variants: (),
}

/// The title, source, seed and times of an experiment.
#[derive(Keys)]
#[keys(check = table.check(fields))]
struct Heading {
    /// The title of the experiment, in one line.
    #[key(accepts = Accepts::Text)]
    title: String,
    /// The reference for the experiment: paper and section, or another source.
    #[key(accepts = Accepts::Text)]
    source: String,
    /// The seed of the random number generator.
    #[key(accepts = Accepts::Count(0, i64::MAX as u64), default = 1)]
    seed: u64,
    /// The maximum simulated time; with the workload `epochs` the run ends when the last epoch is
    /// complete.
    #[key(accepts = Accepts::POSITIVE_SPAN)]
    duration: Duration,
    /// The time at the start that all averages and counts exclude.
    #[key(accepts = Accepts::SPAN, default = "0s")]
    warm_up: Duration,
    /// The largest random time that a simulated host takes to process a packet that arrives, uniform
    /// from zero; packets stay in order. Without any, flows of equal round trips may lock their phases:
    /// at a full queue one of them loses every time. Real hosts, in live runs, have their own.
    #[key(accepts = Accepts::SPAN, default = "2us")]
    host_jitter: Duration,
}

impl Heading {
    fn check(&self, file: &Fields<'_>) -> Result<(), Reported> {
        let (warm_up, duration) = (self.warm_up, self.duration);
        if warm_up < duration {
            Ok(())
        } else {
            Err(file.error_position("warm_up").conflict(
                format!("a warm-up of {warm_up} leaves nothing of the duration, {duration}"),
                "set a shorter `warm_up`, or a longer `duration`",
            ))
        }
    }
}

/// Reads the tree of a file.
pub(crate) fn read_scenario(mut root: Node, problems: &Problems) -> Result<Scenario, Reported> {
    substitute(&mut root, problems)?;
    let file = Fields::open(Cursor::top(&root, problems), File::SECTION)?;
    let heading = Heading::read_keys(&file, ());
    let queues = read_queues(&file)?;
    let network = read_network(&file, &queues);
    let (heading, network) = (heading?, network?);
    let (topology, duration) = (&network.topology, heading.duration);

    let mut groups = read_groups(&file, &network, duration);
    let changes = match &groups {
        Ok(groups) => read_changes(
            &file,
            ChangeTargets {
                topology,
                duration,
                groups,
            },
        ),
        // Their mistakes are reported.
        Err(_) => Ok(Vec::new()),
    };
    if let (Ok(groups), Ok(changes)) = (&mut groups, &changes) {
        prepare(groups, changes);
    }
    let watched = MeasurementTargets {
        topology,
        groups: groups.as_deref().ok(),
    };
    let seed = heading.seed;
    let run = FaultTargets {
        topology,
        duration,
        seed,
    };
    let faults = read_faults(&file, run, watched.groups);
    let measurements = file.table("measurements", |at| Measurements::read(at, watched));
    let sed = file.at("sed").map(|at| SedOptions::read(&at, ()));
    let live = file.table("live", |at| LiveOptions::read(at, ()));
    Ok(Scenario {
        title: heading.title,
        source: heading.source,
        seed: heading.seed,
        duration,
        warm_up: heading.warm_up,
        host_jitter: heading.host_jitter,
        groups: groups?,
        faults: faults?,
        changes: changes?,
        measurements: measurements?,
        sed: sed.transpose()?,
        live: live?,
        topology: network.topology,
    })
}

/// Reads every queue, so that mistakes are reported in unused queues too.
fn read_queues(file: &Fields<'_>) -> Result<Queues, Reported> {
    let Some(at) = file.at("queues") else {
        return Ok(Queues::new());
    };
    let named = at.named("tables `[queues.NAME]`")?;
    let read = |(name, at): (&str, Cursor<'_>)| {
        let queue = check_name(&at, name).and_then(|()| Queue::read(&at));
        (name.to_owned(), queue)
    };
    Ok(named.into_iter().map(read).collect())
}

/// Reads a short form of a network.
type Expand = fn(&Cursor<'_>, &mut Builder<'_>) -> Result<(), Reported>;

/// The forms of a network; the last one is the general form.
const FORMS: [(&str, Option<Expand>); 6] = [
    ("dumbbell", Some(topology::expand_dumbbell)),
    ("star", Some(topology::expand_star)),
    ("leaf_spine", Some(topology::expand_leaf_spine)),
    ("fat_tree", Some(topology::expand_fat_tree)),
    ("parking_lot", Some(topology::expand_parking_lot)),
    ("hosts", None),
];

fn read_network<'q>(file: &Fields<'_>, queues: &'q Queues) -> Result<Builder<'q>, Reported> {
    let mut builder = Builder::new(queues);
    let written = |(name, expand): &(&str, Option<Expand>)| Some((file.at(name)?, *expand));
    let forms: Vec<_> = FORMS.iter().filter_map(written).collect();
    let names = || FORMS.map(|(name, _)| format!("`[{name}]`")).join(", ");
    let expand = match &forms[..] {
        [(at, Some(expand))] => {
            expand(at, &mut builder)?;
            Some(expand)
        }
        [(_, None)] => {
            topology::read_general(file, &mut builder)?;
            None
        }
        [] => {
            let accepts = format!("one of {}", names());
            let (position, key) = (file.at.node.position.clone(), "the network".to_owned());
            return Err((file.at.problems).add(position, key, ProblemKind::Missing { accepts }));
        }
        [_, (second, _), ..] => {
            return Err(second.conflict(
                "the network is described twice",
                format!("write one of {}", names()),
            ));
        }
    };
    if expand.is_some() {
        let general = ["switches", "links", "routes"];
        if let Some(at) = general.iter().find_map(|key| file.at(key)) {
            return Err(at.conflict(
                "a short form describes the network already",
                "describe all of it by `[hosts]`, `[switches]` and `[[links]]`",
            ));
        }
    }
    Ok(builder)
}

fn read_groups(
    file: &Fields<'_>,
    network: &Builder<'_>,
    duration: Duration,
) -> Result<Vec<Group>, Reported> {
    let at = file.needed("groups")?;
    let named = at.named("tables `[groups.NAME]`")?;
    if named.is_empty() {
        return Err(at.wrong_kind("at least one table `[groups.NAME]`"));
    }
    let topology = &network.topology;
    let routes = topology.routes();
    let read = |(name, at): (&str, Cursor<'_>)| {
        check_name(&at, name)?;
        let fields = Fields::open(at, Group::SECTION)?;
        let mut group = Group::read_keys(&fields, network)?;
        group.check(&fields, topology, &routes)?;
        group.set_load(&fields, topology, &routes)?;
        group.check_times(&fields, duration)?;
        Ok(group)
    };
    let read: Vec<_> = named.into_iter().map(read).collect();
    let groups = read.into_iter().collect::<Result<Vec<_>, _>>()?;
    check_flows(&at, &groups)?;
    check_epochs(&at, &groups)?;
    Ok(groups)
}

fn read_faults(
    file: &Fields<'_>,
    run: FaultTargets<'_>,
    groups: Option<&[Group]>,
) -> Result<Vec<Fault>, Reported> {
    let Some(at) = file.at("faults") else {
        return Ok(Vec::new());
    };
    let faults = at.all("tables `[[faults]]`", |at| Fault::read(at, run))?;
    let items = at.items();
    check_overlaps(&items, &faults, run.topology)?;
    if let Some(groups) = groups {
        fault::check_epochs(&items, &faults, groups)?;
    }
    Ok(faults)
}
