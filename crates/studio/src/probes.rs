//! What samples do not have: round-trip times, DCTCP's α and fairness of groups, and single flows that somebody watches.
//! They are looked up at equal distances of virtual time, so that they do not depend on when a viewer looks.

use std::collections::HashMap;

use serde::Serialize;
use weir_results::FlowSample;
use weir_scenario::Scenario;
use weir_sim::{OpenFlow, Simulation};
use weir_units::{Duration, Time};

use crate::error::StudioError;
use crate::script::seconds;

/// The flows that can be watched at once: more lines cannot be told apart.
pub(crate) const MOST_WATCHED: usize = 16;
/// The looks at a run; with many flows, each of which costs time, fewer.
const LOOKS: u64 = 2_000;
const LOOKS_AT_MANY: u64 = 500;
const MANY_FLOWS: u64 = 2_000;
/// The looks over which a fairness is computed: over less, single packets would count.
const FAIRNESS_LOOKS: usize = 20;

/// A flow that is watched.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WatchedFlow {
    /// Its group's name, a slash, and its number within the group.
    pub(crate) name: String,
    group: usize,
    index: u64,
}

impl WatchedFlow {
    /// Finds a flow by its name. It may begin later.
    ///
    /// # Errors
    /// There is no such group, or the number is none.
    pub(crate) fn find(scenario: &Scenario, name: &str) -> Result<Self, StudioError> {
        let none = || StudioError::NoFlow(name.to_owned());
        let (group, index) = name.rsplit_once('/').ok_or_else(none)?;
        let mut groups = scenario.groups.iter();
        Ok(Self {
            name: name.to_owned(),
            group: groups
                .position(|known| known.name == group)
                .ok_or_else(none)?,
            index: index.parse().map_err(|_| none())?,
        })
    }
}

/// What was seen, by columns of the same length. Seconds, bytes; none where there is nothing to see.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Probes {
    /// Seconds of the run.
    pub(crate) time: Vec<f64>,
    groups: Vec<GroupProbes>,
    /// Jain's fairness index of all flows; see [`GroupProbes`].
    fairness: Column,
    /// As the flows are watched.
    flows: Vec<FlowProbes>,
}

type Column = Vec<Option<f64>>;

/// Means of a group's open flows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct GroupProbes {
    /// Of their smoothed round-trip times.
    rtt: Column,
    /// Of DCTCP's α.
    alpha: Column,
    /// Jain's fairness index of what they delivered over the last looks: (Σx)² / (n Σx²) (Jain, Chiu and Hawe, DEC
    /// TR-301, 1984).
    fairness: Column,
}

/// A flow, while it is open. Counters begin at its start.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct FlowProbes {
    /// Bytes delivered.
    delivered: Column,
    window: Column,
    /// The smoothed round-trip time.
    rtt: Column,
    alpha: Column,
    /// Packets that arrived with CE.
    marks: Column,
    /// Bytes sent again.
    retransmitted: Column,
}

impl Probes {
    /// Returns what was seen after a time.
    pub(crate) fn after(&self, time: f64) -> Self {
        let first = self.time.partition_point(|seen| *seen <= time);
        fn rest<T: Clone>(column: &[T], first: usize) -> Vec<T> {
            column.get(first..).unwrap_or_default().to_vec()
        }
        let of = |column: &Column| rest(column, first);
        Self {
            time: rest(&self.time, first),
            groups: (self.groups.iter())
                .map(|group| GroupProbes {
                    rtt: of(&group.rtt),
                    alpha: of(&group.alpha),
                    fairness: of(&group.fairness),
                })
                .collect(),
            fairness: of(&self.fairness),
            flows: (self.flows.iter())
                .map(|flow| FlowProbes {
                    delivered: of(&flow.delivered),
                    window: of(&flow.window),
                    rtt: of(&flow.rtt),
                    alpha: of(&flow.alpha),
                    marks: of(&flow.marks),
                    retransmitted: of(&flow.retransmitted),
                })
                .collect(),
        }
    }
}

/// Looks at the open flows of a run.
#[derive(Debug)]
pub(crate) struct Prober {
    interval: Duration,
    next: Time,
    groups: Vec<String>,
    watched: Vec<WatchedFlow>,
    /// The bytes that the flows had delivered when the present fairness began to be counted.
    delivered: HashMap<(usize, u64), u64>,
    /// The last fairness of the groups, and of all flows.
    fairness: Vec<Option<f64>>,
    probes: Probes,
}

impl Prober {
    pub(crate) fn new(scenario: &Scenario, watched: Vec<WatchedFlow>) -> Self {
        let flows: u64 = scenario
            .groups
            .iter()
            .map(|group| group.flow_count())
            .fold(0, u64::saturating_add);
        let looks = if flows > MANY_FLOWS {
            LOOKS_AT_MANY
        } else {
            LOOKS
        };
        let interval = (scenario.duration / looks).max(Duration::from_nanos(1));
        let groups: Vec<String> = (scenario.groups.iter())
            .map(|group| group.name.clone())
            .collect();
        Self {
            interval,
            next: Time::ZERO + interval,
            delivered: HashMap::new(),
            fairness: vec![None; groups.len() + 1],
            probes: Probes {
                groups: vec![GroupProbes::default(); groups.len()],
                flows: vec![FlowProbes::default(); watched.len()],
                ..Probes::default()
            },
            groups,
            watched,
        }
    }

    /// Returns when to look next.
    pub(crate) fn next(&self) -> Time {
        self.next
    }

    pub(crate) fn watched(&self) -> &[WatchedFlow] {
        &self.watched
    }

    pub(crate) fn probes(&self) -> &Probes {
        &self.probes
    }

    /// Looks at a simulation that has come to the next look.
    pub(crate) fn look(&mut self, simulation: &Simulation) {
        let flows = simulation.open_flows().filter_map(|flow| {
            let mut names = self.groups.iter();
            let group = names.position(|name| name == flow.record.group)?;
            Some(SeenFlow {
                group,
                index: flow.record.index,
                seen: Seen::of(&flow),
            })
        });
        let flows: Vec<SeenFlow> = flows.collect();
        self.take(self.next, &flows);
    }

    /// Takes what open flows show at a time, which is that of the next look or a later one.
    pub(crate) fn take(&mut self, at: Time, open: &[SeenFlow]) {
        self.probes.time.push(seconds(at));
        while self.next <= at {
            self.next += self.interval;
        }
        let mut means = vec![[Mean::default(); 2]; self.groups.len()];
        let mut flows: Vec<Option<Seen>> = vec![None; self.watched.len()];
        let is_fairness_due = self.probes.time.len().is_multiple_of(FAIRNESS_LOOKS);
        let mut delivered = HashMap::new();
        for SeenFlow { group, index, seen } in open.iter().copied() {
            if let Some([rtt, alpha]) = means.get_mut(group) {
                rtt.add(seen.rtt);
                alpha.add(seen.alpha);
            }
            let mut watched = self.watched.iter();
            let place =
                watched.position(|watched| watched.group == group && watched.index == index);
            if let Some(place) = place.and_then(|place| flows.get_mut(place)) {
                *place = Some(seen);
            }
            if is_fairness_due {
                delivered.insert((group, index), seen.delivered);
            }
        }
        if is_fairness_due {
            self.renew_fairness(delivered);
        }
        self.write(&means, &flows);
    }

    fn write(&mut self, means: &[[Mean; 2]], flows: &[Option<Seen>]) {
        let groups = self.probes.groups.iter_mut().zip(means);
        for ((columns, [rtt, alpha]), fairness) in groups.zip(&self.fairness) {
            columns.rtt.push(rtt.value());
            columns.alpha.push(alpha.value());
            columns.fairness.push(*fairness);
        }
        self.probes
            .fairness
            .push(self.fairness.last().copied().flatten());
        for (columns, seen) in self.probes.flows.iter_mut().zip(flows) {
            columns
                .delivered
                .push(seen.map(|seen| seen.delivered as f64));
            columns.window.push(seen.and_then(|seen| seen.window));
            columns.rtt.push(seen.and_then(|seen| seen.rtt));
            columns.alpha.push(seen.and_then(|seen| seen.alpha));
            columns.marks.push(seen.map(|seen| seen.marks));
            columns
                .retransmitted
                .push(seen.map(|seen| seen.retransmitted));
        }
    }

    /// Computes the fairness among the flows that were open all the time since the last one.
    fn renew_fairness(&mut self, delivered: HashMap<(usize, u64), u64>) {
        let mut jains = vec![Jain::default(); self.groups.len() + 1];
        for (flow, bytes) in &delivered {
            let Some(before) = self.delivered.get(flow) else {
                continue;
            };
            let gain = bytes.saturating_sub(*before);
            for place in [flow.0, self.groups.len()] {
                if let Some(jain) = jains.get_mut(place) {
                    jain.add(gain);
                }
            }
        }
        self.fairness = jains.iter().map(Jain::index).collect();
        self.delivered = delivered;
    }
}

/// A flow at one look: the place of its group, its number there, and what it shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenFlow {
    group: usize,
    index: u64,
    seen: Seen,
}

impl SeenFlow {
    /// Takes the sample of a flow whose group has this place.
    pub(crate) fn of(sample: &FlowSample<'_>, group: usize) -> Self {
        let counters = &sample.counters;
        Self {
            group,
            index: sample.index,
            seen: Seen {
                delivered: counters.delivered.bytes(),
                window: sample.window.map(|window| window.bytes() as f64),
                rtt: sample.smoothed_rtt.map(Duration::as_secs_f64),
                alpha: None,
                marks: counters.marks as f64,
                retransmitted: counters.retransmitted.bytes() as f64,
            },
        }
    }
}

/// What a flow shows at one look.
#[derive(Clone, Copy, Debug)]
struct Seen {
    delivered: u64,
    window: Option<f64>,
    rtt: Option<f64>,
    alpha: Option<f64>,
    marks: f64,
    retransmitted: f64,
}

impl Seen {
    fn of(flow: &OpenFlow<'_>) -> Self {
        let counters = &flow.record.counters;
        Self {
            delivered: counters.delivered.bytes(),
            window: flow.window.map(|window| window.bytes() as f64),
            rtt: flow.record.smoothed_rtt.map(Duration::as_secs_f64),
            alpha: flow.ce_fraction,
            marks: counters.marks as f64,
            retransmitted: counters.retransmitted.bytes() as f64,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    count: u32,
}

impl Mean {
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value;
            self.count += 1;
        }
    }

    fn value(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }
}

/// Sums for Jain's index. They are whole numbers: their order, which a hash map chooses, does not matter.
#[derive(Clone, Copy, Debug, Default)]
struct Jain {
    sum: u128,
    squares: u128,
    count: u128,
}

impl Jain {
    fn add(&mut self, bytes: u64) {
        let bytes = u128::from(bytes);
        self.sum += bytes;
        self.squares += bytes * bytes;
        self.count += 1;
    }

    /// Returns the index, from 1/n to 1; none for fewer than two flows, or if nothing was delivered.
    fn index(&self) -> Option<f64> {
        let is_defined = self.count > 1 && self.squares > 0;
        let (sum, squares) = (self.sum as f64, self.squares as f64);
        is_defined.then(|| sum * sum / (self.count as f64 * squares))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    const TEXT: &str = include_str!("../tests/two-flows.toml");

    /// Looks at the test's scenario with slices of this length.
    fn probes(slice: Duration) -> Probes {
        let scenario = Script::of_file("test.toml", TEXT).scenario().unwrap();
        let watched = vec![WatchedFlow::find(&scenario, "dctcp/1").unwrap()];
        let mut prober = Prober::new(&scenario, watched);
        let mut simulation = Simulation::new(scenario).unwrap();
        while simulation.now() < simulation.end() {
            let until = (simulation.now() + slice).min(prober.next());
            simulation.advance(until, &mut ()).unwrap();
            if simulation.now() == prober.next() {
                prober.look(&simulation);
            }
        }
        prober.probes().clone()
    }

    #[test]
    fn what_is_seen_does_not_depend_on_the_slices() {
        let seen = probes(Duration::from_millis(3));
        assert_eq!(seen.time.len(), 2_000);
        assert_eq!(seen, probes(Duration::from_micros(170)));
    }

    #[test]
    fn groups_and_watched_flows_show_their_state() {
        let seen = probes(Duration::from_millis(60));
        let last = |column: &Column| column.last().copied().flatten().unwrap();
        let group = &seen.groups[0];
        assert!((1e-4..1e-2).contains(&last(&group.rtt)));
        assert!((0.0..=1.0).contains(&last(&group.alpha)));
        assert!((0.5..=1.0).contains(&last(&group.fairness)));
        assert_eq!(seen.fairness, group.fairness);
        let flow = &seen.flows[0];
        assert!(last(&flow.delivered) > 1e6);
        assert!(last(&flow.window) > 1e3);
        assert!(last(&flow.marks) > 0.0);
        let later = seen.after(0.03);
        assert_eq!(later.time.len(), 1_000);
        assert_eq!(later.flows[0].delivered.len(), 1_000);
    }

    #[test]
    fn jains_index_is_one_if_all_are_equal_and_one_over_n_if_one_has_all() {
        let of = |shares: &[u64]| {
            let mut jain = Jain::default();
            shares.iter().for_each(|share| jain.add(*share));
            jain.index()
        };
        assert_eq!(of(&[5, 5, 5, 5]), Some(1.0));
        assert_eq!(of(&[8, 0, 0, 0]), Some(0.25));
        assert_eq!(of(&[5]), None);
        assert_eq!(of(&[0, 0]), None);
    }

    #[test]
    fn names_of_flows_are_checked() {
        let scenario = Script::of_file("test.toml", TEXT).scenario().unwrap();
        for name in ["dctcp", "dctcp/x", "web/1", ""] {
            assert!(WatchedFlow::find(&scenario, name).is_err(), "{name}");
        }
    }
}
