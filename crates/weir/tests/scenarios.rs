//! `weir run`, `weir check` and `weir list`, with small scenarios.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(dead_code, reason = "the support is shared with other tests")]

mod support;

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use parquet::file::reader::{FileReader, SerializedFileReader};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::{CommandOutput, command_output, weir};
use tempfile::TempDir;

const SMALL: &str = r#"
title = "Two flows and a queue"
source = "a test"
seed = 5
duration = "50ms"
warm_up = "10ms"

[parameters]
rate = "100Mbps"
ecn_threshold = "20 packets"

[dumbbell]
rate = "$rate"
queue = { kind = "step", ecn_threshold = "$ecn_threshold", buffer = "100KB" }

[dumbbell.senders.sender]
count = 2
rtt = "200us"

[groups.dctcp]
from = "sender1"
to = "receiver"
congestion = "dctcp"
workload = "bulk"
start_within = "5ms"
tcp.ecn = "dctcp"

[groups.noise]
from = "sender2"
to = "receiver"
transport = "udp"
workload = { kind = "cbr", rate = "20Mbps", arrivals = "poisson" }

[measurements]
sample_interval = "100us"

[variants.fast]
"parameters.rate" = "200Mbps"

[variants.grid]
"parameters.ecn_threshold" = ["5 packets", "50 packets"]
"#;

/// A folder that contains a scenario.
struct Workspace {
    folder: TempDir,
}

impl Workspace {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("small.toml"), text).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = weir(arguments);
        command.current_dir(self.folder.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        command_output(self.command(arguments).output().unwrap())
    }

    /// Returns the names in a folder, except scenarios.
    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name != "small.toml").collect();
        names.sort();
        names
    }
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Removes the fields that may differ between two runs.
fn without_cpu(mut summary: Value) -> Value {
    let own = summary.as_object_mut().unwrap();
    own.remove("cpu_s").unwrap();
    for variant in own["variants"].as_object_mut().unwrap().values_mut() {
        variant.as_object_mut().unwrap().remove("cpu_s").unwrap();
    }
    summary
}

fn rows(path: &Path) -> i64 {
    let file = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    file.metadata().file_metadata().num_rows()
}

#[test]
fn a_run_prints_a_summary_and_writes_all_files() {
    let place = Workspace::new(SMALL);
    let said = place.run(&["run", "small.toml", "--out", "out"]);
    let text = &said.ok().stdout;
    for word in [
        "Two flows",
        "dctcp",
        "noise",
        "bottleneck",
        "fast",
        "seed 5",
    ] {
        assert!(text.contains(word), "no {word} in {text}");
    }
    assert!(
        said.stderr
            .contains("written to out: summary.json, report.html, weir-run.toml and 2 tables"),
        "{}",
        said.stderr
    );
    assert_eq!(
        place.names("out"),
        [
            "flows.parquet",
            "report.html",
            "samples.parquet",
            "summary.json",
            "weir-run.toml"
        ]
    );
    let file = File::open(place.path("out/flows.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let rows_of_runs = reader.get_row_iter(None).unwrap().map(|row| {
        let cells = row.unwrap().into_columns().into_iter().take(4);
        let cells: Vec<_> = cells
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        cells.join(", ")
    });
    let expected = [
        ("null", 100_000_000, "20 packets"),
        ("\"fast\"", 200_000_000, "20 packets"),
        ("\"ecn_threshold=5 packets\"", 100_000_000, "5 packets"),
        ("\"ecn_threshold=50 packets\"", 100_000_000, "50 packets"),
    ];
    let expected = expected.into_iter().flat_map(|(variant, rate, threshold)| {
        ["noise", "dctcp"].map(|group| {
            format!(
                "variant {variant}, rate_bps {rate}, ecn_threshold \"{threshold}\", group \"{group}\""
            )
        })
    });
    assert!(rows_of_runs.eq(expected));
    assert!(rows(&place.path("out/samples.parquet")) > 100);

    let summary = read_json(&place.path("out/summary.json"));
    assert_eq!(summary["seed"], 5);
    assert_eq!(summary["simulated_s"], 0.05);
    assert_eq!(summary["warm_up_s"], 0.01);
    assert_eq!(summary["interrupted"], false);
    assert!(summary["cpu_s"].as_f64().unwrap() > 0.0);
    let goodput = |run: &Value| run["groups"]["dctcp"]["goodput_bps"].as_u64().unwrap();
    assert!((70_000_000..80_000_000).contains(&goodput(&summary)));
    let variants = summary["variants"].as_object().unwrap();
    assert_eq!(variants.len(), 3);
    assert!((150_000_000..180_000_000).contains(&goodput(&variants["fast"])));
    assert_eq!(variants["fast"]["settings"]["parameters.rate"], "200Mbps");

    let page = fs::read_to_string(place.path("out/report.html")).unwrap();
    for word in [
        "ecn_threshold",
        "20 packets",
        "ECN",
        "buffer",
        "\"id\":\"queue\"",
    ] {
        assert!(page.contains(word), "no {word}");
    }
}

#[test]
fn the_same_scenario_gives_the_same_bytes() {
    let place = Workspace::new(SMALL);
    let write = |folder: &str, more: &[&str]| {
        let arguments = ["run", "small.toml", "--out", folder];
        place.run(&[&arguments, more].concat()).ok();
        without_cpu(read_json(&place.path(folder).join("summary.json")))
    };
    let one = write("one", &[]);
    // On one core, the order of runs differs.
    let alone = place
        .command(&["run", "small.toml", "--out", "two"])
        .env("RAYON_NUM_THREADS", "1")
        .output()
        .unwrap();
    support::command_output(alone).ok();
    let two = without_cpu(read_json(&place.path("two/summary.json")));
    assert_eq!(one, two);
    for name in place.names("one") {
        if name.ends_with(".parquet") {
            let bytes = |folder: &str| fs::read(place.path(folder).join(&name)).unwrap();
            assert!(bytes("one") == bytes("two"), "{name}");
        }
    }
    let own = |summary: &Value| summary["ports"].clone();
    assert_ne!(own(&write("seed", &["--seed", "6"])), own(&one));
    let set = write("set", &["--set", "parameters.rate=50Mbps", "--no-variants"]);
    assert_eq!(set["settings"]["parameters.rate"], "50Mbps");
    assert_eq!(set["variants"].as_object().unwrap().len(), 0);
    assert!(
        set["groups"]["dctcp"]["goodput_bps"].as_u64()
            < one["groups"]["dctcp"]["goodput_bps"].as_u64()
    );
}

#[test]
fn json_output_equals_the_summary_file() {
    let place = Workspace::new(SMALL);
    let said = place.run(&["run", "small.toml", "--json", "--out", "out"]);
    assert_eq!(said.json(), read_json(&place.path("out/summary.json")));
    assert_eq!(
        said.stdout,
        fs::read_to_string(place.path("out/summary.json")).unwrap()
    );
}

#[test]
fn mistakes_are_reported_with_line_and_key_before_the_run() {
    let place = Workspace::new(SMALL);
    let set = |setting: &str, words: &[&str]| {
        for command in ["run", "check"] {
            let said = place.run(&[command, "small.toml", "--set", setting]);
            said.failed(1, words);
            assert_eq!(said.stdout, "");
        }
    };
    set("parameters.rate=0Gbps", &["rate", "0"]);
    set("dumbbell.queue.buffer=0B", &["buffer", "0B"]);
    set(
        "parameters.ecn_threshold=101KB",
        &["ecn_threshold", "100KB"],
    );
    set("duration=1000000000h", &["duration"]);
    set("duration=soon", &["duration", "soon"]);
    set("groups.dctcp.flows=1000000", &["flows", "1000000"]);
    set("groups.dctcp.folws=1", &["groups.dctcp.folws", "flows"]);
    set("groups.none.flows=1", &["none", "dctcp, noise"]);
    set(
        "dumbbell.queue={ kind = \"shared\", buffer = \"1MB\", ecn_threshold = \"1KB\", red_min = \"1KB\", red_max = \"2KB\", drop_probability = nan }",
        &["drop_probability", "NaN"],
    );
    place
        .run(&["run", "small.toml", "--set", "seed"])
        .failed(2, &["--set", "path=value"]);
    place
        .run(&["run", "small.toml", "--seed=-1"])
        .failed(2, &["--seed"]);
    place
        .run(&["run", "none.toml"])
        .failed(1, &["none.toml", "incast"]);
    place.run(&["run", "."]).failed(1, &["."]);

    fs::write(
        place.path("small.toml"),
        SMALL.replace("count = 2", "cuont = 2"),
    )
    .unwrap();
    let line = SMALL.lines().position(|line| line == "count = 2").unwrap() + 1;
    let at = format!("small.toml:{line}");
    let words = [at.as_str(), "cuont", "count"];
    place
        .run(&["run", "small.toml", "--out", "out"])
        .failed(1, &words);
    assert!(!place.path("out").exists());
    let said = place.run(&["check", "small.toml", "--json"]);
    said.failed(1, &["small.toml", "found"]);
    let found: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(found["mistakes"][0]["line"], line);
    assert_eq!(found["mistakes"][0]["key"], "dumbbell.senders.sender.cuont");
}

#[test]
fn the_output_of_check_is_the_same_scenario() {
    let place = Workspace::new(SMALL);
    let said = place.run(&["check", "small.toml"]);
    assert!(
        said.ok().stdout.contains("# variant fast: "),
        "{}",
        said.stdout
    );
    fs::write(place.path("written.toml"), &said.stdout).unwrap();
    let summary = |file| without_cpu(place.run(&["run", file, "--no-variants", "--json"]).json());
    assert_eq!(summary("small.toml"), summary("written.toml"));

    let json = place.run(&["check", "small.toml", "--json"]).json();
    assert_eq!(json["scenario"]["title"], "Two flows and a queue");
    assert_eq!(json["variants"][0]["name"], "fast");
}

#[test]
fn local_and_shipped_scenarios_are_listed_and_run_by_name() {
    let place = Workspace::new(SMALL);
    fs::create_dir(place.path("scenarios")).unwrap();
    fs::rename(place.path("small.toml"), place.path("scenarios/small.toml")).unwrap();
    fs::write(place.path("scenarios/wrong.toml"), "title = 1").unwrap();
    let said = place.run(&["list"]);
    for word in [
        "scenarios/small.toml",
        "Two flows",
        "a test",
        "wrong.toml:1",
        "incast",
        "Alizadeh",
    ] {
        assert!(said.ok().stdout.contains(word), "no {word}");
    }
    let json = place.run(&["list", "--json"]).json();
    let listed = json.as_array().unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    assert_eq!(listed.len(), 2 + fs::read_dir(folder).unwrap().count());
    for entry in listed.iter().filter(|entry| entry["shipped"] == true) {
        place.run(&["check", entry["name"].as_str().unwrap()]).ok();
    }
    place.run(&["list", "nowhere"]).failed(1, &["nowhere"]);

    let short = ["--set", "duration=2ms", "--set", "warm_up=0s", "--json"];
    let shipped = place.run(&[&["run", "dctcp-queue", "--no-variants"], &short[..]].concat());
    assert!(shipped.json()["title"].as_str().unwrap().contains("DCTCP"));
    // A file takes precedence over a name.
    fs::copy(place.path("scenarios/small.toml"), place.path("incast")).unwrap();
    let file = place
        .run(&["run", "incast", "--no-variants", "--json"])
        .json();
    assert_eq!(file["title"], "Two flows and a queue");
}

#[test]
fn an_unwritable_directory_is_an_error_before_the_run() {
    let place = Workspace::new(SMALL);
    fs::write(place.path("file"), "").unwrap();
    // An hour of simulation would take noticeably long.
    let long = ["run", "small.toml", "--set", "duration=1h"];
    let run = |more: &[&str]| place.run(&[&long, more].concat());
    run(&["--out", "file"]).failed(1, &["cannot create", "file"]);
    run(&["--out", "file/deep"]).failed(1, &["cannot create", "file/deep"]);
    run(&["--out", "/proc/nowhere"]).failed(1, &["cannot create", "/proc/nowhere"]);
    run(&["--pcap", "nowhere/packets"]).failed(1, &["cannot create", "nowhere/packets"]);
    run(&["--pcap", "/dev/null"]).failed(1, &["/dev/null", "regular file"]);
}

#[test]
fn a_full_disk_leaves_no_output_files() {
    let place = Workspace::new(SMALL);
    // Limits every file to 64 blocks of 512 bytes; longer writes fail.
    let script = "ulimit -f 64; trap '' XFSZ; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_weir")]);
    command.args([
        "run",
        "small.toml",
        "--out",
        "out",
        "--set",
        "duration=2s",
        "--no-variants",
    ]);
    let said = command_output(command.current_dir(place.folder.path()).output().unwrap());
    said.failed(1, &["cannot write out/samples.parquet", "too large"]);
    assert_eq!(place.names("out"), Vec::<String>::new());
}

#[test]
fn ctrl_c_writes_the_partial_results() {
    let place = Workspace::new(SMALL);
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let long = [
            "run",
            "small.toml",
            "--set",
            "duration=900h",
            "--out",
            "out",
            "--pcap",
            "packets",
        ];
        let mut child = place
            .command(&long)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // If some packets have been captured, the run is in progress and the signals are handled.
        let is_on_its_way = || {
            let files = place.names(".");
            let of = |name: &&String| name.starts_with(".packets");
            let file = files.iter().find(of);
            file.is_some_and(|name| {
                fs::metadata(place.path(name)).is_ok_and(|it| it.len() > 10_000)
            })
        };
        while !is_on_its_way() {
            assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
            std::thread::yield_now();
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        let said = command_output(child.wait_with_output().unwrap());
        said.failed(
            code,
            &[
                "interrupted",
                "written to out",
                "packets written to packets",
            ],
        );
        assert!(
            said.stdout.contains("The run was interrupted after"),
            "{}",
            said.stdout
        );
        let summary = read_json(&place.path("out/summary.json"));
        assert_eq!(summary["interrupted"], true);
        assert!(rows(&place.path("out/samples.parquet")) > 0);
        assert!(rows(&place.path("out/flows.parquet")) > 0);
        fs::remove_dir_all(place.path("out")).unwrap();
        fs::remove_file(place.path("packets")).unwrap();
    }
}

#[test]
fn packets_are_well_formed_to_wireshark() {
    let place = Workspace::new(SMALL);
    place
        .run(&[
            "run",
            "small.toml",
            "--no-variants",
            "--pcap",
            "packets.pcapng",
        ])
        .ok();
    assert!(place.names(".").contains(&"packets.pcapng".to_owned()));
    let tshark = |more: &[&str]| {
        Command::new("tshark")
            .args(["-r", "packets.pcapng", "-o", "ip.check_checksum:TRUE"])
            .args(more)
            .current_dir(place.folder.path())
            .stderr(Stdio::null())
            .output()
    };
    let Ok(all) = tshark(&[
        "-T",
        "fields",
        "-e",
        "frame.interface_name",
        "-e",
        "_ws.malformed",
    ]) else {
        eprintln!("SKIPPED: Wireshark on simulated packets: no tshark (apt-get install tshark)");
        return;
    };
    let lines: Vec<_> = all.stdout.lines().map(Result::unwrap).collect();
    assert!(lines.len() > 100);
    assert!(
        lines.iter().all(|line| line.trim() == "bottleneck"),
        "{:?}",
        lines[0]
    );
    let wrong = "_ws.malformed or ip.checksum.status == \"Bad\" or tcp.checksum.status == \"Bad\" or not (tcp or udp)";
    let wrong = tshark(&["-Y", wrong]).unwrap();
    assert_eq!(BufReader::new(&wrong.stdout[..]).lines().count(), 0);
    let marked = tshark(&["-Y", "ip.dsfield.ecn == 3 and tcp"]).unwrap();
    assert!(!marked.stdout.is_empty());
}

/// Two leaves with 16 hosts each, and a spine.
const LEAVES: &str = r#"
title = "Two leaves"
source = "a test"
seed = 4
duration = "3ms"
[hosts.a]
count = 16
[hosts.b]
count = 16
[switches.leaf-a]
[switches.leaf-b]
[switches.spine]
[[links]]
from = "a"
to = "leaf-a"
rate = "1Gbps"
delay = "1us"
[[links]]
from = "b"
to = "leaf-b"
rate = "1Gbps"
delay = "1us"
[[links]]
from = "leaf-*"
to = "spine"
rate = "10Gbps"
delay = "2us"
queue = { kind = "step", ecn_threshold = "30KB", buffer = "100KB" }
reverse_queue = { kind = "step", ecn_threshold = "30KB", buffer = "100KB" }
[groups.there]
from = "a"
to = "b"
pairing = "one-to-one"
congestion = "dctcp"
workload = "bulk"
start_within = "100us"
[groups.back]
from = "b"
to = "a"
pairing = "one-to-one"
congestion = "cubic"
workload = "bulk"
start_within = "100us"
[measurements]
ports = "*"
sample_interval = "50us"
[variants.larger]
duration = "4ms"
"#;

#[test]
fn files_are_the_same_with_any_number_of_threads() {
    let place = Workspace::new(LEAVES);
    let mut notes = Vec::new();
    for threads in ["1", "2", "16"] {
        let pcap = format!("{threads}.pcapng");
        let said = place.run(&[
            "run",
            "small.toml",
            "--threads",
            threads,
            "--out",
            threads,
            "--pcap",
            &pcap,
        ]);
        notes.push(said.ok().stderr.contains("instead of"));
        if threads == "16" {
            let note = "2 threads instead of 16: the network has no more parts";
            assert_eq!(said.stderr.matches(note).count(), 1, "{}", said.stderr);
        }
    }
    assert_eq!(notes, [false, false, true]);
    let names = place.names("1");
    assert_eq!(names.len(), 5, "{names:?}");
    for threads in ["2", "16"] {
        assert_eq!(place.names(threads), names);
        for name in &names {
            let [one, other] = ["1", threads].map(|folder| place.path(folder).join(name));
            match name.as_str() {
                "summary.json" => assert_eq!(
                    without_cpu(read_json(&one)),
                    without_cpu(read_json(&other)),
                    "{threads}"
                ),
                // It has the CPU time too.
                "report.html" => {}
                _ => assert!(
                    fs::read(one).unwrap() == fs::read(other).unwrap(),
                    "{name} with {threads} threads"
                ),
            }
        }
        let [one, other] = ["1", threads].map(|run| place.path(&format!("{run}.pcapng")));
        assert!(fs::read(one).unwrap() == fs::read(other).unwrap());
    }
}

#[test]
fn a_run_that_stays_on_one_thread_says_why() {
    let place = Workspace::new(SMALL);
    let said = place.run(&["run", "small.toml", "--no-variants", "--threads", "4"]);
    let note = "one thread instead of 4: group `noise` is not `workload = \"bulk\"`";
    assert!(said.ok().stderr.contains(note), "{}", said.stderr);
    let refused = |more: &[&str]| {
        let said = place.run(&[&["run", "small.toml"], more].concat());
        said.failed(2, &["--threads"]);
    };
    refused(&["--threads", "0"]);
    refused(&["--threads", "2", "--live"]);
}

const CHANGES: &str = r#"
[[changes]]
at = "20ms"
ports = "bottleneck"
set.queue.ecn_threshold = "$later"
[[changes]]
at = "30ms"
groups = ["dctcp"]
set.congestion = { g = 0.5, max_rate = "30Mbps" }
[[changes]]
at = "30ms"
groups = "noise"
set.workload.rate = "40Mbps"
"#;

/// The scenario with changes, one of which goes by a parameter.
fn changing() -> String {
    SMALL.replace("[parameters]\n", "[parameters]\nlater = \"10 packets\"\n") + CHANGES
}

#[test]
fn changes_are_checked_carried_out_and_named() {
    let place = Workspace::new(&changing());
    let checked = place.run(&["check", "small.toml"]);
    checked.ok();
    let run = |out: &str, settings: &[&str]| {
        let arguments = ["run", "small.toml", "--no-variants", "--out", out];
        let said = place.run(&[&arguments[..], settings].concat());
        said.ok();
        (
            without_cpu(read_json(&place.path(out).join("summary.json"))),
            said.stdout,
        )
    };
    let (summary, text) = run("a", &[]);
    let named = "at 20ms: queue.ecn_threshold = 10 packets of bottleneck";
    assert!(text.contains(named), "{text}");
    assert!(
        text.contains("at 30ms: congestion.g = 0.5, congestion.max_rate = 30Mbps of dctcp"),
        "{text}"
    );
    assert_eq!(summary["changes"][0]["at_s"], 0.02);
    assert_eq!(summary["changes"][0]["of"][0], "bottleneck");
    assert_eq!(summary["changes"][2]["set"]["workload.rate"], "40Mbps");
    let page = fs::read_to_string(place.path("a/report.html")).unwrap();
    let (prose, data) = page.split_once("figures-data").unwrap();
    assert!(
        prose.contains(named),
        "a remark without JavaScript: {prose}"
    );
    assert!(
        data.contains(&format!("\"text\":\"{named}\"")),
        "a line in the plots"
    );
    // The same bytes each time, and others with another time or threshold.
    assert_eq!(run("b", &[]).0, summary);
    for table in ["flows.parquet", "samples.parquet"] {
        let bytes = |out: &str| fs::read(place.path(out).join(table)).unwrap();
        assert!(bytes("a") == bytes("b"), "{table}");
    }
    let marks = |summary: &Value| summary["ports"]["bottleneck"]["marks"].as_u64().unwrap();
    let fewer = run("c", &["--set", "parameters.later=60 packets"]).0;
    assert!(
        marks(&fewer) < marks(&summary),
        "{} {}",
        marks(&fewer),
        marks(&summary)
    );
    assert_ne!(run("d", &["--set", "changes.0.at=40ms"]).0, summary);

    // What `weir check` prints is the same experiment.
    fs::write(place.path("small.toml"), &checked.stdout).unwrap();
    let again = run("e", &[]).0;
    assert_eq!(again["groups"], summary["groups"]);
    assert_eq!(again["changes"], summary["changes"]);
}

#[test]
fn what_cannot_change_is_an_error_with_its_place() {
    let place = Workspace::new(&format!(
        "{SMALL}{}",
        CHANGES
            .replace("$later", "10 packets")
            .replace("g = 0.5", "initial_window = 5")
    ));
    let said = place.run(&["check", "small.toml"]);
    said.failed(
        1,
        &[
            "small.toml:",
            "changes.1.set.congestion.initial_window: it cannot change while the scenario runs; what can: g, min_window",
        ],
    );
}
