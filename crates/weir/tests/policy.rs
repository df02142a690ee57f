//! `weir policy`: mistakes with file, line and key, and the rule that applies to a flow.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(dead_code, reason = "the support is shared with other tests")]

mod support;

use support::run;

const POLICY: &str = r#"[[rules]]
to = "10.0.0.0/8"
pass = true

[[rules]]
from_port = "8000-8999"
interface = "eth*"
congestion = { name = "dctcp", g = 0.125 }
"#;

/// Creates a file with this text.
fn file(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

#[test]
fn a_policy_is_printed_and_explained() {
    let file = file(POLICY);
    let path = file.path().to_str().unwrap();
    let said = run(&["policy", "check", path]);
    let text = &said.ok().stdout;
    assert!(text.contains("line    1  to 10.0.0.0/8: pass"), "{text}");
    assert!(text.contains("interface eth*: dctcp,g=0.125"), "{text}");
    let explain = |more: &[&str]| run(&[&["policy", "explain", path], more].concat());
    let flow = ["192.0.2.1:8080", "192.0.2.2:9"];
    let text = &explain(&flow).ok().stdout.clone();
    assert!(
        text.contains(":1: does not fit: `to` is 192.0.2.2, not 10.0.0.0/8"),
        "{text}"
    );
    assert!(text.ends_with("no rule fits: pass\n"), "{text}");
    let held = explain(&[&flow[..], &["--interface", "eth1", "--json"]].concat()).json();
    assert_eq!(
        (held["line"].as_u64(), held["action"].as_str()),
        (Some(5), Some("dctcp,g=0.125"))
    );
    let list = run(&["policy", "check", path, "--json"]).json();
    assert_eq!(list[1]["conditions"][0][1][0], "8000-8999");
}

#[test]
fn an_explanation_says_whether_a_flow_is_in_the_share() {
    let rule = |share: f64, more: &str| {
        format!("[[rules]]\nshare = {share}\ncongestion = \"bbr\"\n{more}")
    };
    let explain = |policy: &str, ends: [&str; 2]| {
        let file = file(policy);
        let path = file.path().to_str().unwrap().to_owned();
        run(&[&["policy", "explain", &path], &ends[..]].concat())
            .ok()
            .stdout
            .clone()
    };
    // Its hash is at 0.8799, from both ends.
    let ends = ["10.0.0.1:40000", "10.0.0.2:443"];
    for ends in [ends, [ends[1], ends[0]]] {
        let text = explain(&rule(0.9, ""), ends);
        assert!(text.contains(":1: holds, in the share: bbr"), "{text}");
        let text = explain(&rule(0.8, ""), ends);
        assert!(
            text.contains("does not fit: `share` is 0.8799, not below 0.8"),
            "{text}"
        );
        let text = explain(&rule(0.8, "compare = true\n"), ends);
        assert!(
            text.contains(":1: holds, not in the share: pass, measured"),
            "{text}"
        );
        let text = explain(&format!("seed = 1\n{}", rule(0.9, "")), ends);
        assert!(!text.contains("0.8799"), "{text}");
    }
}

#[test]
fn planes_that_measure_nothing_refuse_comparisons_and_guards() {
    let text = "[[rules]]\nshare = 0.5\ncompare = true\ncongestion = \"bbr\"\nundo_if = \"rtt > 2x for 9s\"\n";
    let file = file(text);
    let path = file.path().to_str().unwrap();
    for plane in ["enforce", "inline", "dcquic"] {
        let refused = run(&["policy", "check", path, "--for", plane]);
        let keys = [":3: rules.0.compare: ", ":5: rules.0.undo_if: "];
        refused.failed(1, &[keys[0], keys[1], "weir enforce --cgroup"]);
    }
    let listed = run(&["policy", "check", path]);
    let expected = "share 0.5: bbr, compared with the rest, undone if rtt > 2x for 9s";
    assert!(listed.ok().stdout.contains(expected), "{}", listed.stdout);
    std::fs::write(path, "[[rules]]\nshare = 0.5\ncongestion = \"bbr\"\n").unwrap();
    for plane in ["enforce", "inline", "dcquic"] {
        run(&["policy", "check", path, "--for", plane]).ok();
    }
}

#[test]
fn mistakes_are_reported_with_file_line_and_key() {
    let file = file("[[rules]]\nto = \"10.0.0.0/40\"\nport = 1\n");
    let path = file.path().to_str().unwrap();
    let said = run(&["policy", "check", path]);
    said.failed(
        1,
        &[
            &format!("{path}:2: rules.0.to"),
            "0 to 32",
            ":3: rules.0.port",
        ],
    );
    run(&["policy", "check", "/no/such/file"]).failed(1, &["/no/such/file"]);
    let wrong = ["policy", "explain", path, "10.0.0.1", "10.0.0.2:1"];
    run(&wrong).failed(2, &["10.0.0.1", "FROM"]);
    let wrong = [
        "policy",
        "explain",
        path,
        "10.0.0.1:1",
        "10.0.0.2:1",
        "--dscp",
        "best",
    ];
    run(&wrong).failed(2, &["--dscp", "af41"]);
}

#[test]
fn a_check_for_a_plane_finds_what_it_refuses_and_what_has_no_effect() {
    let file = file(
        "[[rules]]\ninterface = \"eth1\"\ncongestion = \"dctcp\"\necn = true\n\n\
         [[rules]]\ncongestion = \"bbr\"\nbuffer = \"1MB\"\necn = true\n",
    );
    let path = file.path().to_str().unwrap();
    let check = |more: &[&str]| run(&[&["policy", "check", path], more].concat());
    assert!(check(&[]).ok().stderr.is_empty());
    let refused = check(&["--for", "enforce", "--interface", "eth0"]);
    let (first, second) = (
        format!("{path}:4: rules.0.ecn"),
        format!("{path}:9: rules.1.ecn"),
    );
    let warned = [":2: rules.0.interface: ", ":8: rules.1.buffer: "];
    refused.failed(
        1,
        &[&first, &second, "net.ipv4.tcp_ecn", warned[0], warned[1]],
    );
    let inline = check(&["--for", "inline", "-i", "eth0", "-i", "wan0"]);
    let warned = &inline.ok().stderr;
    assert!(
        warned.starts_with(&format!("warning: {path}:2: rules.0.interface: ")),
        "{warned}"
    );
    assert!(
        warned.contains("eth1 is not attached") && warned.contains("eth0, wan0"),
        "{warned}"
    );
    assert_eq!(warned.lines().count(), 1, "{warned}");
    assert!(check(&["--for", "inline"]).ok().stderr.is_empty());
    assert!(
        check(&["--for", "inline", "-i", "eth1"])
            .ok()
            .stderr
            .is_empty()
    );
    let warned = &check(&["--for", "dcquic", "--json"]).ok().stderr.clone();
    for key in [
        ":2: rules.0.interface",
        ":4: rules.0.ecn",
        ":8: rules.1.buffer",
    ] {
        assert!(warned.contains(key), "no {key} in {warned}");
    }
    check(&["--interface", "eth0"]).failed(2, &["--for"]);
    check(&["--for", "switch"]).failed(2, &["switch", "enforce", "inline", "dcquic"]);
}

#[test]
fn a_perf_client_warns_of_what_has_no_effect() {
    let file = file("[[rules]]\ndscp = \"ef\"\ncongestion = \"swift\"\n");
    let path = file.path().to_str().unwrap();
    let client = ["perf", "client", "127.0.0.1", "--port", "1", "--pin"];
    let pin = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let said = run(&[&client[..], &[pin, "--policy", path]].concat());
    said.failed(
        1,
        &[&format!("warning: {path}:2: rules.0.dscp: "), "class 0"],
    );
}

const FABRIC: &str = r#"title = "Web servers and backups"
source = "a test"
duration = "200ms"

[dumbbell]
rate = "100Mbps"
queue = { kind = "step", ecn_threshold = "30KB", buffer = "150KB" }

[dumbbell.senders.server]
count = 10
rtt = "200us"

[groups.web]
from = "server*"
to = "receiver"
workload = "bulk"
stands_for = { from = "10.1.0.0/16", from_port = 443, command = "nginx" }
"#;

#[test]
fn a_policy_chooses_the_congestion_control_of_a_scenario() {
    let (fabric, rules) = (
        file(FABRIC),
        file(
            "[[rules]]\nfrom_port = 443\nshare = 0.1\ncompare = true\ncongestion = \"dctcp\"\nundo_if = \"rtt > 20ms for 1min\"\n",
        ),
    );
    let (scenario, policy) = (
        fabric.path().to_str().unwrap(),
        rules.path().to_str().unwrap(),
    );
    let said = run(&["run", scenario, "--policy", policy, "--json"]);
    let said = said.ok();
    assert!(
        said.stderr
            .contains("policy: group `web-rule-1`: dctcp, by the rule on line 1; without effect here: `undo_if`"),
        "{}",
        said.stderr
    );
    let summary: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(summary["settings"]["policy"], policy);
    let flows = |group: &str| summary["groups"][group]["flows"].as_u64();
    assert_eq!(
        (flows("web-rule-1"), flows("web")),
        (Some(1), Some(9)),
        "{summary}"
    );
    // DCTCP's packets alone are ECN-capable.
    let marks = |group: &str| summary["groups"][group]["marks"].as_u64().unwrap();
    assert!(marks("web-rule-1") > 0, "{summary}");
    assert_eq!(marks("web"), 0, "{summary}");

    let checked = run(&["check", scenario, "--policy", policy]);
    let text = &checked.ok().stdout;
    assert!(
        text.contains("# policy: group `web`: the control group"),
        "{text}"
    );
    // The scenario that follows is one that can be run.
    let written = file(text);
    run(&["check", written.path().to_str().unwrap()]).ok();
}

#[test]
fn a_policy_that_does_not_fit_a_scenario_is_refused_before_the_run() {
    let fabric = file(FABRIC);
    let rules = file("[[rules]]\nto = \"10.2.0.0/16\"\ncongestion = \"dctcp\"\n");
    let said = run(&[
        "run",
        fabric.path().to_str().unwrap(),
        "--policy",
        rules.path().to_str().unwrap(),
    ]);
    assert_eq!(said.code, Some(1));
    assert!(
        said.stderr.contains("write `groups.web.stands_for.to`"),
        "{}",
        said.stderr
    );
}
