//! Inline enforcement that is killed, or loaded with many connections.

use rustix::process::Signal;

use crate::POLICY;
use crate::in_line::{CLIENT, DOWNLOADS, Download, Row, SERVER, flow_of, is_promiscuous};
use crate::namespace::{Namespace, join, possible};
use crate::running::Running;
use crate::traffic::{assert_all_removed, flood, run_connections};

/// Frames have one way only, however busy the machine is.
const INLINE: [&str; 4] = ["--inline", "lan0", "wan0", "--fail-closed"];

#[test]
fn flows_continue_after_a_killed_enforcer_is_replaced() {
    if !possible("flows_continue_after_a_killed_enforcer_is_replaced") {
        return;
    }
    let row = Row::new(67, u64::MAX);
    let policy = format!("{DOWNLOADS}\"bbr\"\n");
    let running = Running::start(&row.middle, &policy, &INLINE);
    let first = Download::start(&row, 8001);
    first.get(2_000_000, 2_000_000);
    // Kill the enforcer during the transfer.
    first.orders.send(3_000_000).unwrap();
    running.signal(Signal::KILL);
    let (status, _) = running.end();
    assert!(!status.success());
    assert!(!is_promiscuous(&row.middle, "lan0"), "it is not left so");
    // The announced windows and buffered data are lost: the endpoints recover by themselves.
    let running = Running::start(&row.middle, &policy, &INLINE);
    while first.received.recv().unwrap() < 5_000_000 {}
    let second = Download::start(&row, 8002);
    second.get(1_000_000, 1_000_000);
    let status = running.status();
    assert_eq!(flow_of(&status, 8002)["congestion"], "bbr");
    assert_eq!(status["totals"]["controlled"], 1, "{status}");
    assert!(
        status["totals"]["unknown_packets"].as_u64() > Some(0),
        "{status}"
    );
    first.end();
    second.end();
}

#[test]
fn a_syn_flood_displaces_only_half_open_connections() {
    if !possible("a_syn_flood_displaces_only_half_open_connections") {
        return;
    }
    let row = Row::new(67, u64::MAX);
    let policy = format!("{DOWNLOADS}\"bbr\"\n");
    let arguments = [&INLINE[..], &["--flows", "500"]].concat();
    let running = Running::start(&row.middle, &policy, &arguments);
    let first = Download::start(&row, 8001);
    let mut received = 1_000_000;
    first.get(1_000_000, received);
    std::thread::scope(|scope| {
        let flooding = scope.spawn(|| flood(&row.client, 8001, 20_000));
        while !flooding.is_finished() {
            received += 100_000;
            first.get(100_000, received);
        }
        flooding.join().unwrap();
    });
    let second = Download::start(&row, 8002);
    second.get(1_000_000, 1_000_000);
    let status = running.status();
    for port in [8001, 8002] {
        assert_eq!(flow_of(&status, port)["congestion"], "bbr");
    }
    let in_line = &status["totals"]["in_line"];
    assert!(in_line["displaced"].as_u64() > Some(500), "{status}");
    first.end();
    second.end();
}

/// Opens and closes this many connections at this rate, and checks that no state remains.
fn open_and_close_connections(count: u64, per_second: u64) {
    let [server, middle, client] = [(); 3].map(|()| Namespace::new());
    join((&server, "eth0"), (&middle, "lan0"));
    join((&middle, "wan0"), (&client, "eth0"));
    server.ip(&format!("address add {SERVER}/24 dev eth0"));
    client.ip(&format!("address add {CLIENT}/24 dev eth0"));
    let running = Running::start(&middle, POLICY, &INLINE);
    let totals = assert_all_removed(
        &running,
        run_connections(&server, &client, count, per_second),
    );
    assert_eq!(totals["in_line"]["kept_bytes"], 0, "{totals}");
}

#[test]
fn many_inline_connections_leave_no_state() {
    if !possible("many_inline_connections_leave_no_state") {
        return;
    }
    open_and_close_connections(4_000, 2_000);
}

#[test]
#[ignore = "a minute: make long"]
fn a_minute_of_inline_connections_leaves_no_state() {
    if !possible("a_minute_of_inline_connections_leaves_no_state") {
        return;
    }
    open_and_close_connections(120_000, 2_000);
}
