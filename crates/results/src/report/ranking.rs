//! The order of a page's ports, groups and flows: the worst first.

use indexmap::IndexMap;

use super::figure::Kind;
use crate::{RunSummary, Traces};

/// The ports, groups and flows of a page's runs, the worst first, each with the figure that says so.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranking {
    /// Mean queues in bytes, the largest first.
    pub(super) ports: IndexMap<String, f64>,
    /// Goodputs in bits per second, the least first.
    pub(super) groups: IndexMap<String, f64>,
    /// The same of single flows.
    pub(super) flows: IndexMap<String, f64>,
}

/// Returns what a page calls a flow.
pub(super) fn flow_name(group: &str, index: u64) -> String {
    format!("{group} {index}")
}

impl Ranking {
    /// Returns the ranking of these runs. What several have counts as in the first of them.
    pub(super) fn of<'r>(runs: impl Iterator<Item = (&'r RunSummary, Option<&'r Traces>)>) -> Self {
        let mut ranking = Self::default();
        for (run, traces) in runs {
            for (name, port) in &run.ports {
                let queue = port.queue_mean.bytes() as f64;
                ranking.ports.entry(name.clone()).or_insert(queue);
            }
            for (name, group) in &run.groups {
                let goodput = group.goodput.bits_per_second() as f64;
                ranking.groups.entry(name.clone()).or_insert(goodput);
            }
            // Samples of what no summary has come last.
            for name in traces.iter().flat_map(|traces| traces.ports.keys()) {
                ranking.ports.entry(name.clone()).or_insert(0.0);
            }
            let groups = traces.iter().flat_map(|traces| {
                let sampled = traces.groups.keys().chain(traces.transfers.keys());
                sampled.chain(traces.epochs.keys())
            });
            let flows = traces.iter().flat_map(|traces| &traces.flows);
            for (group, flows) in flows {
                for (index, flow) in flows {
                    let name = flow_name(group, *index);
                    ranking.flows.entry(name).or_insert(flow.mean_goodput());
                }
            }
            for name in groups {
                ranking.groups.entry(name.clone()).or_insert(f64::MAX);
            }
        }
        ranking
            .ports
            .sort_by(|_, one, _, other| other.total_cmp(one));
        for least_first in [&mut ranking.groups, &mut ranking.flows] {
            least_first.sort_by(|_, one, _, other| one.total_cmp(other));
        }
        ranking
    }

    /// Returns the place of a port, a group or a flow; what is unknown comes last.
    pub(super) fn rank(&self, kind: Kind, name: &str) -> usize {
        let entries = self.entries(kind);
        entries.get_index_of(name).unwrap_or(entries.len())
    }

    /// Returns all of a kind.
    pub(super) fn entries(&self, kind: Kind) -> &IndexMap<String, f64> {
        match kind {
            Kind::Ports => &self.ports,
            Kind::Groups => &self.groups,
            Kind::Flows => &self.flows,
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_units::{ByteSize, Rate};

    use super::*;
    use crate::{GroupSummary, PortSummary};

    #[test]
    fn the_longest_queue_and_the_least_goodput_come_first() {
        let run = |factor: u64| RunSummary {
            ports: [("a", 1), ("b", 3), ("c", 3)]
                .map(|(name, kib)| {
                    let port = PortSummary {
                        queue_mean: ByteSize::from_kib(kib * factor),
                        ..PortSummary::default()
                    };
                    (name.to_owned(), port)
                })
                .into(),
            groups: [("x", 5), ("y", 4)]
                .map(|(name, mbps)| {
                    let group = GroupSummary {
                        goodput: Rate::from_mbps(mbps * factor),
                        ..GroupSummary::default()
                    };
                    (name.to_owned(), group)
                })
                .into(),
            ..RunSummary::default()
        };
        let (first, second) = (run(1), run(9));
        let ranking = Ranking::of([(&first, None), (&second, None)].into_iter());
        let ports: Vec<_> = ranking.ports.keys().map(String::as_str).collect();
        assert_eq!(ports, ["b", "c", "a"]);
        assert_eq!(ranking.groups["y"], 4e6);
        assert_eq!(ranking.rank(Kind::Groups, "x"), 1);
        assert_eq!(ranking.rank(Kind::Groups, "z"), 2);
    }
}
