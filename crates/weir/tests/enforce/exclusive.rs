//! One enforcer at an interface at a time.

use rustix::process::{Pid, Signal};

use crate::POLICY;
use crate::namespace::{Namespace, possible};
use crate::running::Running;
use crate::support::{CommandOutput, command_output};

/// Runs an enforcer with its own control socket, which is to end by itself.
pub(crate) fn run_to_end(namespace: &Namespace, arguments: &[&str]) -> CommandOutput {
    let folder = tempfile::tempdir().unwrap();
    let (policy, socket) = (
        folder.path().join("policy.toml"),
        folder.path().join("socket"),
    );
    std::fs::write(&policy, POLICY).unwrap();
    let mut command = namespace.enter(env!("CARGO_BIN_EXE_weir"));
    command
        .arg("enforce")
        .args(arguments)
        .arg("--control")
        .arg(&socket);
    command_output(command.arg("--policy").arg(&policy).output().unwrap())
}

#[test]
fn a_second_enforcer_at_an_interface_is_refused() {
    if !possible("a_second_enforcer_at_an_interface_is_refused") {
        return;
    }
    let [namespace, elsewhere] = [(); 2].map(|()| Namespace::new());
    for pair in [
        "one type veth peer name two",
        "three type veth peer name four",
    ] {
        namespace.ip(&format!("link add {pair}"));
    }
    // The same indices in another namespace are other interfaces.
    elsewhere.ip("link add one type veth peer name two");
    let first = Running::start(&namespace, POLICY, &["--inline", "one", "two"]);
    let holder = format!(
        "`two` is controlled by process {}",
        Pid::from_child(&first.child)
    );
    run_to_end(&namespace, &["--inline", "three", "two"]).failed(1, &[&holder]);
    if cfg!(feature = "bpf") {
        run_to_end(&namespace, &["-i", "two"]).failed(1, &[&holder]);
    }
    let beside = Running::start(&namespace, POLICY, &["--inline", "three", "four"]);
    let other = Running::start(&elsewhere, POLICY, &["--inline", "one", "two"]);
    for running in [&beside, &other] {
        assert!(
            running.first.contains("1 rules between"),
            "{}",
            running.first
        );
    }
    first.signal(Signal::KILL);
    // The next start does not wait for the end of the killed one either.
    let next = Running::start(&namespace, POLICY, &["--inline", "two", "one"]);
    assert!(next.first.contains("1 rules between"), "{}", next.first);
    first.end();
}
