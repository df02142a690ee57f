//! The shipped scenarios load, match the papers' parameters, and survive a round trip.

use std::path::PathBuf;

use weir_scenario::{Discipline, LoadedScenario, Scenario, Setting, Transport};
use weir_units::{ByteSize, Duration, Rate};

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios"))
}

fn load(name: &str, settings: &[&str]) -> LoadedScenario {
    let settings: Vec<Setting> = settings
        .iter()
        .map(|text| text.parse().expect(text))
        .collect();
    Scenario::load(&folder().join(name), &settings).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn buffer_sharing_has_the_papers_setup() {
    let LoadedScenario {
        scenario,
        parameters,
        variants,
        ..
    } = load("buffer-sharing.toml", &["parameters.buffer=2MB"]);
    assert_eq!(variants, []);
    assert_eq!(parameters[0], ("line_rate".to_owned(), "25Gbps".to_owned()));
    assert!(parameters.contains(&("buffer".to_owned(), "2MB".to_owned())));
    assert_eq!(scenario.duration, Duration::from_secs(120));
    assert_eq!(scenario.groups.len(), 2);
    for (name, rtt, ect) in [
        ("dctcp", Duration::from_micros(50), true),
        ("cubic", Duration::from_millis(50), false),
    ] {
        let group = scenario.group(name).unwrap();
        assert_eq!(group.flow_count(), 100);
        assert_eq!(group.start_within, Duration::from_secs(1));
        let Transport::Tcp {
            options,
            congestion,
        } = &group.transport
        else {
            panic!("{group:?}");
        };
        assert_eq!(congestion.name(), name);
        assert_eq!(options.ecn != weir_scenario::TcpEcn::Off, ect);
        let (from, to) = group.pairs().next().unwrap();
        assert_eq!(round_trip(&scenario, from, to), rtt);
    }
    let port = scenario.topology.port_by_name("bottleneck").unwrap();
    let port = scenario.topology.port(port);
    assert_eq!(port.rate, Rate::from_gbps(25));
    assert!(matches!(
        port.queue.discipline,
        Discipline::Shared { ecn_threshold, .. } if ecn_threshold == ByteSize::from_bytes(100_000)
    ));
}

#[test]
fn settings_reach_the_papers_parameters() {
    let scenario = load(
        "buffer-sharing.toml",
        &[
            "parameters.line_rate=5Gbps",
            "parameters.cubic_rtt=100ms",
            "parameters.red_max=900KB",
            "parameters.flows_per_sender=1",
            "duration=2s",
            "seed=7",
            "groups.dctcp.congestion.min_window=1",
            "groups.cubic.tcp.delayed_ack_timeout=1ms",
        ],
    )
    .scenario;
    assert_eq!(scenario.seed, 7);
    assert_eq!(scenario.duration, Duration::from_secs(2));
    assert_eq!(scenario.groups[0].flow_count(), 10);
    let (from, to) = scenario.groups[1].pairs().next().unwrap();
    assert_eq!(round_trip(&scenario, from, to), Duration::from_millis(100));
    for port in &scenario.topology.ports {
        assert_eq!(port.rate, Rate::from_gbps(5));
    }
    let Transport::Tcp { congestion, .. } = &scenario.groups[0].transport else {
        panic!();
    };
    assert!(congestion.to_string().contains("min_window=1"));
}

fn round_trip(
    scenario: &Scenario,
    from: weir_scenario::HostIndex,
    to: weir_scenario::HostIndex,
) -> Duration {
    let topology = &scenario.topology;
    let routes = topology.routes();
    let mut port = routes.from_host(from, to)[0];
    let mut sum = Duration::ZERO;
    loop {
        sum += topology.port(port).delay + topology.port(port.reverse()).delay;
        match topology.port(port).to {
            weir_scenario::Node::Host(host) => {
                assert_eq!(host, to);
                return sum;
            }
            weir_scenario::Node::Switch(switch) => port = routes.from_switch(switch, to)[0],
        }
    }
}

#[test]
fn every_file_loads_and_round_trips() {
    let mut count = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name();
        let loaded = load(name.to_str().unwrap(), &[]);
        let variants = loaded.variants.iter().map(|variant| &variant.scenario);
        for scenario in variants.chain([&loaded.scenario]) {
            let text = toml::to_string(scenario).unwrap();
            let again = Scenario::parse("written.toml", &text, &[])
                .unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(&again.scenario, scenario);
            assert_eq!(again.variants, []);
            assert!(serde_json::to_string(scenario).is_ok());
        }
        count += 1;
    }
    assert!(count > 0);
}
