//! What sockets get.

use weir_policy::{PolicyFlow, Share};

use super::{Place, connect, peer::Peer};
use crate::exclusive::run_to_end;
use crate::running::wait;

#[test]
fn two_control_groups_have_two_algorithms() {
    let Some(place) = Place::new("two_control_groups_have_two_algorithms") else {
        return;
    };
    let groups = ["a", "b", "c"].map(|name| place.cgroup.below(name));
    let [one, two, _] = &groups;
    let policy = format!(
        "[[rules]]\ncgroup = \"{}\"\ncongestion = {{ name = \"cubic\", initial_window = 7 }}\n\
         [[rules]]\ncgroup = \"{}\"\ncongestion = \"bbr\"\n",
        one.path, two.path
    );
    let running = place.enforce(&policy, &[]);
    let mut peers = groups
        .each_ref()
        .map(|group| Peer::start(group, &place.namespace));
    for (peer, port) in peers.iter_mut().zip([8001, 8002, 8003]) {
        peer.ask(&format!("listen 127.0.0.1:{port}"));
        peer.ask(&format!("connect 127.0.0.1:{port}"));
        peer.ask("accept");
    }
    for (port, name) in [(8001, "cubic"), (8002, "bbr"), (8003, "reno")] {
        assert!(place.has(port, name), "{}", place.sockets_from(port));
    }
    assert!(place.has(8001, "cwnd:7") && !place.has(8003, "cwnd:7"));
    let status = running.status();
    let rules = status["sockets"]["rules"].as_array().unwrap();
    let counts: Vec<_> = { rules.iter() }
        .map(|rule| ["line", "flows", "matched", "applied"].map(|key| rule[key].as_u64().unwrap()))
        .collect();
    // Both ends of each connection.
    assert_eq!(counts, [[1, 2, 2, 2], [4, 2, 2, 2]], "{status}");
    let text = running.status_text();
    assert!(text.contains("cubic") && text.contains("matched"), "{text}");
}

#[test]
fn dctcp_negotiates_ecn_and_is_reno_without() {
    let Some(place) = Place::new("dctcp_negotiates_ecn_and_is_reno_without") else {
        return;
    };
    let outside = super::Cgroup::new();
    place.set("tcp_ecn", "0");
    let running = place.enforce("[[rules]]\ncongestion = \"dctcp\"\n", &[]);
    let [mut server, mut client] = [place.peer(), place.peer()];
    connect(&mut server, &mut client, "127.0.0.1:8001");
    let sockets = place.sockets_from(8001);
    assert!(sockets.contains("weir_dctcp"), "{sockets}");
    assert!(place.has(8001, "ecn"), "{sockets}");
    // A client that is not under the policy asks for no ECN.
    let mut stranger = Peer::start(&outside, &place.namespace);
    connect(&mut server, &mut stranger, "127.0.0.1:8002");
    assert!(place.has(8002, "reno") && !place.has(8002, "ecn"));
    let rule = running.status()["sockets"]["rules"][0].clone();
    assert_eq!(rule["without_ecn"], 1, "{rule}");
    assert_eq!(rule["flows"], 3, "{rule}");
    assert_eq!(rule["flows_without_ecn"], 1, "{rule}");
}

#[test]
fn rules_set_the_other_options_and_the_stop_puts_them_back() {
    let Some(place) = Place::new("rules_set_the_other_options_and_the_stop_puts_them_back") else {
        return;
    };
    let policy = "[[rules]]\nfrom_port = 8001\n\
         congestion = { name = \"cubic\", max_window = \"300KB\", max_rate = \"80Mbps\" }\n\
         min_rto = \"40ms\"\nmax_ack_delay = \"20ms\"\nset_dscp = \"af41\"\n";
    let running = place.enforce(policy, &[]);
    let [mut server, mut client] = [place.peer(), place.peer()];
    connect(&mut server, &mut client, "127.0.0.1:8001");
    server.ask("send 100000");
    assert!(place.has(8001, "cubic"), "{}", place.sockets_from(8001));
    let limited = |place: &Place| place.sockets_from(8001).contains("/80000000bps");
    assert!(limited(&place), "{}", place.sockets_from(8001));
    let class = |place: &Place| {
        let mut command = place.namespace.command("ss");
        let output = command
            .args(["-tnOHi", "--tos", "state", "established", "sport = 8001"])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(class(&place).contains("tos:0x88"), "{}", class(&place));
    let rule = running.status()["sockets"]["rules"][0].clone();
    assert_eq!(
        (&rule["applied"], &rule["refused"]),
        (&1.into(), &serde_json::json!({})),
        "{rule}"
    );
    running.signal(rustix::process::Signal::INT);
    let (status, said) = running.end();
    assert!(status.success(), "{said}");
    assert!(place.has(8001, "reno"), "{}", place.sockets_from(8001));
    assert!(!limited(&place) && !class(&place).contains("tos:0x88"));
}

#[test]
fn sockets_that_are_open_follow_the_policy() {
    let Some(place) = Place::new("sockets_that_are_open_follow_the_policy") else {
        return;
    };
    let [mut server, mut client] = [place.peer(), place.peer()];
    connect(&mut server, &mut client, "127.0.0.1:8001");
    let rule =
        |port: u16, name: &str| format!("[[rules]]\nfrom_port = {port}\ncongestion = \"{name}\"\n");
    let running = place.enforce(&rule(8001, "cubic"), &[]);
    assert!(place.has(8001, "cubic"));
    running.reload(&rule(8001, "bbr")).ok();
    assert!(place.has(8001, "bbr"));
    // A file with mistakes changes nothing.
    running
        .reload(&rule(8001, "swift"))
        .failed(1, &["rules.0.congestion", "swift", "stays in force"]);
    assert!(place.has(8001, "bbr"));
    running.reload(&rule(8002, "bbr")).ok();
    assert!(place.has(8001, "reno"), "no rule matches it");
    let rules = running.status()["sockets"]["rules"].clone();
    assert_eq!(rules.as_array().unwrap().len(), 1, "{rules}");
}

#[test]
fn ipv6_is_matched_by_its_prefixes() {
    let Some(place) = Place::new("ipv6_is_matched_by_its_prefixes") else {
        return;
    };
    let policy = "[[rules]]\nto = \"127.0.0.0/8\"\ncongestion = \"cubic\"\n\
                  [[rules]]\nto = \"::1\"\ncongestion = \"bbr\"\nset_dscp = \"ef\"\n";
    let running = place.enforce(policy, &[]);
    let [mut server, mut client] = [place.peer(), place.peer()];
    connect(&mut server, &mut client, "[::1]:8001");
    assert!(place.has(8001, "bbr"), "{}", place.sockets_from(8001));
    // IPv4 on a listener for both.
    server.ask("listen [::]:8002");
    client.ask("connect 127.0.0.1:8002");
    server.ask("accept");
    assert!(place.has(8002, "cubic"), "{}", place.sockets_from(8002));
    let rules = running.status()["sockets"]["rules"].clone();
    assert_eq!(
        (&rules[1]["applied"], &rules[1]["matched"]),
        (&2.into(), &2.into()),
        "{rules}"
    );
}

#[test]
fn rules_match_the_process_that_opened_the_socket_or_its_listener() {
    let name = "rules_match_the_process_that_opened_the_socket_or_its_listener";
    let Some(place) = Place::new(name) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("weir-peer");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let start = || Peer::start_program(&place.cgroup, &place.namespace, &program);
    // Its listener is older than the policy.
    let [mut early, mut server, mut client] = [start(), start(), place.peer()];
    early.ask("listen 127.0.0.1:8001");
    place.set("tcp_ecn", "0");
    // The clients are the test binary itself.
    let policy = "[[rules]]\nuser = \"nobody\"\ncongestion = \"bbr\"\n\
                  [[rules]]\nuser = 0\ncommand = \"weir-pe*\"\ncongestion = \"cubic\"\necn = true\n\
                  [[rules]]\ncommand = \"enforce-*\"\nto_port = [8001, 8002]\n\
                  congestion = \"bbr\"\necn = true\n";
    let _running = place.enforce(policy, &[]);
    client.ask("connect 127.0.0.1:8001");
    early.ask("accept");
    connect(&mut server, &mut client, "127.0.0.1:8002");
    for port in [8001, 8002] {
        let sockets = place.sockets_from(port);
        assert!(place.has(port, "cubic"), "{sockets}");
        // It was accepted for the listener's owner, before there was a socket.
        assert!(place.has(port, "ecn"), "{sockets}");
    }
    connect(&mut client, &mut server, "127.0.0.1:8003");
    let sockets = place.sockets_from(8003);
    assert!(
        place.has(8003, "reno") && !place.has(8003, "ecn"),
        "{sockets}"
    );
}

#[test]
fn a_share_of_the_connections_is_treated() {
    let Some(place) = Place::new("a_share_of_the_connections_is_treated") else {
        return;
    };
    let policy =
        "[[rules]]\nfrom_port = 8001\ncongestion = \"cubic\"\nshare = 0.5\ncompare = true\n";
    let running = place.enforce(policy, &[]);
    let [mut server, mut client] = [place.peer(), place.peer()];
    server.ask("listen 127.0.0.1:8001");
    for _ in 0..20 {
        client.ask("connect 127.0.0.1:8001");
        server.ask("accept");
    }
    let share = Share::of_rule(0.5, 0, 0).unwrap();
    let sockets = place.sockets_from(8001);
    let (mut treated, mut control) = (0, 0);
    for line in sockets.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        let [local, peer] = [words[2], words[3]].map(|end| end.parse().unwrap());
        let is_in = share.contains(&PolicyFlow::between(local, peer).key);
        let name = if is_in { "cubic" } else { "reno" };
        assert!(words.contains(&name), "{line}");
        if is_in {
            treated += 1;
        } else {
            control += 1;
        }
    }
    assert_eq!(treated + control, 20, "{sockets}");
    let rule = running.status()["sockets"]["rules"][0].clone();
    assert_eq!(
        (&rule["flows"], &rule["control_flows"]),
        (&treated.into(), &control.into()),
        "{rule}"
    );
    let all = policy.replace("share = 0.5\ncompare = true\n", "");
    running.reload(&all).ok();
    assert!(
        place
            .sockets_from(8001)
            .lines()
            .all(|line| line.contains(" cubic "))
    );
}

#[test]
fn a_dry_run_counts_and_changes_nothing() {
    let Some(place) = Place::new("a_dry_run_counts_and_changes_nothing") else {
        return;
    };
    let running = place.enforce("[[rules]]\ncongestion = \"cubic\"\n", &["--dry-run"]);
    assert!(running.first.contains("dry run"), "{}", running.first);
    let [mut server, mut client] = [place.peer(), place.peer()];
    connect(&mut server, &mut client, "127.0.0.1:8001");
    assert!(place.has(8001, "reno"));
    let status = running.status()["sockets"].clone();
    assert_eq!(status["is_dry_run"], true);
    let rule = &status["rules"][0];
    let counts = ["matched", "flows", "applied"].map(|key| rule[key].as_u64().unwrap());
    assert_eq!(counts, [2, 2, 0], "{rule}");
}

#[test]
fn the_word_of_an_application_holds() {
    let Some(place) = Place::new("the_word_of_an_application_holds") else {
        return;
    };
    let running = place.enforce(
        "[[rules]]\nfrom_port = \"8001-8009\"\ncongestion = \"cubic\"\n",
        &[],
    );
    let [mut server, mut client] = [place.peer(), place.peer()];
    connect(&mut server, &mut client, "127.0.0.1:8001");
    assert_eq!(server.ask("congestion bbr"), "Ok(())");
    connect(&mut server, &mut client, "127.0.0.1:8002");
    assert_eq!(server.ask("congestion cubic"), "Ok(())");
    connect(&mut server, &mut client, "127.0.0.1:8003");
    assert!(server.ask("congestion no_such").contains("Err"));
    let rule = running.status()["sockets"]["rules"][0].clone();
    assert_eq!(
        (&rule["overridden"], &rule["overridden_flows"]),
        (&3.into(), &3.into()),
        "{rule}"
    );
    running
        .reload("[[rules]]\nfrom_port = \"8001-8010\"\ncongestion = \"cubic\"\n")
        .ok();
    for (port, name) in [(8001, "bbr"), (8002, "cubic")] {
        assert!(place.has(port, name), "{}", place.sockets_from(port));
    }
    running.signal(rustix::process::Signal::INT);
    assert!(running.end().0.success());
    // What the kernel refused was not said.
    for (port, name) in [(8001, "bbr"), (8002, "cubic"), (8003, "reno")] {
        assert!(place.has(port, name), "{}", place.sockets_from(port));
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let Some(place) = Place::new("what_cannot_be_is_refused") else {
        return;
    };
    let below = place.cgroup.below("a");
    let running = place.enforce(crate::POLICY, &[]);
    let holder = format!("process {}", running.child.id());
    for path in [place.cgroup.path.as_str(), &below.path] {
        run_to_end(&place.namespace, &["--cgroup", path]).failed(1, &[&holder, "controlled"]);
    }
    let missing = format!("{}/missing", place.cgroup.path);
    run_to_end(&place.namespace, &["--cgroup", &missing])
        .failed(1, &["no control group", "missing"]);
    // Beside it another one may run.
    let other = super::Cgroup::new();
    let arguments = ["--cgroup", &other.path];
    let beside = crate::running::Running::start(&place.namespace, crate::POLICY, &arguments);
    assert!(
        beside.first.contains("1 rules at the sockets"),
        "{}",
        beside.first
    );
}

#[test]
fn control_groups_come_and_go() {
    let Some(place) = Place::new("control_groups_come_and_go") else {
        return;
    };
    let policy = format!(
        "[[rules]]\ncgroup = \"{}/service\"\ncongestion = \"cubic\"\n",
        place.cgroup.path
    );
    let running = place.enforce(&policy, &[]);
    for port in [8001, 8002] {
        let group = place.cgroup.below("service");
        let mut peer = Peer::start(&group, &place.namespace);
        peer.ask(&format!("listen 127.0.0.1:{port}"));
        peer.ask(&format!("connect 127.0.0.1:{port}"));
        peer.ask("accept");
        wait("the control group is found", || place.has(port, "cubic"));
    }
    let Place { cgroup, .. } = place;
    drop(cgroup);
    let (status, said) = running.end();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("the control group was removed"), "{said}");
}
