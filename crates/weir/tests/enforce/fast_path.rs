//! The fast path of a cable: what no rule controls passes by the kernel while the enforcer lives.

use rustix::process::Signal;
use serde_json::Value;

use crate::datagrams::Datagrams;
use crate::fail_open::{INLINE, row};
use crate::files::Files;
use crate::in_line::{CLIENT, Download, flow_of};
use crate::namespace::can_fail_open;
use crate::running::{Running, wait};
use crate::traffic::{assert_all_removed, run_connections};

/// A policy for the server's data from this port.
fn policy_for(port: u16) -> String {
    format!("[[rules]]\ninterface = \"wan0\"\nfrom_port = {port}\ncongestion = \"cubic\"\n")
}

fn in_line(running: &Running) -> Value {
    running.status()["totals"]["in_line"].clone()
}

fn fast_path(running: &Running) -> Value {
    in_line(running)["fast_path"].clone()
}

/// Returns the number of frames that the process has forwarded.
fn frames(running: &Running) -> u64 {
    in_line(running)["frames"].as_u64().unwrap()
}

#[test]
fn connections_without_a_rule_pass_by_the_kernel_to_their_end() {
    if !can_fail_open("connections_without_a_rule_pass_by_the_kernel_to_their_end") {
        return;
    }
    let [server, middle, client] = row();
    let running = Running::start(&middle, &policy_for(8001), &INLINE);
    let [ruled, free] = [8001, 8002].map(|port| Download::between([&server, &client], port));
    ruled.get(2_000_000, 2_000_000);
    let before = frames(&running);
    free.get(5_000_000, 5_000_000);
    // Frames to all, such as those that look for addresses, still get to the process.
    assert!(frames(&running) < before + 20, "{}", in_line(&running));
    let counted = fast_path(&running);
    assert_eq!(
        (&counted["connections"], &counted["begun"]),
        (&1.into(), &1.into())
    );
    let (frames, bytes) = (
        counted["frames"][0].as_u64().unwrap(),
        counted["bytes"][0].as_u64().unwrap(),
    );
    assert!(bytes > 5_000_000, "{counted}");
    assert!(
        bytes / frames > 3_000,
        "super-packets stay whole: {counted}"
    );
    let text = running.status_text();
    assert!(
        text.contains("the kernel forwards what no rule is for: 1 connections now"),
        "{text}"
    );

    // Another policy holds for connections that open from now on.
    running.reload(&policy_for(8002)).ok();
    let later = Download::between([&server, &client], 8003);
    later.get(1_000_000, 1_000_000);
    free.get(1_000_000, 6_000_000);
    ruled.get(1_000_000, 3_000_000);
    let status = running.status();
    assert_eq!(flow_of(&status, 8001)["congestion"], "cubic");
    assert_eq!(status["totals"]["controlled"], 1, "{status}");
    assert_eq!(fast_path(&running)["connections"], 2);
    free.end();
    let again = Download::between([&server, &client], 8002);
    again.get(1_000_000, 1_000_000);
    assert_eq!(flow_of(&running.status(), 8002)["congestion"], "cubic");
    for download in [ruled, later, again] {
        download.end();
    }
    wait("all are forgotten", || {
        let totals = &running.status()["totals"];
        totals["closed"] == totals["opened"] && totals["controlled"] == 0
    });
    assert_eq!(fast_path(&running)["connections"], 0);
    running.signal(Signal::TERM);
    let (status, said) = running.end();
    assert!(status.success(), "{status}: {said}");
}

/// Files, and their rate each in bytes per second.
const FILES: (u64, u64) = (10, 1_000_000);

#[test]
fn transfers_of_the_fast_path_survive_a_stop_a_kill_and_a_takeover() {
    if !can_fail_open("transfers_of_the_fast_path_survive_a_stop_a_kill_and_a_takeover") {
        return;
    }
    let [server, middle, client] = row();
    let policy = policy_for(1);
    let running = Running::start(&middle, &policy, &INLINE);
    let files = Files::start([&server, &client], (CLIENT, 8001), FILES);
    files.wait_for_more(300_000);
    assert_eq!(fast_path(&running)["connections"], FILES.0);
    let before = frames(&running);
    running.signal(Signal::STOP);
    files.wait_for_more(300_000);
    running.signal(Signal::CONT);
    files.wait_for_more(300_000);
    assert!(frames(&running) < before + 20, "{}", in_line(&running));

    running.signal(Signal::KILL);
    running.end();
    files.wait_for_more(300_000);
    let running = Running::start(&middle, &policy, &INLINE);
    files.wait_for_more(500_000);
    // It does not know these connections, and forwards them itself.
    assert_eq!(fast_path(&running)["connections"], 0);
    let later = Files::start([&server, &client], (CLIENT, 8002), FILES);
    later.wait_for_more(300_000);
    assert_eq!(fast_path(&running)["connections"], FILES.0);
    files.finish();
    later.finish();
}

#[test]
fn many_connections_of_the_fast_path_leave_no_state() {
    if !can_fail_open("many_connections_of_the_fast_path_leave_no_state") {
        return;
    }
    let [server, middle, client] = row();
    let running = Running::start(&middle, "[[rules]]\npass = true\n", &INLINE);
    let totals = assert_all_removed(&running, run_connections(&server, &client, 4_000, 2_000));
    let fast_path = &totals["in_line"]["fast_path"];
    assert_eq!(fast_path["begun"], totals["opened"], "{totals}");
    assert_eq!(fast_path["connections"], 0, "{totals}");
    let passed = totals["opened"].as_u64().map(|opened| 2 * opened);
    assert_eq!(totals["passed"].as_u64(), passed, "{totals}");
}

#[test]
fn frames_without_tcp_pass_by_the_kernel() {
    if !can_fail_open("frames_without_tcp_pass_by_the_kernel") {
        return;
    }
    let [server, middle, client] = row();
    let running = Running::start(&middle, crate::POLICY, &INLINE);
    let datagrams = Datagrams::start([&server, &client], (CLIENT, 8005));
    wait("datagrams pass", || datagrams.pass());
    let before = (frames(&running), fast_path(&running)["frames"][0].as_u64());
    wait("the kernel forwards them", || {
        fast_path(&running)["frames"][0].as_u64() > before.1.map(|frames| frames + 100)
    });
    assert!(frames(&running) < before.0 + 20, "{}", in_line(&running));
    let fate = datagrams.end();
    assert_eq!(fate.doubled, 0, "{fate:?}");
}
