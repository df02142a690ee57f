//! The task: one value that decides, and a store that keeps what is decided before anybody learns of it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{MissedTickBehavior, interval, sleep};
use weir_canary::Snapshot;
use weir_rollout::{Batch, Entry, Event, Fleet, Hello, Push};

use super::metrics::FleetMetrics;
use super::services::FleetRefusal;
use super::session::{AttachedHost, HostSessions, ToHostSender};
use super::{PolicyStore, StoreError, now, translate};
use crate::policy_v1 as v1;
use crate::quota::LogQuota;

/// An answer to somebody who may have gone.
pub(crate) type FleetAnswer<T> = oneshot::Sender<Result<T, FleetRefusal>>;

/// What the services pass to the task.
#[derive(Debug)]
pub(crate) enum FleetInput {
    Attach {
        hello: Hello,
        outgoing: ToHostSender,
        answer: FleetAnswer<AttachedHost>,
    },
    Taken {
        host: String,
        session: u64,
        version: u64,
    },
    Refused {
        host: String,
        session: u64,
        version: u64,
        reason: String,
    },
    Metrics {
        host: String,
        session: u64,
        version: u64,
        snapshot: Box<Snapshot>,
    },
    Detach {
        host: String,
        session: u64,
    },
    Push {
        push: Box<Push>,
        answer: FleetAnswer<v1::Pushed>,
    },
    Undo {
        author: String,
        message: String,
        answer: FleetAnswer<v1::Pushed>,
    },
    Get {
        version: Option<u64>,
        answer: FleetAnswer<v1::Version>,
    },
    List {
        answer: FleetAnswer<v1::Versions>,
    },
    Log {
        from: u64,
        count: u32,
        answer: FleetAnswer<v1::LogEntries>,
    },
    Status {
        hosts: u32,
        answer: FleetAnswer<v1::FleetStatus>,
    },
}

/// The most inputs that are handled, and kept, together.
const TOGETHER: usize = 1024;
/// How often stages and guards are looked at.
const TICK: Duration = Duration::from_millis(100);
/// The pause after the store has failed.
const PAUSE: Duration = Duration::from_secs(1);

/// A controller of policies.
#[derive(Debug)]
pub(crate) struct FleetTask {
    store: Box<dyn PolicyStore>,
    name: String,
    metrics: FleetMetrics,
    quota: LogQuota,
}

/// How the work as leader ends.
enum Ended {
    /// Nobody sends any more.
    Stopped,
    /// Another controller may lead, or it is not known what the store has.
    Reload,
}

impl FleetTask {
    pub(crate) fn new(store: Box<dyn PolicyStore>, name: String, metrics: FleetMetrics) -> Self {
        Self {
            store,
            name,
            metrics,
            quota: LogQuota::new(Instant::now()),
        }
    }

    /// Runs until no service is left.
    ///
    /// # Errors
    /// [`StoreError`]: what the store has cannot be read.
    pub(crate) async fn run(
        mut self,
        mut inputs: mpsc::Receiver<FleetInput>,
    ) -> Result<(), StoreError> {
        loop {
            let Some(fleet) = self.wait_to_lead(&mut inputs).await? else {
                return Ok(());
            };
            let mut leader = Leader {
                store: &mut *self.store,
                name: &self.name,
                metrics: &mut self.metrics,
                quota: &mut self.quota,
                sessions: HostSessions::default(),
                fleet,
                seen: BTreeMap::new(),
            };
            // Hosts whose sessions end attach again, and keep what they have.
            match leader.run(&mut inputs).await {
                Ended::Stopped => return Ok(()),
                Ended::Reload => {}
            }
        }
    }

    /// Waits until this controller leads, and its store can be written; refuses all inputs until then. `None` if
    /// nobody sends any more.
    async fn wait_to_lead(
        &mut self,
        inputs: &mut mpsc::Receiver<FleetInput>,
    ) -> Result<Option<Fleet>, StoreError> {
        self.metrics.follows();
        let mut refusal = FleetRefusal::NotLeader;
        loop {
            let resumed = tokio::select! {
                resumed = self.resume() => resumed,
                () = refuse_all(inputs, &refusal) => return Ok(None),
            };
            let error = match resumed {
                Ok(fleet) => return Ok(Some(fleet)),
                Err(
                    error @ (StoreError::Corrupt { .. }
                    | StoreError::Record { .. }
                    | StoreError::InUse(_)),
                ) => {
                    return Err(error);
                }
                Err(error) => error,
            };
            if let Some(left_out) = self.quota.take(Instant::now()) {
                tracing::warn!(%error, left_out, "the store cannot be used; trying again");
            }
            self.metrics.store_failed();
            refusal = FleetRefusal::of_store(&error);
            tokio::select! {
                () = sleep(PAUSE) => {}
                () = refuse_all(inputs, &refusal) => return Ok(None),
            }
        }
    }

    /// Waits until this controller leads; returns what the store has, and notes that this controller goes on.
    async fn resume(&mut self) -> Result<Fleet, StoreError> {
        let stored = self.store.lead().await?;
        let fleet = Fleet::restore(stored, now());
        let mut fleet = fleet.map_err(|error| StoreError::Record {
            key: "state".to_owned(),
            problem: error.to_string(),
        })?;
        let entry = Entry {
            number: fleet.last_entry() + 1,
            at: now(),
            event: Event::Resumed {
                controller: self.name.clone(),
            },
        };
        let batch = Batch {
            entries: vec![entry],
            ..Batch::default()
        };
        self.store.commit(batch.clone()).await?;
        fleet.apply(batch);
        tracing::info!(
            controller = self.name,
            fleet = fleet.state().fleet,
            decision = fleet.state().revision,
            "leads: versions of the policy are pushed here"
        );
        Ok(fleet)
    }
}

/// Refuses what comes, until nobody sends any more.
async fn refuse_all(inputs: &mut mpsc::Receiver<FleetInput>, refusal: &FleetRefusal) {
    while let Some(input) = inputs.recv().await {
        input.refuse(refusal.clone());
    }
}

/// A controller that leads.
struct Leader<'t> {
    store: &'t mut dyn PolicyStore,
    name: &'t str,
    metrics: &'t mut FleetMetrics,
    quota: &'t mut LogQuota,
    sessions: HostSessions,
    fleet: Fleet,
    /// Hosts that have attached or have taken a version, which is not kept yet; and whether they have attached.
    seen: BTreeMap<String, (Hello, bool)>,
}

impl Leader<'_> {
    async fn run(&mut self, inputs: &mut mpsc::Receiver<FleetInput>) -> Ended {
        let mut leadership = self.store.leadership();
        let (mut received, mut shown_at) = (Vec::new(), Instant::now());
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                count = inputs.recv_many(&mut received, TOGETHER) => if count == 0 {
                    return Ended::Stopped;
                },
                _ = ticks.tick() => {}
                () = lost(&mut leadership) => {
                    tracing::warn!(controller = self.name, "does not lead any more: hosts go to the one that does");
                    return Ended::Reload;
                }
            }
            for input in received.drain(..) {
                if self.handle(input).await.is_err() {
                    return Ended::Reload;
                }
            }
            if self.advance().await.is_err() {
                return Ended::Reload;
            }
            if shown_at.elapsed() >= TICK {
                shown_at = Instant::now();
                self.metrics.show(&self.fleet);
            }
        }
    }

    /// Keeps what hosts have told, and decides what is due.
    async fn advance(&mut self) -> Result<(), StoreError> {
        self.keep_seen().await?;
        if let Some(batch) = self.fleet.step(now()) {
            self.keep(batch).await?;
        }
        Ok(())
    }

    /// Keeps what hosts have told. Those that have attached learn what they are to have.
    async fn keep_seen(&mut self) -> Result<(), StoreError> {
        while !self.seen.is_empty() {
            let most = self.store.most_hosts();
            let hellos = self
                .seen
                .values()
                .take(most)
                .map(|(hello, _)| hello.clone());
            let hellos: Vec<Hello> = hellos.collect();
            let batch = self.fleet.seen(now(), &hellos);
            self.keep(batch).await?;
            let metrics = self.fleet.metrics_order();
            for hello in hellos {
                let has_attached = self
                    .seen
                    .remove(&hello.name)
                    .is_some_and(|(_, attached)| attached);
                if has_attached && self.sessions.contains(&hello.name) {
                    self.fleet.connect(&hello);
                    self.sessions.tell(&hello.name, &self.fleet, metrics);
                }
            }
        }
        Ok(())
    }

    /// Keeps a batch, applies it and tells the hosts.
    async fn keep(&mut self, batch: Batch) -> Result<(), StoreError> {
        if batch.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.store.commit(batch.clone()).await {
            self.metrics.store_failed();
            if let Some(left_out) = self.quota.take(Instant::now()) {
                tracing::warn!(%error, left_out, "a decision could not be kept: it does not hold");
            }
            return Err(error);
        }
        for entry in &batch.entries {
            log(entry);
        }
        let changes = batch.state.is_some();
        self.fleet.apply(batch);
        if changes {
            for host in self.sessions.tell_all(&self.fleet) {
                tracing::warn!(host, "it does not keep up: its session ends");
                self.fleet.disconnect(&host);
            }
        }
        Ok(())
    }

    /// Handles an input. An error ends the work as leader: it is not known what the store has.
    async fn handle(&mut self, input: FleetInput) -> Result<(), StoreError> {
        match input {
            FleetInput::Attach {
                hello,
                outgoing,
                answer,
            } => self.attach(hello, outgoing, answer),
            FleetInput::Taken {
                host,
                session,
                version,
            } => {
                let Some(held) = self.taken(&host, version) else {
                    return Ok(());
                };
                if let Some(session) = self.sessions.get(&host, session) {
                    session.hello.held = Some(held);
                    let hello = session.hello.clone();
                    let has_attached = self.seen.get(&host).is_some_and(|(_, attached)| *attached);
                    self.seen.insert(host, (hello, has_attached));
                }
            }
            FleetInput::Refused {
                host,
                session,
                version,
                reason,
            } => {
                if self.sessions.get(&host, session).is_some() {
                    // What it had before is in the log first.
                    self.keep_seen().await?;
                    let batch = self.fleet.refused(now(), &host, version, &reason);
                    self.keep(batch).await?;
                }
            }
            FleetInput::Metrics {
                host,
                session,
                version,
                snapshot,
            } => {
                if self.sessions.get(&host, session).is_some() {
                    self.fleet.report(now(), &host, version, *snapshot);
                }
            }
            FleetInput::Detach { host, session } => {
                if self.sessions.detach(&host, session) {
                    self.fleet.disconnect(&host);
                }
            }
            FleetInput::Push { push, answer } => {
                let (number, decided) = (None, self.fleet.push(now(), *push));
                self.decide(number, decided.map_err(FleetRefusal::from), answer)
                    .await?;
            }
            FleetInput::Undo {
                author,
                message,
                answer,
            } => {
                let decided = self.fleet.undo(now(), &author, &message);
                let back_to = Some(self.fleet.state().stable);
                self.decide(back_to, decided.map_err(FleetRefusal::from), answer)
                    .await?;
            }
            FleetInput::Get { version, answer } => {
                let number = version.unwrap_or(self.fleet.state().stable);
                let found = self.fleet.version(number);
                let found = found.map(|version| translate::to_version(version, true));
                reply(answer, found.ok_or(FleetRefusal::NoVersion(number)));
            }
            FleetInput::List { answer } => {
                let versions = self.fleet.versions();
                let versions = versions.map(|version| translate::to_version(version, false));
                let versions = versions.collect();
                reply(answer, Ok(v1::Versions { versions }));
            }
            FleetInput::Log {
                from,
                count,
                answer,
            } => {
                let from = match from {
                    0 => (self.fleet.last_entry() + 1).saturating_sub(count.into()),
                    from => from,
                };
                let entries = self.store.log(from, count).await;
                let entries = entries.map(|entries| v1::LogEntries {
                    entries: entries.iter().map(translate::to_entry).collect(),
                });
                reply(
                    answer,
                    entries.map_err(|error| FleetRefusal::of_store(&error)),
                );
            }
            FleetInput::Status { hosts, answer } => {
                let status = self.fleet.status(now());
                let hosts = self.fleet.host_status(hosts as usize);
                reply(answer, Ok(translate::to_status(&status, &hosts, self.name)));
            }
        }
        Ok(())
    }

    fn attach(&mut self, hello: Hello, outgoing: ToHostSender, answer: FleetAnswer<AttachedHost>) {
        let own = &self.fleet.state().fleet;
        if let Some(held) = hello.held.as_ref().filter(|held| held.fleet != *own) {
            let refusal = FleetRefusal::OtherFleet {
                theirs: held.fleet.clone(),
                version: held.version,
                own: own.clone(),
            };
            if let Some(left_out) = self.quota.take(Instant::now()) {
                tracing::warn!(host = hello.name, %refusal, left_out, "refused");
            }
            reply(answer, Err(refusal));
            return;
        }
        let attached = self.sessions.attach(hello.clone(), outgoing);
        self.seen.insert(hello.name.clone(), (hello, true));
        reply(answer, Ok(attached));
    }

    /// Returns what a host has that has put a version in force; `None` if it was not told of it.
    fn taken(&self, host: &str, version: u64) -> Option<weir_rollout::Held> {
        let state = self.fleet.state();
        self.fleet.assignment(host)?;
        let version = self.fleet.version(version)?;
        Some(weir_rollout::Held {
            fleet: state.fleet.clone(),
            revision: state.revision,
            version: version.number,
            digest: version.digest.clone(),
        })
    }

    /// Keeps what somebody wants, and answers.
    async fn decide(
        &mut self,
        back_to: Option<u64>,
        decided: Result<Batch, FleetRefusal>,
        answer: FleetAnswer<v1::Pushed>,
    ) -> Result<(), StoreError> {
        let batch = match decided {
            Ok(batch) => batch,
            Err(refusal) => {
                reply(answer, Err(refusal));
                return Ok(());
            }
        };
        let version = batch.version.as_ref().map_or(0, |version| version.number);
        match self.keep(batch).await {
            Ok(()) => {
                let back_to = back_to.filter(|_| version == 0).unwrap_or(0);
                reply(answer, Ok(v1::Pushed { version, back_to }));
                Ok(())
            }
            Err(error) => {
                reply(answer, Err(FleetRefusal::of_store(&error)));
                Err(error)
            }
        }
    }
}

/// Completes when the leadership is lost.
async fn lost(leadership: &mut Option<watch::Receiver<bool>>) {
    match leadership {
        Some(leadership) => {
            let _ = leadership.wait_for(|leads| !*leads).await;
        }
        None => std::future::pending().await,
    }
}

/// Logs what has happened to versions; hosts that come and go fill a log.
fn log(entry: &Entry) {
    match &entry.event {
        Event::Took { .. } | Event::Joined { .. } => tracing::debug!("{}", entry.event),
        Event::TakenBack { .. } | Event::Refused { .. } | Event::Behind { .. } => {
            tracing::warn!("{}", entry.event);
        }
        event => tracing::info!("{event}"),
    }
}

/// Sends a reply; the caller may have gone.
fn reply<T>(answer: FleetAnswer<T>, result: Result<T, FleetRefusal>) {
    let _ = answer.send(result);
}

impl FleetInput {
    /// Answers with a refusal.
    fn refuse(self, refusal: FleetRefusal) {
        match self {
            Self::Attach { answer, .. } => reply(answer, Err(refusal)),
            Self::Push { answer, .. } | Self::Undo { answer, .. } => reply(answer, Err(refusal)),
            Self::Get { answer, .. } => reply(answer, Err(refusal)),
            Self::List { answer } => reply(answer, Err(refusal)),
            Self::Log { answer, .. } => reply(answer, Err(refusal)),
            Self::Status { answer, .. } => reply(answer, Err(refusal)),
            // These come from sessions that have ended.
            Self::Taken { .. }
            | Self::Refused { .. }
            | Self::Metrics { .. }
            | Self::Detach { .. } => {}
        }
    }
}
