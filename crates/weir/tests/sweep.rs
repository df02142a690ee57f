//! `weir sweep`, with small scenarios.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(dead_code, reason = "the support is shared with other tests")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Row;
use support::{CommandOutput, command_output, weir};
use tempfile::TempDir;

const SCENARIO: &str = r#"
title = "A flow and a queue"
source = "a test"
duration = "20ms"

[parameters]
rate = "100Mbps"
low = "5KB"
high = "50KB"

[dumbbell]
rate = "$rate"
[dumbbell.queue]
kind = "red"
red_min = "$low"
red_max = "$high"
drop_probability = 0.1
length = "instantaneous"
buffer = "100KB"
[dumbbell.senders.sender]
rtt = "200us"

[groups.cubic]
from = "sender"
to = "receiver"
workload = "bulk"
"#;

const SWEEP: &str = r#"
title = "Thresholds"
source = "a test"
scenario = "scenario.toml"
seeds = [1, 2]
where = ["parameters.low <= parameters.high"]

[grid]
"parameters.rate" = ["100Mbps", "200Mbps"]
"parameters.low" = { from = "10KB", to = "30KB", step = "10KB" }
"parameters.high" = ["10KB", "30KB"]
"#;
/// 2 rates, 4 pairs of thresholds, 2 seeds.
const RUNS: usize = 16;

fn folder(sweep: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("scenario.toml"), SCENARIO).unwrap();
    fs::write(folder.path().join("sweep.toml"), sweep).unwrap();
    folder
}

fn sweep(folder: &Path, arguments: &[&str]) -> CommandOutput {
    let mut command = weir(&["sweep", "sweep.toml"]);
    command_output(
        command
            .current_dir(folder)
            .args(arguments)
            .output()
            .unwrap(),
    )
}

fn rows(folder: &Path) -> Vec<Row> {
    let file = fs::File::open(folder.join("out/runs.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    reader
        .get_row_iter(None)
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

/// Returns the cells of a column, as text.
fn column(rows: &[Row], name: &str) -> Vec<String> {
    let cell = |row: &Row| {
        let found = row.get_column_iter().find(|(column, _)| *column == name);
        found.map_or_else(
            || panic!("no column {name}"),
            |(_, field)| field.to_string(),
        )
    };
    rows.iter().map(cell).collect()
}

#[test]
fn every_combination_has_one_row() {
    let folder = folder(SWEEP);
    let said = sweep(folder.path(), &["--out", "out"]);
    said.ok();
    assert!(
        said.stdout.contains("16 of 16 runs, 0 failed"),
        "{}",
        said.stdout
    );
    let rows = rows(folder.path());
    assert_eq!(rows.len(), RUNS);
    let rates = column(&rows, "rate_bps");
    assert!(
        rates[..8].iter().all(|rate| rate == "100000000"),
        "{rates:?}"
    );
    assert!(
        rates[8..].iter().all(|rate| rate == "200000000"),
        "{rates:?}"
    );
    assert_eq!(column(&rows, "low_bytes")[..2], ["10000", "10000"]);
    assert_eq!(column(&rows, "seed")[..2], ["1", "2"]);
    let goodput: Vec<f64> = column(&rows, "groups.cubic.goodput_bps")
        .iter()
        .map(|text| text.parse().unwrap())
        .collect();
    assert!(goodput[15] > 1.5 * goodput[7], "{goodput:?}");
}

#[test]
fn an_interrupted_sweep_resumes_and_ignores_rows_of_other_settings() {
    let folder = folder(SWEEP);
    let path = folder.path();
    sweep(path, &["--out", "out"]).ok();
    let whole = fs::read(path.join("out/runs.parquet")).unwrap();
    let journal = path.join("out/runs.jsonl");

    // As if killed in the middle of the sixth row.
    let text = fs::read_to_string(&journal).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let cut = format!("{}\n{}", lines[..5].join("\n"), &lines[5][..40]);
    fs::write(&journal, cut).unwrap();
    let refused = sweep(path, &["--out", "out"]);
    refused.failed(1, &["has 5 rows already: --resume"]);
    let resumed = sweep(path, &["--out", "out", "--resume"]);
    resumed.ok();
    assert!(
        resumed.stderr.contains("kept: the rows of 5 runs"),
        "{}",
        resumed.stderr
    );
    assert_eq!(
        without_cpu(&whole),
        without_cpu(&fs::read(path.join("out/runs.parquet")).unwrap())
    );

    // Another duration is another scenario.
    let other = sweep(
        path,
        &["--out", "out", "--resume", "--set", "duration=10ms"],
    );
    other.ok();
    assert!(
        other
            .stderr
            .contains("again: 16 runs, whose scenario has changed"),
        "{}",
        other.stderr
    );
    assert_eq!(rows(path).len(), RUNS);
    assert_eq!(
        fs::read_to_string(&journal).unwrap().lines().count(),
        2 * RUNS
    );
}

/// Returns a dataset's rows without the columns that differ between two runs.
fn without_cpu(bytes: &[u8]) -> Vec<String> {
    let reader = SerializedFileReader::new(bytes::Bytes::copy_from_slice(bytes)).unwrap();
    let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
    let text = |row: Row| {
        let cells = row.get_column_iter().filter(|(name, _)| *name != "cpu_s");
        cells
            .map(|(name, field)| format!("{name}={field};"))
            .collect()
    };
    rows.map(text).collect()
}

#[test]
fn shards_fill_one_output_directory() {
    let folder = folder(SWEEP);
    let path = folder.path();
    for part in ["0/3", "1/3", "2/3"] {
        let said = sweep(path, &["--out", "out", "--shard", part]);
        said.ok();
    }
    assert_eq!(rows(path).len(), RUNS);
    let some = sweep(path, &["--out", "some", "--some", "5"]);
    assert!(some.stdout.contains("5 of 16 runs"), "{}", some.stdout);
}

#[test]
fn an_invalid_combination_is_a_row_with_its_error() {
    let without = SWEEP.replace("where = [\"parameters.low <= parameters.high\"]\n", "");
    let folder = folder(&without);
    let said = sweep(folder.path(), &["--out", "out"]);
    said.ok();
    assert!(
        said.stdout.contains("24 of 24 runs, 8 failed"),
        "{}",
        said.stdout
    );
    let rows = rows(folder.path());
    let errors = column(&rows, "error");
    assert_eq!(
        errors
            .iter()
            .filter(|error| error.contains("red_min"))
            .count(),
        8,
        "{errors:?}"
    );
    assert!(said.stderr.contains("red_min"), "{}", said.stderr);
}

#[test]
fn a_sweep_with_only_invalid_runs_fails_with_the_reason() {
    let none = SWEEP.replace(
        "{ from = \"10KB\", to = \"30KB\", step = \"10KB\" }",
        "[\"40KB\"]",
    );
    let none = none.replace("where = [\"parameters.low <= parameters.high\"]\n", "");
    let folder = folder(&none);
    let said = sweep(folder.path(), &["--out", "out"]);
    said.failed(1, &["no run gave a result"]);
    assert!(said.stderr.contains("red_min"), "{}", said.stderr);
    assert_eq!(rows(folder.path()).len(), 8);
}

#[test]
fn a_latin_hypercube_sample_covers_its_keys() {
    let sample = r#"
title = "A sample"
source = "a test"
scenario = "scenario.toml"
[sample]
method = "latin-hypercube"
count = 8
[sample.keys]
"parameters.low" = { from = "1KB", to = "17KB" }
"#;
    let folder = folder(sample);
    let said = sweep(folder.path(), &["--out", "out"]);
    said.ok();
    let mut low: Vec<u64> = column(&rows(folder.path()), "low_bytes")
        .iter()
        .map(|text| (text.parse::<u64>().unwrap() - 1000) / 2000)
        .collect();
    low.sort_unstable();
    assert_eq!(low, [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn a_steady_run_ends_early() {
    let folder = folder(SWEEP);
    let early = format!(
        "{SWEEP}\n[early_stop]\nbatch = \"1ms\"\nbatches = 4\nshare = 0.01\nqueue = \"50KB\"\n"
    );
    fs::write(folder.path().join("sweep.toml"), early).unwrap();
    let said = sweep(folder.path(), &["--out", "out"]);
    said.ok();
    let stopped = column(&rows(folder.path()), "stopped_at_s");
    assert!(stopped.iter().any(|at| at != "null"), "{stopped:?}");
}

#[test]
fn the_report_package_is_checked_before_the_sweep_runs() {
    let folder = folder(SWEEP);
    let python = folder.path().join("python");
    // A fake Python with the package: it answers the module check, and then draws.
    let script =
        "#!/bin/sh\nif [ \"$1\" = -c ]; then exit 0; fi\necho \"$2 of $(basename $3)\" > \"$4\"\n";
    fs::write(&python, script).unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let report = folder.path().join("page.html");
    let run = |python: &Path| {
        let mut command = weir(&["sweep", "sweep.toml", "--out", "study", "--report"]);
        let command = command.arg(&report).current_dir(folder.path());
        command_output(command.env("WEIR_PYTHON", python).output().unwrap())
    };
    let without = folder.path().join("nowhere");
    run(&without).failed(1, &["weir sweep --report", "make python"]);
    assert!(!folder.path().join("study").exists());
    run(&python).ok();
    let page = fs::read_to_string(&report).unwrap();
    assert_eq!(page, "weir.pictures of study\n");
}

#[test]
fn mistakes_are_reported_with_their_line() {
    for (from, to, message) in [
        (
            "\"parameters.rate\" =",
            "\"parameters.rat\" =",
            "parameters.rat",
        ),
        (
            "step = \"10KB\"",
            "step = \"0KB\"",
            "sweep.toml:10: `parameters.low`: no step of",
        ),
        (
            "step = \"10KB\"",
            "step = \"10ms\"",
            "sweep.toml:10: `parameters.low`: a range needs",
        ),
        (
            "= [\"10KB\", \"30KB\"]",
            "= []",
            "sweep.toml:11: `parameters.high` has no values",
        ),
        (
            "low <= parameters.high",
            "low <= parameters.hihg",
            "sweep.toml:6: `parameters.hihg` is no key of the sweep",
        ),
        (
            "low <= parameters.high",
            "low < parameters.low",
            "the sweep has no runs",
        ),
        ("title =", "titel =", "sweep.toml:2: unknown field `titel`"),
        ("[grid]", "[gird]", "sweep.toml:8: unknown field `gird`"),
        ("scenario.toml", "scenari.toml", "scenari.toml"),
    ] {
        let folder = folder(&SWEEP.replace(from, to));
        let said = sweep(folder.path(), &["--out", "out"]);
        said.failed(1, &[message]);
        assert!(!folder.path().join("out").exists(), "{to}");
    }
}

#[test]
fn runs_that_have_lost_their_flows_are_said_to_run_again() {
    let folder = folder(&format!("keep = [\"flows\"]{SWEEP}"));
    let path = folder.path();
    sweep(path, &["--out", "out"]).ok();
    let again = sweep(path, &["--out", "out", "--resume"]);
    again.ok();
    assert!(
        again.stderr.contains("kept: the rows of 16 runs"),
        "{}",
        again.stderr
    );
    let kept = fs::read_dir(path.join("out/flows")).unwrap().next();
    fs::remove_file(kept.unwrap().unwrap().path()).unwrap();
    let lost = sweep(path, &["--out", "out", "--resume"]);
    lost.ok();
    for part in [
        "kept: the rows of 15 runs",
        "again: 1 run, whose file with flows is gone",
    ] {
        assert!(lost.stderr.contains(part), "{part}: {}", lost.stderr);
    }
}
