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
