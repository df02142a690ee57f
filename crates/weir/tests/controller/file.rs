//! One controller, with its versions in a file.

use weir_control::{Credentials, FollowedPolicy, HeldFile, HostOptions, ReadPolicy};
use weir_policy::{Policy, PolicyFlow, PolicySource as _};
use weir_rollout::Labels;
use weir_scenario::parse_policy;

use crate::support::wait;
use crate::world::{Hosts, World, copy, free_port, of_kind, text};

#[test]
fn a_version_goes_in_stages_and_is_undone() {
    let (world, port) = (World::new(), free_port());
    let ports = [port];
    let _controller = world.controller(port, "state", &[]);
    let _hosts = Hosts::start(&world, &ports, 8);
    world.wait_for(&ports, 0, 8);
    let stages = ["--stages", "50 % of role=web, then all", "--wait", "1s"];
    world.push(&ports, &text(1), &stages).ok();
    world
        .push(&ports, &text(2), &[])
        .failed(1, &["version 1 is on its way", "weir policy undo"]);
    world.wait_for(&ports, 1, 8);
    let log = world.log(&ports);
    assert_eq!(of_kind(&log, "stage_began")[0]["hosts"], 2, "half of four");
    assert_eq!(of_kind(&log, "pushed")[0]["author"], "alice");
    wait("the end of the roll-out", || {
        world
            .status(&ports)
            .is_some_and(|status| status["rollout"].is_null())
    });
    world.push(&ports, &text(2), &[]).ok();
    world.wait_for(&ports, 2, 8);
    wait("the end of the roll-out", || {
        world
            .status(&ports)
            .is_some_and(|status| status["version"] == 2)
    });
    let diff = world.policy(&ports, &["diff", "--from", "1", "--to", "2"]);
    assert!(
        diff.ok()
            .stdout
            .contains("-line    1  to_port 1: cubic\n+line    1  to_port 2: cubic"),
        "{}",
        diff.stdout
    );
    world
        .policy(&ports, &["undo", "--as", "alice", "-m", "slow"])
        .ok();
    world.wait_for(&ports, 3, 8);
    let diff = world.policy(&ports, &["diff", "--from", "1", "--to", "3"]);
    assert!(
        diff.ok().stdout.contains("no rule differs"),
        "{}",
        diff.stdout
    );
    let versions = world.policy(&ports, &["log", "--versions"]);
    assert!(
        versions.ok().stdout.contains("alice        slow"),
        "{}",
        versions.stdout
    );
    let status = world.policy(&ports, &["status"]);
    let status = &status.ok().stdout;
    assert!(
        status.contains("version 3 everywhere; 8 hosts attached, 8 known"),
        "{status}"
    );
}

#[test]
fn what_makes_no_sense_is_refused_with_what_would_be_right() {
    let (world, port) = (World::new(), free_port());
    let ports = [port];
    world
        .policy(&ports, &["status"])
        .failed(1, &["no controller decides", "Connection refused"]);
    let _controller = world.controller(port, "state", &[]);
    let _hosts = Hosts::start(&world, &ports, 1);
    world.wait_for(&ports, 0, 1);
    world
        .push(&ports, "[[rules]]\n", &[])
        .failed(1, &["pushed.toml:1"]);
    world
        .push(&ports, &text(1), &["--stages", "10 %"])
        .failed(2, &["--stages", "it must be `all`"]);
    world
        .push(
            &ports,
            &text(1),
            &["--stages", "10 % of role=gpu, then all"],
        )
        .failed(1, &["no connected host", "role=gpu"]);
    world
        .push(&ports, &text(1), &["--guard", "cpu > 2x for 10s"])
        .failed(2, &["--guard", "--stages"]);
    let file = world.file("good.toml", &text(1));
    let file = file.to_str().unwrap();
    for name in ["operator", "host0"] {
        world
            .policy(&ports, &["push", file, "--as", name, "-m", "why"])
            .failed(1, &["NAME.publisher.weir", "--publisher NAME"]);
    }
    world
        .policy(&ports, &["status", "--as", "host0"])
        .failed(1, &["operator.weir"]);
    world
        .policy(&ports, &["undo", "--as", "alice", "-m", "why"])
        .failed(1, &["no version to undo"]);
    world
        .policy(&ports, &["diff", "--from", "7", file])
        .failed(1, &["there is no version 7"]);
    // No file is left behind, and nothing is pushed.
    let log = world.log(&ports);
    assert!(of_kind(&log, "pushed").is_empty(), "{log:?}");
    let error = world.failing_controller(port, "other");
    assert!(error.contains("is in use"), "{error}");
    let error = world.failing_controller(free_port(), "state");
    assert!(
        error.contains("belongs to a controller that is running"),
        "{error}"
    );
}

#[test]
fn a_host_that_cannot_has_the_version_come_back() {
    let (world, port) = (World::new(), free_port());
    let ports = [port];
    let _controller = world.controller(port, "state", &[]);
    let _hosts = Hosts::start(&world, &ports, 8);
    world.wait_for(&ports, 0, 8);
    let bad = "[[rules]]\ncongestion = \"bbr\"\n";
    world
        .push(&ports, bad, &["--stages", "10 %, then all"])
        .ok();
    wait("the version to come back", || {
        !of_kind(&world.log(&ports), "taken_back").is_empty()
    });
    let log = world.log(&ports);
    let reason = of_kind(&log, "taken_back")[0]["reason"].as_str().unwrap();
    assert!(reason.contains("there is no bbr here"), "{reason}");
    world.wait_for(&ports, 0, 8);
}

#[test]
fn a_killed_controller_goes_on_where_it_was() {
    let (world, port) = (World::new(), free_port());
    let ports = [port];
    let controller = world.controller(port, "state", &[]);
    let hosts = Hosts::start(&world, &ports, 8);
    world.wait_for(&ports, 0, 8);
    world.push(&ports, &text(1), &[]).ok();
    drop(controller);
    // Each host has one of the two, and keeps it without contact.
    assert!((0..8).all(|number| Hosts::kept(&world, number) <= 1));
    let _controller = world.controller(port, "state", &[]);
    world.wait_for(&ports, 1, 8);
    let log = world.log(&ports);
    let took = of_kind(&log, "took").into_iter();
    let took = took.filter(|entry| entry["version"] == 1);
    let names = took.flat_map(|entry| entry["hosts"].as_array().unwrap());
    let mut names: Vec<_> = names.map(|name| name.as_str().unwrap()).collect();
    names.sort_unstable();
    let expected: Vec<_> = (0..8).map(|number| format!("host{number}")).collect();
    assert_eq!(names, expected, "each took it once");
    // Hosts that start again have it before they have contact.
    drop(hosts);
    assert!((0..8).all(|number| Hosts::kept(&world, number) == 1));
    let _hosts = Hosts::start(&world, &ports, 8);
    world.wait_for(&ports, 1, 8);
}

#[test]
fn an_old_copy_of_the_store_takes_nothing_back_and_says_so() {
    let (world, port) = (World::new(), free_port());
    let ports = [port];
    let controller = world.controller(port, "state", &[]);
    let _hosts = Hosts::start(&world, &ports, 8);
    world.wait_for(&ports, 0, 8);
    world.push(&ports, &text(1), &[]).ok();
    world.wait_for(&ports, 1, 8);
    drop(controller);
    copy(&world.path("state"), &world.path("copy"));
    let controller = world.controller(port, "state", &[]);
    world.wait_for(&ports, 1, 8);
    wait("the end of the roll-out", || {
        world.push(&ports, &text(2), &[]).code == Some(0)
    });
    world.wait_for(&ports, 2, 8);
    drop(controller);
    let _controller = world.controller(port, "copy", &[]);
    wait("all hosts ahead of the store", || {
        world.status(&ports).is_some_and(|status| {
            status["attached"] == 8 && status["ahead_of_store"]["version"] == 2
        })
    });
    let status = world.policy(&ports, &["status"]);
    assert!(
        status.stdout.contains("THE STORE IS AN OLD COPY"),
        "{}",
        status.stdout
    );
    world
        .push(&ports, &text(3), &[])
        .failed(1, &["old copy", "--supersede"]);
    assert!((0..8).all(|number| Hosts::kept(&world, number) == 2));
    world.push(&ports, &text(3), &["--supersede"]).ok();
    world.wait_for(&ports, 3, 8);
}

#[test]
fn a_damaged_store_is_named() {
    let (world, port) = (World::new(), free_port());
    drop(world.controller(port, "state", &[]));
    let store = world.path("state").join("policy.redb");
    std::fs::write(
        &store,
        "no database at all, but long enough to be one".repeat(1000),
    )
    .unwrap();
    let error = world.failing_controller(port, "state");
    assert!(
        error.contains("policy.redb") && error.contains("bring a copy back"),
        "{error}"
    );
}

#[test]
fn endpoints_follow_a_controller_as_their_source_of_policies() {
    let (world, port) = (World::new(), free_port());
    let _controller = world.controller(port, "state", &[]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let certificates = world.path("certificates");
    let options = || HostOptions {
        controllers: vec![format!("127.0.0.1:{port}")],
        credentials: Credentials::from_directory(&certificates, "host7").unwrap(),
        name: "host7".to_owned(),
        labels: Labels::default(),
        held: None,
        wake: None,
    };
    let file = HeldFile::in_directory(&world.path("host7")).unwrap();
    let read: ReadPolicy = |text| match text {
        "" => Ok(Policy::default()),
        text => parse_policy("version", text).map_err(|error| error.to_string()),
    };
    let follow = || {
        let _entered = runtime.enter();
        FollowedPolicy::start(options(), file.clone(), read).unwrap()
    };
    let source = follow();
    let flow = PolicyFlow::between("10.0.0.1:9".parse().unwrap(), "10.0.0.2:1".parse().unwrap());
    assert!(source.control(&flow).is_none());
    world.wait_for(&[port], 0, 1);
    world.push(&[port], &text(1), &[]).ok();
    wait("the version at the endpoint", || {
        source.control(&flow).is_some()
    });
    drop(source);
    // It holds before there is contact.
    assert!(follow().control(&flow).is_some());
}
