//! Help texts, and errors for invalid command lines.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(dead_code, reason = "the support is shared with other tests")]

mod support;

use std::process::Stdio;

use support::{run, weir};

const PIN: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

#[test]
fn every_command_explains_itself_with_examples() {
    for command in [
        ["--help"].as_slice(),
        &["run", "--help"],
        &["check", "--help"],
        &["list", "--help"],
        &["studio", "--help"],
        &["bench", "rpc", "--help"],
        &["perf", "server", "--help"],
        &["perf", "client", "--help"],
        &["copy", "--help"],
        &["copy", "serve", "--help"],
        &["tunnel", "client", "--help"],
        &["tunnel", "server", "--help"],
        &["tunnel", "status", "--help"],
        &["lab", "list", "--help"],
        &["enforce", "--help"],
        &["enforce", "status", "--help"],
        &["enforce", "clean", "--help"],
        &["enforce", "resume", "--help"],
        &["policy", "check", "--help"],
        &["policy", "reload", "--help"],
        &["policy", "explain", "--help"],
        &["policy", "push", "--help"],
        &["policy", "diff", "--help"],
        &["policy", "log", "--help"],
        &["policy", "undo", "--help"],
        &["policy", "status", "--help"],
        &["controller", "--help"],
        &["algorithms", "--help"],
        &["dcudp", "threshold", "--help"],
        &["sed", "controller", "--help"],
        &["sed", "status", "--help"],
        &["sed", "certificates", "--help"],
        &["sed", "certificates", "revoke", "--help"],
        &["completions", "--help"],
    ] {
        let said = run(command);
        said.ok();
        assert!(said.stdout.contains("weir "), "{command:?}");
        assert!(
            said.stdout.contains("--") && said.stderr.is_empty(),
            "{command:?}"
        );
    }
    assert!(run(&["--version"]).ok().stdout.starts_with("weir "));
}

#[test]
fn invalid_arguments_are_named_with_valid_ones() {
    let client = |more: &[&str]| run(&[&["perf", "client", "localhost"], more].concat());
    client(&[]).failed(2, &["--pin", "weir perf server"]);
    client(&["--pin", "abc"]).failed(2, &["--pin", "abc", "64 hexadecimal digits"]);
    client(&["--transport", "sctp"]).failed(2, &["sctp", "dcquic, dcudp, tcp, tcp-tls"]);
    client(&["--transport", "tcp", "--pin", PIN]).failed(2, &["--pin", "tcp"]);
    let tcp = |more: &[&str]| client(&[&["--transport", "tcp"], more].concat());
    tcp(&["--congestion", "nosuch"]).failed(2, &["--congestion", "nosuch", "it has", "cubic"]);
    tcp(&["--congestion", "cubic,beta=1"]).failed(2, &["--congestion", "no parameters"]);
    tcp(&["--mps", "40KB"]).failed(2, &["--mps", "32767B"]);
    tcp(&["--bytes", "1XB"]).failed(2, &["--bytes", "XB", "KiB"]);
    tcp(&["--time", "soon"]).failed(2, &["--time", "soon"]);
    tcp(&["--time", "0"]).failed(2, &["--time", "above zero"]);
    tcp(&["--timeout", "0"]).failed(2, &["--timeout", "above zero"]);
    tcp(&["--parallel", "1000"]).failed(2, &["--parallel", "128"]);
    let dcquic = |more: &[&str]| client(&[&["--pin", PIN], more].concat());
    dcquic(&["--congestion", "nosuch"]).failed(2, &["--congestion", "nosuch", "dctcp"]);
    dcquic(&["--congestion", "dctcp,x=1"]).failed(2, &["--congestion", "`x`", "g"]);
    dcquic(&["--mps", "70000"]).failed(2, &["--mps", "65527B"]);

    let rpc = |more: &[&str]| run(&[&["bench", "rpc"], more].concat());
    rpc(&["--transports", "sctp"]).failed(2, &["--transports", "sctp", "tcp-tls"]);
    rpc(&["--sizes", "10k"]).failed(2, &["--sizes", "`k`"]);
    rpc(&["--congestion", "nosuch"]).failed(2, &["--congestion", "nosuch", "dctcp"]);
    rpc(&["--transports", "tcp-tls", "--mps", "9000"]).failed(2, &["--mps", "dcquic"]);
    rpc(&["--placement", "three"]).failed(2, &["--placement", "one, two or free"]);
    rpc(&["--iterations", "0"]).failed(2, &["--iterations"]);
    rpc(&["--connect", "localhost:1"]).failed(2, &["--pin"]);
    rpc(&["--server", "localhost"]).failed(2, &["--server", "IP address"]);
    rpc(&["--server", "--transports", "tcp,tcp-tls"]).failed(2, &["tcp and tcp-tls", "port"]);
    run(&["nosuch"]).failed(2, &["nosuch"]);
}

#[test]
fn algorithms_are_listed_as_text_and_json() {
    let said = run(&["algorithms"]);
    let text = &said.ok().stdout;
    let json = run(&["algorithms", "--json"]).json();
    for name in ["newreno", "cubic", "dctcp", "d2tcp", "swift", "bbr", "bbr3"] {
        assert!(text.lines().any(|line| line.starts_with(name)), "{name}");
        let algorithm = json
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["name"] == name)
            .unwrap();
        assert!(algorithm["summary"].is_string());
        let parameters = algorithm["parameters"].as_array().unwrap();
        assert!(
            parameters.iter().any(|it| it["name"] == "max_window"),
            "{name}"
        );
    }
}

#[test]
fn a_closed_output_pipe_is_no_error() {
    let mut child = weir(&["algorithms"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let said = support::command_output(child.wait_with_output().unwrap());
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
}

#[test]
fn dcudp_threshold_shows_both_readings() {
    let paper = [
        "dcudp",
        "threshold",
        "--capacity",
        "1Gbps",
        "--buffer",
        "4MB",
        "--senders",
        "20",
        "--rtt",
        "100us",
    ];
    let ask = |more: &[&str]| run(&[&paper[..], more].concat());
    let said = ask(&["--sending-rate", "1.6Gbps"]);
    said.ok();
    assert!(
        said.stdout.contains("th_max up to 75 packets"),
        "{}",
        said.stdout
    );
    assert!(
        said.stdout.contains("th_max up to 36 packets"),
        "{}",
        said.stdout
    );
    let said = ask(&["--sending-rate", "1.6Gbps", "--json"]);
    let answers: serde_json::Value = serde_json::from_str(&said.ok().stdout).unwrap();
    assert_eq!(answers[0]["th_max_packets"], 75);
    assert_eq!(answers[1]["th_max_bytes"], 54_000);
    ask(&["--sending-rate", "40Mbps"]).ok();
    ask(&["--sending-rate", "0Gbps"]).failed(2, &["--sending-rate", "above zero"]);
    ask(&["--sending-rate", "fast"]).failed(2, &["--sending-rate", "fast"]);
    ask(&["--sending-rate", "1Gbps", "--packet-size", "0"]).failed(2, &["--packet-size"]);
}
