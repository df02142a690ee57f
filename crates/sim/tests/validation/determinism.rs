//! The same scenario with the same seed gives the same rows, the same summary and the same files, to
//! the last byte: in every run, in debug and in release, for any division into time slices.

use std::fs;

use weir_results::{Observation, Output, OutputError, Recorder, RunSummary, Summary};
use weir_sim::Simulation;
use weir_units::Duration;

use crate::observe::{FlowRows, Rows, record, scenario};

/// A mixture of all features: random controllers, workloads and queues, faults, and flows that come and
/// go.
const SCENARIO: &str = r#"
title = "A mixture"
source = "a test"
seed = 7
duration = "300ms"
warm_up = "50ms"

[dumbbell]
rate = "1Gbps"
queue = { kind = "shared", buffer = "300KB", ecn_threshold = "40KB", red_min = "60KB", red_max = "200KB", drop_probability = 0.05 }
[dumbbell.senders.near]
count = 2
rtt = "100us"
[dumbbell.senders.far]
count = 2
rtt = "4ms"

[groups.dctcp]
from = "near"
to = "receiver"
congestion = "dctcp"
workload = "bulk"
start_within = "10ms"
[groups.cubic]
from = "far"
to = "receiver"
congestion = "cubic"
workload = "bulk"
start_within = "10ms"
[groups.bbr]
from = "far1"
to = "receiver"
congestion = "bbr"
workload = "bulk"
stop = "250ms"
[groups.datagrams]
from = "near2"
to = "receiver"
transport = "udp"
workload = { kind = "cbr", rate = "50Mbps", packet = "500B", arrivals = "poisson" }
[groups.arrivals]
from = "near"
to = "receiver"
congestion = "newreno"
workload = { kind = "poisson", mean_interval = "2ms", distribution = "web-search" }
[groups.requests]
from = "far2"
to = "receiver"
congestion = "swift"
workload = { kind = "request-response", request = "200B", response = "20KB", pause = "1ms" }

[[faults]]
kind = "loss"
ports = "bottleneck"
at = "80ms"
until = "120ms"
probability = 0.01
[[faults]]
kind = "reorder"
ports = "bottleneck"
at = "100ms"
until = "200ms"
probability = 0.02
delay = "300us"
[[faults]]
kind = "jitter"
ports = "receiver->switch"
at = "0s"
jitter = "20us"
[[faults]]
kind = "rate"
ports = "bottleneck"
at = "220ms"
until = "260ms"
rate = "300Mbps"
"#;

/// The DCQUIC engine beside TLS over TCP, with every request recorded: handshakes, two paths, faults.
const STACKS: &str = r#"
title = "Two stacks"
source = "a test"
seed = 7
duration = "10s"
[hosts.client]
[hosts.server]
[switches.one]
[switches.two]
[[links]]
from = "client"
to = "one"
rate = "1Gbps"
delay = "10us"
[[links]]
from = "client"
to = "two"
rate = "1Gbps"
delay = "10us"
[[links]]
from = "one"
to = "server"
rate = "1Gbps"
delay = "10us"
queue = { kind = "red", buffer = "200KB", red_min = "20KB", red_max = "100KB", drop_probability = 0.02 }
[[links]]
from = "two"
to = "server"
rate = "1Gbps"
delay = "10us"
[groups.quic]
from = "client"
to = "server"
via = "one"
transport = "quic"
congestion = "bbr"
flows = 2
workload = { kind = "epochs", request = "100KB", response = "20KB", count = 60 }
[groups.quic.quic.proactive_migration]
long_window = 20
short_window = 5
[groups.tls]
from = "client"
to = "server"
via = "one"
transport = "tls"
workload = { kind = "epochs", request = "100KB", response = "20KB", count = 60 }
[[faults]]
kind = "loss"
ports = "one->server"
at_epoch = 10
until_epoch = 20
probability = 0.01
[[faults]]
kind = "delay"
ports = "one->server"
at_epoch = 30
until_epoch = 40
delay = "10ms"
[measurements]
ports = "*->server"
"#;

/// The [`Rows::digest`] of the mixture. It changes whenever the behaviour of the simulator changes, and
/// only then. After an intended change put the new value here, once `cargo test` and `cargo test
/// --release` agree on it.
const GOLDEN: u64 = 0x2472_c6b7_8bb1_e42a;

fn settings(seed: u64) -> [String; 1] {
    [format!("seed={seed}")]
}

fn simulate(seed: u64, slices: &[Duration], recorder: &mut dyn Recorder) -> RunSummary {
    simulate_file(SCENARIO, seed, slices, recorder)
}

/// Simulates in slices of these lengths, in turn and repeatedly.
fn simulate_file(
    file: &str,
    seed: u64,
    slices: &[Duration],
    recorder: &mut dyn Recorder,
) -> RunSummary {
    let mut simulation = Simulation::new(scenario(file, &settings(seed))).unwrap();
    for slice in slices.iter().cycle() {
        if simulation.now() >= simulation.end() {
            break;
        }
        let until = simulation.now() + *slice;
        simulation.advance(until, recorder).unwrap();
    }
    simulation.finish(recorder).unwrap()
}

/// Returns all rows and the summary, as text.
fn rows(seed: u64, slices: &[Duration]) -> Rows {
    let mut rows = Rows::default();
    let summary = simulate(seed, slices, &mut rows);
    rows.text
        .push(Summary::new("", "", summary).to_json().unwrap());
    rows
}

const WHOLE: [Duration; 1] = [Duration::from_secs(1)];

#[test]
fn the_rows_match_the_golden_digest() {
    let rows = rows(7, &WHOLE);
    assert!(rows.text.len() > 300, "{} rows", rows.text.len());
    let digest = rows.digest();
    assert!(digest == GOLDEN, "the digest is {digest:#018x} now");
}

#[test]
fn slices_of_time_make_no_difference() {
    let whole = rows(7, &WHOLE);
    let nanos = [1, 999, 31_415, 2_718_281, 14_142, 577_215].map(Duration::from_nanos);
    assert!(whole == rows(7, &nanos));
    // A recorder of packets reads those that are in transit at the end of a slice.
    struct Packets(Rows);
    impl Recorder for Packets {
        fn wants_packets(&self) -> bool {
            true
        }
        fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError> {
            if let Observation::Packet(port, packet) = observation {
                self.0.text.push(format!("{port} {packet:?}"));
            }
            Ok(())
        }
    }
    let packets = |slices: &[Duration]| {
        let mut packets = Packets(Rows::default());
        simulate(7, slices, &mut packets);
        packets.0.text
    };
    let whole = packets(&WHOLE);
    assert!(whole.len() > 10_000, "{} packets", whole.len());
    assert!(whole == packets(&nanos));
}

#[test]
fn samples_that_nobody_wants_make_no_difference() {
    let whole = rows(7, &WHOLE);
    let mut simulation = Simulation::new(scenario(SCENARIO, &settings(7))).unwrap();
    let (mut flows, mut all) = (FlowRows::default(), Rows::default());
    let half = simulation.end() - Duration::from_millis(150);
    simulation.advance(half, &mut flows).unwrap();
    assert!(!flows.0.text.is_empty());
    simulation.advance(simulation.end(), &mut all).unwrap();
    let summary = simulation.finish(&mut all).unwrap();
    let summary = Summary::new("", "", summary).to_json().unwrap();
    assert_eq!(whole.text.last(), Some(&summary));
    // Goodput is that since the last sample, which the first sample does not have.
    let of_groups = |row: &&String| row.starts_with("GroupSample");
    let groups = all.text.iter().filter(of_groups).count();
    let later = |rows: &Rows, skipped: usize| {
        let samples = rows.text.iter().filter(of_groups).skip(skipped);
        let others = rows.text.iter().filter(|row| row.starts_with("PortSample"));
        (samples.cloned().collect(), others.cloned().collect())
    };
    let (samples, ports): (Vec<_>, Vec<_>) = later(&all, 6);
    let (expected, expected_ports): (Vec<_>, Vec<_>) = later(&whole, 0);
    assert!(groups > 60 && !ports.is_empty());
    assert!(expected.ends_with(&samples) && expected_ports.ends_with(&ports));
    assert!(expected.len() > samples.len() + 60);
}

/// A sample brings queues up to date, also those of hosts that send datagrams.
#[test]
fn the_times_of_samples_make_no_difference() {
    let text = |transport: &str, interval: &str| {
        format!(
            r#"
            title = "Datagrams"
            source = "a test"
            duration = "60ms"
            warm_up = "5ms"
            [dumbbell]
            rate = "1Gbps"
            delay = "5us"
            queue = {{ kind = "step", buffer = "60 packets", ecn_threshold = "15KB" }}
            [dumbbell.senders.sender]
            count = 3
            rtt = "80us"
            [groups.flows]
            from = "sender"
            to = "receiver"
            flows = 2
            transport = "{transport}"
            workload = "bulk"
            start_within = "3ms"
            [measurements]
            ports = "*"
            sample_interval = "{interval}"
            "#
        )
    };
    for transport in ["quic", "dcudp"] {
        let results = |interval| {
            let mut rows = Rows::default();
            let summary = record(&text(transport, interval), &[], &mut rows);
            rows.text.retain(|row| row.starts_with("Flow"));
            (rows.text, Summary::new("", "", summary).to_json().unwrap())
        };
        let often = results("50us");
        assert_eq!(often.0.len(), 6, "{transport}");
        assert!(often == results("7ms"), "{transport}");
        assert!(often == results("1s"), "{transport}");
    }
}

#[test]
fn other_runs_at_the_same_time_make_no_difference() {
    let alone = rows(8, &WHOLE);
    let together = std::thread::scope(|scope| {
        let others = [9, 8, 10].map(|seed| scope.spawn(move || rows(seed, &WHOLE)));
        others.map(|other| other.join().unwrap())
    });
    assert!(together[1] == alone);
}

#[test]
fn another_seed_gives_different_rows() {
    assert!(rows(7, &WHOLE) != rows(8, &WHOLE));
}

#[test]
fn files_are_the_same_to_the_last_byte() {
    let write = |file| {
        let directory = tempfile::tempdir().unwrap();
        let output = Output::create(directory.path()).unwrap();
        let mut files = output.run(Vec::new(), Duration::from_millis(300)).unwrap();
        let summary = simulate_file(file, 7, &WHOLE, &mut files);
        let finished = files.finish().unwrap();
        let summary = Summary::new("A mixture", "a test", summary);
        let paths = output.commit(&summary, "", [finished]).unwrap();
        let mut contents: Vec<_> = paths
            .into_iter()
            .map(|path| {
                (
                    path.file_name().unwrap().to_owned(),
                    fs::read(path).unwrap(),
                )
            })
            .collect();
        contents.sort();
        contents
    };
    for (file, count) in [(SCENARIO, 4), (STACKS, 5)] {
        let files = write(file);
        assert_eq!(files.len(), count);
        assert!(files == write(file));
    }
}
