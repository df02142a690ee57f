//! `weir bench rpc`, with few iterations.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(dead_code, reason = "the support is shared with other tests")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use support::{command_output, run, weir};

const TRANSPORTS: &str = "dcquic,tcp-tls";

#[test]
fn few_iterations_give_all_measurements() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("result.json");
    let arguments = ["bench", "rpc", "--iterations", "20", "--placement", "free"];
    let said = command_output(
        weir(&arguments)
            .args(["--transports", TRANSPORTS, "--sizes", "10KB", "--json"])
            .arg(&path)
            .output()
            .unwrap(),
    );
    let text = &said.ok().stdout;
    for word in ["median", "p99.9", "established 10", "tcp-tls", "÷ tcp-tls"] {
        assert!(text.contains(word), "no {word} in {text}");
    }
    let json: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let measurements = json["measurements"].as_array().unwrap();
    // Only DCQUIC has calls to known peers.
    assert_eq!(measurements.len(), 2 * 4 + 1);
    for measurement in measurements {
        for key in ["median_us", "p99_us", "p999_us"] {
            assert!(measurement[key].as_f64().unwrap() > 0.0, "{measurement}");
        }
        assert_eq!(measurement["iterations"], 20);
    }
    assert_eq!(json["ratios"].as_array().unwrap().len(), 4 + 1);
    assert!(json["environment"]["kernel"].is_string());
}

#[test]
fn an_unwritable_file_and_a_missing_server_are_named() {
    let few = [
        "bench",
        "rpc",
        "--iterations",
        "1",
        "--transports",
        "tcp",
        "--placement",
        "free",
    ];
    let nowhere = [&few[..], &["--json", "/nonexistent/result.json"]].concat();
    run(&nowhere).failed(1, &["/nonexistent/result.json"]);

    let unused = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let pin = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let nobody = [&few[..], &["--connect", &unused, "--pin", pin]].concat();
    run(&nobody).failed(1, &[&unused, "weir bench rpc --server"]);
}

/// Starts a server and returns the client arguments that it prints.
fn server() -> (Child, Vec<String>) {
    for port in (20_000..20_100).step_by(2) {
        let address = format!("127.0.0.1:{port}");
        let mut child = weir(&[
            "bench",
            "rpc",
            "--transports",
            TRANSPORTS,
            "--server",
            &address,
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for line in lines.map_while(Result::ok) {
            if let Some(arguments) = line.strip_prefix("weir ") {
                return (child, arguments.split(' ').map(str::to_owned).collect());
            }
        }
        // The port is in use.
        child.wait().unwrap();
    }
    panic!("no port is free");
}

#[test]
fn a_remote_client_runs_with_the_arguments_the_server_prints() {
    let (mut child, arguments) = server();
    let client = |arguments: &[String]| {
        let few = ["--iterations", "5", "--sizes", "10KB", "--json", "-"];
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        command_output(weir(&arguments).args(few).output().unwrap())
    };
    let json = client(&arguments).json();
    assert_eq!(json["measurements"].as_array().unwrap().len(), 2 * 4 + 1);

    let mut wrong = arguments;
    let pin = wrong.last_mut().unwrap();
    let other = if pin.starts_with('0') { "1" } else { "0" };
    pin.replace_range(..1, other);
    let refused = client(&wrong);
    refused.failed(1, &["could not be made"]);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Returns the child processes of a parent.
fn children(parent: u32) -> Vec<i32> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

fn is_running(pid: i32) -> bool {
    // A zombie no longer runs; it waits to be reaped.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(") ")
            .next()
            .unwrap_or_default()
            .starts_with('Z')
    })
}

#[test]
fn ctrl_c_leaves_no_process_behind() {
    for signal in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut bench = weir(&[
            "bench",
            "rpc",
            "--iterations",
            "1000000",
            "--transports",
            "tcp",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
        let workers = loop {
            let workers = children(bench.id());
            if workers.len() >= 2 {
                break workers;
            }
            assert!(bench.try_wait().unwrap().is_none(), "it ended by itself");
            std::thread::yield_now();
        };
        kill_process(Pid::from_child(&bench), signal.0).unwrap();
        assert_eq!(bench.wait().unwrap().code(), Some(signal.1));
        for worker in workers {
            while is_running(worker) {
                std::thread::yield_now();
            }
        }
    }
}
