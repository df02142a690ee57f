//! `weir sed controller --rules`.

use rustix::process::Signal;

use crate::namespace::possible;
use crate::network::{Row, Transfers, wait};
use crate::support::run;

#[test]
fn a_file_with_mistakes_is_refused_with_line_and_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("deadlines.toml");
    let file = file.to_str().unwrap();
    let with = |text: &str| {
        std::fs::write(file, text).unwrap();
        run(&["sed", "controller", "--rules", file])
    };
    with("[[rules]]\nto = 5\n").failed(1, &["deadlines.toml:2: rules.0.to"]);
    let sizeless = with("[[rules]]\nfrom_port = 80\ndeadline = \"10ms\"\n");
    sizeless.failed(
        1,
        &["deadlines.toml:3: rules.0.deadline", "without its size"],
    );
    let several = with("[[rules]]\nsize = \"0B\"\ndeadline = \"10ms\"\n[[rules]]\nport = 5\n");
    several.failed(
        1,
        &["deadlines.toml:2: rules.0.size", "deadlines.toml:5", "port"],
    );
    with("[[rules]]\nsize = \"1KB\"\n").failed(1, &["deadlines.toml:2: rules.0.size", "deadline"]);
    let both = with("[[rules]]\npass = true\nsize = \"1KB\"\n");
    both.failed(1, &["deadlines.toml:2: rules.0.pass"]);
    with("rules = 1\n").failed(1, &["deadlines.toml:1: rules"]);
}

#[test]
fn unregistered_flows_have_deadlines_of_the_reloaded_rules_file() {
    if !possible("unregistered_flows_have_deadlines_of_the_reloaded_rules_file") {
        return;
    }
    let row = Row::new();
    let file = row.path("deadlines.toml");
    let text = |size: &str| {
        let whom = "from = \"10.67.0.0/24\"\nto_port = [80, \"8000-8999\"]";
        format!("[[rules]]\n{whom}\nsize = \"{size}\"\ndeadline = \"60s\"\n")
    };
    std::fs::write(&file, text("20MB")).unwrap();
    let controller = row.controller(&["--rules", &file]);
    let agent = row.agent(&["--rate", "100Mbps"]);
    wait("the agent is attached", || row.is_attached());
    let _first = Transfers::start(&row, 8001, 1);
    wait("the first flow has a deadline", || row.sizes() == ["20MB"]);
    // A file with a mistake changes nothing; a corrected one applies to flows that start afterwards.
    std::fs::write(&file, "[[rules]]\n").unwrap();
    controller.signal(Signal::HUP);
    controller.wait_for("stay in force");
    std::fs::write(&file, text("30MB")).unwrap();
    controller.signal(Signal::HUP);
    controller.wait_for("1 rules in force");
    let _second = Transfers::start(&row, 8002, 1);
    wait("the second flow has another size", || {
        row.sizes() == ["20MB", "30MB"]
    });
    let _third = Transfers::start(&row, 9001, 1);
    wait("the third one has none", || {
        row.status().is_some_and(|status| status["flow_count"] == 3)
    });
    assert_eq!(row.sizes(), ["20MB", "30MB"]);
    agent.signal(Signal::TERM);
    let (status, said) = agent.end();
    assert!(status.success(), "{said}");
    controller.signal(Signal::INT);
    let (status, said) = controller.end();
    assert!(status.success(), "{said}");
    assert!(
        said.contains("deadlines.toml:1: rules.0: the rule does not say"),
        "{said}"
    );
}
