//! The samples of a run, by columns: what plots over time show.

use std::ops::Range;

use serde::Serialize;
use weir_results::{Observation, OutputError, Recorder, TransferTime};
use weir_scenario::Scenario;
use weir_units::{Duration, Time};

use crate::script::seconds;

/// The samples of all measured ports and groups. All columns have the same length.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Samples {
    /// Seconds of the run.
    pub(crate) time: Vec<f64>,
    pub(crate) ports: Vec<PortColumns>,
    pub(crate) groups: Vec<GroupColumns>,
}

/// The samples of a port. Counters begin at the start of the run.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct PortColumns {
    /// Bytes that wait.
    queue: Vec<f64>,
    /// Bytes sent.
    sent: Vec<f64>,
    /// Packets marked.
    marks: Vec<f64>,
    /// Packets dropped.
    drops: Vec<f64>,
}

/// The samples of a group. Counters begin at the start of the run.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct GroupColumns {
    /// The mean congestion window of open flows, in bytes.
    window: Vec<Option<f64>>,
    /// Bytes delivered.
    delivered: Vec<f64>,
    /// Packets that arrived with CE.
    marks: Vec<f64>,
    /// Bytes sent again.
    retransmitted: Vec<f64>,
    /// Time-outs of the senders.
    timeouts: Vec<f64>,
}

impl Samples {
    fn new(ports: usize, groups: usize) -> Self {
        Self {
            time: Vec::new(),
            ports: vec![PortColumns::default(); ports],
            groups: vec![GroupColumns::default(); groups],
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.time.len()
    }

    /// Returns the number of samples up to a time.
    pub(crate) fn upto(&self, time: f64) -> usize {
        self.time.partition_point(|sample| *sample <= time)
    }

    /// Returns the samples from `from` on, at most `most` of them, each as many apart as are needed for that. The
    /// last one is always among them.
    pub(crate) fn since(&self, from: usize, most: usize) -> Self {
        let count = self.len().saturating_sub(from);
        let apart = count.div_ceil(most.max(1)).max(1);
        // Counted from the end, so that the last one is there.
        let first = from + (count + apart - 1) % apart;
        self.select(first..self.len(), apart)
    }

    /// Returns at most `most` samples from `from` on.
    pub(crate) fn part(&self, from: usize, most: usize) -> Self {
        self.select(from..self.len().min(from + most), 1)
    }

    /// Returns the samples of a range, each as many apart.
    fn select(&self, range: Range<usize>, apart: usize) -> Self {
        fn thin<T: Copy>(column: &[T], range: Range<usize>, apart: usize) -> Vec<T> {
            let column = column.get(range).unwrap_or_default();
            column.iter().step_by(apart).copied().collect()
        }
        let thin_out = |column: &Vec<f64>| thin(column, range.clone(), apart);
        Self {
            time: thin_out(&self.time),
            ports: (self.ports.iter())
                .map(|port| PortColumns {
                    queue: thin_out(&port.queue),
                    sent: thin_out(&port.sent),
                    marks: thin_out(&port.marks),
                    drops: thin_out(&port.drops),
                })
                .collect(),
            groups: (self.groups.iter())
                .map(|group| GroupColumns {
                    window: thin(&group.window, range.clone(), apart),
                    delivered: thin_out(&group.delivered),
                    marks: thin_out(&group.marks),
                    retransmitted: thin_out(&group.retransmitted),
                    timeouts: thin_out(&group.timeouts),
                })
                .collect(),
        }
    }
}

/// Collects the samples and the completed transfers of a run.
#[derive(Debug)]
pub(crate) struct Recording {
    ports: Vec<String>,
    groups: Vec<String>,
    pub(crate) samples: Samples,
    /// Of flows that have ended: the end in seconds, the group, and the transfer.
    pub(crate) transfers: Vec<(f64, usize, TransferTime)>,
}

impl Recording {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let ports = scenario.measurements.ports.iter();
        let ports: Vec<String> = ports
            .map(|port| scenario.topology.port(*port).name.clone())
            .collect();
        let groups: Vec<String> = (scenario.groups.iter())
            .map(|group| group.name.clone())
            .collect();
        Self::of(ports, groups)
    }

    /// Creates one for samples of ports and groups with these names.
    pub(crate) fn of(ports: Vec<String>, groups: Vec<String>) -> Self {
        Self {
            samples: Samples::new(ports.len(), groups.len()),
            ports,
            groups,
            transfers: Vec::new(),
        }
    }

    /// Notes the time of a sample, which all of them have in common.
    fn at(&mut self, time: Time) {
        let time = seconds(time);
        if self.samples.time.last() != Some(&time) {
            self.samples.time.push(time);
        }
    }
}

impl Recorder for Recording {
    fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError> {
        match observation {
            Observation::Port(sample) => {
                let place = self.ports.iter().position(|port| port == sample.port);
                if place.is_some() {
                    self.at(sample.time);
                }
                let columns = place.and_then(|place| self.samples.ports.get_mut(place));
                if let Some(columns) = columns {
                    let drops: u64 = sample
                        .drops
                        .by_reason()
                        .iter()
                        .map(|(_, count)| count)
                        .sum();
                    columns.queue.push(sample.queue.bytes() as f64);
                    columns.sent.push(sample.sent.bytes() as f64);
                    columns.marks.push(sample.marks as f64);
                    columns.drops.push(drops as f64);
                }
            }
            Observation::Group(sample) => {
                let place = self.groups.iter().position(|group| group == sample.group);
                if place.is_some() {
                    self.at(sample.time);
                }
                let columns = place.and_then(|place| self.samples.groups.get_mut(place));
                if let Some(columns) = columns {
                    let counters = &sample.counters;
                    columns
                        .window
                        .push(sample.window.map(|window| window.bytes() as f64));
                    columns.delivered.push(counters.delivered.bytes() as f64);
                    columns.marks.push(counters.marks as f64);
                    columns
                        .retransmitted
                        .push(counters.retransmitted.bytes() as f64);
                    columns.timeouts.push(counters.timeouts as f64);
                }
            }
            Observation::Flow(record) => {
                if let (Some(end), Some(size)) = (record.end, record.size) {
                    let group = self.groups.iter().position(|group| group == record.group);
                    let transfer = TransferTime {
                        size,
                        ideal: record.ideal.unwrap_or(Duration::ZERO),
                        took: Some(end.since(record.start)),
                    };
                    self.transfers
                        .extend(group.map(|group| (seconds(end), group, transfer)));
                }
            }
            Observation::Epoch(_)
            | Observation::FlowSample(_)
            | Observation::Packet(..)
            | Observation::Frame(..) => {}
        }
        Ok(())
    }
}

/// The recording of a run that samples ports and groups at different times, as a live run does.
#[derive(Debug)]
pub(crate) struct Recordings {
    pub(crate) ports: Recording,
    /// That of groups, with the completed transfers.
    pub(crate) groups: Recording,
}

impl Recordings {
    /// Creates one for ports and groups with these names.
    pub(crate) fn of(ports: Vec<String>, groups: Vec<String>) -> Self {
        Self {
            ports: Recording::of(ports, Vec::new()),
            groups: Recording::of(Vec::new(), groups),
        }
    }

    /// Both samples, as news that follow one another.
    pub(crate) fn samples(&self) -> [&Samples; 2] {
        [&self.ports.samples, &self.groups.samples]
    }
}

impl Recorder for Recordings {
    fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError> {
        self.ports.record(observation)?;
        self.groups.record(observation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(count: usize) -> Samples {
        Samples {
            time: (0..count).map(|sample| sample as f64).collect(),
            ..Samples::default()
        }
    }

    #[test]
    fn few_samples_are_all_sent() {
        let samples = samples(10);
        assert_eq!(samples.since(7, 100).time, [7.0, 8.0, 9.0]);
        assert!(samples.since(10, 100).time.is_empty());
    }

    #[test]
    fn many_samples_are_thinned_out_and_end_with_the_last() {
        let thin = samples(1_001).since(0, 100).time;
        assert!(thin.len() <= 100);
        assert_eq!(thin.last(), Some(&1_000.0));
        let steps: Vec<f64> = thin.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(steps.iter().all(|step| *step == steps[0]));
    }
}
