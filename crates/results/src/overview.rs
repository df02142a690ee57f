//! The tables of a summary, for text and HTML.

use crate::quantity::{count, percent, rate, size, time};
use crate::{
    CompletionTimes, EpochSummary, GroupSummary, HostSummary, PortSummary, RunSummary, Summary,
};

/// The label of the run with the scenario's own values, shown next to the variants.
pub(crate) const OWN: &str = "as in the file";

/// A table: a header and rows of cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(crate) header: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
    /// The number of leading columns that hold names; numbers follow.
    pub(crate) names: usize,
}

/// A column of numbers: its title, and the format of its cell for one `T`.
type Column<T> = (&'static str, fn(&T) -> String);

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
            index.map_or_else(String::new, |index| format!("{:.3}", index.value()))
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
    if all().any(|group| group.completion.is_some()) {
        columns.push(("completed", |group| count(group.completed)));
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

/// Returns the CPU time of the hosts, if they are real.
pub(crate) fn hosts(summary: &Summary) -> Grid {
    let columns: [Column<HostSummary>; 1] = [("CPU time", |host| time(host.cpu))];
    grid(summary, "host", &columns, |run| &run.hosts)
}

/// Returns one row for each item of each run; with several runs, a column has the run's name.
fn grid<T>(
    summary: &Summary,
    kind: &'static str,
    columns: &[Column<T>],
    of: fn(&RunSummary) -> &indexmap::IndexMap<String, T>,
) -> Grid {
    let has_variants = !summary.variants.is_empty();
    let mut header: Vec<&'static str> = Vec::new();
    header.extend(has_variants.then_some("variant"));
    header.push(kind);
    let names = header.len();
    header.extend(columns.iter().map(|(title, _)| title));

    let mut rows = Vec::new();
    for (variant, run) in summary.runs() {
        for (index, (name, thing)) in of(run).iter().enumerate() {
            let mut row = Vec::with_capacity(header.len());
            if has_variants {
                let variant = variant.unwrap_or(OWN);
                row.push(if index == 0 {
                    variant.to_owned()
                } else {
                    String::new()
                });
            }
            row.push(name.clone());
            row.extend(columns.iter().map(|(_, value)| value(thing)));
            rows.push(row);
        }
    }
    Grid {
        header,
        rows,
        names,
    }
}
