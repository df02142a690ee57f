//! The fleet: what is kept, and what follows from it for each host.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use weir_canary::Snapshot;
use weir_units::{Duration, Time};

use crate::guards::GuardWatch;
use crate::{Entry, Held, Hello, HostRecord, Rollout, State, TextDigest, Version};

/// What is decided at once: a store keeps all of it or nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// The new state, if it changes.
    pub state: Option<State>,
    /// A new version.
    pub version: Option<Version>,
    /// New records of hosts.
    pub hosts: Vec<HostRecord>,
    /// New entries of the log.
    pub entries: Vec<Entry>,
}

impl Batch {
    /// Returns whether there is nothing to keep.
    pub fn is_empty(&self) -> bool {
        let Self {
            state,
            version,
            hosts,
            entries,
        } = self;
        state.is_none() && version.is_none() && hosts.is_empty() && entries.is_empty()
    }
}

/// What a store has kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// The state.
    pub state: State,
    /// All versions.
    pub versions: Vec<Version>,
    /// All hosts.
    pub hosts: Vec<HostRecord>,
    /// The number of the last entry of the log; 0 without one.
    pub last_entry: u64,
}

/// Records that do not belong together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its state names version {0}, which is not in it")]
pub struct Inconsistent(u64);

/// What a host is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The fleet.
    pub fleet: String,
    /// The number of the decision.
    pub revision: u64,
    /// The version; 0 for the empty policy.
    pub version: u64,
    /// The digest of the text.
    pub digest: TextDigest,
}

/// What hosts are to report while guards watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricsOrder {
    /// Of how long before a report its figures are.
    pub span: Duration,
    /// The pause between reports.
    pub interval: Duration,
}

/// Versions of a policy, the hosts, and the version on its way.
#[derive(Debug)]
pub struct Fleet {
    pub(crate) state: State,
    pub(crate) versions: BTreeMap<u64, Arc<Version>>,
    pub(crate) hosts: BTreeMap<String, Host>,
    pub(crate) entries: u64,
    /// The latest decision that hosts have and this store does not know.
    pub(crate) ahead: Option<Held>,
    pub(crate) watch: GuardWatch,
    /// When all connected hosts of the stage had the version.
    pub(crate) settled: Option<Time>,
    /// The hosts of a stage that was under way have time until then to come back.
    pub(crate) quiet_until: Time,
    pub(crate) empty: Arc<Version>,
}

/// A host.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) record: HostRecord,
    pub(crate) is_connected: bool,
    /// The version that it is to have.
    pub(crate) assigned: u64,
    /// What it has by a decision that this store does not know.
    pub(crate) ahead: Option<Held>,
    /// The version that it cannot put in force, and why.
    pub(crate) refused: Option<(u64, String)>,
    /// What its connections did, and when it said so.
    pub(crate) snapshot: Option<(Time, Snapshot)>,
}

/// The time in which hosts come back after a controller has started in the middle of a stage.
const RETURN: Duration = Duration::from_secs(10);
/// So many reports a second are asked for at most.
const REPORTS_PER_SECOND: u64 = 2000;

impl Fleet {
    /// Creates a fleet without versions and hosts. The name should be random: no other fleet has it.
    pub fn new(name: impl Into<String>) -> Self {
        let empty = Version {
            number: 0,
            author: String::new(),
            at: Time::ZERO,
            message: String::new(),
            text: String::new(),
            digest: TextDigest::of(""),
        };
        Self {
            state: State::new(name),
            versions: BTreeMap::new(),
            hosts: BTreeMap::new(),
            entries: 0,
            ahead: None,
            watch: GuardWatch::default(),
            settled: None,
            quiet_until: Time::ZERO,
            empty: Arc::new(empty),
        }
    }

    /// Creates the fleet that a store has kept; no host is connected. A stage that was under way begins again.
    ///
    /// # Errors
    /// [`Inconsistent`]: the records do not belong together.
    pub fn restore(stored: Stored, now: Time) -> Result<Self, Inconsistent> {
        let Stored {
            mut state,
            versions,
            hosts,
            last_entry,
        } = stored;
        let mut quiet_until = Time::ZERO;
        if let Some(rollout) = &mut state.rollout {
            rollout.began = now;
            quiet_until = now.checked_add(RETURN).unwrap_or(now);
        }
        let versions: BTreeMap<_, _> = { versions.into_iter() }
            .map(|version| (version.number, Arc::new(version)))
            .collect();
        let on_its_way = state.rollout.iter().map(|rollout| rollout.version);
        for number in on_its_way.chain([state.stable, state.previous, state.newest]) {
            if number > 0 && !versions.contains_key(&number) {
                return Err(Inconsistent(number));
            }
        }
        let mut fleet = Self {
            state,
            versions,
            entries: last_entry,
            quiet_until,
            ..Self::new("")
        };
        for record in hosts {
            fleet.put_host(record);
        }
        fleet.watch_rollout();
        Ok(fleet)
    }

    /// Takes in what a store has kept.
    pub fn apply(&mut self, batch: Batch) {
        let Batch {
            state,
            version,
            hosts,
            entries,
        } = batch;
        if let Some(version) = version {
            self.versions.insert(version.number, Arc::new(version));
        }
        if let Some(entry) = entries.last() {
            self.entries = entry.number;
        }
        for record in hosts {
            self.put_host(record);
        }
        if let Some(state) = state {
            self.state = state;
            self.watch_rollout();
            let rollout = self.state.rollout.as_ref();
            let superseded = self.state.superseded;
            let is_superseded = |held: &mut Held| superseded > held.revision;
            self.ahead.take_if(is_superseded);
            for host in self.hosts.values_mut() {
                host.ahead.take_if(is_superseded);
                host.assigned = assigned(rollout, self.state.stable, &host.record);
            }
        }
    }

    fn watch_rollout(&mut self) {
        self.settled = None;
        let guards = self.state.rollout.iter();
        self.watch = GuardWatch::new(guards.flat_map(|rollout| &rollout.plan.guards));
    }

    fn put_host(&mut self, record: HostRecord) {
        let assigned = assigned(self.state.rollout.as_ref(), self.state.stable, &record);
        match self.hosts.get_mut(&record.name) {
            Some(host) => {
                if host.record.running != record.running {
                    // Its figures are of the version before.
                    host.snapshot = None;
                }
                (host.assigned, host.record) = (assigned, record);
            }
            None => {
                let host = Host {
                    assigned,
                    is_connected: false,
                    ahead: None,
                    refused: None,
                    snapshot: None,
                    record: record.clone(),
                };
                self.hosts.insert(record.name, host);
            }
        }
    }

    /// Notes that a host, of which there is a record, is connected.
    pub fn connect(&mut self, hello: &Hello) {
        let ahead = self.ahead_of(hello);
        if let Some(held) = &ahead
            && { self.ahead.as_ref() }.is_none_or(|most| held.revision >= most.revision)
        {
            self.ahead = Some(held.clone());
        }
        if let Some(host) = self.hosts.get_mut(&hello.name) {
            host.is_connected = true;
            host.ahead = ahead;
            (host.refused, host.snapshot) = (None, None);
        }
    }

    /// Notes that a host is not connected any more.
    pub fn disconnect(&mut self, name: &str) {
        if let Some(host) = self.hosts.get_mut(name) {
            host.is_connected = false;
            host.snapshot = None;
        }
    }

    /// Takes in what connections of a host that runs this version did.
    pub fn report(&mut self, now: Time, name: &str, version: u64, snapshot: Snapshot) {
        if let Some(host) = self.hosts.get_mut(name)
            && host.record.running == Some(version)
        {
            host.snapshot = Some((now, snapshot));
        }
    }

    /// Returns what a host has, if this store does not know the decision or has another text of the version.
    pub(crate) fn ahead_of(&self, hello: &Hello) -> Option<Held> {
        let held = hello.held.as_ref()?;
        let is_known = held.revision <= self.state.revision && { self.version(held.version) }
            .is_some_and(|version| version.digest == held.digest);
        let is_superseded = self.state.superseded > held.revision;
        (!is_known && !is_superseded).then(|| held.clone())
    }

    /// Returns the number of the next entry of the log.
    pub(crate) fn next_entry(&self) -> u64 {
        self.entries + 1
    }

    /// Returns the state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Returns a version; 0 is the empty policy.
    pub fn version(&self, number: u64) -> Option<&Arc<Version>> {
        match number {
            0 => Some(&self.empty),
            number => self.versions.get(&number),
        }
    }

    /// Returns all versions.
    pub fn versions(&self) -> impl DoubleEndedIterator<Item = &Arc<Version>> {
        self.versions.values()
    }

    /// Returns the number of the last entry of the log.
    pub fn last_entry(&self) -> u64 {
        self.entries
    }

    /// Returns what a known host is to have; `None` if it is not known, or has what this store does not know.
    pub fn assignment(&self, name: &str) -> Option<Assignment> {
        let host = self.hosts.get(name)?;
        if host.ahead.is_some() {
            return None;
        }
        let version = self.version(host.assigned)?;
        Some(Assignment {
            fleet: self.state.fleet.clone(),
            revision: self.state.revision,
            version: version.number,
            digest: version.digest.clone(),
        })
    }

    /// Returns what hosts are to report; `None` if nothing.
    pub fn metrics_order(&self) -> Option<MetricsOrder> {
        let span = self.watch.span()?;
        let connected = self.hosts.values().filter(|host| host.is_connected).count() as u64;
        let interval = (connected / REPORTS_PER_SECOND).clamp(1, 10);
        let interval = Duration::from_secs(interval);
        Some(MetricsOrder { span, interval })
    }
}

/// Returns the version that a host is to have.
fn assigned(rollout: Option<&Rollout>, stable: u64, host: &HostRecord) -> u64 {
    match rollout {
        Some(rollout) if is_selected(rollout, host) => rollout.version,
        _ => stable,
    }
}

/// Returns whether a host is in the stage or in one before it.
pub(crate) fn is_selected(rollout: &Rollout, host: &HostRecord) -> bool {
    let hash = place(rollout.version, &host.name);
    let stages = rollout.plan.stages.list().iter().zip(&rollout.cutoffs);
    let mut stages = stages.take(rollout.stage + 1);
    stages.any(|(stage, cutoff)| host.labels.has(&stage.labels) && hash <= cutoff.0)
}

/// Returns where a host is in the order in which a version comes to hosts; another order for each version.
pub(crate) fn place(version: u64, name: &str) -> u64 {
    let hash = Sha256::new()
        .chain_update(version.to_be_bytes())
        .chain_update(name.as_bytes())
        .finalize();
    hash.iter()
        .take(8)
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}
