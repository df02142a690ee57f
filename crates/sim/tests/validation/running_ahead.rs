//! Packets that run ahead of the events change nothing: random scenarios give the same rows with and
//! without. Without samples they run ahead farther.

use proptest::prelude::*;
use weir_results::Summary;
use weir_sim::Simulation;
use weir_units::Time;

use crate::observe::{FlowRows, Rows, scenario};

/// The number of hosts, their algorithm, and their round trip in microseconds.
type Senders = (u32, &'static str, u64);

/// A dumbbell in which endless flows, with their own algorithms and round trips, share a short buffer.
/// Requests disturb some hosts, in some of the scenarios.
#[derive(Clone, Debug)]
struct Dumbbell {
    near: Senders,
    far: Senders,
    flows: u32,
    ack_every: u32,
    buffer_packets: u64,
    sample: u64,
    jitter: u64,
    has_requests: bool,
    has_fault: bool,
    has_changes: bool,
    seed: u64,
}

fn algorithm() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "dctcp", "cubic", "newreno", "bbr", "swift", "quic", "dcudp",
    ])
}

fn dumbbell() -> impl Strategy<Value = Dumbbell> {
    let senders = |rtt| (1_u32..4, algorithm(), rtt);
    (
        senders(20_u64..200),
        senders(200_u64..20_000),
        1_u32..3,
        1_u32..3,
        3_u64..60,
        100_u64..5_000,
        prop::sample::select(vec![0_u64, 0, 500, 2_000]),
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.5),
        any::<u16>(),
    )
        .prop_map(
            |(
                near,
                far,
                flows,
                ack_every,
                buffer_packets,
                sample,
                jitter,
                has_requests,
                has_fault,
                has_changes,
                seed,
            )| {
                Dumbbell {
                    near,
                    far,
                    flows,
                    ack_every,
                    buffer_packets,
                    sample,
                    jitter,
                    has_requests,
                    has_fault,
                    has_changes,
                    seed: seed.into(),
                }
            },
        )
}

impl Dumbbell {
    fn text(&self) -> String {
        let group = |name: &str, (hosts, congestion, rtt): Senders| {
            if hosts == 0 {
                return String::new();
            }
            let options = match congestion {
                "quic" => r#"transport = "quic""#.to_owned(),
                "dcudp" => r#"transport = "dcudp""#.to_owned(),
                _ => format!(
                    "congestion = \"{congestion}\"\ntcp = {{ ack_every = {} }}",
                    self.ack_every
                ),
            };
            format!(
                r#"
                [dumbbell.senders.{name}]
                count = {hosts}
                rtt = "{rtt}us"
                [groups.{name}]
                from = "{name}"
                to = "receiver"
                flows = {flows}
                {options}
                workload = "bulk"
                start_within = "3ms"
                "#,
                flows = self.flows,
            )
        };
        let requests = r#"
            [groups.requests]
            from = "near1"
            to = "far1"
            workload = { kind = "request-response", request = "2KB", response = "30KB", pause = "300us" }
            "#;
        let fault = r#"
            [[faults]]
            kind = "loss"
            ports = "far1->switch"
            at = "10ms"
            until = "20ms"
            probability = 0.02
            "#;
        let changes = r#"
            [[changes]]
            at = "8ms"
            ports = "*->switch"
            set.queue.buffer = "20KB"
            [[changes]]
            at = "10ms"
            ports = "bottleneck"
            set.queue = { ecn_threshold = "5KB", buffer = "40 packets", red_max = "50KB" }
            [[changes]]
            at = "15ms"
            groups = "near"
            set.congestion.max_rate = "100Mbps"
            [[changes]]
            at = "23456789ns"
            groups = "near"
            set.congestion.max_rate = "unbounded"
            "#;
        format!(
            r#"
            title = "Running ahead"
            source = "a test"
            seed = {seed}
            duration = "40ms"
            warm_up = "5ms"
            host_jitter = "{jitter}ns"
            [dumbbell]
            rate = "1Gbps"
            delay = "5us"
            queue = {{ kind = "shared", buffer = "{buffer} packets", ecn_threshold = "15KB", red_min = "30KB", red_max = "60KB", drop_probability = 0.1 }}
            [measurements]
            ports = "*->switch"
            sample_interval = "{sample}us"
            {near}
            {far}
            {requests}
            {fault}
            {changes}
            "#,
            seed = self.seed,
            jitter = self.jitter,
            buffer = self.buffer_packets,
            sample = self.sample,
            near = group("near", self.near),
            far = group("far", self.far),
            requests = if self.has_requests { requests } else { "" },
            fault = if self.has_fault { fault } else { "" },
            changes = if self.has_changes { changes } else { "" },
        )
    }
}

/// Returns the rows of a run and its summary, as text.
fn rows(text: &str, runs_ahead: bool) -> Vec<String> {
    let mut simulation = Simulation::new(scenario(text, &[])).unwrap();
    if !runs_ahead {
        simulation = simulation.without_running_ahead();
    }
    let mut rows = Rows::default();
    simulation.advance(Time::MAX, &mut rows).unwrap();
    let summary = simulation.finish(&mut rows).unwrap();
    rows.text
        .push(Summary::new("", "", summary).to_json().unwrap());
    rows.text
}

/// Returns the rows of the flows of a run without samples and its summary, as text.
fn flow_rows(text: &str) -> Vec<String> {
    let mut simulation = Simulation::new(scenario(text, &[])).unwrap();
    let mut rows = FlowRows::default();
    simulation.advance(Time::MAX, &mut rows).unwrap();
    let summary = simulation.finish(&mut rows).unwrap();
    let FlowRows(Rows { text: mut rows }) = rows;
    rows.push(Summary::new("", "", summary).to_json().unwrap());
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn results_are_those_of_one_event_for_each_arrival(dumbbell in dumbbell()) {
        let text = dumbbell.text();
        let (ahead, events) = (rows(&text, true), rows(&text, false));
        let differs = ahead.iter().zip(&events).find(|(ahead, events)| ahead != events);
        prop_assert_eq!(differs, None);
        prop_assert_eq!(ahead.len(), events.len());
        let is_sample = |row: &String| row.starts_with("PortSample") || row.starts_with("GroupSample");
        let flows: Vec<String> = events.into_iter().filter(|row| !is_sample(row)).collect();
        let unsampled = flow_rows(&text);
        let differs = flows.iter().zip(&unsampled).find(|(with, without)| with != without);
        prop_assert_eq!(differs, None);
        prop_assert_eq!(flows.len(), unsampled.len());
    }
}

/// Nothing else sends, so the packets of the only flow run ahead through both queues, up to each sample.
#[test]
fn one_flow_alone_runs_ahead_all_the_way() {
    let alone = |near, far| Dumbbell {
        near,
        far,
        flows: 1,
        ack_every: 1,
        buffer_packets: 20,
        sample: 3_000,
        jitter: 2_000,
        has_requests: false,
        has_fault: false,
        has_changes: near.0 > 0,
        seed: 1,
    };
    let nobody = (0, "newreno", 1_000);
    for dumbbell in [
        alone((1, "newreno", 100), nobody),
        alone(nobody, (1, "cubic", 8_000)),
    ] {
        let text = dumbbell.text();
        assert!(rows(&text, true) == rows(&text, false), "{text}");
    }
}
