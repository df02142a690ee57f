//! The load that flows offer to classes of links, and what the links carry.

use std::collections::HashMap;

use indexmap::IndexMap;
use weir_results::{LinkLoad, Ratio};
use weir_scenario::{
    Group, HostIndex, LinkClass, Packetization, PortIndex, Routes, Scenario, Workload,
};
use weir_units::{ByteSize, Duration, Time};

/// The loads of the classes of links of a scenario whose flows arrive at random or from a trace.
#[derive(Debug)]
pub struct LinkLoads {
    mtu: ByteSize,
    classes: Vec<ClassLoad>,
    /// The classes of each port.
    classes_of: Vec<Vec<usize>>,
    /// What a flow of a group between two hosts occupies, by class.
    costs: HashMap<(usize, HostIndex, HostIndex), Vec<LinkCost>>,
}

/// The load of a class.
#[derive(Debug)]
struct ClassLoad {
    class: LinkClass,
    /// By the data that each group sends on average while it is active; `None` if that is not known.
    expected: Vec<Option<f64>>,
    /// The mean time for which the flows that started occupy a link, in seconds.
    offered: f64,
}

/// The mean time for which a link of a class is occupied, in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct LinkCost {
    per_byte: f64,
    per_packet: f64,
}

/// The measured part of a run.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredTime {
    /// The end of the warm-up.
    pub begin: Time,
    /// The end of the run.
    pub end: Time,
}

impl MeasuredTime {
    fn length(self) -> Duration {
        self.end.since(self.begin)
    }

    /// Returns how much a group offers in this time, relative to what it offers at its start all the time:
    /// `factors` has its load from each time on.
    fn active(self, group: &Group, factors: &[(Time, f64)]) -> f64 {
        let from = self.begin.max(group.start);
        let until = group.stop.unwrap_or(self.end).min(self.end);
        let ends = factors.iter().skip(1).map(|(time, _)| *time);
        let parts = factors.iter().zip(ends.chain([Time::MAX]));
        let active = parts.map(|((begin, factor), end)| {
            let (from, until) = (from.max(*begin), until.min(end));
            factor * until.since(from).as_secs_f64()
        });
        active.sum::<f64>() / self.length().as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

impl LinkLoads {
    /// Returns the loads of a scenario before its start; `None` if no flows arrive at random or from a trace.
    pub fn new(scenario: &Scenario, routes: &Routes) -> Option<Self> {
        if !scenario.has_arrivals() {
            return None;
        }
        let topology = &scenario.topology;
        let crossings = scenario.crossings(routes);
        let end = Time::ZERO + scenario.duration;
        let mut classes_of = vec![Vec::new(); topology.ports.len()];
        let mut classes = Vec::new();
        for class in scenario.reported_link_classes() {
            for port in &class.ports {
                classes_of[port.index()].push(classes.len());
            }
            let groups = scenario.groups.iter().zip(&crossings);
            let expected = groups
                .map(|(group, crossings)| group.expected_load(&class, topology, crossings, end))
                .collect();
            classes.push(ClassLoad {
                class,
                expected,
                offered: 0.0,
            });
        }
        Some(Self {
            mtu: topology.smallest_mtu(),
            classes,
            classes_of,
            costs: HashMap::new(),
        })
    }

    /// Counts a flow of this size that starts.
    pub fn add(
        &mut self,
        scenario: &Scenario,
        routes: &Routes,
        group: usize,
        pair: (HostIndex, HostIndex),
        size: ByteSize,
    ) {
        let transport = &scenario.groups[group].transport;
        let packets = Packetization::of(transport, self.mtu, size).packets(size);
        let (bytes, count) = (packets.ip_bytes().bytes() as f64, packets.count as f64);
        let Self {
            classes,
            classes_of,
            costs,
            ..
        } = self;
        let key = (group, pair.0, pair.1);
        let costs = costs.entry(key).or_insert_with(|| {
            let group = &scenario.groups[group];
            let mut costs = vec![LinkCost::default(); classes.len()];
            for (index, share) in group.pair_crossings(&scenario.topology, routes, pair) {
                let port = scenario.topology.port(index);
                for class in &classes_of[index.index()] {
                    let links = classes[*class].class.ports.len() as f64;
                    let per_byte = share * 8.0 / port.rate.bits_per_second() as f64 / links;
                    costs[*class].per_byte += per_byte;
                    costs[*class].per_packet += per_byte * port.framing.bytes() as f64;
                }
            }
            costs
        });
        for (class, cost) in classes.iter_mut().zip(costs.iter()) {
            class.offered += bytes * cost.per_byte + count * cost.per_packet;
        }
    }

    /// Starts to measure: the warm-up is over.
    pub fn begin(&mut self) {
        for class in &mut self.classes {
            class.offered = 0.0;
        }
    }

    /// Returns the ports whose utilization the loads need, each once.
    pub fn ports(&self) -> Vec<PortIndex> {
        let mut ports: Vec<_> = (self.classes.iter())
            .flat_map(|class| class.class.ports.iter().copied())
            .collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// Returns the loads after the warm-up by the names of the classes; `utilization` has those of [`Self::ports`].
    pub fn summary(
        &self,
        scenario: &Scenario,
        time: MeasuredTime,
        utilization: &HashMap<PortIndex, Ratio>,
    ) -> IndexMap<String, LinkLoad> {
        let groups = || scenario.groups.iter();
        let has_sizes = groups().all(|group| {
            matches!(
                group.workload,
                Workload::Poisson { .. }
                    | Workload::Trace { .. }
                    | Workload::Transfer { .. }
                    | Workload::Cbr { .. }
            )
        });
        let span = time.length().as_secs_f64();
        let numbered = groups().enumerate();
        let active = numbered.map(|(number, group)| {
            let factors = scenario.load_factors(number);
            time.active(group, &factors)
        });
        let active: Vec<f64> = active.collect();
        let summary = |class: &ClassLoad| {
            let of_class = || {
                let loads = active.iter().zip(&class.expected);
                loads.map(|(active, load)| Some((*load)? * active))
            };
            let expected: Option<f64> = of_class().sum();
            // Packets at a constant rate are no flows with a size.
            let is_constant = |group: &Group| matches!(group.workload, Workload::Cbr { .. });
            let constant = groups().zip(of_class());
            let constant = constant.filter(|(group, _)| is_constant(group));
            let constant: f64 = constant.filter_map(|(_, load)| load).sum();
            let carried = class
                .class
                .ports
                .iter()
                .filter_map(|port| utilization.get(port));
            let carried: Vec<f64> = carried.map(|ratio| ratio.value()).collect();
            let links = class.class.ports.len();
            LinkLoad {
                links: links as u64,
                expected: expected.and_then(Ratio::new),
                offered: has_sizes
                    .then_some(class.offered / span + constant)
                    .and_then(Ratio::new),
                carried: Ratio::new(carried.iter().sum::<f64>() / links.max(1) as f64)
                    .unwrap_or_default(),
                carried_max: Ratio::new(carried.iter().copied().fold(0.0, f64::max))
                    .unwrap_or_default(),
            }
        };
        let classes = self.classes.iter();
        classes
            .map(|class| (class.class.name.clone(), summary(class)))
            .collect()
    }
}
