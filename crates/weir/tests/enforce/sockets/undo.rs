//! Sockets get back what they had, however the enforcer ends.

use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use super::{Place, children, connect};
use crate::running::{Running, wait};
use crate::support::run;

const POLICY: &str = "[[rules]]\nfrom_port = 8001\ncongestion = \"dctcp\"\necn = true\n\
                      [[rules]]\nto_port = 8001\ncongestion = \"cubic\"\necn = true\n";

/// Two sockets under the policy, of which the server's has Weir's algorithm.
struct World {
    running: Running,
    _peers: [super::Peer; 2],
    // Dropped last: a control group with processes cannot be removed.
    place: Place,
}

impl World {
    fn new(test: &str) -> Option<Self> {
        let place = Place::new(test)?;
        let running = place.enforce(POLICY, &[]);
        let mut peers = [place.peer(), place.peer()];
        let [server, client] = &mut peers;
        connect(server, client, "127.0.0.1:8001");
        assert!(
            place.sockets_from(8001).contains("weir_dctcp"),
            "{}",
            place.sockets_from(8001)
        );
        Some(Self {
            place,
            running,
            _peers: peers,
        })
    }

    fn guardian(&self) -> Pid {
        let processes = children(self.running.child.id());
        assert_eq!(processes.len(), 1, "{processes:?}");
        Pid::from_raw(processes[0]).unwrap()
    }

    fn is_undone(&self) -> bool {
        self.place.has(8001, "reno")
    }

    fn pins(&self) -> std::path::PathBuf {
        use std::os::unix::fs::MetadataExt as _;
        let id = std::fs::metadata(&self.place.cgroup.directory)
            .unwrap()
            .ino();
        Path::new("/sys/fs/bpf/weir").join(format!("cgroup_{id}"))
    }
}

#[test]
fn a_stop_leaves_nothing() {
    let Some(world) = World::new("a_stop_leaves_nothing") else {
        return;
    };
    let (guardian, pins) = (world.guardian(), world.pins());
    assert!(pins.exists());
    world.running.signal(Signal::TERM);
    let World {
        place,
        running,
        _peers,
    } = world;
    let (status, said) = running.end();
    assert!(status.success(), "{said}");
    assert!(place.has(8001, "reno"), "{}", place.sockets_from(8001));
    assert!(!pins.exists());
    assert!(
        kill_process(guardian, Signal::CONT).is_err(),
        "the guardian has ended"
    );
}

#[test]
fn after_a_kill_the_guardian_undoes_all() {
    let Some(world) = World::new("after_a_kill_the_guardian_undoes_all") else {
        return;
    };
    let pins = world.pins();
    world.running.signal(Signal::KILL);
    wait("the guardian has undone it", || world.is_undone());
    wait("nothing is left", || !pins.exists());
    // New connections are left alone.
    let [mut server, mut client] = [world.place.peer(), world.place.peer()];
    connect(&mut server, &mut client, "127.0.0.1:8002");
    assert!(world.place.has(8002, "reno"));
    let (status, said) = world.running.end();
    assert!(!status.success());
    assert!(
        said.contains("2 of them have got back what they had"),
        "{said}"
    );
}

/// Kills the guardian and the enforcer.
fn kill_both(world: &World) {
    // The enforcer would start another one.
    world.running.signal(Signal::STOP);
    kill_process(world.guardian(), Signal::KILL).unwrap();
    world.running.signal(Signal::KILL);
}

#[test]
fn after_both_were_killed_clean_undoes_all() {
    let Some(mut world) = World::new("after_both_were_killed_clean_undoes_all") else {
        return;
    };
    kill_both(&world);
    world.running.child.wait().unwrap();
    assert!(!world.is_undone() && world.pins().exists());
    let said = run(&["enforce", "clean"]);
    assert!(
        said.ok().stdout.contains("2 sockets have got back"),
        "{}",
        said.stdout
    );
    assert!(world.is_undone() && !world.pins().exists());
}

#[test]
fn after_both_were_killed_the_next_start_undoes_all() {
    let Some(mut world) = World::new("after_both_were_killed_the_next_start_undoes_all") else {
        return;
    };
    kill_both(&world);
    world.running.child.wait().unwrap();
    let next = world
        .place
        .enforce("[[rules]]\nfrom_port = 9\ncongestion = \"cubic\"\n", &[]);
    assert!(world.is_undone(), "{}", world.place.sockets_from(8001));
    // What belongs to a living process stays.
    let said = run(&["enforce", "clean"]);
    assert!(said.ok().stdout.contains("left alone"), "{}", said.stdout);
    assert!(world.pins().exists());
    drop(next);
}

#[test]
fn a_guardian_that_was_killed_has_a_successor() {
    let Some(world) = World::new("a_guardian_that_was_killed_has_a_successor") else {
        return;
    };
    let first = world.guardian();
    kill_process(first, Signal::KILL).unwrap();
    wait("there is another one", || {
        let now = children(world.running.child.id());
        now.len() == 1 && now[0] != first.as_raw_nonzero().get()
    });
    world.running.signal(Signal::KILL);
    wait("it has undone all", || world.is_undone());
}
