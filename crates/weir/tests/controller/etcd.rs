//! Several controllers that share an etcd: one leads, and another one goes on when it is killed.

use std::process::{Command, Stdio};

use crate::support::wait;
use crate::world::{Hosts, Killed, World, free_port, of_kind, text};

/// Starts etcd; `None` if it is not installed.
fn start(world: &World, test: &str) -> Option<(Killed, String)> {
    if Command::new("etcd").arg("--version").output().is_err() {
        eprintln!("SKIPPED: {test}: no etcd (apt-get install etcd-server)");
        return None;
    }
    let (clients, peers) = (free_port(), free_port());
    let client = format!("http://127.0.0.1:{clients}");
    let child = Command::new("etcd")
        .arg("--data-dir")
        .arg(world.path("etcd"))
        .args([
            "--listen-client-urls",
            &client,
            "--advertise-client-urls",
            &client,
        ])
        .args(["--listen-peer-urls", &format!("http://127.0.0.1:{peers}")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let etcd = Killed(child);
    wait("etcd", || {
        std::net::TcpStream::connect(("127.0.0.1", clients)).is_ok()
    });
    Some((etcd, format!("etcd://127.0.0.1:{clients}/test")))
}

#[test]
fn another_controller_goes_on_when_the_leading_one_is_killed_during_a_push() {
    let test = "another_controller_goes_on_when_the_leading_one_is_killed_during_a_push";
    let world = World::new();
    let Some((_etcd, store)) = start(&world, test) else {
        return;
    };
    let ports = [free_port(), free_port()];
    let more = ["--store", store.as_str()];
    let first = world.controller(ports[0], "first", &more);
    wait("a leader", || world.status(&ports).is_some());
    let _second = world.controller(ports[1], "second", &more);
    world
        .policy(&ports[1..], &["status"])
        .failed(1, &["does not lead"]);
    let _hosts = Hosts::start(&world, &ports, 8);
    world.wait_for(&ports, 0, 8);
    world.push(&ports, &text(1), &[]).ok();
    world.wait_for(&ports, 1, 8);
    let leader = world.status(&ports).unwrap()["controller"].clone();
    wait("the end of the roll-out", || {
        world.push(&ports, &text(2), &[]).code == Some(0)
    });
    // As kill -9 does.
    drop(first);
    assert!((0..8).all(|number| [1, 2].contains(&Hosts::kept(&world, number))));
    world.wait_for(&ports, 2, 8);
    let status = world.status(&ports[1..]).unwrap();
    assert!(status["controller"] != leader, "{status}");
    let log = world.log(&ports);
    assert_eq!(of_kind(&log, "resumed").len(), 2, "{log:?}");
    assert_eq!(of_kind(&log, "pushed").len(), 2);
    // The former leader comes back, and does not lead.
    let _first = world.controller(ports[0], "first", &more);
    world
        .policy(&ports[..1], &["status"])
        .failed(1, &["does not lead"]);
    wait("the end of the roll-out", || {
        world.push(&ports, &text(3), &[]).code == Some(0)
    });
    world.wait_for(&ports, 3, 8);
}

#[test]
fn etcd_that_is_away_for_a_while_changes_nothing() {
    let test = "etcd_that_is_away_for_a_while_changes_nothing";
    let world = World::new();
    let Some((etcd, store)) = start(&world, test) else {
        return;
    };
    let port = free_port();
    let _controller = world.controller(port, "first", &["--store", &store]);
    let _hosts = Hosts::start(&world, &[port], 4);
    world.wait_for(&[port], 0, 4);
    world.push(&[port], &text(1), &[]).ok();
    world.wait_for(&[port], 1, 4);
    drop(etcd);
    wait("a controller that notices", || {
        world.push(&[port], &text(2), &[]).code == Some(1)
    });
    assert!((0..4).all(|number| Hosts::kept(&world, number) == 1));
}
