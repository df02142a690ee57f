use std::path::Path;

use tempfile::TempDir;
use weir_counters::FlowCounters;
use weir_units::{ByteSize, Duration, Rate, Time};

use super::*;
use crate::{
    CompletionTimes, Drops, Emulation, EpochRecord, FlowRecord, GroupSample, GroupSummary,
    Observation, Output, PortSample, PortSummary, Recorder,
};

const SPAN: Duration = Duration::from_secs(10);

/// Writes an output whose numbers scale with `factor`.
fn written(directory: &Path, title: &str, group: &str, factor: u64, change: fn(&mut RunSummary)) {
    let output = Output::create(directory).unwrap();
    let mut files = output.run(Vec::new(), SPAN).unwrap();
    for number in 1..=1000 {
        let time = Time::from_nanos(number * 10_000_000);
        let delivered = ByteSize::from_bytes(number * 1000 * factor);
        files
            .record(Observation::Group(GroupSample {
                time,
                group,
                counters: FlowCounters {
                    delivered,
                    ..FlowCounters::ZERO
                },
                goodput: Rate::ZERO,
                window: Some(ByteSize::from_kib(factor)),
            }))
            .unwrap();
        files
            .record(Observation::Port(PortSample {
                time,
                port: "bottleneck",
                queue: ByteSize::from_bytes(30_000 * factor),
                queue_packets: 0,
                sent: ByteSize::ZERO,
                marks: number * factor,
                drops: Drops::default(),
            }))
            .unwrap();
    }
    for index in 0..20 {
        files
            .record(Observation::Flow(FlowRecord {
                group,
                index,
                source: "a",
                destination: "b",
                start: Time::ZERO,
                end: Some(Time::from_nanos((index + 1) * 1_000_000)),
                size: Some(ByteSize::from_kib(1)),
                ideal: None,
                counters: FlowCounters::ZERO,
                goodput: Rate::ZERO,
                smoothed_rtt: None,
                min_rtt: None,
            }))
            .unwrap();
    }
    for epoch in 0..20 {
        let completion = (epoch != 3).then_some(Duration::from_millis(factor));
        files
            .record(Observation::Epoch(EpochRecord {
                group,
                index: 0,
                epoch,
                start: Time::ZERO,
                completion,
                attempts: 1,
            }))
            .unwrap();
    }
    let files = files.finish().unwrap();
    let mut run = RunSummary {
        simulated: SPAN,
        groups: [(
            group.to_owned(),
            GroupSummary {
                goodput: Rate::from_mbps(100 * factor),
                completed: 20,
                completion: CompletionTimes::of(&mut [Duration::from_millis(factor)]),
                ..GroupSummary::default()
            },
        )]
        .into(),
        ports: [(
            "bottleneck".to_owned(),
            PortSummary {
                queue_mean: ByteSize::from_kib(30 * factor),
                ..PortSummary::default()
            },
        )]
        .into(),
        ..RunSummary::default()
    };
    change(&mut run);
    let summary = Summary::new(title, "a test", run);
    output.commit(&summary, "", [files]).unwrap();
}

fn compared(
    [title, other_title]: [&str; 2],
    [group, other_group]: [&str; 2],
    change: fn(&mut RunSummary),
) -> Result<Comparison, CompareError> {
    let [one, other] = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    written(one.path(), title, group, 4, |_| {});
    written(other.path(), other_title, other_group, 5, change);
    Comparison::read(one.path(), other.path(), Ratio::of(1, 10))
}

#[test]
fn differences_are_relative_to_the_first_run() {
    let comparison = compared(["t", "t"], ["g", "g"], |run| run.world = RunKind::Live).unwrap();
    assert_eq!(comparison.notes, [""; 0]);
    let run = &comparison.runs[""];
    let goodput = run.groups["g"]["goodput_bps"];
    assert_eq!((goodput.first, goodput.second), (4e8, 5e8));
    assert!((goodput.difference.unwrap().value() - 0.25).abs() < 1e-12);
    assert_eq!(run.groups["g"]["marks"].difference, None);

    let text = comparison.to_text();
    let line = |start: &str| {
        let words = text.lines().map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            words.join(" ")
        });
        let mut found = words.filter(|line| line.starts_with(start));
        found
            .next()
            .unwrap_or_else(|| panic!("no {start} in\n{text}"))
    };
    assert_eq!(
        line("g goodput_bps"),
        "g goodput_bps 400 Mbps 500 Mbps +25.0 %"
    );
    assert_eq!(
        line("bottleneck queue_mean"),
        "bottleneck queue_mean_bytes 123 KB 154 KB +25.0 %"
    );
    assert!(!text.contains("retransmits"), "{text}");
    assert!(line("B:").ends_with("live"));

    let json: serde_json::Value = serde_json::from_str(&comparison.to_json().unwrap()).unwrap();
    assert_eq!(
        json["runs"][""]["groups"]["g"]["completed"]["difference"],
        0.0
    );
    assert_eq!(json["second"]["world"], "live");
}

#[test]
fn both_are_drawn_into_the_same_figures() {
    let page = compared(["t", "t"], ["g", "g"], |_| {}).unwrap().to_html();
    let (_, rest) = page.split_once("id=\"figures-data\">").unwrap();
    let (data, _) = rest.split_once("</script>").unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let sections = data["sections"].as_array().unwrap();
    assert_eq!(sections.len(), 1);
    let figures = sections[0]["figures"].as_array().unwrap();
    let ids: Vec<_> = figures
        .iter()
        .map(|figure| figure["id"].as_str().unwrap())
        .collect();
    assert_eq!(
        ids,
        [
            "queue",
            "goodput",
            "window",
            "marks",
            "epochs",
            "completions"
        ]
    );
    for figure in figures {
        let lines = figure["lines"].as_array().unwrap();
        let runs: Vec<_> = lines
            .iter()
            .map(|line| line["run"].as_str().unwrap())
            .collect();
        assert_eq!(runs, ["a", "b"], "{figure}");
        assert_eq!(lines[0]["of"], lines[1]["of"]);
        assert_ne!(lines[0]["y"], "");
    }
    assert!(page.contains("there are neither intervals nor verdicts"));
    assert!(page.ends_with("</html>\n"));
}

#[test]
fn different_scenarios_are_noted() {
    let comparison = compared(["t", "u"], ["g", "h"], |run| {
        run.settings.insert("seed".to_owned(), "2".to_owned());
        run.emulation = Some(Emulation {
            reasons: vec!["the CPU was busy".to_owned()],
            ..Emulation::default()
        });
    });
    let comparison = comparison.unwrap();
    assert!(comparison.runs[""].groups.is_empty());
    assert_eq!(
        comparison.notes,
        [
            "these are two scenarios: \"t\" and \"u\"",
            "the settings differ: none and seed=2",
            "the emulation of B was not faithful: the CPU was busy",
            "only A has g",
            "only B has h",
        ]
    );
    let error = compared(["t", "u"], ["g", "h"], |run| run.ports.clear()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("these are not the same scenario: \"t\" and \"u\""),
        "{error}"
    );
}

#[test]
fn invalid_outputs_are_refused() {
    let [one, other] = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let error = Comparison::read(one.path(), other.path(), Ratio::of(1, 10)).unwrap_err();
    assert!(
        error.to_string().contains("is no output of an experiment"),
        "{error}"
    );
    written(one.path(), "t", "g", 1, |_| {});
    std::fs::write(other.path().join("summary.json"), "{}").unwrap();
    let error = Comparison::read(one.path(), other.path(), Ratio::of(1, 10)).unwrap_err();
    assert!(error.to_string().contains("this is no summary"), "{error}");
    written(other.path(), "t", "g", 1, |_| {});
    std::fs::write(other.path().join("samples.parquet"), "no table").unwrap();
    let error = Comparison::read(one.path(), other.path(), Ratio::of(1, 10)).unwrap_err();
    assert!(error.to_string().contains("samples.parquet: "), "{error}");
}

#[test]
fn repetitions_have_intervals_and_verdicts() {
    let [one, other] = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    for (seed, run) in (1..=3).zip([|_: &mut RunSummary| {}; 3]) {
        written(&one.path().join(format!("seed-{seed}")), "t", "g", 10, run);
    }
    for seed in [2, 10] {
        let directory = other.path().join(format!("seed-{seed}"));
        written(&directory, "t", "g", 10, |run| {
            run.settings.insert("seed".to_owned(), "7".to_owned());
            run.groups["g"].goodput = Rate::from_mbps(2000);
        });
    }
    // A directory without results is none of a repetition.
    std::fs::create_dir(other.path().join("notes")).unwrap();
    let comparison = Comparison::read(one.path(), other.path(), Ratio::of(1, 10)).unwrap();
    assert_eq!(
        (comparison.first.repetitions, comparison.second.repetitions),
        (3, 2)
    );
    assert!(comparison.notes.is_empty(), "{:?}", comparison.notes);
    let group = &comparison.runs[""].groups["g"];
    let verdict = |key: &str| group[key].statistics.unwrap().verdict;
    assert_eq!(verdict("goodput_bps"), Verdict::Differ);
    assert_eq!(verdict("completed"), Verdict::Agree);
    let text = comparison.to_text();
    for part in [
        "3 runs",
        "2 runs",
        "differ",
        "agree",
        "+100.0 % to +100.0 %",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let page = comparison.to_html();
    for part in [
        "3 runs",
        "<span class=\"verdict differ\">differ</span> 1</li>",
        "<td class=\"verdict differ\">differ</td>",
        "+100.0 % to +100.0 %",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let json = comparison.to_json().unwrap();
    assert!(json.contains("\"verdict\": \"differ\""), "{json}");
}
