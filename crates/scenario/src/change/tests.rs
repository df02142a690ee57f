use weir_units::{Duration, Time};

use crate::{ChangeSchedule, Level, Scenario, Workload};

const FILE: &str = r#"
title = "t"
source = "s"
duration = "100ms"
leaf_spine = { leaves = 2, spines = 2, hosts = 2, rate = "10Gbps", delay = "1us", queue = "q", shared_buffer = { size = "1MB", alpha = 1 } }
[queues.q]
kind = "step"
ecn_threshold = "65 packets"
buffer = "200 packets"
[groups.web]
from = "rack1"
to = "rack2"
congestion = { name = "dctcp", g = 0.5 }
workload = { kind = "poisson", load = 0.2, of = "hosts", distribution = "web-search" }
[groups.steady]
from = "rack1"
to = "rack2"
congestion = "swift"
workload = { kind = "cbr", rate = "1Gbps" }
"#;

fn parse(changes: &str) -> Result<Scenario, String> {
    let text = format!("{FILE}{changes}");
    let loaded = Scenario::parse("test.toml", &text, &[]).map_err(|error| error.to_string())?;
    let written = toml::to_string(&loaded.scenario).unwrap();
    let again = Scenario::parse("written.toml", &written, &[]);
    assert_eq!(again.unwrap().scenario, loaded.scenario, "{written}");
    Ok(loaded.scenario)
}

/// The line of the first change.
fn line() -> usize {
    FILE.lines().count() + 1
}

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

#[test]
fn changes_come_into_force_in_the_order_of_their_times() {
    let scenario = parse(
        "[[changes]]\nat = '20ms'\nports = 'leaf->spine'\nset.queue = { ecn_threshold = '30 packets', buffer = '1MB' }\n\
         [[changes]]\nat = '10ms'\nports = 'leaf1->spine1'\nset.queue.ecn_threshold = '10KB'\n\
         [[changes]]\nat = '30ms'\nswitches = 'leaf'\nset.shared_buffer.alpha = 4\n\
         [[changes]]\nat = '40ms'\ngroups = 'web'\nset = { congestion.g = 0.25, workload.load = 0.8 }\n\
         [[changes]]\nat = '40ms'\ngroups = '*'\nset.congestion.max_window = '100KB'\n\
         [[changes]]\nat = '50ms'\ngroups = 'steady'\nset.workload.rate = '2Gbps'\n",
    )
    .unwrap();
    let mut schedule = ChangeSchedule::new(&scenario).unwrap();
    let threshold = |schedule: &ChangeSchedule, name| {
        let port = scenario.topology.port_by_name(name).unwrap();
        schedule.port(port).queue.discipline.thresholds()[0].1
    };
    assert_eq!(schedule.timeout(), Some(at(10)));
    assert!(schedule.due(at(9)).is_none());
    assert!(schedule.due(at(10)).is_some());
    assert_eq!(
        threshold(&schedule, "leaf1->spine1"),
        Level::Bytes(weir_units::ByteSize::from_bytes(10_000))
    );
    assert_eq!(threshold(&schedule, "leaf1->spine2"), Level::Packets(65));
    assert!(schedule.due(at(20)).is_some());
    assert_eq!(threshold(&schedule, "leaf1->spine1"), Level::Packets(30));
    while schedule.due(at(99)).is_some() {}
    let web = schedule.group(0);
    assert_eq!(
        web.transport.congestion().unwrap(),
        &"dctcp,g=0.25,max_window=100KB".parse().unwrap()
    );
    let mean = |group: &crate::Group| group.mean_arrival_seconds().unwrap();
    let ratio = mean(&scenario.groups[0]) / mean(web);
    assert!((ratio - 4.0).abs() < 1e-4, "{ratio}");
    assert!(
        matches!(schedule.group(1).workload, Workload::Cbr { rate, .. } if rate == "2Gbps".parse().unwrap())
    );
    assert_eq!(
        scenario.load_factors(1),
        [
            (Time::ZERO, 1.0),
            (at(10), 1.0),
            (at(20), 1.0),
            (at(30), 1.0),
            (at(40), 1.0),
            (at(40), 1.0),
            (at(50), 2.0)
        ]
    );
    // A cap that is to come is prepared for, so that it can change open flows.
    assert_eq!(
        scenario.groups[0].transport.congestion().unwrap(),
        &"dctcp,g=0.5,max_window=unbounded".parse().unwrap()
    );
}

#[test]
fn what_cannot_change_is_refused_where_it_stands() {
    for (target, set, key, words) in [
        (
            "groups = 'web'",
            "flows = 3",
            "set.flows",
            "cannot change while the scenario runs; what can: congestion, workload",
        ),
        (
            "groups = 'web'",
            "congestion.initial_window = 3",
            "set.congestion.initial_window",
            "what can: g, min_window, loss_window, max_window, max_rate",
        ),
        (
            "groups = 'web'",
            "congestion.name = 'cubic'",
            "set.congestion.name",
            "what can: g,",
        ),
        (
            "groups = 'web'",
            "congestion.beta = 0.5",
            "set.congestion.beta",
            "has no parameter `beta`",
        ),
        (
            "groups = '*'",
            "congestion.g = 0.5",
            "set.congestion.g",
            "`swift` has no parameter `g`",
        ),
        (
            "groups = 'web'",
            "congestion.g = 5",
            "set.congestion.g",
            "between",
        ),
        (
            "groups = 'web'",
            "workload.distribution = 'data-mining'",
            "set.workload.distribution",
            "what can: load, mean_interval, rate",
        ),
        (
            "groups = 'web'",
            "workload.mean_interval = '1ms'",
            "set.workload.mean_interval",
            "what can change of it: load",
        ),
        (
            "groups = 'web'",
            "workload.load = 11",
            "set.workload.load",
            "outside",
        ),
        (
            "groups = 'steady'",
            "workload.load = 0.5",
            "set.workload.load",
            "what can change of it: rate",
        ),
        (
            "groups = 'we'",
            "workload.load = 0.5",
            "groups",
            "no group `we`",
        ),
        (
            "ports = 'leaf->spine'",
            "queue.red_min = '1KB'",
            "set.queue.red_min",
            "what can change of it: buffer, ecn_threshold",
        ),
        (
            "ports = 'leaf->spine'",
            "queue.kind = 'red'",
            "set.queue.kind",
            "cannot change",
        ),
        (
            "ports = 'leaf->spine'",
            "queue.ecn_threshold = '300 packets'",
            "set.queue.ecn_threshold",
            "above the buffer of 200 packets",
        ),
        (
            "ports = 'leaf->spine'",
            "queue.ecn_threshold = '30 pakets'",
            "set.queue.ecn_threshold",
            "`pakets` is not a unit",
        ),
        (
            "ports = 'leaf->spine'",
            "rate = '1Gbps'",
            "set.rate",
            "what can: queue",
        ),
        (
            "ports = 'leaf->spine'",
            "queue = {}",
            "set.queue",
            "nothing is set",
        ),
        (
            "ports = 'leaf->core'",
            "queue.buffer = '1MB'",
            "ports",
            "no port `leaf->core`",
        ),
        (
            "switches = 'leaf'",
            "shared_buffer.per_port = '1KB'",
            "set.shared_buffer.per_port",
            "what can change: size, alpha",
        ),
        (
            "switches = 'leaf'",
            "load_balancing = 'packet'",
            "set.load_balancing",
            "what can: shared_buffer",
        ),
        (
            "switches = 'core'",
            "shared_buffer.alpha = 1",
            "switches",
            "no switch `core`",
        ),
    ] {
        let text = format!("[[changes]]\nat = '1ms'\n{target}\n[changes.set]\n{set}\n");
        let error = parse(&text).unwrap_err();
        assert!(error.contains(&format!("changes.0.{key}: ")), "{error}");
        assert!(error.contains(words), "{words}: {error}");
        let lines = line()..line() + 5;
        assert!(
            lines
                .into_iter()
                .any(|line| error.starts_with(&format!("test.toml:{line}: "))),
            "{error}"
        );
    }
}

#[test]
fn a_change_has_one_target_and_a_time_of_its_own() {
    let once =
        "[[changes]]\nat = '1ms'\nports = 'leaf->spine'\nset.queue.ecn_threshold = '3 packets'\n";
    let again = once.replace("leaf->spine", "leaf1->spine2");
    let error = parse(&format!("{once}{again}")).unwrap_err();
    assert!(
        error.contains("changes.1: `changes.0` sets `queue.ecn_threshold` of the same at 1ms"),
        "{error}"
    );
    parse(&format!("{once}{}", again.replace("1ms", "2ms"))).unwrap();
    let error = parse(&once.replace("1ms", "100ms")).unwrap_err();
    assert!(
        error.contains("changes.0.at: the change is at 100ms"),
        "{error}"
    );
    let error = parse(&once.replace("ports", "groups = 'web'\nports")).unwrap_err();
    assert!(
        error.contains("changes.0: one of `ports`, `switches` and `groups`"),
        "{error}"
    );
    let error = parse(&once.replace("ports = 'leaf->spine'\n", "")).unwrap_err();
    assert!(
        error.contains("changes.0: one of `ports`, `switches` and `groups`"),
        "{error}"
    );
    let error = parse("[[changes]]\nat = '1ms'\nports = '*'\n").unwrap_err();
    assert!(error.contains("changes.0.set: missing"), "{error}");
}

#[test]
fn a_load_that_becomes_too_high_is_warned_of() {
    let change = "[[changes]]\nat = '20ms'\ngroups = 'web'\nset.workload.load = LOAD\n";
    let warnings = |load| parse(&change.replace("LOAD", load)).unwrap().warnings();
    assert_eq!(warnings("0.3"), []);
    let warning = warnings("2.5")[0].to_string();
    assert!(warning.starts_with("groups: flows offer"), "{warning}");
}
