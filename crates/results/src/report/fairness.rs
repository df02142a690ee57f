//! Jain's index over time: how evenly groups share while flows start and end.

use crate::trace::{GroupTrace, Rates};
use crate::{RunSummary, Traces};

/// A group's goodput over time, and its number of flows.
struct Member {
    flows: f64,
    intervals: Vec<Rates<1>>,
    /// The first and the last interval with goodput. The group is inactive before and after.
    /// Without goodput in between it is starved.
    active: (usize, usize),
}

impl Member {
    fn new(flows: u64, trace: &GroupTrace, per_step: usize) -> Option<Self> {
        let intervals: Vec<Rates<1>> = trace.delivered.rates(per_step).collect();
        let has_goodput = |interval: &Rates<1>| interval.per_second[0] > 0.0;
        let first = intervals.iter().position(has_goodput)?;
        let last = intervals.iter().rposition(has_goodput)?;
        Some(Self {
            flows: flows.max(1) as f64,
            intervals,
            active: (first, last),
        })
    }

    /// Returns the number of flows in this interval and their mean goodput, in bytes per second.
    fn flows_at(&self, index: usize) -> Option<(f64, f64)> {
        let [goodput] = self.intervals.get(index)?.per_second;
        let (first, last) = self.active;
        let is_active = (first..=last).contains(&index);
        is_active.then(|| (self.flows, goodput / self.flows))
    }
}

/// Returns the index (Jain, Chiu and Hawe 1984, equation 1) of all groups' flows in each interval
/// with two or more active groups of endless flows, as points of seconds and index. Each flow counts with its
/// group's mean; `fairness` in summary.json has the index within a group.
pub(super) fn line(run: &RunSummary, traces: &Traces, per_step: usize) -> Vec<(f64, f64)> {
    let members: Vec<Member> = (traces.groups.iter())
        .filter_map(|(name, trace)| {
            // Of flows that end by themselves, the goodput is as much as their data.
            let group = run.groups.get(name)?;
            group.fairness?;
            Member::new(group.flows, trace, per_step)
        })
        .collect();
    let Some(longest) = members.iter().max_by_key(|member| member.intervals.len()) else {
        return Vec::new();
    };
    let points = longest.intervals.iter().enumerate();
    let points = points.filter_map(|(index, interval)| {
        let there = || members.iter().filter_map(|member| member.flows_at(index));
        let index = (there().count() > 1).then(|| jain(there())).flatten()?;
        Some((interval.middle(), index))
    });
    points.collect()
}

/// Computes the index of groups, each with a number of flows and their mean; `None` if all are zero.
fn jain(rates: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for (flows, rate) in rates {
        count += flows;
        sum += flows * rate;
        squares += flows * rate * rate;
    }
    (squares > 0.0).then(|| sum * sum / (count * squares))
}

#[cfg(test)]
mod tests {
    use weir_counters::FlowCounters;
    use weir_units::{ByteSize, Duration, Rate, Time};

    use super::*;
    use crate::{GroupSample, GroupSummary, Ratio};

    /// One flow with 30 Mbps for 10 s, and two with 5 Mbps each from 4 s to 6 s.
    #[test]
    fn a_group_counts_from_its_first_goodput_to_its_last() {
        let mut traces = Traces::new(Duration::from_secs(10));
        for number in 1..=1000_u64 {
            let time = Time::from_nanos(number * 10_000_000);
            let joined = number.clamp(400, 600) - 400;
            for (group, bytes) in [("one", number * 37_500), ("two", joined * 12_500)] {
                traces.group(&GroupSample {
                    time,
                    group,
                    counters: FlowCounters {
                        delivered: ByteSize::from_bytes(bytes),
                        ..FlowCounters::ZERO
                    },
                    goodput: Rate::ZERO,
                    window: None,
                });
            }
        }
        let groups = [("one", 1), ("two", 2)].map(|(name, flows)| {
            let group = GroupSummary {
                flows,
                fairness: Some(Ratio::ONE),
                ..GroupSummary::default()
            };
            (name.to_owned(), group)
        });
        let run = RunSummary {
            groups: groups.into(),
            ..RunSummary::default()
        };
        let line = line(&run, &traces, 1);
        let (first, last) = (line.first().unwrap().0, line.last().unwrap().0);
        assert!(
            (3.9..=4.1).contains(&first) && (5.9..=6.1).contains(&last),
            "{first} {last}"
        );
        // (30 + 5 + 5)² / (3 · (900 + 25 + 25))
        let (_, index) = line[line.len() / 2];
        assert!((index - 1600.0 / 2850.0).abs() < 0.01, "{index}");
    }

    #[test]
    fn a_group_alone_has_no_index() {
        let traces = Traces::new(Duration::from_secs(1));
        assert!(line(&RunSummary::default(), &traces, 1).is_empty());
    }
}
