//! `weir enforce`: its errors where it cannot work, and, as root, its life cycle at an interface
//! and inline between two.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(dead_code, reason = "the support is shared with other tests")]

mod at_controller;
#[cfg(feature = "bpf")]
mod at_interfaces;
#[cfg(feature = "bpf")]
mod clsact;
#[cfg(feature = "bpf")]
mod datagrams;
mod exclusive;
#[cfg(feature = "bpf")]
mod fail_open;
#[cfg(feature = "bpf")]
mod fast_path;
#[cfg(feature = "bpf")]
mod files;
mod in_line;
mod in_line_ecn;
mod in_line_lasting;
#[cfg(feature = "bpf")]
mod monitoring;
mod namespace;
#[cfg(feature = "bpf")]
mod rates;
mod running;
mod service;
#[cfg(feature = "bpf")]
mod sockets;
#[path = "../support/mod.rs"]
mod support;
mod traffic;

use support::run;

const POLICY: &str = "[[rules]]\ncongestion = \"bbr\"\n";

#[test]
fn missing_or_invalid_arguments_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    std::fs::write(&file, POLICY).unwrap();
    let (policy, socket) = (file.to_str().unwrap(), folder.path().join("weir.sock"));
    let socket = socket.to_str().unwrap();
    let enforce = |more: &[&str]| run(&[&["enforce", "--control", socket], more].concat());
    enforce(&["--policy", policy]).failed(2, &["--interface"]);
    enforce(&["--interface", "lo"]).failed(2, &["--policy"]);
    let on = |interface| enforce(&["-i", interface, "--policy", policy]);
    on("weir-none").failed(1, &["no interface `weir-none`", "lo"]);
    on("lo").failed(1, &["`lo`", "no Ethernet frames"]);
    enforce(&["-i", "lo", "--policy", "/no/such"]).failed(1, &["/no/such"]);
    std::fs::write(&file, format!("{POLICY}ecn = true\n")).unwrap();
    on("lo").failed(1, &["policy.toml:3: rules.0.ecn: ", "tcp_ecn"]);
    let ask = ["enforce", "status", "--control", socket];
    run(&ask).failed(1, &["weir.sock", "`weir enforce` starts one"]);
    run(&["policy", "reload", "--control", socket]).failed(1, &["weir.sock"]);
}

#[test]
fn options_of_the_other_data_plane_are_refused() {
    let inline = ["enforce", "--policy", "p.toml", "--inline", "lan0", "wan0"];
    for more in [
        &["--interface", "lan0"][..],
        &["--hook", "tcx"],
        &["--reports", "1000"],
    ] {
        run(&[&inline[..], more].concat()).failed(2, &["cannot be used", more[0]]);
    }
    let at_sockets = ["enforce", "--policy", "p.toml", "--cgroup", "/"];
    for more in [
        &["--interface", "lan0"][..],
        &["--hook", "tcx"],
        &["--flows", "9"],
    ] {
        run(&[&at_sockets[..], more].concat()).failed(2, &["cannot be used", more[0]]);
    }
    run(&[&inline[..], &["--dry-run"]].concat()).failed(2, &["cannot be used", "--dry-run"]);
    let memory = ["-i", "lo", "--memory", "1MB"];
    run(&[&inline[..3], &memory].concat()).failed(2, &["cannot be used", "--memory"]);
    run(&[&inline[..5], &memory[..0]].concat()).failed(2, &["--inline", "2 values"]);
}
