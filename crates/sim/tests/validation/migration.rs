//! DCQUIC's path migration when a path degrades: Tan et al., *DCQUIC*, sections 3.4 and 4.3.

use weir_results::RunSummary;
use weir_scenario::Scenario;
use weir_sim::Simulation;
use weir_units::{Duration, Time};

use crate::observe::{run, scenario};

/// A client with a link to each of two switches, a server with one to each.
const TWO_WAYS: &str = r#"
title = "Two ways"
source = "Tan et al., DCQUIC, section 4.3"
duration = "600ms"
[hosts.client]
[hosts.host]
[switches.s1]
[switches.s2]
[[links]]
from = "client"
to = "s*"
rate = "1Gbps"
delay = "12us"
[[links]]
from = "host"
to = "s*"
rate = "1Gbps"
delay = "12us"
[groups.client]
from = "client"
to = "host"
via = "s2"
transport = "quic"
congestion = "dctcp"
workload = { kind = "request-response", request = "200B", response = "100KB", pause = "1ms" }
[measurements]
ports = "*"
"#;

fn packets_via(summary: &RunSummary, switch: &str) -> u64 {
    let towards_client = format!("{switch}->client");
    summary.ports[&towards_client].packets
}

#[test]
fn a_client_leaves_a_failed_path_within_milliseconds() {
    let healthy = run(TWO_WAYS, &[]);
    let usual = healthy.groups["client"].completion.as_ref().unwrap().max;
    // Only the validation of the other path uses it.
    assert!(
        packets_via(&healthy, "s1") < 20,
        "{}",
        packets_via(&healthy, "s1")
    );
    let mut longest = Duration::ZERO;
    for moment in (0..12).map(|number| 200_000 + 137 * number) {
        let fault = format!(
            "[[faults]]\nkind = \"down\"\nports = [\"*->s2\", \"s2->*\"]\nat = \"{moment}us\"\n"
        );
        let summary = run(&format!("{TWO_WAYS}{fault}"), &[]);
        let client = &summary.groups["client"];
        let slowest = client.completion.as_ref().unwrap().max;
        longest = longest.max(slowest - usual);
        // All other requests were as fast as before, through the other switch.
        assert!(client.completed + 5 > healthy.groups["client"].completed);
        assert!(packets_via(&summary, "s1") > 5_000);
    }
    println!("usual {usual}, later by {longest} at most");
    // Three probe timeouts and a round trip (DCQUIC's own bound), and the retransmissions.
    assert!(longest < Duration::from_millis(4), "{longest}");
    assert!(longest > Duration::from_micros(500), "{longest}");
}

#[test]
fn without_migration_a_client_waits_for_the_failed_path() {
    let fault = "[[faults]]\nkind = \"down\"\nports = [\"*->s2\", \"s2->*\"]\nat = \"100ms\"\nuntil = \"300ms\"\n";
    let text = format!("{TWO_WAYS}{fault}");
    let summary = run(
        &text,
        &["groups.client.quic.proactive_migration=false".to_owned()],
    );
    let slowest = summary.groups["client"].completion.as_ref().unwrap().max;
    assert!(slowest >= Duration::from_millis(190), "{slowest}");
    assert!(packets_via(&summary, "s1") < 20);
}

/// The same, and a request of 1 MB during which the client's address changes.
#[test]
fn a_client_continues_from_its_new_address() {
    let settings = [
        "groups.client.workload.request=1MB".to_owned(),
        "groups.client.workload.response=200B".to_owned(),
    ];
    let undisturbed = run(TWO_WAYS, &settings);
    let fault = "[[faults]]\nkind = \"address\"\nports = \"client->s2\"\nat = \"104ms\"\n";
    let moved = run(&format!("{TWO_WAYS}{fault}"), &settings);
    let [undisturbed, client] = [&undisturbed, &moved].map(|summary| &summary.groups["client"]);
    assert!(client.completed + 2 > undisturbed.completed);
    let slowest = |group: &weir_results::GroupSummary| group.completion.unwrap().max;
    let later = slowest(client) - slowest(undisturbed);
    println!("usual {}, later by {later}", slowest(undisturbed));
    // A round trip and the data in flight: nothing waits for a time-out.
    assert!(later < Duration::from_millis(2), "{later}");
    // It stays with the switch.
    assert!(packets_via(&moved, "s1") < 20);
}

/// Section 4.3: a client on TCP over a good switch, one on TCP that leaves a bad one after a time-out of a
/// second, one on DCQUIC.
const EXPERIMENT: &str = include_str!("../../../../scenarios/migration.toml");

/// Simulates a run of it; returns the fraction of time saved, and asserts that no request was lost.
fn reduction(name: &str, scenario: Scenario) -> f64 {
    let mut simulation = Simulation::new(scenario).unwrap();
    simulation.advance(Time::MAX, &mut ()).unwrap();
    let summary = simulation.finish(&mut ()).unwrap();
    let groups =
        ["tcp", "tcp-failover", "dcquic"].map(|group| summary.groups[group].epochs.unwrap());
    let reduction = summary.reduction.unwrap().value();
    let totals = groups.map(|epochs| epochs.total.to_string());
    println!("{name}: {totals:?}, reduction {reduction:.4}");
    assert_eq!(groups[2].lost, 0, "{name}");
    assert_eq!(groups[2].count, groups[1].count, "{name}");
    reduction
}

#[test]
fn dcquic_saves_nine_tenths_of_the_failover_time() {
    let reduction = reduction("migration", scenario(EXPERIMENT, &[]));
    assert!(reduction >= 0.9, "{reduction}");
}

#[test]
#[ignore = "a gigabyte, and four runs"]
fn no_request_is_lost_in_any_variant() {
    let loaded = Scenario::parse("migration.toml", EXPERIMENT, &[]).unwrap();
    for variant in loaded.variants {
        reduction(&variant.name, variant.scenario);
    }
}
