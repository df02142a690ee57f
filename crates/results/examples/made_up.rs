//! Example that writes every output file of an experiment with made-up numbers:
//! `cargo run -p weir-results --example made_up -- DIRECTORY`.

use std::error::Error;
use std::path::PathBuf;

use weir_counters::FlowCounters;
use weir_results::{
    Drops, FinishedRun, FlowRecord, GroupSample, GroupSummary, Observation, Output, OutputError,
    PortSample, PortSummary, Ratio, Recorder, Report, RunPlots, RunSummary, Summary, Threshold,
    Value,
};
use weir_units::{ByteSize, Duration, Rate, Time};

const SPAN: Duration = Duration::from_secs(30);
const LINE: f64 = 25e9;

fn main() -> Result<(), Box<dyn Error>> {
    let directory: PathBuf = std::env::args_os().nth(1).ok_or("which directory?")?.into();
    let output = Output::create(directory)?;
    let thresholds = [100_000, 200_000, 400_000, 800_000];
    let mut runs = Vec::new();
    for threshold in thresholds {
        let values = vec![("ecn_threshold_bytes".to_owned(), Value::Count(threshold))];
        let files = match runs.len() {
            0 => output.run(values, SPAN)?,
            _ => output.variant(&name(threshold), values, SPAN)?,
        };
        runs.push(run(files, threshold)?);
    }

    let mut summaries = thresholds.iter().map(|&threshold| summary(threshold));
    let own = summaries.next().ok_or("no run")?;
    let mut summary = Summary::new(
        "DCTCP and CUBIC share a switch buffer",
        "Made-up numbers in the manner of paper 003, section 6",
        own,
    );
    let variants = thresholds.iter().skip(1).map(|&threshold| name(threshold));
    summary.variants = variants.zip(summaries).collect();

    let parameters = [
        ("bottleneck.rate", "25Gbps"),
        ("queues.shared.ecn_threshold", "100KB"),
        (
            "queues.shared.red",
            "{ min = \"600KB\", max = \"1MB\", probability = 0.05 }",
        ),
        (
            "groups.dctcp.congestion",
            "{ name = \"dctcp\", g = 0.0625 }",
        ),
    ];
    let parameters = parameters.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let plots = runs
        .iter()
        .zip(thresholds)
        .map(|(run, threshold)| RunPlots {
            traces: run.traces(),
            thresholds: [("bottleneck".to_owned(), levels(threshold))].into(),
            values: run.values(),
        });
    let report = Report {
        summary: &summary,
        parameters: &parameters,
        runs: plots.collect(),
    };
    let html = report.to_html();
    for path in output.commit(&summary, &html, runs)? {
        eprintln!("{}", path.display());
    }
    eprint!("\n{}", summary.to_text());
    Ok(())
}

fn name(threshold: u64) -> String {
    format!("ecn_threshold={}", ByteSize::from_bytes(threshold))
}

fn levels(ecn: u64) -> Vec<Threshold> {
    let levels = [
        ("ECN", ecn),
        ("RED min", 600_000),
        ("RED max", 1_000_000),
        ("buffer", 5_000_000),
    ];
    let levels = levels.map(|(name, queue)| Threshold {
        name: name.to_owned(),
        queue: ByteSize::from_bytes(queue),
        from: Time::ZERO,
        until: None,
    });
    levels.into()
}

/// Returns DCTCP's share of the link when the queue marks at this length.
fn share(threshold: u64) -> f64 {
    0.8 - threshold as f64 / 2e6
}

fn run(mut files: weir_results::RunFiles, threshold: u64) -> Result<FinishedRun, OutputError> {
    let mut delivered = [0.0_f64; 2];
    let (mut nanos, mut noise) = (0_u64, 1_u64);
    while nanos < SPAN.as_nanos() {
        noise = noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let step = 5_000_000 + (noise >> 40) % 10_000_000;
        nanos += step;
        let (time, seconds) = (Time::from_nanos(nanos), nanos as f64 / 1e9);
        let wave = (seconds * 0.9).sin() * 0.1;
        let settled = 1.0 - (-seconds / 1.5).exp();
        let dctcp = (share(threshold) + wave) * LINE * settled;
        let rates = [("dctcp", dctcp), ("cubic", LINE * settled - dctcp)];
        for (total, (group, rate)) in delivered.iter_mut().zip(rates) {
            *total += rate / 8.0 * step as f64 / 1e9;
            files.record(Observation::Group(GroupSample {
                time,
                group,
                counters: FlowCounters {
                    delivered: ByteSize::from_bytes(*total as u64),
                    ..FlowCounters::ZERO
                },
                goodput: Rate::from_bits_per_second(rate as u64),
                window: None,
            }))?;
        }
        let queue =
            settled * (threshold as f64 * (1.5 + wave * 3.0) + ((noise >> 33) % 150_000) as f64);
        files.record(Observation::Port(PortSample {
            time,
            port: "bottleneck",
            queue: ByteSize::from_bytes(queue as u64),
            queue_packets: queue as u64 / 1500,
            sent: ByteSize::from_bytes((delivered[0] + delivered[1]) as u64),
            marks: nanos / 100_000,
            drops: Drops::default(),
        }))?;
    }
    for index in 0..200 {
        files.record(Observation::Flow(FlowRecord {
            group: if index < 100 { "dctcp" } else { "cubic" },
            index: index % 100,
            source: "sender",
            destination: "receiver",
            start: Time::from_nanos(index * 5_000_000),
            end: None,
            size: None,
            ideal: None,
            counters: FlowCounters {
                delivered: ByteSize::from_mib(900),
                ..FlowCounters::ZERO
            },
            goodput: Rate::from_mbps(125),
            smoothed_rtt: Some(Duration::from_micros(180)),
            min_rtt: Some(Duration::from_micros(50)),
        }))?;
    }
    files.finish()
}

fn summary(threshold: u64) -> RunSummary {
    let group = |share: f64| GroupSummary {
        goodput: Rate::from_bits_per_second((LINE * share) as u64),
        share: Ratio::new(share).unwrap_or_default(),
        flows: 100,
        retransmits: 12_345,
        timeouts: 3,
        marks: 1_234_567,
        fairness: Ratio::new(0.973),
        ..GroupSummary::default()
    };
    let queue = |part: f64| ByteSize::from_bytes((threshold as f64 * part) as u64);
    let port = PortSummary {
        packets: 61_000_000,
        marks: 4_567_890,
        drops: Drops {
            red: 12_300,
            tail: 45,
            ..Drops::default()
        },
        queue_mean: queue(1.5),
        queue_p50: queue(1.5),
        queue_p99: queue(2.1),
        queue_max: queue(2.4),
        utilization: Ratio::new(0.998).unwrap_or_default(),
        ..PortSummary::default()
    };
    let setting = (
        "queues.shared.ecn_threshold",
        ByteSize::from_bytes(threshold).to_string(),
    );
    RunSummary {
        seed: 1,
        settings: [(setting.0.to_owned(), setting.1)].into(),
        simulated: SPAN,
        warm_up: Duration::from_secs(5),
        cpu: Duration::from_millis(6_200),
        interrupted: threshold == 800_000,
        groups: [
            ("dctcp".to_owned(), group(share(threshold))),
            ("cubic".to_owned(), group(1.0 - share(threshold))),
        ]
        .into(),
        ports: [("bottleneck".to_owned(), port)].into(),
        ..RunSummary::default()
    }
}
