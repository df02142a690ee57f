//! Reading a whole file: the order in which its parts depend on each other.

use weir_units::Duration;

use crate::document::{At, Fields, Node, Problems, Reported, Table, Value, substitute};
use crate::error::ProblemKind;
use crate::fault::{self, check_overlaps};
use crate::group::{self, check_flows};
use crate::measurements::MEASUREMENTS;
use crate::schema::{Accepts, Key, Literal, Section};
use crate::topology::{self, Builder, Names, Queues, check_name};
use crate::{Fault, Group, LiveOptions, Measurements, Queue, Scenario, SedOptions, Topology};

/// The top of a file.
pub(crate) static FILE: Section = Section {
    title: "the top of the file",
    doc: "What the experiment is, and its parts. The network is one of `[dumbbell]`, `[star]` and the \
          general form: `[hosts]`, `[switches]`, `[[links]]` and, if needed, `[[routes]]`.",
    keys: &[
        Key::required(
            "title",
            Accepts::Text,
            "what the experiment is, in one line",
        ),
        Key::required(
            "source",
            Accepts::Text,
            "where it comes from: paper and section, or another reference",
        ),
        Key::default(
            "seed",
            Accepts::Count(0, i64::MAX as u64),
            Literal::Integer(1),
            "every random choice follows from it",
        ),
        Key::required(
            "duration",
            Accepts::POSITIVE_SPAN,
            "how much time is simulated at most: with the workload `epochs` the run ends when the last \
             one is complete",
        ),
        Key::default(
            "warm_up",
            Accepts::SPAN,
            Literal::Text("0s"),
            "how much of it, from the start, no average and no count includes",
        ),
        Key::optional(
            "parameters",
            Accepts::Other("a table of values under names of your choice"),
            "none",
            "values that are written once and used elsewhere as `\"$name\"`",
        ),
        Key::optional(
            "dumbbell",
            Accepts::Other("a table"),
            "another form",
            "the network, as a dumbbell",
        ),
        Key::optional(
            "star",
            Accepts::Other("a table"),
            "another form",
            "the network, as a star",
        ),
        Key::optional(
            "hosts",
            Accepts::Other("tables `[hosts.NAME]`"),
            "another form",
            "the network's hosts, in the general form",
        ),
        Key::optional(
            "switches",
            Accepts::Other("tables `[switches.NAME]`"),
            "none",
            "the network's switches, in the general form",
        ),
        Key::optional(
            "links",
            Accepts::Other("tables `[[links]]`"),
            "another form",
            "the network's links, in the general form",
        ),
        Key::optional(
            "routes",
            Accepts::Other("tables `[[routes]]`"),
            "shortest paths",
            "ways other than the shortest ones, in the general form",
        ),
        Key::optional(
            "queues",
            Accepts::Other("tables `[queues.NAME]`"),
            "none",
            "queues, to be named where they stand; `\"unlimited\"` is a queue that never drops",
        ),
        Key::required(
            "groups",
            Accepts::Other("tables `[groups.NAME]`"),
            "the flows",
        ),
        Key::optional(
            "faults",
            Accepts::Other("tables `[[faults]]`"),
            "none",
            "what goes wrong; faults of one kind on one port must not overlap",
        ),
        Key::optional(
            "measurements",
            Accepts::Other("a table"),
            "its defaults",
            "what is watched",
        ),
        Key::optional(
            "sed",
            Accepts::Other("a table"),
            "none",
            "a controller that gives flows their windows",
        ),
        Key::optional(
            "live",
            Accepts::Other("a table"),
            "its defaults",
            "what only `weir run --live` needs to know",
        ),
        Key::optional(
            "variants",
            Accepts::Other("tables `[variants.NAME]` and `[variants.grid]`"),
            "none",
            "the same experiment under other values: by name `\"path.to.key\" = value`, or in the \
             grid `\"path.to.key\" = [values]`, of which every combination is a variant",
        ),
    ],
};

/// Reads a file's tree.
pub(crate) fn read_scenario(mut root: Node, problems: &Problems) -> Result<Scenario, Reported> {
    substitute(&mut root, problems)?;
    let at = At {
        node: &root,
        key: String::new(),
        problems,
    };
    let file = Fields::open(at, &FILE)?;
    let (title, source, seed) = (file.get("title"), file.get("source"), file.get("seed"));
    let times = read_times(&file);
    let queues = read_queues(&file);
    let network = read_network(&file, &queues?);
    let (title, source, seed) = (title?, source?, seed?);
    let ((duration, warm_up), (topology, names)) = (times?, network?);

    let groups = read_groups(&file, &names, &topology, duration);
    let known_groups = groups.as_deref().ok();
    let faults = read_faults(&file, &topology, duration, known_groups);
    let measurements = read_measurements(&file, &topology, known_groups);
    let sed = read_sed(&file);
    let live = open(&file, "live", LiveOptions::SECTION, |fields| {
        LiveOptions::read_keys(fields, ())
    });
    Ok(Scenario {
        title,
        source,
        seed,
        duration,
        warm_up,
        groups: groups?,
        faults: faults?,
        measurements: measurements?,
        sed: sed?,
        live: live?,
        topology,
    })
}

fn read_times(file: &Fields<'_>) -> Result<(Duration, Duration), Reported> {
    let (duration, warm_up) = (file.get::<Duration>("duration"), file.get("warm_up"));
    let (duration, warm_up) = (duration?, warm_up?);
    if warm_up >= duration {
        return Err(file.blame("warm_up").conflict(
            format!("a warm-up of {warm_up} leaves nothing of the duration, {duration}"),
            "set a shorter `warm_up`, or a longer `duration`",
        ));
    }
    Ok((duration, warm_up))
}

/// Every queue, so that one with a mistake is reported even where another one is used.
fn read_queues(file: &Fields<'_>) -> Result<Queues, Reported> {
    let Some(at) = file.at("queues") else {
        return Ok(Queues::new());
    };
    let named = at.named("tables `[queues.NAME]`")?;
    let read = |(name, at): (&str, At<'_>)| {
        let queue = check_name(&at, name).and_then(|()| Queue::read(&at));
        (name.to_owned(), queue)
    };
    Ok(named.into_iter().map(read).collect())
}

fn read_network(file: &Fields<'_>, queues: &Queues) -> Result<(Topology, Names), Reported> {
    let mut builder = Builder::new(queues);
    let forms = ["dumbbell", "star", "hosts"].map(|form| file.at(form));
    match &forms {
        [Some(at), None, None] => topology::read_dumbbell(at, &mut builder)?,
        [None, Some(at), None] => topology::read_star(at, &mut builder)?,
        [None, None, Some(_)] => topology::read_general(file, &mut builder)?,
        [None, None, None] => {
            let accepts = "one of `[dumbbell]`, `[star]` and `[hosts]`".to_owned();
            let (place, key) = (file.at.node.place.clone(), "the network".to_owned());
            return Err((file.at.problems).add(place, key, ProblemKind::Missing { accepts }));
        }
        _ => {
            let second = forms.iter().flatten().nth(1).unwrap_or(&file.at);
            return Err(second.conflict(
                "the network is described twice",
                "write one of `[dumbbell]`, `[star]` and `[hosts]`",
            ));
        }
    }
    if forms[2].is_none() {
        let general = ["switches", "links", "routes"];
        if let Some(at) = general.iter().find_map(|key| file.at(key)) {
            return Err(at.conflict(
                "a short form describes the network already",
                "describe all of it by `[hosts]`, `[switches]` and `[[links]]`",
            ));
        }
    }
    Ok((builder.topology, builder.names))
}

fn read_groups(
    file: &Fields<'_>,
    names: &Names,
    topology: &Topology,
    duration: Duration,
) -> Result<Vec<Group>, Reported> {
    let at = file.needed("groups")?;
    let named = at.named("tables `[groups.NAME]`")?;
    if named.is_empty() {
        return Err(at.wrong_kind("at least one table `[groups.NAME]`"));
    }
    let routes = topology.routes();
    let read: Vec<_> = named
        .into_iter()
        .map(|(name, at)| {
            let group = Group::read(name, at.clone(), names, topology)?;
            group.check_against(&at, topology, &routes, duration)?;
            Ok(group)
        })
        .collect();
    let groups = read.into_iter().collect::<Result<Vec<_>, _>>()?;
    check_flows(&at, &groups)?;
    group::check_epochs(&at, &groups)?;
    Ok(groups)
}

fn read_faults(
    file: &Fields<'_>,
    topology: &Topology,
    duration: Duration,
    groups: Option<&[Group]>,
) -> Result<Vec<Fault>, Reported> {
    let Some(at) = file.at("faults") else {
        return Ok(Vec::new());
    };
    let items = at.list("tables `[[faults]]`")?;
    let read: Vec<_> = items
        .iter()
        .map(|at| Fault::read(at, topology, duration))
        .collect();
    let faults = read.into_iter().collect::<Result<Vec<_>, _>>()?;
    check_overlaps(&items, &faults, topology)?;
    if let Some(groups) = groups {
        fault::check_epochs(&items, &faults, groups)?;
    }
    Ok(faults)
}

fn read_measurements(
    file: &Fields<'_>,
    topology: &Topology,
    groups: Option<&[Group]>,
) -> Result<Measurements, Reported> {
    open(file, "measurements", &MEASUREMENTS, |fields| {
        Measurements::read(fields, topology, groups)
    })
}

fn read_sed(file: &Fields<'_>) -> Result<Option<SedOptions>, Reported> {
    let Some(at) = file.at("sed") else {
        return Ok(None);
    };
    SedOptions::read(at).map(Some)
}

/// Reads a table that has all its defaults where it is not written.
fn open<T>(
    file: &Fields<'_>,
    key: &str,
    section: &'static Section,
    read: impl FnOnce(&Fields<'_>) -> Result<T, Reported>,
) -> Result<T, Reported> {
    let empty = Node::new(Value::Table(Table::default()), file.at.node.place.clone());
    let at = file.at(key).unwrap_or(At {
        node: &empty,
        key: key.to_owned(),
        problems: file.at.problems,
    });
    read(&Fields::open(at, section)?)
}
