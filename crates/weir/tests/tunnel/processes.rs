//! Client and server as processes on loopback.

use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::running::{Running, echo_server, echoes};
use crate::support::run;

fn server(policy: &Path, control: &Path) -> Running {
    let (policy, control) = (policy.to_str().unwrap(), control.to_str().unwrap());
    Running::start(&[
        "server",
        "--port",
        "0",
        "--policy",
        policy,
        "--control",
        control,
    ])
}

fn client(server: &Running, to: SocketAddr, more: &[&str]) -> (Running, String) {
    let (to, via) = (to.to_string(), server.said["listening"].as_str().unwrap());
    let pin = server.said["fingerprint"].as_str().unwrap();
    let common = [
        "client", "--listen", "0", "--to", &to, "--via", via, "--pin", pin,
    ];
    let client = Running::start(&[&common, more].concat());
    let address = client.said["listening"][0].as_str().unwrap().to_owned();
    (client, address)
}

#[test]
fn a_tunnel_carries_shows_reloads_and_drains() {
    let folder = tempfile::tempdir().unwrap();
    let (policy, control) = (
        folder.path().join("access.toml"),
        folder.path().join("c.sock"),
    );
    fs::write(&policy, "[[rules]]\nto = \"127.0.0.0/8\"\nallow = true\n").unwrap();
    let mut server = server(&policy, &control);
    let (_client, address) = client(&server, echo_server(), &[]);
    assert_eq!(echoes(&address), Ok(()));
    let found: Value = serde_json::from_str(
        &run(&["tunnel", "status", control.to_str().unwrap(), "--json"])
            .ok()
            .stdout,
    )
    .unwrap();
    assert_eq!(found["tunnels"][0]["received"], 5);
    let text = run(&["tunnel", "status", control.to_str().unwrap()])
        .ok()
        .stdout
        .clone();
    assert!(text.contains("by DCQUIC"), "{text}");
    // With mistakes, and without.
    fs::write(&policy, "[[rules]]\nallow = 1\n").unwrap();
    server.signal(Signal::HUP);
    fs::write(&policy, "[[rules]]\nallow = false\n").unwrap();
    server.signal(Signal::HUP);
    // The signal is handled some time after it was sent.
    while echoes(&address).is_ok() {}
    assert_eq!(echoes(&address), Err(ErrorKind::ConnectionReset));
    server.signal(Signal::TERM);
    assert!(server.child.wait().unwrap().success());
    assert!(!control.exists());
}

#[test]
fn wrong_arguments_are_named() {
    let pin = "00".repeat(32);
    let common = [
        "tunnel", "client", "--via", "gate1", "--pin", &pin, "--listen", "1",
    ];
    run(&[&common[..], &["--listen", "2", "--to", "a:1"]].concat())
        .failed(2, &["--to", "one for each"]);
    run(&[&common[..], &["--to", "a"]].concat()).failed(2, &["redis.svc:6379"]);
    run(&[&common[..], &["--to", "a:1", "--via", "b", "--via", "c"]].concat())
        .failed(2, &["--via", "3 servers"]);
    run(&["tunnel", "server"]).failed(2, &["--allow"]);
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("access.toml");
    fs::write(&policy, "[[rules]]\nclient = \"web\"\nallow = true\n").unwrap();
    run(&[
        "tunnel",
        "server",
        "--port",
        "0",
        "--policy",
        policy.to_str().unwrap(),
    ])
    .failed(1, &["access.toml:2", "rules.0.client", "SPIFFE"]);
    let nowhere = folder.path().join("none.sock");
    run(&["tunnel", "status", nowhere.to_str().unwrap()]).failed(1, &["none.sock", "--control"]);
}
