//! By programs at an interface.

use rustix::process::Signal;

use crate::POLICY;
use crate::namespace::{Namespace, possible};
use crate::running::Running;

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
