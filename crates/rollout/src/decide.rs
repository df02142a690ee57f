//! Decisions: what is asked for, and what becomes of it.

use std::collections::BTreeMap;

use weir_units::Time;

use crate::fleet::{is_selected, place};
use crate::{
    Batch, Cutoff, Entry, Event, Fleet, Hello, HostRecord, Rollout, RolloutPlan, Stage, State,
    TextDigest, Version,
};

/// The most bytes of a policy.
pub const MOST_TEXT: usize = 256 << 10;
/// The most bytes of a message.
const MOST_MESSAGE: usize = 1 << 10;

/// A version that somebody wants to push.
#[derive(Clone, Debug, PartialEq)]
pub struct Push {
    /// Who, as in the certificate.
    pub author: String,
    /// Why.
    pub message: String,
    /// The policy file.
    pub text: String,
    /// How it comes to the hosts.
    pub plan: RolloutPlan,
    /// What a simulation said.
    pub simulated: Option<String>,
    /// Whether it goes to hosts that have a decision which this store does not know.
    pub supersede: bool,
}

/// Why a version cannot be pushed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// There is no message.
    #[error("say why by --message: it is in the log")]
    NoMessage,
    /// The message is too long.
    #[error("a message has at most {MOST_MESSAGE} bytes, not {0}")]
    Message(usize),
    /// The policy is too long.
    #[error("a policy has at most {MOST_TEXT} bytes, not {0}")]
    Text(usize),
    /// Another version is on its way.
    #[error(
        "version {version} is on its way, in stage {stage}: wait for it, or stop it by `weir policy undo`"
    )]
    OnItsWay {
        /// The version.
        version: u64,
        /// The number of its stage, from 1 on.
        stage: usize,
    },
    /// It is what all hosts have.
    #[error("it is the same as version {0}, which all hosts have")]
    Same(u64),
    /// No host is in the first stage.
    #[error(
        "no connected host is in the first stage, `{0}`: `weir policy status` shows hosts and labels"
    )]
    Nobody(String),
    /// The store is an old copy.
    #[error(
        "hosts have version {version} by decision {revision}, and this controller's store is at decision {own}: it \
         is an old copy; bring the later one back, or have this version go beyond theirs by --supersede"
    )]
    Behind {
        /// The latest decision of a host.
        revision: u64,
        /// Its version.
        version: u64,
        /// The decision of the store.
        own: u64,
    },
}

/// Why nothing can be undone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UndoError {
    /// There is no version.
    #[error("there is no version to undo")]
    Nothing,
    /// The version before cannot be pushed.
    #[error(transparent)]
    Push(#[from] PushError),
}

impl Fleet {
    /// Returns the entries of these events.
    pub(crate) fn entries(&self, at: Time, events: impl IntoIterator<Item = Event>) -> Vec<Entry> {
        let numbers = self.next_entry()..;
        let entries = numbers.zip(events);
        entries
            .map(|(number, event)| Entry { number, at, event })
            .collect()
    }

    /// Decides about a new version.
    ///
    /// # Errors
    /// [`PushError`].
    pub fn push(&self, now: Time, push: Push) -> Result<Batch, PushError> {
        self.check(&push)?;
        let ahead = self.ahead.as_ref().filter(|_| push.supersede);
        let beyond = |own: u64, other: Option<u64>| own.max(other.unwrap_or(0)) + 1;
        let number = beyond(self.state.newest, ahead.map(|held| held.version));
        let revision = beyond(self.state.revision, ahead.map(|held| held.revision));
        let version = Version {
            number,
            author: push.author.clone(),
            at: now,
            message: push.message.clone(),
            digest: TextDigest::of(&push.text),
            text: push.text,
        };
        let mut rollout = Rollout {
            version: number,
            stage: 0,
            cutoffs: Vec::new(),
            began: now,
            plan: push.plan,
        };
        let began = self.begin_stage(&mut rollout);
        let pushed = Event::Pushed {
            version: number,
            author: push.author,
            message: push.message,
            stages: rollout.plan.stages.to_string(),
            simulated: push.simulated,
        };
        let superseded = match ahead {
            Some(_) => revision,
            None => self.state.superseded,
        };
        Ok(Batch {
            state: Some(State {
                revision,
                superseded,
                newest: number,
                rollout: Some(rollout),
                ..self.state.clone()
            }),
            version: Some(version),
            hosts: Vec::new(),
            entries: self.entries(now, [pushed, began]),
        })
    }

    fn check(&self, push: &Push) -> Result<(), PushError> {
        if push.message.trim().is_empty() {
            return Err(PushError::NoMessage);
        }
        if push.message.len() > MOST_MESSAGE {
            return Err(PushError::Message(push.message.len()));
        }
        if push.text.len() > MOST_TEXT {
            return Err(PushError::Text(push.text.len()));
        }
        if let Some(held) = self.ahead.as_ref().filter(|_| !push.supersede) {
            return Err(PushError::Behind {
                revision: held.revision,
                version: held.version,
                own: self.state.revision,
            });
        }
        // What an old copy has on its way does not come to hosts that are ahead.
        if let (Some(Rollout { version, stage, .. }), None) = (&self.state.rollout, &self.ahead) {
            let (version, stage) = (*version, *stage + 1);
            return Err(PushError::OnItsWay { version, stage });
        }
        let stable = self.version(self.state.stable);
        let is_same = stable.is_some_and(|version| version.digest == TextDigest::of(&push.text));
        if is_same && !push.supersede {
            return Err(PushError::Same(self.state.stable));
        }
        let first = push
            .plan
            .stages
            .list()
            .first()
            .filter(|stage| !stage.is_all());
        match first {
            Some(stage) if self.connected(stage).next().is_none() => {
                Err(PushError::Nobody(stage.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Returns the connected hosts with the labels of a stage.
    fn connected<'f>(&'f self, stage: &'f Stage) -> impl Iterator<Item = &'f HostRecord> {
        let hosts = self.hosts.values();
        hosts
            .filter(|host| host.is_connected && host.record.labels.has(&stage.labels))
            .map(|host| &host.record)
    }

    /// Chooses the hosts of the stage.
    pub(crate) fn begin_stage(&self, rollout: &mut Rollout) -> Event {
        let stages = rollout.plan.stages.list();
        let to = stages
            .get(rollout.stage)
            .cloned()
            .unwrap_or_else(Stage::all);
        let cutoff = self.cutoff(rollout.version, &to);
        rollout.cutoffs.push(Cutoff(cutoff));
        let hosts = self.hosts.values().filter(|host| host.is_connected);
        let hosts = hosts.filter(|host| is_selected(rollout, &host.record));
        Event::StageBegan {
            version: rollout.version,
            stage: rollout.stage + 1,
            to: to.to_string(),
            hosts: hosts.count() as u64,
        }
    }

    /// Returns the place of the last host of a stage: exactly its part of the connected hosts come before. Hosts
    /// that come later are in it with that probability.
    fn cutoff(&self, version: u64, stage: &Stage) -> u64 {
        if stage.percent >= 100.0 {
            return u64::MAX;
        }
        let part = stage.percent / 100.0;
        let places = { self.connected(stage) }.map(|record| place(version, &record.name));
        let mut places: Vec<_> = places.collect();
        places.sort_unstable();
        let count = ((places.len() as f64 * part).ceil() as usize).max(1);
        // Without hosts, its part of all places.
        let expected = (u64::MAX as f64 * part) as u64;
        places.get(count - 1).copied().unwrap_or(expected)
    }

    /// Decides to stop the version on its way, or else to push the one before the last again.
    ///
    /// # Errors
    /// [`UndoError`].
    pub fn undo(&self, now: Time, author: &str, message: &str) -> Result<Batch, UndoError> {
        if let Some(rollout) = &self.state.rollout {
            if message.trim().is_empty() {
                return Err(PushError::NoMessage.into());
            }
            let stopped = Event::Stopped {
                version: rollout.version,
                author: author.to_owned(),
                message: message.to_owned(),
                back_to: self.state.stable,
            };
            return Ok(self.back_to_stable(now, [stopped]));
        }
        if self.state.stable == 0 {
            return Err(UndoError::Nothing);
        }
        let before = self
            .version(self.state.previous)
            .ok_or(UndoError::Nothing)?;
        let push = Push {
            author: author.to_owned(),
            message: message.to_owned(),
            text: before.text.clone(),
            plan: RolloutPlan::at_once(),
            simulated: None,
            supersede: false,
        };
        Ok(self.push(now, push)?)
    }

    /// Has all hosts go back to the version that they had before the roll-out.
    pub(crate) fn back_to_stable(
        &self,
        now: Time,
        events: impl IntoIterator<Item = Event>,
    ) -> Batch {
        Batch {
            state: Some(State {
                revision: self.state.revision + 1,
                rollout: None,
                ..self.state.clone()
            }),
            entries: self.entries(now, events),
            ..Batch::default()
        }
    }

    /// Returns the records of hosts that introduce themselves, or that have put a version in force; [`Self::connect`]
    /// follows for each that introduces itself.
    pub fn seen(&self, now: Time, hellos: &[Hello]) -> Batch {
        let mut records: BTreeMap<&str, HostRecord> = BTreeMap::new();
        let (mut joined, mut took, mut events) = (Vec::new(), BTreeMap::new(), Vec::new());
        for hello in hellos {
            let name = hello.name.as_str();
            let known = records.get(name);
            let known = known.or_else(|| self.hosts.get(name).map(|host| &host.record));
            let running = hello.held.as_ref().map(|held| held.version);
            if known.is_none() {
                joined.push(hello.name.clone());
            }
            let running_before = known.and_then(|record| record.running);
            if known
                .is_some_and(|record| record.labels == hello.labels && running_before == running)
            {
                continue;
            }
            let mut since = known.map_or(now, |record| record.since);
            if let Some(version) = running.filter(|_| running_before != running) {
                since = now;
                let hosts: &mut Vec<String> = took.entry(version).or_default();
                hosts.push(hello.name.clone());
            }
            let record = HostRecord {
                name: hello.name.clone(),
                labels: hello.labels.clone(),
                running,
                since,
            };
            records.insert(name, record);
        }
        for hello in hellos {
            let most = self.ahead.as_ref().map_or(0, |held| held.revision);
            if let Some(held) = self.ahead_of(hello).filter(|held| held.revision > most) {
                events.push(Event::Behind {
                    host: hello.name.clone(),
                    revision: held.revision,
                    version: held.version,
                    own: self.state.revision,
                });
                // One of them says enough.
                break;
            }
        }
        let joined = (!joined.is_empty()).then_some(Event::Joined { hosts: joined });
        let took = took.into_iter();
        let took = took.map(|(version, hosts)| Event::Took { version, hosts });
        let events: Vec<_> = joined.into_iter().chain(took).chain(events).collect();
        Batch {
            hosts: records.into_values().collect(),
            entries: self.entries(now, events),
            ..Batch::default()
        }
    }

    /// Decides about a host that cannot put a version in force: too many have the version taken back.
    pub fn refused(&mut self, now: Time, name: &str, version: u64, reason: &str) -> Batch {
        let Some(host) = self.hosts.get_mut(name) else {
            return Batch::default();
        };
        if host
            .refused
            .as_ref()
            .is_some_and(|(other, _)| *other == version)
        {
            return Batch::default();
        }
        host.refused = Some((version, reason.to_owned()));
        let refused = Event::Refused {
            version,
            host: name.to_owned(),
            reason: reason.to_owned(),
        };
        let rollout = self.state.rollout.as_ref();
        if let Some(rollout) = rollout.filter(|rollout| rollout.version == version) {
            let refusals = self.refusals(version);
            if refusals > rollout.plan.refusals {
                let taken_back = Event::TakenBack {
                    version,
                    stage: rollout.stage + 1,
                    reason: format!(
                        "{refusals} {} of {} allowed, the last by {name}: {reason}",
                        if refusals == 1 { "refusal" } else { "refusals" },
                        rollout.plan.refusals
                    ),
                    back_to: self.state.stable,
                };
                return self.back_to_stable(now, [refused, taken_back]);
            }
        }
        Batch {
            entries: self.entries(now, [refused]),
            ..Batch::default()
        }
    }

    /// Returns how many hosts refuse a version.
    pub(crate) fn refusals(&self, version: u64) -> u64 {
        let hosts = self.hosts.values();
        let refusing = hosts.filter(|host| {
            host.is_connected && { host.refused.as_ref() }
                .is_some_and(|(other, _)| *other == version)
        });
        refusing.count() as u64
    }
}
