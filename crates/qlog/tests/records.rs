//! Whole connections in virtual time, and the content of their files.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod schema;
#[path = "../../quic/tests/engine/world/mod.rs"]
mod world;

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use weir_fabric::{FaultSettings, Probability};
use weir_qlog::{IoSink, Recorder};
use weir_quic::observe::{Observer, Observers, Subject, Totals};
use weir_quic::{ConnectionHandle, Direction, MoveCause};
use weir_units::Duration;
use world::{CLIENT, Plan, SERVER, World, pattern};

/// 2026-11-21T18:00:00Z.
const EPOCH: Duration = Duration::from_secs(1_795_284_000);

/// A file in memory.
#[derive(Clone, Default)]
struct File(Arc<Mutex<Vec<u8>>>);

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The files of a host.
#[derive(Default)]
struct Directory(Mutex<Vec<(String, File)>>);

impl Directory {
    fn of(world: &mut World, host: usize) -> Arc<Self> {
        let directory = Arc::new(Self::default());
        let endpoint = &mut world.hosts[host].endpoint;
        endpoint.set_observers(Some(directory.clone()));
        directory
    }

    /// Returns the first file: its name, its bytes.
    fn first(&self) -> (String, Vec<u8>) {
        let (name, file) = self.0.lock().unwrap()[0].clone();
        let bytes = file.0.lock().unwrap().clone();
        (name, bytes)
    }

    fn events(&self) -> Vec<Value> {
        schema::read(&self.first().1).1
    }
}

impl Observers for Directory {
    fn observe(&self, subject: &Subject) -> Option<Box<dyn Observer>> {
        let file = File::default();
        let name = weir_qlog::file_name(subject);
        self.0.lock().unwrap().push((name, file.clone()));
        Some(Box::new(Recorder::new(subject, EPOCH, IoSink(file))))
    }
}

fn count(events: &[Value], name: &str) -> u64 {
    let matching = events.iter().filter(|event| event["name"] == name);
    matching.count() as u64
}

fn rough() -> Plan {
    Plan {
        faults: FaultSettings {
            loss: Probability::new(0.02).unwrap(),
            duplication: Probability::new(0.01).unwrap(),
            corruption: Probability::new(0.01).unwrap(),
            ..FaultSettings::default()
        },
        ..Plan::default()
    }
}

/// Runs a transfer over a lossy network; returns each side's totals at the end.
fn transfer(world: &mut World) -> [Totals; 2] {
    let (client, server) = world.connected();
    let (from, to) = ((CLIENT, client), (SERVER, server));
    let data = pattern(500_000);
    let received = world.transfer(from, to, &data, Duration::from_secs(20));
    assert!(received == Some(data));
    let now = world.now;
    world.connection(CLIENT, client).update_keys(now).unwrap();
    world.run_for(Duration::from_millis(500));
    let totals = [from, to].map(|(host, handle)| world.connection(host, handle).stats().totals);
    let now = world.now;
    world.connection(SERVER, server).close(now, 3, b"enough");
    world.run_for(Duration::from_secs(5));
    totals
}

#[test]
fn files_are_in_the_schema_and_agree_with_the_statistics() {
    let mut world = World::new(rough());
    let directories = [CLIENT, SERVER].map(|host| Directory::of(&mut world, host));
    let totals = transfer(&mut world);
    let names = directories.each_ref().map(|directory| directory.first().0);
    let id = names[0].strip_suffix("_client.sqlog").unwrap();
    assert_eq!(names[1].strip_suffix("_server.sqlog"), Some(id));
    for (directory, totals) in directories.iter().zip(totals) {
        let (header, events) = schema::read(&directory.first().1);
        let common = &header["trace"]["common_fields"];
        assert_eq!(common["group_id"], id);
        let began = common["reference_time"]["wall_clock_time"].as_str();
        assert!(
            began.unwrap().starts_with("2026-11-21T18:00:01"),
            "{began:?}"
        );
        assert_eq!(events[0]["name"], "quic:connection_started");
        // The packets of the close were sent, and received, after the statistics were read.
        let closed = events
            .iter()
            .position(|event| event["name"] == "quic:connection_closed")
            .unwrap();
        let before = &events[..closed];
        assert_eq!(count(before, "quic:packet_sent"), totals.packets_sent);
        let received = count(before, "quic:packet_received");
        assert!((totals.packets_received..=totals.packets_received + 1).contains(&received));
        assert_eq!(count(before, "quic:packet_lost"), totals.packets_lost);
        assert_eq!(count(before, "quic:packet_dropped"), totals.packets_dropped);
        assert_eq!(count(before, "quic:key_updated"), 2);
        assert_eq!(count(before, "quic:parameters_set"), 2);
        let sent = before
            .iter()
            .filter(|event| event["name"] == "quic:packet_sent")
            .map(|event| event["data"]["raw"]["length"].as_u64().unwrap());
        assert_eq!(sent.sum::<u64>(), totals.bytes_sent.bytes());
        let last = events.last().unwrap();
        assert_eq!(last["data"]["new"], "closed", "{last}");
    }
    let sender = directories[0].events();
    assert!(count(&sender, "quic:recovery_metrics_updated") > 10);
    // The server's close carries GOAWAY.
    let frames = sender
        .iter()
        .filter_map(|event| event["data"]["frames"].as_array());
    let mut go_aways = (frames.flatten()).filter(|frame| frame["weir_frame_type"] == "go_away");
    assert_eq!(go_aways.next().unwrap()["weir_streams"], 0);
    let rtts = sender
        .iter()
        .filter_map(|event| event["data"]["smoothed_rtt"].as_f64());
    assert!(rtts.clone().count() > 10 && rtts.clone().all(|rtt| rtt > 0.04));
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    let run = || {
        let mut world = World::new(rough());
        let directory = Directory::of(&mut world, CLIENT);
        transfer(&mut world);
        directory.first()
    };
    assert!(run() == run());
}

/// Sends requests until an event happens, over a path that goes dark.
fn call(world: &mut World, client: ConnectionHandle, server: ConnectionHandle) {
    let connection = world.connection(CLIENT, client);
    let id = connection.open(Direction::Bidirectional).unwrap();
    connection.write(id, b"question").unwrap();
    connection.finish(id).unwrap();
    let answered = world.run_until(Duration::from_secs(10), |world| {
        let connection = world.connection(SERVER, server);
        if let Some(id) = connection.accept(Direction::Bidirectional) {
            connection.write(id, b"answer").unwrap();
            connection.finish(id).unwrap();
            world.transmit();
        }
        let connection = world.connection(CLIENT, client);
        while let Ok(bytes) = connection.read(id, usize::MAX) {
            if bytes.is_none() {
                return true;
            }
        }
        false
    });
    assert!(answered);
}

#[test]
fn a_proactive_migration_is_logged_with_its_measurements() {
    let mut world = World::new(Plan::default());
    let directory = Directory::of(&mut world, CLIENT);
    let (client, server) = world.connected();
    let spare = world.add_interface();
    let now = world.now;
    let connection = world.connection(CLIENT, client);
    connection.add_local_address(now, spare);
    world.run_for(Duration::from_millis(5));
    (0..60).for_each(|_| call(&mut world, client, server));
    let dark = FaultSettings {
        loss: Probability::new(1.0).unwrap(),
        ..FaultSettings::default()
    };
    let now = world.now;
    world
        .egress_ports
        .iter_mut()
        .for_each(|pipe| pipe.set_faults(now, dark));
    call(&mut world, client, server);
    let now = world.now;
    world.connection(CLIENT, client).close(now, 0, b"");
    world.run_for(Duration::from_secs(5));

    let events = directory.events();
    let named = |name: &str| events.iter().position(|event| event["name"] == name);
    let decided = named("weir:migration_decided").expect("a decision");
    let decision = &events[decided]["data"];
    assert_eq!(decision["cause"], "interruption");
    assert_eq!(decision["from"], 0);
    let to = decision["to"].to_string();
    assert!(
        decision["probe_timeouts"].as_f64().unwrap() >= 1.0,
        "{decision}"
    );
    assert!(
        decision["description"]
            .as_str()
            .unwrap()
            .contains(&format!("path {to}"))
    );
    let moved = events
        .iter()
        .position(|event| event["data"]["new"] == "migration_started")
        .unwrap();
    assert!(moved > decided);
    assert_eq!(
        events[moved]["data"]["weir_cause"],
        MoveCause::Proactive.name()
    );
    // From then on packets leave on the other path.
    let sent = events[moved..]
        .iter()
        .filter(|event| event["name"] == "quic:packet_sent");
    assert!(sent.clone().count() > 0 && sent.clone().all(|event| event["tuple"] == to.as_str()));
    assert!(
        events
            .iter()
            .any(|event| event["data"]["weir_cause"] == "path_left")
    );
}
