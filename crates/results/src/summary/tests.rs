use proptest::prelude::*;
use weir_units::{ByteSize, Rate};

use super::*;
use crate::Ratio;

fn run() -> RunSummary {
    let group = GroupSummary {
        goodput: Rate::from_mbps(15_000),
        share: Ratio::of(3, 4),
        flows: 100,
        connections_without_handshake: None,
        delivered: ByteSize::from_bytes(206_250_000_000),
        retransmits: 3,
        timeouts: 1,
        marks: 7_000,
        completed: 0,
        unfinished: 0,
        completion: None,
        slowdown: None,
        flows_with_timeout: 1,
        deadlines_missed: None,
        link_share: Ratio::new(0.78),
        fairness: Ratio::new(0.98),
        epochs: None,
    };
    let port = PortSummary {
        packets: 200_000_000,
        bytes: ByteSize::from_bytes(300_000_000_000),
        marks: 7_000,
        drops: Drops {
            red: 40,
            tail: 2,
            ..Drops::default()
        },
        queue_mean: ByteSize::from_bytes(399_000),
        queue_p50: ByteSize::from_bytes(401_000),
        queue_p99: ByteSize::from_bytes(900_000),
        queue_max: ByteSize::from_bytes(1_100_000),
        utilization: Ratio::new(0.9875).unwrap(),
    };
    RunSummary {
        world: RunKind::Simulated,
        seed: 7,
        settings: [("parameters.ecn".to_owned(), "200KB".to_owned())].into(),
        simulated: Duration::from_secs(120),
        warm_up: Duration::from_millis(10_500),
        cpu: Duration::from_millis(3_250),
        changes: Vec::new(),
        interrupted: false,
        groups: [("dctcp".to_owned(), group)].into(),
        ports: [("bottleneck".to_owned(), port)].into(),
        loads: IndexMap::new(),
        tcon: IndexMap::new(),
        reduction: None,
        deadlines: None,
        hosts: IndexMap::new(),
        emulation: None,
    }
}

/// With the fields that only live runs, epochs, deadlines and transparent congestion control have.
fn live() -> RunSummary {
    let rate = AchievedRate {
        asked: Rate::from_mbps(1000),
        achieved: Rate::from_mbps(995),
    };
    let group = GroupSummary {
        epochs: Some(EpochSummary {
            count: 1000,
            total: Duration::from_millis(2_500),
            lost: 1,
        }),
        deadlines_missed: Some(2),
        connections_without_handshake: Some(9),
        ..GroupSummary::default()
    };
    RunSummary {
        world: RunKind::Live,
        groups: [("web".to_owned(), group)].into(),
        tcon: [("edge".to_owned(), TconSummary::default())].into(),
        reduction: Ratio::new(0.6792),
        deadlines: Some(DeadlineSummary {
            transfers: 100,
            missed: 2,
            fewest_missed: Some(1),
            busy: Duration::from_millis(450),
            goodput: Rate::from_mbps(930),
            ports: [("bottleneck".to_owned(), PortDeadlines::default())].into(),
        }),
        hosts: [(
            "a".to_owned(),
            HostSummary {
                cpu: Duration::from_millis(750),
            },
        )]
        .into(),
        emulation: Some(Emulation {
            faithful: false,
            reasons: vec!["the CPU was busy".to_owned()],
            lateness_p99: Duration::from_micros(30),
            rates: [("bottleneck".to_owned(), rate)].into(),
            ..Emulation::default()
        }),
        ..RunSummary::default()
    }
}

#[test]
fn savings_are_a_fraction_of_the_other_groups_time() {
    let group = |times: &mut [Duration]| GroupSummary {
        completion: CompletionTimes::of(times),
        ..GroupSummary::default()
    };
    let [second, ten] = [1, 10].map(Duration::from_secs);
    let run = RunSummary {
        groups: [
            ("slow".to_owned(), group(&mut [ten, ten])),
            ("fast".to_owned(), group(&mut [second, second])),
            ("none".to_owned(), group(&mut [])),
        ]
        .into(),
        ..RunSummary::default()
    };
    assert_eq!(run.saved("fast", "slow"), Ratio::new(0.9));
    assert_eq!(run.saved("slow", "fast"), Ratio::new(-9.0));
    assert_eq!(run.saved("none", "slow"), None);
    assert_eq!(run.saved("slow", "none"), None);
}

#[test]
fn the_json_matches_the_golden_file() {
    let mut summary = Summary::new("Buffer sharing", "003, section 6", run());
    let variant = RunSummary {
        groups: [(
            "web".to_owned(),
            GroupSummary {
                completed: 1,
                completion: CompletionTimes::of(&mut [Duration::from_micros(1_500)]),
                ..GroupSummary::default()
            },
        )]
        .into(),
        ..RunSummary::default()
    };
    summary.variants.insert("ecn=100KB".to_owned(), variant);
    summary.variants.insert("live".to_owned(), live());
    let text = summary.to_json().unwrap();
    assert_eq!(text, include_str!("golden.json"), "{text}");
    assert_eq!(Summary::from_json(&text).unwrap(), summary);
}

#[test]
fn every_key_is_documented() {
    let document = include_str!("../../../../docs/results.md");
    let named = [
        "dctcp",
        "bottleneck",
        "web",
        "ecn=100KB",
        "parameters.ecn",
        "groups",
        "ports",
        "drops",
        "live",
        "hosts",
        "emulation",
        "rates",
        "a",
        "epochs",
        "edge",
        "tcon",
        "deadlines",
    ];
    let keys = include_str!("golden.json").lines();
    let keys = keys.filter_map(|line| line.trim_start().strip_prefix('"')?.split_once("\":"));
    for (key, _) in keys.filter(|(key, _)| !named.contains(key)) {
        let is_there = document.contains(&format!("`{key}`"))
            || document.contains(&format!(".{key}`"))
            || document.contains(&format!("`{key}."));
        assert!(is_there, "{key}");
    }
}

#[test]
fn maps_keep_their_order() {
    let mut summary = Summary::new("", "", RunSummary::default());
    for name in ["b", "a", "c"] {
        let groups = &mut summary.run.groups;
        groups.insert(name.to_owned(), GroupSummary::default());
        summary.variants.insert(name.to_owned(), run());
    }
    let read = Summary::from_json(&summary.to_json().unwrap()).unwrap();
    assert!(read.run.groups.keys().eq(["b", "a", "c"]));
    assert!(
        read.runs()
            .map(|(name, _)| name)
            .eq([None, Some("b"), Some("a"), Some("c")])
    );
}

#[test]
fn other_versions_and_other_texts_are_refused() {
    let mut summary = Summary::new("", "", RunSummary::default());
    summary.schema_version = 3;
    let error = Summary::from_json(&summary.to_json().unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "this summary has schema_version 3; this program reads 2"
    );
    for text in ["", "{}", "[2]", r#"{"schema_version":2}"#] {
        let error = Summary::from_json(text).unwrap_err();
        assert!(matches!(error, SummaryError::Format(_)), "{text}: {error}");
    }
    let negative = Summary::new("", "", RunSummary::default())
        .to_json()
        .unwrap();
    let negative = negative.replace("\"cpu_s\": 0.0", "\"cpu_s\": -1");
    assert!(Summary::from_json(&negative).is_err());
}

proptest! {
    #[test]
    fn every_number_round_trips(
        seed: u64,
        nanos in 0..1_u64 << 51,
        goodput: u64,
        share in proptest::num::f64::NORMAL | proptest::num::f64::ZERO,
        title: String,
    ) {
        let mut summary = Summary::new(title.clone(), title, run());
        summary.run.seed = seed;
        summary.run.simulated = Duration::from_nanos(nanos);
        summary.run.groups["dctcp"].goodput = Rate::from_bits_per_second(goodput);
        summary.run.groups["dctcp"].share = Ratio::new(share).unwrap();
        let text = summary.to_json().unwrap();
        prop_assert_eq!(Summary::from_json(&text).unwrap(), summary);
    }
}
