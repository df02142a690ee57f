//! Requests: the cost of TLS and of new connections, synchronized requests, and the behaviour of clients
//! when the response does not come.

use weir_results::{Observation, OutputError, Recorder, RunSummary};
use weir_scenario::{Scenario, Setting};
use weir_sim::Simulation;
use weir_units::{Duration, Time};

/// Two hosts with two paths between them, 100 us round trip, 1 Gbps.
const FILE: &str = r#"
title = "Requests"
source = "arithmetic"
duration = "60s"
host_jitter = "0s"
[hosts.client]
[hosts.server]
[switches.one]
[switches.two]
[[links]]
from = "client"
to = "one"
rate = "1Gbps"
delay = "25us"
[[links]]
from = "client"
to = "two"
rate = "1Gbps"
delay = "25us"
[[links]]
from = "server"
to = "one"
rate = "1Gbps"
delay = "25us"
[[links]]
from = "server"
to = "two"
rate = "1Gbps"
delay = "25us"
[groups.calls]
from = "client"
to = "server"
via = "one"
workload = { kind = "request-response", request = "100B", response = "100B", requests = 10 }
"#;

/// The recorded flows and epochs of a run.
#[derive(Default)]
struct Records {
    /// Epoch, duration, attempts.
    epochs: Vec<(u64, Option<Duration>, u64)>,
    ended: usize,
    flows: usize,
}

impl Recorder for Records {
    fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError> {
        match observation {
            Observation::Flow(flow) => {
                self.flows += 1;
                self.ended += usize::from(flow.end.is_some());
            }
            Observation::Epoch(epoch) => {
                (self.epochs).push((epoch.epoch, epoch.completion, epoch.attempts));
            }
            _ => {}
        }
        Ok(())
    }
}

fn run(file: &str, settings: &[&str]) -> (RunSummary, Records) {
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    let loaded = Scenario::parse("test.toml", file, &settings);
    let loaded = loaded.unwrap_or_else(|error| panic!("{error}"));
    let mut simulation = Simulation::new(loaded.scenario).unwrap();
    let mut records = Records::default();
    while simulation.now() < simulation.end() {
        let until = simulation.now() + Duration::from_millis(100);
        simulation.advance(until, &mut records).unwrap();
    }
    (simulation.finish(&mut records).unwrap(), records)
}

/// Returns the mean completion time in whole round trips of 100 us. Transmissions take less than one, even
/// those of QUIC's handshake: the first datagrams in both directions and the client's second one are padded
/// to 1200 bytes (RFC 9000, section 14.1) and take 20 us each, as its certificate does.
fn round_trips(summary: &RunSummary) -> f64 {
    let mean = summary.groups["calls"].completion.unwrap().mean;
    (mean.as_secs_f64() / 100e-6).floor()
}

#[test]
fn a_fresh_connection_costs_its_round_trips() {
    const FRESH: &str = "groups.calls.workload.connection=fresh";
    const TLS: &str = "groups.calls.transport=tls";
    let (kept, _) = run(FILE, &[]);
    assert_eq!(kept.groups["calls"].completed, 10);
    assert!(kept.groups["calls"].completion.unwrap().p50 < Duration::from_micros(110));
    for (settings, expected) in [
        (vec![FRESH], 2.0),
        (vec![FRESH, TLS], 3.0),
        (vec![FRESH, TLS, "groups.calls.tls.resume=true"], 3.0),
        (vec![FRESH, "groups.calls.transport=quic"], 2.0),
    ] {
        let (summary, records) = run(FILE, &settings);
        assert_eq!(round_trips(&summary), expected, "{settings:?}");
        let group = &summary.groups["calls"];
        assert_eq!(
            (group.completed, group.retransmits),
            (10, 0),
            "{settings:?}"
        );
        // It is one flow with any number of connections, and its counters include all of them.
        assert_eq!((group.flows, records.flows, records.ended), (1, 1, 1));
        assert_eq!(group.delivered.bytes(), 10 * 200, "{settings:?}");
    }
}

#[test]
fn a_connection_to_a_known_peer_costs_one_round_trip() {
    let fresh = [
        "groups.calls.workload.connection=fresh",
        "groups.calls.transport=quic",
    ];
    let (met, _) = run(FILE, &fresh);
    assert_eq!(met.groups["calls"].connections_without_handshake, None);
    let known = [fresh[0], fresh[1], "groups.calls.quic.known_peers=true"];
    let (known, records) = run(FILE, &known);
    let group = &known.groups["calls"];
    // All but the first.
    assert_eq!(group.connections_without_handshake, Some(9));
    assert_eq!((group.completed, group.retransmits), (10, 0));
    assert_eq!((group.flows, records.flows, records.ended), (1, 1, 1));
    assert_eq!(group.delivered.bytes(), 10 * 200);
    let times = group.completion.unwrap();
    assert!(times.max > Duration::from_micros(200), "{:?}", times.max);
    // The propagation delay, and four transmissions of small packets.
    let [least, most] = [100, 120].map(Duration::from_micros);
    assert!((least..most).contains(&times.p50), "{:?}", times.p50);
}

#[test]
fn hosts_know_each_other_whatever_the_flow() {
    let settings = [
        "groups.calls.transport=quic",
        "groups.calls.quic.known_peers=true",
        "groups.calls.workload={ kind = \"poisson\", mean_interval = \"200us\", distribution = [[\"100B\", 1.0]] }",
        "duration=2s",
    ];
    let (summary, records) = run(FILE, &settings);
    let group = &summary.groups["calls"];
    let known = group.connections_without_handshake.unwrap();
    // More flows than there are ports of clients. Only those that begin before the first handshake is
    // complete have one too.
    assert!(group.flows > 8000, "{}", group.flows);
    assert!((1..10).contains(&(group.flows - known)), "{known}");
    assert!(records.ended as u64 > group.flows - 10, "{}", records.ended);
}

/// A link is down for more than a second from the middle of the requests on.
const OUTAGE: &str = r#"
title = "An outage"
source = "a test"
duration = "5s"
[dumbbell]
rate = "1Gbps"
queue = "unlimited"
[dumbbell.senders.client]
rtt = "100us"
[groups.calls]
from = "client"
to = "receiver"
transport = "quic"
quic = { known_peers = true }
workload = { kind = "request-response", request = "100B", response = "100B", requests = 20, pause = "1ms", connection = "fresh" }
[[faults]]
kind = "down"
ports = "bottleneck"
at = "9500us"
until = "1200ms"
"#;

#[test]
fn a_client_waits_for_a_silent_server_that_answered_lately() {
    let answers_are_lost = OUTAGE.replace("\"bottleneck\"", "\"receiver->switch\"");
    for outage in [OUTAGE, &answers_are_lost] {
        let (summary, records) = run(outage, &[]);
        let group = &summary.groups["calls"];
        assert_eq!((group.completed, records.ended), (20, 1));
        // The first one has a handshake.
        assert_eq!(group.connections_without_handshake, Some(19));
        let slowest = group.completion.unwrap().max;
        let [least, most] = [1190, 2500].map(Duration::from_millis);
        assert!((least..most).contains(&slowest), "{slowest}");
    }
}

#[test]
fn tls_adds_bytes_but_delivers_the_applications() {
    let large = "groups.calls.workload={ kind = \"request-response\", request = \"100B\", response = \"1MB\", requests = 20 }";
    let (plain, _) = run(
        FILE,
        &[large, "measurements.ports=two->*", "groups.calls.via=two"],
    );
    let settings = [
        large,
        "measurements.ports=two->*",
        "groups.calls.via=two",
        "groups.calls.transport=tls",
    ];
    let (tls, _) = run(FILE, &settings);
    let delivered = |summary: &RunSummary| summary.groups["calls"].delivered.bytes();
    assert_eq!(delivered(&plain), 20 * 1_000_100);
    assert_eq!(delivered(&tls), 20 * 1_000_100);
    let bytes = |summary: &RunSummary| summary.ports["two->client"].bytes.bytes() as f64;
    // 62 records of 22 bytes in each response, and a handshake.
    let more = bytes(&tls) - bytes(&plain);
    let expected = 20.0 * 62.0 * 22.0;
    assert!(
        (more / expected - 1.0).abs() < 0.2,
        "{more}, not {expected}"
    );
}

const EPOCHS: &str = "groups.calls.workload={ kind = \"epochs\", request = \"100B\", response = \"100B\", count = 20 }";

#[test]
fn a_run_ends_with_its_last_epoch() {
    let (summary, records) = run(FILE, &[EPOCHS]);
    assert!(!summary.interrupted);
    assert!(
        summary.simulated < Duration::from_millis(3),
        "{}",
        summary.simulated
    );
    let epochs = summary.groups["calls"].epochs.unwrap();
    assert_eq!((epochs.count, epochs.lost), (20, 0));
    assert_eq!(
        epochs.total,
        summary.groups["calls"].completion.unwrap().total
    );
    let numbers = records.epochs.iter().map(|(number, ..)| *number);
    assert!(numbers.eq(0..20));
    // Epochs follow each other without a pause.
    assert_eq!(epochs.total, summary.simulated);
}

#[test]
fn the_next_epoch_waits_for_the_slowest() {
    let second = r#"
[hosts.far]
[[links]]
from = "far"
to = "two"
rate = "1Gbps"
delay = "475us"
[groups.slow]
from = "far"
to = "server"
flows = 2
workload = { kind = "epochs", request = "100B", response = "100B", count = 20 }
start = "5ms"
"#;
    let (summary, records) = run(&format!("{FILE}{second}"), &[EPOCHS]);
    let epochs = |group: &str| summary.groups[group].epochs.unwrap();
    assert_eq!((epochs("calls").count, epochs("slow").count), (20, 20));
    assert_eq!(records.epochs.len(), 60);
    // No flow sends a request before the last flow has started.
    assert_eq!(
        summary.simulated,
        epochs("slow").total + Duration::from_millis(5)
    );
    assert!(epochs("calls").total < epochs("slow").total / 8);
}

/// The path of the group's first link fails in the middle of its epochs.
const BROKEN: &str = r#"
[[faults]]
kind = "down"
ports = ["one->*", "client->one", "server->one"]
at_epoch = 10
"#;

#[test]
fn a_failover_costs_its_time_limit_once() {
    let failover = "groups.calls.failover=1s";
    let (summary, records) = run(&format!("{FILE}{BROKEN}"), &[EPOCHS, failover]);
    let epochs = summary.groups["calls"].epochs.unwrap();
    assert_eq!((epochs.count, epochs.lost), (20, 0));
    for (number, took, attempts) in &records.epochs {
        let took = took.unwrap();
        let expected = if *number == 10 { 1_000_200 } else { 100 };
        let expected = Duration::from_micros(expected);
        if *number > 0 {
            assert!(
                took >= expected && took < expected + Duration::from_micros(20),
                "{number}: {took}"
            );
        }
        assert_eq!(*attempts, if *number == 10 { 2 } else { 1 });
    }
}

#[test]
fn without_failover_a_client_waits_for_the_link() {
    let back = BROKEN.replace("at_epoch = 10", "at = \"1ms\"\nuntil = \"150ms\"");
    let (summary, records) = run(&format!("{FILE}{back}"), &[EPOCHS]);
    let group = &summary.groups["calls"];
    assert_eq!(group.epochs.unwrap().count, 20);
    assert!(group.retransmits > 0);
    let longest = records.epochs.iter().filter_map(|(_, took, _)| *took).max();
    // The time-out of 200 ms.
    assert!(longest.unwrap() > Duration::from_millis(190), "{longest:?}");
}

#[test]
fn an_address_change_ends_a_tcp_connection() {
    let change = "[[faults]]\nkind = \"address\"\nports = \"client->one\"\nat_epoch = 10\n";
    let file = format!("{FILE}{change}");
    let (summary, _) = run(&file, &[EPOCHS]);
    let epochs = summary.groups["calls"].epochs.unwrap();
    assert_eq!(
        (epochs.count, summary.simulated),
        (10, Duration::from_secs(60))
    );
    // Another connection, from the new address, is sufficient.
    let (summary, records) = run(&file, &[EPOCHS, "groups.calls.failover=50ms"]);
    assert_eq!(summary.groups["calls"].epochs.unwrap().count, 20);
    assert_eq!(records.epochs[10].2, 2);
    // DCQUIC continues.
    let (summary, records) = run(&file, &[EPOCHS, "groups.calls.transport=quic"]);
    let epochs = summary.groups["calls"].epochs.unwrap();
    assert_eq!((epochs.count, epochs.lost), (20, 0));
    assert!(records.epochs[10].1.unwrap() < Duration::from_millis(50));
}

#[test]
fn an_abandoned_connection_counts_as_a_lost_request() {
    let gone = BROKEN.replace("at_epoch = 10", "at_epoch = 10\nuntil_epoch = 11");
    let settings = [EPOCHS, "duration=3000s", "groups.calls.via=one"];
    let (summary, records) = run(&format!("{FILE}{gone}"), &settings);
    let epochs = summary.groups["calls"].epochs.unwrap();
    assert_eq!((epochs.count, epochs.lost), (19, 1));
    assert_eq!(records.epochs[10].1, None);
    assert!(
        records.epochs[11].1.is_some(),
        "the next one has a new connection"
    );
}

#[test]
fn the_reduction_of_completion_time_is_reported() {
    let other = r#"
[groups.large]
from = "client"
to = "server"
via = "two"
workload = { kind = "request-response", request = "100B", response = "1MB", requests = 10 }
[measurements]
reduction = { of = "calls", against = "large" }
"#;
    let (summary, _) = run(&format!("{FILE}{other}"), &[]);
    let total = |group: &str| {
        summary.groups[group]
            .completion
            .unwrap()
            .total
            .as_secs_f64()
    };
    let expected = 1.0 - total("calls") / total("large");
    assert!(expected > 0.9);
    assert_eq!(summary.reduction.unwrap().value(), expected);
}

#[test]
fn the_same_seed_gives_the_same_epochs() {
    let file = format!("{FILE}{BROKEN}");
    let settings = [EPOCHS, "groups.calls.failover=1s"];
    let [one, other] = [(); 2].map(|()| run(&file, &settings));
    assert_eq!(one.0, other.0);
    assert_eq!(one.1.epochs, other.1.epochs);
    assert_eq!(Time::ZERO + one.0.simulated, Time::ZERO + other.0.simulated);
}
