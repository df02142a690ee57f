//! What follows a controller besides enforcers: DCQUIC's endpoints of `weir perf`, and live runs.

use std::path::Path;

use serde_json::Value;

use crate::support::{CommandOutput, PerfServer, command_output, run, wait};
use crate::world::{World, free_port, of_kind};

/// Returns the arguments by which a host follows the controller at a port.
fn follows(world: &World, port: u16, name: &str) -> Vec<String> {
    let path = |name: &str| world.path(name).to_str().unwrap().to_owned();
    let controller = format!("127.0.0.1:{port}");
    let arguments = [
        ["--controller", &controller],
        ["--certificates", &path("certificates")],
        ["--name", name],
        ["--state", &path(name)],
    ];
    arguments.concat().into_iter().map(str::to_owned).collect()
}

fn strings(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

#[test]
fn perf_follows_a_controller() {
    let (world, port) = (World::new(), free_port());
    let controller = world.controller(port, "state", &[]);
    wait("a controller that leads", || {
        world.status(&[port]).is_some()
    });
    let rule =
        |to: &str, name: &str| format!("[[rules]]\nto = \"{to}\"\ncongestion = \"{name}\"\n");
    world.push(&[port], &rule("127.0.0.0/8", "swift"), &[]).ok();
    let (server, client) = (
        follows(&world, port, "host0"),
        follows(&world, port, "host1"),
    );
    let server = PerfServer::start(&strings(&server));
    world.wait_for(&[port], 1, 1);
    let test = |more: &[&str]| -> CommandOutput {
        let arguments = ["--transport", "dcquic", "--bytes", "100KB", "--json"];
        let mut client = server.client(&[&arguments[..], more].concat());
        client.args(["--pin", &server.fingerprint]);
        command_output(client.output().unwrap())
    };
    let congestion = |said: &CommandOutput| -> Value { said.json()["end"]["congestion"].clone() };
    assert_eq!(congestion(&test(&["--reverse"])), "swift");
    let said = test(&strings(&client));
    assert!(said.stderr.contains("version 1"), "{}", said.stderr);
    assert_eq!(congestion(&said), "swift");
    // Running endpoints take the next version for their next paths.
    world
        .push(&[port], &rule("127.0.0.0/8", "newreno"), &[])
        .ok();
    wait("version 2 at the server", || {
        congestion(&test(&["--reverse"])) == "newreno"
    });
    // The client has kept version 1, and goes on with it when there is no controller.
    drop(controller);
    let said = test(&strings(&client));
    assert!(said.stderr.contains("version 1"), "{}", said.stderr);
    assert_eq!(congestion(&said), "swift");
    let log_says = |more: &[&str], words: &[&str]| {
        let arguments = [&strings(&client)[..], more].concat();
        let mut client = server.client(&arguments);
        command_output(client.output().unwrap()).failed(2, words);
    };
    log_says(&["--transport", "tcp"], &["--controller", "dcquic"]);
    log_says(&["--policy", "file"], &["--policy", "--controller"]);
    log_says(&["--congestion", "bbr"], &["--congestion"]);
}

/// A sender of 100 Mbps, and a receiver.
const DUMBBELL: &str = r#"
title = "A dumbbell, live"
source = "a test"
duration = "400ms"

[dumbbell]
rate = "100Mbps"
queue = { kind = "drop-tail", buffer = "100KB" }
[dumbbell.senders.sender]
rtt = "1ms"

[groups.bulk]
from = "sender"
to = "receiver"
congestion = "cubic"
workload = "bulk"
stands_for = { from = "10.0.0.1", to = "10.0.0.2", to_port = 80 }
"#;

#[test]
fn a_live_run_is_a_host_of_the_fleet() {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/net/tun").exists() {
        eprintln!("SKIPPED: a_live_run_is_a_host_of_the_fleet: it takes root and /dev/net/tun");
        return;
    }
    let (world, port) = (World::new(), free_port());
    let _controller = world.controller(port, "state", &[]);
    wait("a controller that leads", || {
        world.status(&[port]).is_some()
    });
    let file = world.file("scenario.toml", DUMBBELL);
    let arguments = follows(&world, port, "host2");
    let live = |more: &[&str]| {
        let file = file.to_str().unwrap();
        run(&[&["run", file, "--json"][..], &strings(&arguments), more].concat())
    };
    let congestion = "[[rules]]\nto_port = 80\ncongestion = \"newreno\"\n";
    world.push(&[port], congestion, &[]).ok();
    let said = live(&["--live"]);
    let settings = said.json()["settings"].clone();
    assert_eq!(settings["policy"], "version 1", "{settings}");
    assert!(
        said.stderr.contains("policy: group `bulk`: newreno"),
        "{}",
        said.stderr
    );
    let log = world.log(&[port]);
    let took = of_kind(&log, "took");
    assert_eq!(took.len(), 1, "{log:?}");
    assert_eq!(
        (&took[0]["version"], &took[0]["hosts"][0]),
        (&1.into(), &"host2".into())
    );
    let wrong = "[[rules]]\nfrom_port = 9\ncongestion = \"newreno\"\n";
    world.push(&[port], wrong, &[]).ok();
    // A scenario that does not say enough to decide a rule takes no version, and takes none back.
    live(&["--live"]).failed(1, &["version 2"]);
    assert!(of_kind(&world.log(&[port]), "refused").is_empty());
    live(&[]).failed(2, &["--controller", "--live", "--simulate"]);
}
