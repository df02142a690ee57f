//! Random arrivals: which hosts an arrival is drawn from, and how often.

use std::collections::BTreeMap;

use weir_units::Duration;

use super::{Group, Pairing};
use crate::document::Reported;
use crate::schema::Fields;
use crate::workload::ArrivalProcess;
use crate::{HostIndex, Topology, Workload};

/// A pair of hosts: the sender and the receiver.
type Pair = (HostIndex, HostIndex);

/// The pairs of hosts from which each random arrival of a group is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArrivalPairs {
    /// One of these.
    Any(Vec<Pair>),
    /// A sender, and one of its pairs.
    BySender(Vec<Vec<Pair>>),
    /// A receiver, and several of its pairs: an incast.
    ByReceiver {
        /// The pairs of each receiver.
        receivers: Vec<Vec<Pair>>,
        /// The number of pairs of each arrival.
        fan_in: u32,
    },
}

impl Group {
    /// Returns the pairs from which random arrivals are drawn; with other workloads, all pairs.
    pub fn arrival_pairs(&self) -> ArrivalPairs {
        let by = |host: fn(&Pair) -> HostIndex| {
            let mut found: BTreeMap<HostIndex, Vec<Pair>> = BTreeMap::new();
            for pair in self.pairs() {
                found.entry(host(&pair)).or_default().push(pair);
            }
            found.into_values().collect::<Vec<_>>()
        };
        match self.workload {
            Workload::Poisson { fan_in, .. } if fan_in > 1 => ArrivalPairs::ByReceiver {
                receivers: by(|(_, to)| *to),
                fan_in,
            },
            Workload::Poisson {
                per: ArrivalProcess::Host,
                ..
            } => ArrivalPairs::BySender(by(|(from, _)| *from)),
            _ => ArrivalPairs::Any(self.pairs().collect()),
        }
    }

    /// Returns the mean time between two random arrivals in the whole group, in seconds; `None` without any.
    pub fn mean_arrival_seconds(&self) -> Option<f64> {
        let Workload::Poisson { mean_interval, .. } = self.workload else {
            return None;
        };
        Some(mean_interval.as_secs_f64() / f64::from(self.arrival_processes()))
    }

    /// Returns the mean time between two random arrivals of a process; zero without any.
    pub(super) fn mean_interval(&self) -> Duration {
        match self.workload {
            Workload::Poisson { mean_interval, .. } => mean_interval,
            _ => Duration::ZERO,
        }
    }

    /// Returns the number of Poisson processes by which flows arrive.
    pub(super) fn arrival_processes(&self) -> u32 {
        let per = match self.workload {
            Workload::Poisson { per, .. } => per,
            _ => ArrivalProcess::Group,
        };
        match per {
            ArrivalProcess::Group => 1,
            ArrivalProcess::Host => self.sender_count(),
        }
    }

    /// Returns the number of hosts of `from` that have a receiver.
    fn sender_count(&self) -> u32 {
        let sends = |(index, from): &(usize, &HostIndex)| match self.pairing {
            Pairing::All => self.to.iter().any(|to| to != *from),
            Pairing::OneToOne => self.to.get(*index).is_some_and(|to| to != *from),
        };
        self.from.iter().enumerate().filter(sends).count() as u32
    }

    /// Returns the number of flows of each random arrival.
    pub(super) fn flows_per_arrival(&self) -> u32 {
        match self.workload {
            Workload::Poisson { fan_in, .. } => fan_in,
            _ => 1,
        }
    }

    /// Sets the mean time between two random arrivals in the whole group.
    pub(crate) fn set_mean_arrival_seconds(&mut self, seconds: f64) {
        let processes = f64::from(self.arrival_processes());
        if let Workload::Poisson { mean_interval, .. } = &mut self.workload {
            // A mean of zero would cause an infinite number of arrivals.
            let interval = Duration::from_secs_f64(seconds * processes);
            *mean_interval = interval.max(Duration::from_nanos(1));
        }
    }

    /// Reports incasts that the group's hosts cannot make.
    pub(super) fn check_arrivals(
        &self,
        fields: &Fields<'_>,
        topology: &Topology,
    ) -> Result<(), Reported> {
        let Workload::Poisson { fan_in, per, .. } = self.workload else {
            return Ok(());
        };
        if fan_in > 1 && per == ArrivalProcess::Host {
            return Err(fields.error_position("workload").conflict(
                "an incast has several senders, and with `per = \"host\"` each sends by itself",
                "remove `per`, or `fan_in`",
            ));
        }
        let ArrivalPairs::ByReceiver { receivers, .. } = self.arrival_pairs() else {
            return Ok(());
        };
        let few = receivers.iter().find(|pairs| pairs.len() < fan_in as usize);
        match few.and_then(|pairs| Some((pairs.len(), pairs.first()?.1))) {
            None => Ok(()),
            Some((senders, to)) => Err(fields.error_position("workload").conflict(
                format!(
                    "an incast of {fan_in} senders is not possible to `{}`, which has {senders}",
                    topology.host(to).name
                ),
                "set a smaller `fan_in`, or name more hosts in `from`",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_units::Duration;

    use super::ArrivalPairs;
    use crate::{Scenario, Workload};

    /// A leaf and a spine for each of two racks of four hosts with 10 Gbit/s.
    fn load(group: &str, workload: &str) -> Result<Scenario, String> {
        let text = format!(
            "title = 't'\nsource = 's'\nduration = '100ms'\n\
             leaf_spine = {{ leaves = 2, spines = 2, hosts = 4, rate = '10Gbps', delay = '1us', queue = 'unlimited' }}\n\
             [groups.g]\n{group}\nworkload = {{ kind = 'poisson', distribution = [['1448B', 1.0]], {workload} }}\n"
        );
        let loaded = Scenario::parse("t.toml", &text, &[]).map_err(|error| error.to_string())?;
        let written = toml::to_string(&loaded.scenario).unwrap();
        let again = Scenario::parse("written.toml", &written, &[])
            .unwrap()
            .scenario;
        assert_eq!(again, loaded.scenario);
        Ok(loaded.scenario)
    }

    fn interval(scenario: &Scenario) -> Duration {
        match scenario.groups[0].workload {
            Workload::Poisson { mean_interval, .. } => mean_interval,
            _ => Duration::ZERO,
        }
    }

    fn load_of(scenario: &Scenario, class: &str) -> f64 {
        let crossings = scenario.crossings(&scenario.topology.routes());
        let class = scenario.topology.link_class(class).unwrap();
        scenario.expected_load(&class, &crossings).unwrap()
    }

    #[test]
    fn each_host_has_a_process_of_its_own() {
        let all = "from = 'host'\nto = 'host'";
        let by_group = load(all, "load = 0.5, of = 'hosts'").unwrap();
        let by_host = load(all, "load = 0.5, of = 'hosts', per = 'host'").unwrap();
        // One packet of 1538 bytes takes 1230.4 ns; eight hosts send.
        assert_eq!(interval(&by_group), Duration::from_nanos(308));
        assert_eq!(interval(&by_host), Duration::from_nanos(2461));
        assert!((load_of(&by_host, "hosts") - 0.5).abs() < 0.001);
        // Three senders have one receiver and the fourth has two: all the same they send equally much.
        let uneven = "from = 'rack1'\nto = ['host5', 'host1']";
        let by_host = load(uneven, "mean_interval = '1230400ns', per = 'host'").unwrap();
        for host in 1..=4 {
            let load = load_of(&by_host, &format!("host{host}->leaf1"));
            assert!((load - 0.001).abs() < 1e-6, "host{host}: {load}");
        }
        let ArrivalPairs::BySender(senders) = by_host.groups[0].arrival_pairs() else {
            panic!();
        };
        let receivers: Vec<_> = senders.iter().map(Vec::len).collect();
        assert_eq!(receivers, [1, 2, 2, 2]);
    }

    #[test]
    fn an_incast_arrives_at_one_host() {
        let incast = "from = 'rack1'\nto = 'rack2'";
        let scenario = load(incast, "load = 0.2, of = 'leaf->hosts', fan_in = 4").unwrap();
        // Of four packets each arrival sends one over each host's link in `rack1`; eight links lead to hosts.
        assert_eq!(
            interval(&scenario),
            Duration::from_nanos(1230 * 4 / 8 * 5 + 1)
        );
        assert!((load_of(&scenario, "leaf2->hosts") - 0.4).abs() < 0.001);
        assert!((load_of(&scenario, "host1->leaf1") - 0.4).abs() < 0.001);
        let error = load(incast, "mean_interval = '1ms', fan_in = 5").unwrap_err();
        assert!(
            error.contains(
                "groups.g.workload: an incast of 5 senders is not possible to `host5`, which has 4"
            ),
            "{error}"
        );
        let error = load(incast, "mean_interval = '1ms', fan_in = 2, per = 'host'").unwrap_err();
        assert!(error.contains("`per = \"host\"`"), "{error}");
        let error = load(incast, "mean_interval = '20ns', fan_in = 4").unwrap_err();
        assert!(
            error.contains("20000000 arrivals of flows are too many"),
            "{error}"
        );
    }
}
