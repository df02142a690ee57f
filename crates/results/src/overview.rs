//! The tables of a summary, for text and HTML.

use crate::quantity::{count, percent, rate, size, time};
use crate::summary::size_range;
use crate::{
    CompletionTimes, EpochSummary, GroupSummary, HostSummary, LinkLoad, PortSummary, Ratio,
    RunSummary, SlowdownStatistics, Summary,
};

/// The label of the run with the scenario's own values, shown next to the variants.
pub(crate) const OWN: &str = "as in the file";

/// What stands for a figure that does not exist.
const ABSENT: &str = "\u{2013}";

/// A table: a header and rows of cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(crate) header: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
    /// The number of leading columns that hold names; numbers follow.
    pub(crate) names: usize,
}

impl Grid {
    /// Returns what a row is about: a group's or a port's name, without the class of sizes behind it.
    pub(crate) fn subject<'g>(&'g self, row: &'g [String]) -> &'g str {
        let name = row.get(self.names.saturating_sub(1));
        let name = name.map_or("", String::as_str);
        match self.header.get(self.names.saturating_sub(1)) {
            Some(&FLOWS_OF) => name.split_once(": ").map_or(name, |(group, _)| group),
            _ => name,
        }
    }
}

/// The header of the column of groups and classes of sizes.
const FLOWS_OF: &str = "flows of";

/// A column of numbers: its title, and the format of its cell for one `T`.
type Column<T> = (&'static str, fn(&T) -> String);

/// Returns all tables for a page, with their titles.
pub(crate) fn all(summary: &Summary) -> [(&'static str, Grid); 5] {
    [
        ("Groups", groups(summary)),
        ("Slowdowns", slowdowns(summary)),
        ("Loads", loads(summary)),
        ("Ports", ports(summary)),
        ("Hosts", hosts(summary)),
    ]
}

/// Returns all tables for a terminal: with variants, only the slowdowns of all sizes.
pub(crate) fn all_in_brief(summary: &Summary) -> [Grid; 5] {
    let slowdowns = if summary.variants.is_empty() {
        slowdowns
    } else {
        slowdowns_of_all_sizes
    };
    [groups, slowdowns, loads, ports, hosts].map(|grid| grid(summary))
}

/// Returns the table of the groups' results.
pub(crate) fn groups(summary: &Summary) -> Grid {
    let all = || summary.runs().flat_map(|(_, run)| run.groups.values());
    let mut columns: Vec<Column<GroupSummary>> = vec![
        ("flows", |group| count(group.flows)),
        ("goodput", |group| rate(group.goodput)),
        ("share", |group| percent(group.share)),
    ];
    if all().any(|group| group.fairness.is_some()) {
        columns.push(("fairness", |group| {
            let index = group.fairness;
            index.map_or_else(
                || ABSENT.to_owned(),
                |index| format!("{:.3}", index.value()),
            )
        }));
    }
    if all().any(|group| group.connections_without_handshake.is_some()) {
        columns.push(("without handshake", |group| {
            (group.connections_without_handshake).map_or_else(String::new, count)
        }));
    }
    columns.push(("retransmits", |group| count(group.retransmits)));
    columns.push(("timeouts", |group| count(group.timeouts)));
    columns.push(("marks", |group| count(group.marks)));
    if all().any(|group| group.completion.is_some() || group.unfinished > 0) {
        columns.push(("completed", |group| count(group.completed)));
        columns.push(("unfinished", |group| count(group.unfinished)));
        columns.push(("time: mean", |group| completion(group, |times| times.mean)));
        columns.push(("p50", |group| completion(group, |times| times.p50)));
        columns.push(("p99", |group| completion(group, |times| times.p99)));
        columns.push(("max", |group| completion(group, |times| times.max)));
    }
    if all().any(|group| group.deadlines_missed.is_some()) {
        columns.push(("missed", |group| {
            group.deadlines_missed.map_or_else(String::new, count)
        }));
        columns.push(("with time-out", |group| count(group.flows_with_timeout)));
    }
    if all().any(|group| group.epochs.is_some()) {
        columns.push(("epochs", |group| {
            epochs(group, |epochs| count(epochs.count))
        }));
        columns.push(("total", |group| epochs(group, |epochs| time(epochs.total))));
        columns.push(("lost", |group| epochs(group, |epochs| count(epochs.lost))));
    }
    grid(summary, "group", &columns, |run| &run.groups)
}

fn epochs(group: &GroupSummary, of: fn(&EpochSummary) -> String) -> String {
    group.epochs.as_ref().map_or_else(String::new, of)
}

fn completion(group: &GroupSummary, of: fn(&CompletionTimes) -> weir_units::Duration) -> String {
    let times = group.completion.as_ref();
    times.map_or_else(String::new, |times| time(of(times)))
}

/// Returns the table of the ports' results. Reasons for drops that few queues or none decide are
/// omitted if they never occurred.
pub(crate) fn ports(summary: &Summary) -> Grid {
    let mut columns: Vec<Column<PortSummary>> = vec![
        ("packets", |port| count(port.packets)),
        ("utilization", |port| percent(port.utilization)),
        ("queue: mean", |port| size(port.queue_mean)),
        ("p50", |port| size(port.queue_p50)),
        ("p99", |port| size(port.queue_p99)),
        ("max", |port| size(port.queue_max)),
        ("marks", |port| count(port.marks)),
        ("drops: red", |port| count(port.drops.red)),
        ("tail", |port| count(port.drops.tail)),
        ("buffer", |port| count(port.drops.buffer)),
    ];
    let others: [Column<PortSummary>; 6] = [
        ("codel", |port| count(port.drops.codel)),
        ("mtu", |port| count(port.drops.mtu)),
        ("loss", |port| count(port.drops.loss)),
        ("down", |port| count(port.drops.down)),
        ("corruption", |port| count(port.drops.corruption)),
        ("element", |port| count(port.drops.element)),
    ];
    let all = || summary.runs().flat_map(|(_, run)| run.ports.values());
    let occurred = |(_, value): &Column<PortSummary>| all().any(|port| value(port) != "0");
    columns.extend(others.into_iter().filter(occurred));
    grid(summary, "port", &columns, |run| &run.ports)
}

/// Returns the slowdowns by size, if there are transfers with a size.
pub(crate) fn slowdowns(summary: &Summary) -> Grid {
    slowdown_grid(summary, true)
}

/// Returns the slowdowns of all sizes together.
fn slowdowns_of_all_sizes(summary: &Summary) -> Grid {
    slowdown_grid(summary, false)
}

fn slowdown_grid(summary: &Summary, has_sizes: bool) -> Grid {
    let columns: [Column<SlowdownStatistics>; 7] = [
        ("completed", |part| count(part.completed)),
        ("unfinished", |part| count(part.unfinished)),
        ("slowdown: mean", |part| times(part.mean)),
        ("p50", |part| times(part.p50)),
        ("p95", |part| times(part.p95)),
        ("p99", |part| times(part.p99)),
        ("max", |part| times(part.max)),
    ];
    let has_several = summary.runs().any(|(_, run)| run.groups.len() > 1);
    let rows = |run: &RunSummary| -> Vec<(String, SlowdownStatistics)> {
        let groups = run.groups.iter();
        let of_group = |(name, group): (&String, &GroupSummary)| {
            let all = group
                .slowdown
                .as_ref()
                .map(|found| ("all sizes".to_owned(), found.all));
            let sizes = group.slowdown.iter().filter(|_| has_sizes);
            let sizes = sizes.flat_map(|found| &found.sizes);
            let sizes = sizes.map(|(size, part)| (size_range(size), *part));
            let of = if has_several {
                format!("{name}: ")
            } else {
                String::new()
            };
            let named = all.into_iter().chain(sizes);
            named
                .map(move |(size, part)| (format!("{of}{size}"), part))
                .collect::<Vec<_>>()
        };
        groups.flat_map(of_group).collect()
    };
    rows_of(summary, FLOWS_OF, &columns, rows)
}

/// Returns the loads of the classes of links.
pub(crate) fn loads(summary: &Summary) -> Grid {
    let columns: [Column<LinkLoad>; 5] = [
        ("count", |load| count(load.links)),
        ("load: expected", |load| {
            load.expected.map_or_else(|| ABSENT.to_owned(), percent)
        }),
        ("offered", |load| {
            load.offered.map_or_else(|| ABSENT.to_owned(), percent)
        }),
        ("carried", |load| percent(load.carried)),
        ("most", |load| percent(load.carried_max)),
    ];
    grid(summary, "links", &columns, |run| &run.loads)
}

/// Formats a slowdown.
fn times(slowdown: Option<Ratio>) -> String {
    slowdown.map_or_else(
        || ABSENT.to_owned(),
        |slowdown| format!("{:.2}", slowdown.value()),
    )
}

/// Returns remarks on a run's figures: what they leave out, and why some are absent.
pub(crate) fn remarks(run: &RunSummary) -> Vec<String> {
    let mut remarks: Vec<String> = run.changes.iter().map(ToString::to_string).collect();
    for (name, group) in run.groups.iter().filter(|(_, group)| group.unfinished > 0) {
        let began = group.completed + group.unfinished;
        remarks.push(format!(
            "{} of {} transfers of {name} were unfinished: their times are not among the completion times",
            count(group.unfinished),
            count(began)
        ));
    }
    let has_fairness = |group: &GroupSummary| group.fairness.is_some();
    if run.groups.values().any(has_fairness) {
        let without = run.groups.iter().filter(|(_, group)| !has_fairness(group));
        let without: Vec<_> = without.map(|(name, _)| name.as_str()).collect();
        if !without.is_empty() {
            remarks.push(format!(
                "fairness is that of flows without an end of their own; {} had none with goodput",
                without.join(", ")
            ));
        }
    }
    if run.loads.values().any(|load| load.expected.is_none()) {
        remarks
            .push("the offered load is unknown: some groups send as much as they can".to_owned());
    }
    remarks
}

/// Returns the CPU time of the hosts, if they are real.
pub(crate) fn hosts(summary: &Summary) -> Grid {
    let columns: [Column<HostSummary>; 1] = [("CPU time", |host| time(host.cpu))];
    grid(summary, "host", &columns, |run| &run.hosts)
}

/// Returns one row for each item of each run; with several runs, a column has the run's name.
fn grid<T: Clone>(
    summary: &Summary,
    kind: &'static str,
    columns: &[Column<T>],
    of: fn(&RunSummary) -> &indexmap::IndexMap<String, T>,
) -> Grid {
    let rows = |run: &RunSummary| {
        let items = of(run).iter();
        items
            .map(|(name, item)| (name.clone(), item.clone()))
            .collect()
    };
    rows_of(summary, kind, columns, rows)
}

/// Returns one row for each of `items` of each run; with several runs, a column has the run's name.
fn rows_of<T>(
    summary: &Summary,
    kind: &'static str,
    columns: &[Column<T>],
    items: impl Fn(&RunSummary) -> Vec<(String, T)>,
) -> Grid {
    let has_variants = !summary.variants.is_empty();
    let mut header: Vec<&'static str> = Vec::new();
    header.extend(has_variants.then_some("variant"));
    header.push(kind);
    let names = header.len();
    header.extend(columns.iter().map(|(title, _)| title));

    let mut rows = Vec::new();
    for (variant, run) in summary.runs() {
        for (index, (name, thing)) in items(run).into_iter().enumerate() {
            let mut row = Vec::with_capacity(header.len());
            if has_variants {
                let variant = variant.unwrap_or(OWN);
                row.push(if index == 0 {
                    variant.to_owned()
                } else {
                    String::new()
                });
            }
            row.push(name);
            row.extend(columns.iter().map(|(_, value)| value(&thing)));
            rows.push(row);
        }
    }
    Grid {
        header,
        rows,
        names,
    }
}
