//! The clsact qdisc of `--hook clsact`.

use rustix::process::Signal;

use crate::POLICY;
use crate::namespace::{Namespace, possible};
use crate::running::Running;
use crate::support::command_output;

fn tc(namespace: &Namespace, words: &str) -> String {
    let mut command = namespace.command("tc");
    // The last words may be one argument.
    let (words, last) = words.split_once(" bytecode ").unwrap_or((words, ""));
    command.args(words.split(' '));
    if !last.is_empty() {
        command.args(["bytecode", last]);
    }
    command_output(command.output().unwrap())
        .ok()
        .stdout
        .clone()
}

fn has_clsact(namespace: &Namespace) -> bool {
    tc(namespace, "qdisc show dev one").contains("clsact")
}

fn filters(namespace: &Namespace) -> usize {
    let both = ["ingress", "egress"];
    let shown = both.map(|way| tc(namespace, &format!("filter show dev one {way}")));
    // Those with Weir's priority, 0x7765.
    shown
        .concat()
        .matches("pref 30565 bpf chain 0 handle")
        .count()
}

#[test]
fn clsact_goes_with_an_enforcer_that_made_it() {
    if !possible("clsact_goes_with_an_enforcer_that_made_it") {
        return;
    }
    let namespace = Namespace::new();
    namespace.ip("link add one type veth peer name two");
    let start = || {
        Running::start(
            &namespace,
            POLICY,
            &["-i", "one", "--hook", "clsact", "--flows", "64"],
        )
    };
    let stop = |running: Running, signal| {
        running.signal(signal);
        running.end();
    };
    stop(start(), Signal::INT);
    assert!(!has_clsact(&namespace), "it is left");
    // A killed one leaves its own; the next knows it, and replaces the filters.
    stop(start(), Signal::KILL);
    assert!(has_clsact(&namespace));
    let next = start();
    let twice = filters(&namespace);
    stop(next, Signal::TERM);
    assert!(!has_clsact(&namespace), "it is left");
    stop(start(), Signal::KILL);
    assert_eq!(
        filters(&namespace),
        twice,
        "the next one's replace those of a killed one"
    );
    let mut command = namespace.command(env!("CARGO_BIN_EXE_weir"));
    let cleaned = command_output(command.args(["enforce", "clean"]).output().unwrap());
    assert!(
        cleaned.ok().stdout.contains("one: removed the filters"),
        "{}",
        cleaned.stdout
    );
    assert!(!has_clsact(&namespace), "it is left");

    // That of another program stays, also after a kill.
    tc(&namespace, "qdisc add dev one clsact");
    stop(start(), Signal::KILL);
    stop(start(), Signal::INT);
    assert!(has_clsact(&namespace) && filters(&namespace) == 0);
    tc(&namespace, "qdisc del dev one clsact");
    // One that another program has begun to use stays.
    let running = start();
    tc(
        &namespace,
        "filter add dev one ingress protocol all prio 7 bpf bytecode 1,6 0 0 0,",
    );
    stop(running, Signal::INT);
    assert!(has_clsact(&namespace) && filters(&namespace) == 0);
}
