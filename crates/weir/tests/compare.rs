//! `weir compare`, with small runs.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(dead_code, reason = "the support is shared with other tests")]

mod support;

use std::fs;
use std::path::Path;

use support::{CommandOutput, run};

const SMALL: &str = r#"
title = "A flow"
source = "a test"
duration = "20ms"
[dumbbell]
rate = "100Mbps"
queue = { kind = "drop-tail", buffer = "100KB" }
[dumbbell.senders.sender]
rtt = "200us"
[groups.flow]
from = "sender"
to = "receiver"
workload = "bulk"
[measurements]
sample_interval = "100us"
"#;

fn simulate(folder: &Path, out: &str, more: &[&str]) {
    let file = folder.join("small.toml");
    fs::write(&file, SMALL).unwrap();
    let (file, out) = (
        file.display().to_string(),
        folder.join(out).display().to_string(),
    );
    let arguments = [&["run", &file, "--json", "--out", &out], more].concat();
    run(&arguments).ok();
}

fn compare(folder: &Path, directories: [&str; 2], more: &[&str]) -> CommandOutput {
    let paths = directories.map(|name| folder.join(name).display().to_string());
    run(&[&["compare", &paths[0], &paths[1]], more].concat())
}

#[test]
fn two_runs_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    simulate(folder, "a", &[]);
    simulate(folder, "b", &["--set", "dumbbell.rate=200Mbps"]);
    let page = folder.join("both.html").display().to_string();
    let said = compare(folder, ["a", "b"], &["--report", &page]);
    said.ok();
    for part in [
        "goodput_bps",
        "bottleneck",
        "utilization",
        "the settings differ",
    ] {
        assert!(said.stdout.contains(part), "{part}: {}", said.stdout);
    }
    let page = fs::read_to_string(page).unwrap();
    for part in [
        "\"run\":\"a\"",
        "\"run\":\"b\"",
        "neither intervals nor verdicts",
    ] {
        assert!(page.contains(part), "{part}");
    }

    let json = compare(folder, ["a", "b"], &["--json"]).json();
    let goodput = &json["runs"][""]["groups"]["flow"]["goodput_bps"];
    assert!(goodput["difference"].as_f64().unwrap() > 0.8, "{goodput}");
    let same = compare(folder, ["a", "a"], &["--json"]).json();
    assert_eq!(same["notes"].as_array().unwrap().len(), 0);
    let groups = &same["runs"][""]["groups"]["flow"];
    assert_eq!(groups["goodput_bps"]["difference"], 0.0);
}

#[test]
fn directories_that_are_no_output_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    simulate(folder, "a", &[]);
    fs::create_dir(folder.join("empty")).unwrap();
    let said = compare(folder, ["a", "empty"], &[]);
    said.failed(1, &["is no output of an experiment", "--out DIR"]);
    compare(folder, ["a", "none"], &[]).failed(1, &["none"]);
    run(&["compare", "a"]).failed(2, &["<DIR>"]);
}

#[test]
fn repetitions_are_compared_by_their_means() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    simulate(folder, "a", &["--seeds", "1..3"]);
    simulate(
        folder,
        "b",
        &["--seeds", "4,6", "--set", "dumbbell.rate=200Mbps"],
    );
    assert!(folder.join("a/seed-3/summary.json").exists());
    let page = std::fs::read_to_string(folder.join("a/report.html")).unwrap();
    for part in ["3 runs, seeds 1 to 3", "± 95 %", "goodput_bps"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let json = std::fs::read_to_string(folder.join("a/repetitions.json")).unwrap();
    assert!(json.contains("half_width"), "{json}");
    let said = compare(folder, ["a", "b"], &["--within", "20%"]);
    said.ok();
    for part in ["3 runs", "2 runs", "verdict", "differ", "agree"] {
        assert!(said.stdout.contains(part), "{part}: {}", said.stdout);
    }
    let same = compare(folder, ["a", "a"], &["--json"]).json();
    let goodput = &same["runs"][""]["groups"]["flow"]["goodput_bps"];
    assert_eq!(goodput["verdict"], "agree");
    compare(folder, ["a", "b"], &["--within", "much"]).failed(2, &["percentage"]);

    let file = folder.join("small.toml").display().to_string();
    let means = run(&["run", &file, "--seeds", "1..4"]);
    means.ok();
    for part in ["4 runs, seeds 1 to 4", "± 95 %", "goodput_bps"] {
        assert!(means.stdout.contains(part), "{part}: {}", means.stdout);
    }
    let out = folder.join("a").display().to_string();
    run(&["run", &file, "--seeds", "1..2", "--out", &out]).failed(1, &["seed-3", "earlier run"]);
    run(&["run", &file, "--seeds", "4..1"]).failed(2, &["1..8"]);
    run(&["run", &file, "--seeds", "1..2", "--seed", "3"]).failed(2, &["--seed"]);
}
