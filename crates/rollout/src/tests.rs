//! Fleets with model hosts and a model store, which may crash at any point.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weir_canary::{Snapshot, SnapshotParts};
use weir_policy::GuardCondition;
use weir_units::{Duration, Time};

use super::*;

/// A store in memory: what has been kept, as JSON, as in stores on disks.
#[derive(Clone, Debug, Default)]
struct Store {
    state: Option<String>,
    versions: BTreeMap<u64, String>,
    hosts: BTreeMap<String, String>,
    log: Vec<Entry>,
}

impl Store {
    fn commit(&mut self, batch: &Batch) {
        if let Some(state) = &batch.state {
            self.state = Some(serde_json::to_string(state).unwrap());
        }
        if let Some(version) = &batch.version {
            let text = serde_json::to_string(version).unwrap();
            assert!(self.versions.insert(version.number, text).is_none());
        }
        for host in &batch.hosts {
            let text = serde_json::to_string(host).unwrap();
            self.hosts.insert(host.name.clone(), text);
        }
        for entry in &batch.entries {
            assert_eq!(entry.number, self.log.len() as u64 + 1);
            let text = serde_json::to_string(entry).unwrap();
            self.log.push(serde_json::from_str(&text).unwrap());
        }
    }

    fn load(&self) -> Stored {
        let of = |text: &String| serde_json::from_str(text).unwrap();
        let state = self.state.as_ref().map(of);
        Stored {
            state: state.unwrap_or_else(|| State::new("fleet")),
            versions: { self.versions.values() }
                .map(|text| serde_json::from_str(text).unwrap())
                .collect(),
            hosts: { self.hosts.values() }
                .map(|text| serde_json::from_str(text).unwrap())
                .collect(),
            last_entry: self.log.len() as u64,
        }
    }
}

/// A host, with the versions that it has had.
#[derive(Clone, Debug, Default)]
struct Host {
    held: Option<Held>,
    is_connected: bool,
}

struct World {
    fleet: Fleet,
    store: Store,
    hosts: BTreeMap<String, Host>,
    now: Time,
}

impl World {
    fn new(hosts: usize) -> Self {
        let names = (0..hosts).map(|number| (format!("host{number}"), Host::default()));
        let mut world = Self {
            fleet: Fleet::new("fleet"),
            store: Store::default(),
            hosts: names.collect(),
            now: Time::ZERO + Duration::from_secs(1_000_000),
        };
        world.connect_all();
        world
    }

    fn hello(&self, name: &str) -> Hello {
        let role = if name.ends_with(['0', '1', '2']) {
            "web"
        } else {
            "db"
        };
        Hello {
            name: name.to_owned(),
            labels: format!("role={role}").parse().unwrap(),
            held: self.hosts[name].held.clone(),
        }
    }

    fn connect(&mut self, name: &str) {
        let hello = self.hello(name);
        self.keep(self.fleet.seen(self.now, std::slice::from_ref(&hello)));
        self.fleet.connect(&hello);
        self.hosts.get_mut(name).unwrap().is_connected = true;
    }

    fn connect_all(&mut self) {
        let names: Vec<_> = self.hosts.keys().cloned().collect();
        for name in names {
            self.connect(&name);
        }
    }

    fn keep(&mut self, batch: Batch) {
        self.store.commit(&batch);
        self.fleet.apply(batch);
    }

    fn restart(&mut self) {
        self.fleet = Fleet::restore(self.store.load(), self.now).unwrap();
        for host in self.hosts.values_mut() {
            host.is_connected = false;
        }
    }

    /// Lets a host take what it is to have.
    fn deliver(&mut self, name: &str) {
        let Some(assignment) = self.fleet.assignment(name) else {
            return;
        };
        let host = self.hosts.get_mut(name).unwrap();
        if !host.is_connected
            || host
                .held
                .as_ref()
                .is_some_and(|held| !held.accepts(&assignment))
        {
            return;
        }
        host.held = Some(Held {
            fleet: assignment.fleet,
            revision: assignment.revision,
            version: assignment.version,
            digest: assignment.digest,
        });
        let hello = self.hello(name);
        self.keep(self.fleet.seen(self.now, &[hello]));
    }

    fn deliver_all(&mut self) {
        let names: Vec<_> = self.hosts.keys().cloned().collect();
        for name in names {
            self.deliver(&name);
        }
    }

    /// Lets so many seconds pass, with all hosts taking what they are to have.
    fn run(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.deliver_all();
            self.now += Duration::from_secs(1);
            if let Some(batch) = self.fleet.step(self.now) {
                self.keep(batch);
            }
        }
    }

    fn push(&mut self, text: &str, stages: &str, guards: &[&str]) -> Result<(), PushError> {
        let batch = self.fleet.push(self.now, push(text, stages, guards))?;
        self.keep(batch);
        Ok(())
    }

    fn running(&self) -> Vec<Option<u64>> {
        let held = self.hosts.values().map(|host| host.held.as_ref());
        held.map(|held| held.map(|held| held.version)).collect()
    }

    fn with(&self, version: u64) -> usize {
        let running = self.running();
        running
            .iter()
            .filter(|other| **other == Some(version))
            .count()
    }

    fn said(&self) -> Vec<String> {
        let entries = self.store.log.iter();
        entries.map(|entry| entry.event.to_string()).collect()
    }
}

fn push(text: &str, stages: &str, guards: &[&str]) -> Push {
    Push {
        author: "alice".to_owned(),
        message: "why".to_owned(),
        text: text.to_owned(),
        plan: RolloutPlan {
            stages: stages.parse().unwrap(),
            wait: Duration::from_secs(5),
            guards: { guards.iter() }
                .map(|text| GuardCondition::of_hosts(text).unwrap())
                .collect(),
            refusals: 0,
        },
        simulated: None,
        supersede: false,
    }
}

#[test]
fn a_version_goes_to_exactly_its_part_of_the_hosts() {
    let mut world = World::new(100);
    world
        .push("one", "10 % of role=web, then 50 %, then all", &[])
        .unwrap();
    world.run(3);
    // 30 of the 100 hosts are of the web.
    assert_eq!(world.with(1), 3);
    world.run(5);
    let in_second = world.with(1);
    assert!((50..=53).contains(&in_second), "{in_second}");
    world.run(8);
    assert_eq!((world.with(1), world.fleet.state().stable), (100, 1));
    assert_eq!(world.fleet.state().rollout, None);
    let said = world.said();
    assert!(
        said.iter().any(|line| line == "version 1 is everywhere"),
        "{said:#?}"
    );
}

#[test]
fn hosts_that_come_later_get_what_is_everywhere() {
    let mut world = World::new(3);
    world.push("one", "all", &[]).unwrap();
    world.run(3);
    world.hosts.insert("late0".to_owned(), Host::default());
    world.connect("late0");
    world.run(1);
    assert_eq!(world.with(1), 4);
}

#[test]
fn an_undone_version_is_followed_by_the_text_before_it() {
    let mut world = World::new(4);
    let nothing = world.fleet.undo(world.now, "bob", "why");
    assert_eq!(nothing, Err(UndoError::Nothing));
    world.push("one", "all", &[]).unwrap();
    world.run(3);
    world.push("two", "all", &[]).unwrap();
    world.run(3);
    world.keep(world.fleet.undo(world.now, "bob", "slow").unwrap());
    world.run(3);
    assert_eq!(world.with(3), 4);
    assert_eq!(world.fleet.version(3).unwrap().text, "one");
    world.push("four", "25 %, then all", &[]).unwrap();
    world.run(2);
    assert_eq!(world.with(4), 1);
    world.keep(world.fleet.undo(world.now, "bob", "slow").unwrap());
    world.run(2);
    assert_eq!(world.with(3), 4, "a stopped version is taken back");
}

#[test]
fn a_push_that_makes_no_sense_is_refused() {
    let mut world = World::new(3);
    assert_eq!(
        world.push("x", "10 % of role=x, then all", &[]),
        Err(PushError::Nobody("10 % of role=x".to_owned()))
    );
    assert_eq!(world.push("", "all", &[]), Err(PushError::Same(0)));
    let silent = Push {
        message: " ".to_owned(),
        ..push("x", "all", &[])
    };
    assert_eq!(
        world.fleet.push(world.now, silent),
        Err(PushError::NoMessage)
    );
    let long = "x".repeat(MOST_TEXT + 1);
    assert_eq!(
        world.push(&long, "all", &[]),
        Err(PushError::Text(MOST_TEXT + 1))
    );
    world.push("one", "50 %, then all", &[]).unwrap();
    assert_eq!(
        world.push("two", "all", &[]),
        Err(PushError::OnItsWay {
            version: 1,
            stage: 1
        })
    );
}

#[test]
fn a_host_that_refuses_has_the_version_taken_back() {
    let mut world = World::new(10);
    world.push("one", "20 %, then all", &[]).unwrap();
    let chosen =
        { world.hosts.keys() }.find(|name| world.fleet.assignment(name).unwrap().version == 1);
    let chosen = chosen.unwrap().clone();
    let batch = world
        .fleet
        .refused(world.now, &chosen, 1, "line 2: no bbr here");
    world.keep(batch);
    assert_eq!(world.fleet.state().rollout, None);
    world.run(2);
    assert_eq!(world.with(1), 0);
    let said = world.said();
    let mut taken_back = said.iter().filter(|line| line.contains("taken back"));
    assert!(
        taken_back.any(|line| line.contains("no bbr here")),
        "{said:?}"
    );
}

fn snapshot(lost: u64) -> Snapshot {
    let segments = (0..32).map(|batch| (1000, lost + batch % 3)).collect();
    Snapshot::of_parts(SnapshotParts {
        segments,
        connections: 200,
        completed: 200,
        ..SnapshotParts::default()
    })
    .unwrap()
}

#[test]
fn a_lossy_version_comes_back_by_itself() {
    let mut world = World::new(20);
    world
        .push("lossy", "10 %, then all", &["retransmits > 2x for 3s"])
        .unwrap();
    assert_eq!(
        world.fleet.metrics_order(),
        Some(MetricsOrder {
            span: Duration::from_secs(10),
            interval: Duration::from_secs(1)
        })
    );
    for _ in 0..5 {
        world.run(1);
        for (name, host) in &world.hosts {
            let Some(held) = &host.held else { continue };
            let lost = if held.version == 1 { 100 } else { 2 };
            world
                .fleet
                .report(world.now, name, held.version, snapshot(lost));
        }
    }
    world.run(2);
    assert_eq!((world.with(1), world.with(0)), (0, 20));
    let said = world.said();
    let taken_back = said
        .iter()
        .find(|line| line.contains("taken back"))
        .unwrap();
    assert!(
        taken_back.starts_with(
            "version 1 taken back in stage 1, to no policy: retransmits > 2x for 3s: 10.1%"
        ),
        "{taken_back}"
    );
    assert_eq!(world.fleet.metrics_order(), None);
}

#[test]
fn a_good_version_passes_its_guard_and_the_log_says_what_it_saw() {
    let mut world = World::new(20);
    world
        .push("good", "10 %, then all", &["retransmits > 2x for 3s"])
        .unwrap();
    for _ in 0..8 {
        world.run(1);
        for (name, host) in &world.hosts {
            let Some(held) = &host.held else { continue };
            world
                .fleet
                .report(world.now, name, held.version, snapshot(2));
        }
    }
    world.run(2);
    assert_eq!(world.with(1), 20);
    let said = world.said();
    let passed = said
        .iter()
        .find(|line| line.contains("has passed"))
        .unwrap();
    assert!(
        passed.contains("not retransmits > 2x for 3s: 0.297%"),
        "{passed}"
    );
}

#[test]
fn an_old_copy_of_the_store_takes_nothing_back() {
    let mut world = World::new(4);
    world.push("one", "all", &[]).unwrap();
    world.run(3);
    let old = world.store.clone();
    world.push("two", "all", &[]).unwrap();
    world.run(3);
    world.store = old;
    world.restart();
    world.connect_all();
    world.run(20);
    assert_eq!(world.with(2), 4);
    let behind = world
        .said()
        .into_iter()
        .filter(|line| line.contains("is an old copy"))
        .count();
    assert_eq!(behind, 1);
    // Another text with the same number does not come to them either.
    let refused = world.push("other", "all", &[]).unwrap_err();
    assert!(
        matches!(refused, PushError::Behind { version: 2, .. }),
        "{refused}"
    );
    let superseding = Push {
        supersede: true,
        ..push("three", "all", &[])
    };
    world.keep(world.fleet.push(world.now, superseding).unwrap());
    world.run(15);
    assert_eq!((world.with(3), world.fleet.version(2).is_none()), (4, true));
    assert_eq!(world.fleet.status(world.now).state.stable, 3);
}

#[test]
fn a_restarted_controller_waits_for_the_hosts_before_it_goes_on() {
    let mut world = World::new(40);
    world.push("one", "10 %, then all", &[]).unwrap();
    world.run(2);
    world.restart();
    world.now += Duration::from_secs(3600);
    world.restart();
    for _ in 0..30 {
        world.now += Duration::from_secs(1);
        assert_eq!(world.fleet.step(world.now), None, "no host is connected");
    }
    world.connect_all();
    world.run(4);
    assert_eq!(world.with(1), 4);
    world.run(8);
    assert_eq!(world.with(1), 40);
}

#[test]
fn a_controller_that_starts_with_nothing_under_way_waits_for_nobody() {
    let mut world = World::new(4);
    world.push("one", "all", &[]).unwrap();
    world.run(2);
    world.restart();
    world.connect_all();
    world.push("two", "all", &[]).unwrap();
    world.run(2);
    assert_eq!(world.fleet.status(world.now).state.stable, 2);
}

/// What may happen.
#[derive(Clone, Debug)]
enum Operation {
    Push(u8, usize),
    Undo,
    Deliver(usize),
    Lose(usize),
    Return(usize),
    Refuse(usize),
    Step(u64),
    Crash,
}

const STAGES: [&str; 3] = [
    "all",
    "20 %, then all",
    "50 % of role=web, then 50 %, then all",
];

fn operations() -> impl Strategy<Value = Vec<(Operation, bool)>> {
    let operation = prop_oneof![
        (any::<u8>(), 0..STAGES.len()).prop_map(|(text, stages)| Operation::Push(text, stages)),
        Just(Operation::Undo),
        (0_usize..8).prop_map(Operation::Deliver),
        (0_usize..8).prop_map(Operation::Deliver),
        (0_usize..8).prop_map(Operation::Lose),
        (0_usize..8).prop_map(Operation::Return),
        (0_usize..8).prop_map(Operation::Refuse),
        (0_u64..12).prop_map(Operation::Step),
        (0_u64..12).prop_map(Operation::Step),
        Just(Operation::Crash),
    ];
    proptest::collection::vec((operation, prop::bool::weighted(0.1)), 0..60)
}

impl World {
    /// Decides; the controller may crash before or after the store has kept it.
    fn decide(&mut self, batch: Batch, crashes: bool) {
        if crashes {
            if batch.entries.len().is_multiple_of(2) {
                self.store.commit(&batch);
            }
            self.restart();
        } else {
            self.keep(batch);
        }
    }

    fn operate(&mut self, operation: &Operation, crashes: bool) {
        let name = |number: &usize| format!("host{number}");
        match operation {
            Operation::Push(text, stages) => {
                let push = push(&text.to_string(), STAGES[*stages], &[]);
                if let Ok(batch) = self.fleet.push(self.now, push) {
                    self.decide(batch, crashes);
                }
            }
            Operation::Undo => {
                if let Ok(batch) = self.fleet.undo(self.now, "bob", "why") {
                    self.decide(batch, crashes);
                }
            }
            Operation::Deliver(number) => self.deliver(&name(number)),
            Operation::Lose(number) => {
                self.hosts.get_mut(&name(number)).unwrap().is_connected = false;
                self.fleet.disconnect(&name(number));
            }
            Operation::Return(number) => self.connect(&name(number)),
            Operation::Refuse(number) => {
                let name = name(number);
                if let Some(assignment) = self.fleet.assignment(&name) {
                    let batch = self
                        .fleet
                        .refused(self.now, &name, assignment.version, "no");
                    self.decide(batch, crashes);
                }
            }
            Operation::Step(seconds) => {
                self.now += Duration::from_secs(*seconds);
                if let Some(batch) = self.fleet.step(self.now) {
                    self.decide(batch, crashes);
                }
            }
            Operation::Crash => self.restart(),
        }
    }

    fn check(&self, revision: u64) {
        let state = self.fleet.state();
        assert!(state.revision >= revision, "decisions are not forgotten");
        let rollout = state.rollout.as_ref().map(|rollout| rollout.version);
        for name in self.store.hosts.keys() {
            let Some(assignment) = self.fleet.assignment(name) else {
                panic!("no host is ahead of a store that was not lost")
            };
            let version = assignment.version;
            assert!(version == state.stable || Some(version) == rollout);
        }
        for host in self.hosts.values() {
            let held = host.held.as_ref();
            assert!(held.is_none_or(|held| held.version <= state.newest));
        }
        // The store is what the fleet is.
        let restored = Fleet::restore(self.store.load(), self.now).unwrap();
        let without_time = |state: &State| {
            let mut state = state.clone();
            if let Some(rollout) = &mut state.rollout {
                rollout.began = Time::ZERO;
            }
            state
        };
        assert_eq!(without_time(restored.state()), without_time(state));
        assert_eq!(restored.last_entry(), self.fleet.last_entry());
        for (name, host) in &self.fleet.hosts {
            assert_eq!(restored.hosts[name].record, host.record);
            assert_eq!(restored.hosts[name].assigned, host.assigned);
        }
    }
}

proptest! {
    /// Whatever happens, each host is to have one of two versions, nothing that was decided is lost, and in the end
    /// all hosts have the same.
    #[test]
    fn hosts_have_one_of_two_versions_and_nothing_is_forgotten(operations in operations()) {
        let mut world = World::new(8);
        for (operation, crashes) in operations {
            let revision = world.fleet.state().revision;
            world.operate(&operation, crashes);
            world.check(revision);
        }
        world.connect_all();
        world.run(60);
        let running = world.running();
        prop_assert!(running.iter().all(|version| *version == running[0]), "{running:?}");
        prop_assert_eq!(running[0], Some(world.fleet.state().stable));
    }

    /// A stage keeps the hosts of the stages before it.
    #[test]
    fn no_host_loses_a_version_from_one_stage_to_the_next(hosts in 1_usize..60, parts in proptest::collection::vec(1_u32..100, 1..5)) {
        let mut parts = parts;
        parts.sort_unstable();
        let stages: Vec<_> = parts.iter().map(|part| format!("{part} %")).collect();
        let mut world = World::new(hosts);
        world.push("one", &format!("{}, then all", stages.join(", then ")), &[]).unwrap();
        let mut before = 0;
        while world.fleet.state().rollout.is_some() {
            let with: Vec<_> = { world.hosts.keys() }.filter(|name| world.fleet.assignment(name).unwrap().version == 1).cloned().collect();
            prop_assert!(with.len() >= before);
            before = with.len();
            world.run(1);
            for name in with {
                prop_assert_eq!(world.fleet.assignment(&name).unwrap().version, 1);
            }
        }
        prop_assert_eq!(world.with(1), hosts);
    }
}
