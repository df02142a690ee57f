//! A live run while it goes on: what it has sampled, for a page that looks at it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use weir_counters::FlowCounters;
use weir_network::instants;
use weir_results::{FlowSample, Observation, OutputError, Recorder, RunSummary};
use weir_scenario::Scenario;
use weir_units::Time;

use crate::description::{Description, Thresholds, port_thresholds};
use crate::error::StudioError;
use crate::flow_rows::FlowRow;
use crate::probes::{MOST_WATCHED, Prober, SeenFlow, WatchedFlow};
use crate::samples::Recordings;
use crate::script::seconds;

/// The flows without a size that are looked at one by one: as many as can be listed at a glance.
const FLOWS: usize = 64;

/// A live run that a page shows. Clones are handles of the same run.
#[derive(Clone, Debug)]
pub struct LiveRun(Arc<Mutex<Seen>>);

#[derive(Debug)]
pub(crate) struct Seen {
    scenario: Scenario,
    description: Description,
    /// The scenario's changes and faults by time.
    instants: Vec<(Time, String)>,
    now: Time,
    /// The result, once the run is over.
    summary: Option<RunSummary>,
    pub(crate) recordings: Recordings,
    pub(crate) prober: Prober,
    /// The looks so far, from which other flows are shown when they are watched.
    looks: Vec<(Time, Vec<SeenFlow>)>,
    /// The flows of the look that goes on, and its time.
    look: (Time, Vec<SeenFlow>),
    /// How often other flows were chosen to be watched.
    pub(crate) watches: usize,
    /// The flows that are looked at one by one, and those that have ended.
    open: BTreeMap<(usize, u64), OpenFlow>,
    ended: Vec<FlowRow>,
}

/// A flow's last sample, and the first one, from which its goodput is counted.
#[derive(Debug)]
struct OpenFlow {
    row: FlowRow,
    first: (Time, FlowCounters),
}

impl LiveRun {
    /// Creates one that has not begun.
    pub fn new(name: &str, scenario: &Scenario) -> Self {
        let names = |ports: &[weir_scenario::PortIndex]| -> Vec<String> {
            let names = ports.iter().map(|port| &scenario.topology.port(*port).name);
            names.cloned().collect()
        };
        let groups = scenario.groups.iter().map(|group| group.name.clone());
        let ports = names(&scenario.measurements.ports);
        Self(Arc::new(Mutex::new(Seen {
            description: Description::of_live(name, scenario),
            instants: instants(scenario),
            now: Time::ZERO,
            summary: None,
            recordings: Recordings::of(ports, groups.collect()),
            prober: Prober::new(scenario, Vec::new()),
            looks: Vec::new(),
            look: (Time::ZERO, Vec::new()),
            watches: 0,
            open: BTreeMap::new(),
            ended: Vec::new(),
            scenario: scenario.clone(),
        })))
    }

    /// Tells the page how far the run is.
    pub fn reached(&self, now: Time) {
        self.lock().now = now;
    }

    /// Tells the page that the run is over.
    pub fn end(&self, summary: &RunSummary) {
        let mut seen = self.lock();
        seen.now = Time::ZERO + summary.simulated;
        seen.finish_look();
        seen.summary = Some(summary.clone());
    }

    /// Locks what was seen. No holder of the lock can panic.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Records what the page shows.
impl Recorder for LiveRun {
    fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError> {
        let mut seen = self.lock();
        match observation {
            Observation::FlowSample(sample) => {
                seen.take(&sample);
                Ok(())
            }
            Observation::Flow(record) => {
                seen.ended.push(FlowRow::of(&record, None));
                seen.recordings.record(observation)
            }
            Observation::Port(_) | Observation::Group(_) => seen.recordings.record(observation),
            Observation::Epoch(_) | Observation::Packet(..) | Observation::Frame(..) => Ok(()),
        }
    }

    fn sampled_flows(&self) -> usize {
        FLOWS
    }
}

impl Seen {
    fn take(&mut self, sample: &FlowSample<'_>) {
        let mut groups = self.scenario.groups.iter();
        let Some(group) = groups.position(|group| group.name == sample.group) else {
            return;
        };
        let known = self.open.get(&(group, sample.index));
        let first = known.map_or((sample.time, sample.counters), |flow| flow.first);
        let (start, before) = first;
        let goodput = sample
            .counters
            .since(before)
            .goodput(sample.time.since(start));
        let row = FlowRow::of_sample(sample, goodput);
        self.open
            .insert((group, sample.index), OpenFlow { row, first });
        if self.look.0 != sample.time {
            self.finish_look();
            self.look.0 = sample.time;
        }
        self.look.1.push(SeenFlow::of(sample, group));
    }

    /// Keeps the look that goes on, if it is time for one.
    fn finish_look(&mut self) {
        let (at, flows) = std::mem::take(&mut self.look);
        if !flows.is_empty() && at >= self.prober.next() {
            self.prober.take(at, &flows);
            self.looks.push((at, flows));
        }
    }

    /// Watches these flows, instead of those watched before.
    ///
    /// # Errors
    /// There are too many, or a flow does not exist.
    pub(crate) fn watch(&mut self, names: &[String]) -> Result<(), StudioError> {
        if names.len() > MOST_WATCHED {
            return Err(StudioError::TooManyFlows(MOST_WATCHED));
        }
        let watched = names
            .iter()
            .map(|name| WatchedFlow::find(&self.scenario, name));
        let watched = watched.collect::<Result<_, _>>()?;
        self.prober = Prober::new(&self.scenario, watched);
        for (at, flows) in &self.looks {
            self.prober.take(*at, flows);
        }
        self.watches += 1;
        Ok(())
    }

    pub(crate) fn description(&self) -> &Description {
        &self.description
    }

    pub(crate) fn groups(&self) -> Vec<String> {
        let groups = self.scenario.groups.iter();
        groups.map(|group| group.name.clone()).collect()
    }

    /// Returns the summary, once the run is over.
    pub(crate) fn summary(&self) -> Option<&RunSummary> {
        self.summary.as_ref()
    }

    /// Returns the flows: while it runs those that are looked at one by one, then all.
    pub(crate) fn flows(&self) -> Vec<FlowRow> {
        if self.ended.is_empty() {
            let open = self.open.values();
            return open.map(|flow| flow.row.clone()).collect();
        }
        self.ended.clone()
    }

    /// Returns the thresholds of the measured ports over the whole run.
    pub(crate) fn thresholds(&self) -> Thresholds {
        Thresholds {
            run: "a",
            ports: port_thresholds(&self.scenario),
        }
    }

    /// Returns the state that the page shows.
    pub(crate) fn state(&self) -> Value {
        let instants = self.instants.iter().filter(|(at, _)| *at <= self.now);
        let log = instants.map(|(at, text)| json!({ "at": seconds(*at), "text": text }));
        let status = match self.summary {
            None => "playing",
            Some(_) => "ended",
        };
        json!({
            "run": "a", "now": seconds(self.now), "status": status, "speed": 1.0,
            "log": log.collect::<Vec<_>>(), "error": null, "knobs": {}, "failed": [],
        })
    }
}
