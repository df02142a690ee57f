//! The slowdowns that plots show: of one run, or the means of several with their intervals.

use indexmap::IndexMap;

use crate::summary::SIZE_NAMES;
use crate::{MeanInterval, Ratio, RunSummary, SlowdownStatistics};

/// A figure of the statistics.
type Figure = fn(&SlowdownStatistics) -> Option<Ratio>;

/// The figures that are drawn: the first one as a line, the second one dashed.
pub(super) const FIGURES: [(&str, Figure); 2] =
    [("p50", |part| part.p50), ("p99", |part| part.p99)];
/// The place of the 99th percentile in [`FIGURES`].
pub(super) const P99: usize = 1;

/// A median and a 99th percentile: the means over the repetitions that have them.
pub(super) type Figures = [Option<MeanInterval>; 2];

/// The slowdowns of a group, in all and by class of sizes.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupFigures {
    pub(super) all: Figures,
    pub(super) sizes: IndexMap<&'static str, Figures>,
}

/// Returns the slowdowns of the groups of a run, or of several repetitions of it; none of groups whose transfers have
/// no sizes.
pub(super) fn of_groups(repetitions: &[&RunSummary]) -> IndexMap<String, GroupFigures> {
    let mut groups = IndexMap::new();
    for (name, group) in repetitions.iter().flat_map(|run| &run.groups) {
        if group.slowdown.is_some() && !groups.contains_key(name) {
            groups.insert(name.clone(), of_group(repetitions, name));
        }
    }
    groups
}

fn of_group(repetitions: &[&RunSummary], name: &str) -> GroupFigures {
    let slowdowns = repetitions
        .iter()
        .filter_map(|run| run.groups.get(name)?.slowdown.as_ref());
    let slowdowns: Vec<_> = slowdowns.collect();
    let all: Vec<_> = slowdowns.iter().map(|slowdown| &slowdown.all).collect();
    let sizes = SIZE_NAMES.into_iter().filter_map(|size| {
        let of_size = slowdowns.iter().filter_map(|found| found.sizes.get(size));
        let of_size: Vec<_> = of_size.collect();
        (!of_size.is_empty()).then(|| (size, figures(&of_size)))
    });
    GroupFigures {
        all: figures(&all),
        sizes: sizes.collect(),
    }
}

fn figures(statistics: &[&SlowdownStatistics]) -> Figures {
    FIGURES.map(|(_, figure)| {
        let values = statistics.iter().filter_map(|part| figure(part));
        let values: Vec<f64> = values.map(Ratio::value).collect();
        MeanInterval::of(&values)
    })
}
