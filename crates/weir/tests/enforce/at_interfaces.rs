//! Enforcement by BPF programs at an interface.

use rustix::process::Signal;

use crate::POLICY;
use crate::in_line::Download;
use crate::namespace::{Namespace, join, possible};
use crate::running::{Running, wait};
use crate::traffic::{assert_all_removed, flood, neighbours, run_connections, send_window};

/// Windows that no algorithm would choose by itself.
const SMALL: &str = "[[rules]]\nfrom_port = \"8000-8999\"\ncongestion = { name = \"cubic\", max_window = \"40KB\" }\n";

#[test]
fn a_policy_is_reloaded_and_a_signal_ends_it() {
    if !possible("a_policy_is_reloaded_and_a_signal_ends_it") {
        return;
    }
    let namespace = Namespace::new();
    namespace.ip("link add one type veth peer name two");
    let running = Running::start(&namespace, POLICY, &["-i", "one"]);
    assert!(
        running.first.ends_with("1 rules on one\n"),
        "{}",
        running.first
    );
    assert_eq!(running.status()["interfaces"][0], "one");
    let two = format!("{POLICY}[[rules]]\npass = true\n");
    let said = running.reload(&two);
    assert!(said.ok().stdout.contains("2 rules in force"));
    let wrong = running.reload("[[rules]]\nto = 5\n");
    wrong.failed(1, &["policy.toml:2: rules.0.to", "stays in force"]);
    running.signal(Signal::INT);
    let (status, said) = running.end();
    assert!(status.success(), "{status}: {said}");
}

/// Downloads until a condition holds.
fn until(download: &Download, received: &mut u64, what: &str, mut is_so: impl FnMut() -> bool) {
    wait(what, || {
        *received += 500_000;
        download.get(500_000, *received);
        is_so()
    });
}

#[test]
fn tcp_continues_unlimited_when_the_enforcer_is_killed() {
    if !possible("tcp_continues_unlimited_when_the_enforcer_is_killed") {
        return;
    }
    let [server, client] = neighbours();
    let running = Running::start(&server, SMALL, &["-i", "eth0"]);
    let (download, mut received) = (Download::between([&server, &client], 8001), 0);
    until(&download, &mut received, "its window is lowered", || {
        send_window(&server, 8001) <= 40_000
    });
    running.signal(Signal::KILL);
    let (status, _) = running.end();
    assert!(!status.success());
    until(&download, &mut received, "its window is its own", || {
        send_window(&server, 8001) > 60_000
    });
    // The programs were removed with the process: new flows are not tracked.
    let other = Download::between([&server, &client], 8002);
    other.get(1_000_000, 1_000_000);
    assert!(send_window(&server, 8002) > 60_000);
    other.end();
    // Another enforcer takes over. Connections that were already open pass.
    let running = Running::start(&server, SMALL, &["-i", "eth0"]);
    let third = Download::between([&server, &client], 8003);
    let mut count = 0;
    until(
        &third,
        &mut count,
        "the third one's window is lowered",
        || send_window(&server, 8003) <= 40_000,
    );
    until(&download, &mut received, "the first one is unknown", || {
        running.status()["totals"]["unknown_packets"].as_u64() > Some(0)
    });
    let totals = running.status()["totals"].clone();
    assert_eq!(totals["controlled"], 1, "{totals}");
    assert!(send_window(&server, 8001) > 60_000);
    download.end();
    third.end();
}

#[test]
fn other_interfaces_continue_when_one_disappears() {
    if !possible("other_interfaces_continue_when_one_disappears") {
        return;
    }
    let [server, client] = neighbours();
    join((&server, "spare"), (&client, "spare"));
    let running = Running::start(&server, SMALL, &["-i", "eth0", "-i", "spare"]);
    let (download, mut received) = (Download::between([&server, &client], 8001), 0);
    until(&download, &mut received, "its window is lowered", || {
        send_window(&server, 8001) <= 40_000
    });
    server.ip("link delete spare");
    until(&download, &mut received, "it is noticed", || {
        running.status()["interfaces"].as_array().unwrap().len() == 1
    });
    received += 2_000_000;
    download.get(2_000_000, received);
    assert!(
        send_window(&server, 8001) <= 40_000,
        "the other one goes on"
    );
    server.ip("link delete eth0");
    let (status, said) = running.end();
    assert_eq!(status.code(), Some(1), "{said}");
    for words in ["spare is gone", "eth0 is gone", "no interface is left"] {
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn a_flood_of_syns_displaces_no_flow() {
    if !possible("a_flood_of_syns_displaces_no_flow") {
        return;
    }
    let [server, client] = neighbours();
    let running = Running::start(&server, SMALL, &["-i", "eth0", "--flows", "64"]);
    let (download, mut received) = (Download::between([&server, &client], 8001), 0);
    until(&download, &mut received, "its window is lowered", || {
        send_window(&server, 8001) <= 40_000
    });
    std::thread::scope(|scope| {
        // Several times the capacity of the table of half-open connections.
        let flooding = scope.spawn(|| flood(&client, 8001, 100_000));
        while !flooding.is_finished() {
            received += 500_000;
            download.get(500_000, received);
        }
        flooding.join().unwrap();
    });
    let (other, mut count) = (Download::between([&server, &client], 8002), 0);
    until(
        &other,
        &mut count,
        "another one's window is lowered",
        || send_window(&server, 8002) <= 40_000,
    );
    assert!(send_window(&server, 8001) <= 40_000);
    let totals = running.status()["totals"].clone();
    assert_eq!(totals["controlled"], 2, "{totals}");
    assert_eq!(totals["opened"], 2, "{totals}");
    assert_eq!(totals["refused"], 0, "{totals}");
    download.end();
    other.end();
}

/// Opens and closes this many connections at this rate, and checks that no state remains.
fn open_and_close_connections(count: u64, per_second: u64) {
    let [server, client] = neighbours();
    let policy = "[[rules]]\ncongestion = \"cubic\"\n";
    let running = Running::start(&server, policy, &["-i", "eth0"]);
    assert_all_removed(
        &running,
        run_connections(&server, &client, count, per_second),
    );
}

#[test]
fn many_connections_leave_no_state() {
    if !possible("many_connections_leave_no_state") {
        return;
    }
    open_and_close_connections(4_000, 2_000);
}

#[test]
#[ignore = "a minute: make long"]
fn a_minute_of_connections_leaves_no_state() {
    if !possible("a_minute_of_connections_leaves_no_state") {
        return;
    }
    open_and_close_connections(120_000, 2_000);
}
