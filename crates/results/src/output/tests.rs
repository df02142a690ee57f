use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use tempfile::TempDir;
use weir_counters::FlowCounters;
use weir_units::{ByteSize, Rate, Time};

use super::*;
use crate::{Drops, FlowRecord, GroupSample, Observation, PortSample, Recorder, RunSummary};

const SPAN: Duration = Duration::from_secs(1);

fn flow(index: u64) -> FlowRecord<'static> {
    FlowRecord {
        group: "dctcp",
        index,
        source: "a",
        destination: "b",
        start: Time::ZERO,
        end: None,
        size: None,
        ideal: None,
        counters: FlowCounters {
            delivered: ByteSize::from_kib(index),
            ..FlowCounters::ZERO
        },
        goodput: Rate::ZERO,
        smoothed_rtt: None,
        min_rtt: None,
    }
}

fn port(nanos: u64) -> PortSample<'static> {
    PortSample {
        time: Time::from_nanos(nanos),
        port: "bottleneck",
        // Does not compress well.
        queue: ByteSize::from_bytes(nanos.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 8),
        queue_packets: nanos,
        sent: ByteSize::ZERO,
        marks: 0,
        drops: Drops::default(),
    }
}

fn summary() -> Summary {
    Summary::new("title", "source", RunSummary::default())
}

/// A run with this many rows in each table.
fn filled(mut run: RunFiles, rows: u64) -> Result<FinishedRun, OutputError> {
    for index in 0..rows {
        run.record(Observation::Flow(flow(index)))?;
        run.record(Observation::Port(port(index)))?;
        run.record(Observation::Group(GroupSample {
            time: Time::from_nanos(index),
            group: "dctcp",
            counters: FlowCounters::ZERO,
            goodput: Rate::ZERO,
            window: None,
        }))?;
    }
    run.finish()
}

fn written(directory: &Path, rows: u64) -> Result<Vec<PathBuf>, OutputError> {
    let output = Output::create(directory)?;
    let threshold = |bytes| vec![("threshold_bytes".to_owned(), Value::Count(bytes))];
    let own = filled(output.run(threshold(7), SPAN)?, rows)?;
    let variant = filled(output.variant("a/b c", threshold(9), SPAN)?, rows)?;
    output.commit(&summary(), "<!doctype html>", [own, variant])
}

fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap();
    let entries = entries.map(|entry| {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        (name, fs::read(entry.path()).unwrap())
    });
    entries.collect()
}

#[test]
fn exactly_the_expected_files_are_written() {
    let parent = TempDir::new().unwrap();
    let directory = parent.path().join("made/on/the/way");
    let paths = written(&directory, 10).unwrap();
    let files = contents(&directory);
    let names = [
        "flows.parquet",
        "report.html",
        "samples.parquet",
        "summary.json",
    ];
    assert!(files.keys().eq(&names), "{:?}", files.keys());
    assert_eq!(paths.len(), names.len());
    assert_eq!(paths.last(), Some(&directory.join("summary.json")));
    let text = String::from_utf8(files["summary.json"].clone()).unwrap();
    assert_eq!(Summary::from_json(&text).unwrap(), summary());
    assert!(files["flows.parquet"].ends_with(b"PAR1"));
}

#[test]
fn the_same_results_are_the_same_bytes() {
    let [one, two] = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    written(one.path(), 3000).unwrap();
    written(two.path(), 3000).unwrap();
    assert_eq!(contents(one.path()), contents(two.path()));
}

#[test]
fn a_dropped_output_leaves_the_directory_unchanged() {
    let directory = TempDir::new().unwrap();
    written(directory.path(), 10).unwrap();
    let before = contents(directory.path());
    {
        let output = Output::create(directory.path()).unwrap();
        let mut run = output.run(Vec::new(), SPAN).unwrap();
        (0..20_000).for_each(|index| run.record(Observation::Port(port(index))).unwrap());
        let _finished = filled(output.variant("x", Vec::new(), SPAN).unwrap(), 10).unwrap();
        assert_eq!(contents(directory.path()).len(), before.len() + 6);
    }
    assert_eq!(contents(directory.path()), before);
}

#[test]
fn a_scenario_is_kept_until_a_run_without_one() {
    let directory = TempDir::new().unwrap();
    let mut output = Output::create(directory.path()).unwrap();
    output.keep_scenario("title = \"kept\"\n").unwrap();
    let run = output.run(Vec::new(), SPAN).unwrap();
    let paths = output.commit(&summary(), "", [run.finish().unwrap()]);
    let kept = directory.path().join("weir-run.toml");
    assert!(paths.unwrap().contains(&kept));
    assert_eq!(fs::read_to_string(&kept).unwrap(), "title = \"kept\"\n");
    written(directory.path(), 1).unwrap();
    assert!(!kept.exists());
}

#[test]
fn new_files_replace_old_ones() {
    let directory = TempDir::new().unwrap();
    written(directory.path(), 10).unwrap();
    let before = contents(directory.path());
    written(directory.path(), 11).unwrap();
    let after = contents(directory.path());
    assert!(after.keys().eq(before.keys()));
    assert_ne!(after["flows.parquet"], before["flows.parquet"]);
}

#[test]
fn runs_are_told_apart_by_columns() {
    let directory = TempDir::new().unwrap();
    // Several row groups for each run.
    let rows = 10_000;
    written(directory.path(), rows).unwrap();
    for (table, of_each) in [("flows", rows), ("samples", 2 * rows)] {
        let file = File::open(directory.path().join(format!("{table}.parquet"))).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let mut runs = BTreeMap::new();
        let mut last = Vec::new();
        for row in reader.get_row_iter(None).unwrap() {
            let columns = row.unwrap().into_columns();
            assert_eq!(
                (&*columns[0].0, &*columns[1].0),
                ("variant", "threshold_bytes")
            );
            let run = format!("{} {}", columns[0].1, columns[1].1);
            *runs.entry(run).or_insert(0) += 1;
            last = columns;
        }
        let expected = [
            ("\"a/b c\" 9".to_owned(), of_each),
            ("null 7".to_owned(), of_each),
        ];
        assert_eq!(runs, BTreeMap::from(expected), "{table}");
        if table == "flows" {
            let index = last.iter().find(|(name, _)| name == "index").unwrap();
            assert_eq!(index.1, Field::Long(rows as i64 - 1));
        }
    }
}

#[test]
fn tables_of_an_earlier_run_are_removed_but_not_those_of_others() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name);
    written(directory.path(), 1).unwrap();
    fs::copy(path("flows.parquet"), path("epochs.parquet")).unwrap();
    fs::copy(
        path("flows.parquet"),
        path("flows.ecn=20%20packets.parquet"),
    )
    .unwrap();
    fs::copy(path("flows.parquet"), path("flowers.parquet")).unwrap();
    fs::write(path("samples.mine.parquet"), "no table").unwrap();
    fs::write(path("notes.txt"), "mine").unwrap();
    // Left by a killed run.
    fs::write(path(".flows.parquetAb3dE9.tmp"), "half").unwrap();
    fs::write(path(".mine.tmp"), "mine").unwrap();
    written(directory.path(), 2).unwrap();
    let names: Vec<_> = contents(directory.path()).into_keys().collect();
    assert_eq!(
        names,
        [
            ".mine.tmp",
            "flowers.parquet",
            "flows.parquet",
            "notes.txt",
            "report.html",
            "samples.mine.parquet",
            "samples.parquet",
            "summary.json"
        ]
    );
}

#[test]
fn two_runs_do_not_write_to_one_directory() {
    let directory = TempDir::new().unwrap();
    let first = Output::create(directory.path()).unwrap();
    let error = Output::create(directory.path()).unwrap_err();
    assert!(matches!(error, OutputError::Busy { .. }), "{error}");
    drop(first);
    Output::create(directory.path()).unwrap();
}

#[test]
fn an_unwritable_output_is_an_error_before_the_run() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Output::create(&file).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("cannot create {}: ", file.display())),
        "{error}"
    );

    fs::create_dir(directory.path().join("summary.json")).unwrap();
    let error = Output::create(directory.path()).unwrap_err().to_string();
    assert!(error.contains("summary.json: is a directory"), "{error}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);

    // Not even root can create files there.
    let error = Output::create("/proc/self").unwrap_err();
    assert!(matches!(error, OutputError::Create { .. }), "{error}");
}

#[test]
fn devices_are_refused_and_symbolic_links_kept() {
    let error = StagedFile::create("/dev/null").unwrap_err().to_string();
    assert_eq!(error, "cannot create /dev/null: not a regular file");
    let directory = TempDir::new().unwrap();
    let [file, link] = ["file", "link"].map(|name| directory.path().join(name));
    fs::write(&file, "old").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let mut staged = StagedFile::create(&link).unwrap();
    staged.write_whole(b"new").unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"old");
    staged.persist().unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"new");
    assert!(link.is_symlink());
}

/// A small file system, unmounted when dropped.
struct SmallDisk(TempDir);

impl SmallDisk {
    /// Returns `None`, and prints the reason, where nothing can be mounted.
    fn mount() -> Option<Self> {
        let directory = TempDir::new().unwrap();
        let arguments = ["-t", "tmpfs", "-o", "size=256k", "tmpfs"];
        let mount = Command::new("mount")
            .args(arguments)
            .arg(directory.path())
            .output();
        if mount.is_ok_and(|mount| mount.status.success()) {
            return Some(Self(directory));
        }
        println!("SKIPPED: a full disk: no tmpfs can be mounted (needs root)");
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_is_an_error_and_leaves_old_files() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let directory = disk.0.path();
    written(directory, 10).unwrap();
    let before = contents(directory);
    let error = written(directory, 100_000).unwrap_err();
    let OutputError::Write { path, source } = &error else {
        panic!("{error}");
    };
    assert_eq!(path.parent(), Some(directory));
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull, "{error}");
    assert_eq!(contents(directory), before);
}
