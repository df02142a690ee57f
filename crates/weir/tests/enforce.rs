//! `weir enforce`: what it says where it cannot work, and, as root, its life from start to end.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(dead_code, reason = "the support is shared with other tests")]

mod support;

use support::run;

const POLICY: &str = "[[rules]]\ncongestion = \"bbr\"\n";

#[test]
fn what_is_missing_is_named() {
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
    on("lo").failed(1, &["policy.toml: line 1", "tcp_ecn"]);
    let ask = ["enforce", "status", "--control", socket];
    run(&ask).failed(1, &["weir.sock", "`weir enforce` starts one"]);
    run(&["policy", "reload", "--control", socket]).failed(1, &["weir.sock"]);
}

#[cfg(feature = "bpf")]
mod running {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A network namespace, with an interface whose other end is in it too.
    struct Namespace(String);

    impl Namespace {
        fn new() -> Self {
            let namespace = Self(format!("weir-enforce-{}", std::process::id()));
            let name = &namespace.0;
            ip(&["netns", "add", name]);
            ip(&[
                "-n", name, "link", "add", "one", "type", "veth", "peer", "name", "two",
            ]);
            namespace
        }
    }

    impl Drop for Namespace {
        fn drop(&mut self) {
            ip(&["netns", "delete", &self.0]);
        }
    }

    fn ip(arguments: &[&str]) {
        let status = Command::new("ip").args(arguments).status().unwrap();
        assert!(status.success(), "{arguments:?}");
    }

    /// Ends with the test.
    struct Running(Child);

    impl Drop for Running {
        fn drop(&mut self) {
            // It has mostly ended.
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn is_root() -> bool {
        let root = rustix::process::geteuid().is_root();
        if !root {
            eprintln!("SKIPPED: a_policy_is_reloaded_and_a_signal_ends_it: it takes root");
        }
        root
    }

    #[test]
    fn a_policy_is_reloaded_and_a_signal_ends_it() {
        if !is_root() {
            return;
        }
        let namespace = Namespace::new();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.toml");
        let socket = folder.path().join("weir.sock");
        std::fs::write(&file, POLICY).unwrap();
        let socket_text = socket.to_str().unwrap();
        let child = Command::new("ip")
            .args(["netns", "exec", &namespace.0, env!("CARGO_BIN_EXE_weir")])
            .args(["enforce", "-i", "one", "--control", socket_text, "--policy"])
            .arg(&file)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut running = Running(child);
        let mut first = String::new();
        let output = running.0.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut first).unwrap();
        assert!(first.ends_with("1 rules on one\n"), "{first}");

        let status = run(&["enforce", "status", "--json", "--control", socket_text]).json();
        assert_eq!(status["interfaces"][0], "one");
        let reload = || run(&["policy", "reload", "--control", socket_text]);
        std::fs::write(&file, format!("{POLICY}[[rules]]\npass = true\n")).unwrap();
        assert!(reload().ok().stdout.contains("2 rules in force"));
        std::fs::write(&file, "[[rules]]\nto = 5\n").unwrap();
        reload().failed(1, &["policy.toml:2: rules.0.to", "stays in force"]);

        let pid = rustix::process::Pid::from_child(&running.0);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let status = running.0.wait().unwrap();
        assert!(status.success(), "{status}");
        assert!(!socket.exists());
    }
}
