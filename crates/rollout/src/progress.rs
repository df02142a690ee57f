//! Stages: when the next one begins, and when a version is taken back.

use weir_canary::Snapshot;
use weir_units::{Duration, Time};

use crate::fleet::Host;
use crate::{Batch, Event, Fleet, Rollout, State};

/// Figures older than this do not count.
const FRESH: Duration = Duration::from_secs(30);

/// The connected hosts of the stage.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StageHosts {
    /// Those that have the version.
    pub(crate) taken: u64,
    /// Those that neither have it nor refuse it.
    pub(crate) pending: u64,
}

impl Fleet {
    /// Decides whether the next stage begins, or whether the version is taken back or is everywhere. To be called
    /// several times a second; `None` if nothing changes.
    pub fn step(&mut self, now: Time) -> Option<Batch> {
        let rollout = self.state.rollout.clone()?;
        if let Some(reason) = self.watch(now, &rollout) {
            let taken_back = Event::TakenBack {
                version: rollout.version,
                stage: rollout.stage + 1,
                reason,
                back_to: self.state.stable,
            };
            return Some(self.back_to_stable(now, [taken_back]));
        }
        let hosts = self.stage_hosts(rollout.version);
        let is_last = rollout.stage + 1 == rollout.plan.stages.list().len();
        let is_empty = hosts.taken == 0 && !(is_last && self.hosts.is_empty());
        if hosts.pending > 0 || is_empty || now < self.quiet_until {
            self.settled = None;
            return None;
        }
        let settled = *self.settled.get_or_insert(now);
        if is_last {
            return Some(self.complete(now, &rollout));
        }
        let waited = now.checked_since(settled.max(rollout.began));
        { waited.is_some_and(|waited| waited >= rollout.plan.wait) }
            .then(|| self.next_stage(now, rollout))
    }

    pub(crate) fn stage_hosts(&self, version: u64) -> StageHosts {
        let mut found = StageHosts::default();
        for host in self.hosts.values() {
            if !host.is_connected || host.assigned != version || host.ahead.is_some() {
                continue;
            }
            let refuses = { host.refused.as_ref() }.is_some_and(|(other, _)| *other == version);
            if host.record.running == Some(version) {
                found.taken += 1;
            } else if !refuses {
                found.pending += 1;
            }
        }
        found
    }

    fn complete(&self, now: Time, rollout: &Rollout) -> Batch {
        let completed = Event::Completed {
            version: rollout.version,
        };
        Batch {
            state: Some(State {
                revision: self.state.revision + 1,
                previous: self.state.stable,
                stable: rollout.version,
                rollout: None,
                ..self.state.clone()
            }),
            entries: self.entries(now, [completed]),
            ..Batch::default()
        }
    }

    fn next_stage(&self, now: Time, mut rollout: Rollout) -> Batch {
        let passed = Event::StagePassed {
            version: rollout.version,
            stage: rollout.stage + 1,
            guards: self.watch.seen(),
        };
        rollout.stage += 1;
        rollout.began = now;
        let began = self.begin_stage(&mut rollout);
        Batch {
            state: Some(State {
                revision: self.state.revision + 1,
                rollout: Some(rollout),
                ..self.state.clone()
            }),
            entries: self.entries(now, [passed, began]),
            ..Batch::default()
        }
    }

    /// Evaluates the guards, once a second. Returns why the version is to be taken back.
    fn watch(&mut self, now: Time, rollout: &Rollout) -> Option<String> {
        if !self.watch.is_due(now) {
            return None;
        }
        let (mut treated, mut control) = (Snapshot::default(), Snapshot::default());
        let stages = rollout.plan.stages.list();
        let reached = stages.get(..=rollout.stage).unwrap_or(stages);
        for host in self.hosts.values() {
            let Some(snapshot) = fresh(host, now) else {
                continue;
            };
            let is_compared =
                || { reached.iter() }.any(|stage| host.record.labels.has(&stage.labels));
            if host.record.running == Some(rollout.version) {
                treated.merge(snapshot);
            } else if is_compared() {
                control.merge(snapshot);
            }
        }
        self.watch.evaluate(now, treated, control)
    }
}

fn fresh(host: &Host, now: Time) -> Option<&Snapshot> {
    let (at, snapshot) = host.snapshot.as_ref().filter(|_| host.is_connected)?;
    let age = now.checked_since(*at);
    age.is_none_or(|age| age <= FRESH).then_some(snapshot)
}
