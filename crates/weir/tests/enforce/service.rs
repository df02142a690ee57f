//! `weir enforce` as a service: what it tells its manager, and what it logs.

use rustix::process::Signal;

use crate::POLICY;
use crate::namespace::{Namespace, possible};
use crate::running::Running;
use crate::support::has_time;
use crate::support::notify::NotifySocket;

/// Returns a namespace with two interfaces.
fn machine() -> Namespace {
    let namespace = Namespace::new();
    for (name, peer) in [("lan0", "lan1"), ("wan0", "wan1")] {
        namespace.ip(&format!("link add {name} type veth peer name {peer}"));
        namespace.ip(&format!("link set {name} up"));
    }
    namespace
}

const INLINE: [&str; 3] = ["--inline", "lan0", "wan0"];

#[test]
fn the_service_manager_is_told_of_start_reload_and_end() {
    if !possible("the_service_manager_is_told_of_start_reload_and_end") {
        return;
    }
    let (namespace, manager) = (machine(), NotifySocket::new());
    let running = Running::start_with(&namespace, POLICY, &INLINE, &[manager.variable()]);
    assert_eq!(manager.expect("READY=1"), "1 rules between lan0 and wan0");
    let two = format!("{POLICY}[[rules]]\npass = true\n");
    running.reload(&two).ok();
    assert_eq!(manager.expect_reload(), "2 rules between lan0 and wan0");
    // A policy with a mistake is not in force, but the service is ready again.
    running
        .reload("[[rules]]\nto = 5\n")
        .failed(1, &["rules.0.to"]);
    assert_eq!(manager.expect_reload(), "2 rules between lan0 and wan0");
    std::fs::write(&running.policy, POLICY).unwrap();
    running.signal(Signal::HUP);
    assert_eq!(manager.expect_reload(), "1 rules between lan0 and wan0");
    running.signal(Signal::TERM);
    manager.expect("STOPPING=1");
    let (status, said) = running.end();
    assert!(status.success(), "{status}: {said}");
}

#[test]
fn reloads_are_logged_with_time_asker_and_changed_rules() {
    if !possible("reloads_are_logged_with_time_asker_and_changed_rules") {
        return;
    }
    let (namespace, manager) = (machine(), NotifySocket::new());
    let running = Running::start_with(&namespace, POLICY, &INLINE, &[manager.variable()]);
    manager.expect("READY=1");
    running
        .reload(&format!(
            "{POLICY}[[rules]]\ninterface = \"eth*\"\npass = true\n"
        ))
        .ok();
    running
        .reload("[[rules]]\nto = 5\nfrom = 6\n")
        .failed(1, &["stays in force"]);
    manager.expect_reload();
    manager.expect_reload();
    std::fs::write(&running.policy, "\n[[rules]]\ncongestion = \"cubic\"\n").unwrap();
    running.signal(Signal::HUP);
    manager.expect_reload();
    running.signal(Signal::INT);
    let (_, said) = running.end();
    let lines: Vec<_> = said.lines().collect();
    let expected: [&[&str]; 5] = [
        &[
            " WARN ",
            "policy.toml:4: rules.1.interface: ",
            "eth* is not attached",
            ": lan0, wan0",
        ],
        &[
            " INFO ",
            "policy.toml: reloaded, asked by uid 0, pid ",
            ": 2 rules; added line 3",
        ],
        &[
            " WARN ",
            "policy.toml: not reloaded, asked by uid 0, pid ",
            "policy.toml:2: rules.0.to: ",
            "; ",
            "policy.toml:3: rules.0.from: ",
            "; the policy before it stays in force",
        ],
        &[
            " INFO ",
            "asked by SIGHUP: 1 rules; changed line 2 (was line 1), removed line 3",
        ],
        &[" INFO ", "nothing passes any more"],
    ];
    assert_eq!(lines.len(), expected.len(), "{said}");
    for (line, words) in lines.iter().zip(expected) {
        assert!(has_time(line), "no time: {line}");
        for word in words {
            assert!(line.contains(word), "no {word:?} in: {line}");
        }
    }
}
