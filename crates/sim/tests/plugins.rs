//! Congestion controls as WebAssembly modules: `docs/examples/aimd.wat`, and modules that are none.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::fs;
use std::path::Path;

use weir_results::{Observation, OutputError, Recorder, RunSummary};
use weir_scenario::{Document, Scenario, ScenarioError};
use weir_sim::{RunError, Simulation};
use weir_units::Time;

const AIMD: &str = include_str!("../../../docs/examples/aimd.wat");

const SCENARIO: &str = r#"
    title = "A lossy queue"
    source = "a test"
    duration = "60ms"
    [dumbbell]
    rate = "1Gbps"
    queue = { kind = "red", red_min = "20KB", red_max = "60KB", drop_probability = 0.05, length = "instantaneous", buffer = "100KB" }
    [dumbbell.senders.sender]
    count = 2
    rtt = "200us"
    [groups.g]
    from = "sender"
    to = "receiver"
    workload = "bulk"
    congestion = CONGESTION
"#;

/// A module as text, with these functions in place of a window that never changes.
fn module(functions: &str) -> String {
    let needed = [
        ("init", "(param i64 i64)"),
        ("window", "(result i64) (i64.const 30000)"),
        (
            "on_ack",
            "(param i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i32)",
        ),
        ("on_loss", "(param i64 i64 i64 i64 i32)"),
    ];
    let others = needed.iter().filter(|(name, _)| {
        let export = format!("\"{name}\"");
        !functions.contains(&export)
    });
    let others = others.map(|(name, rest)| format!("(func (export \"{name}\") {rest})"));
    format!("(module {functions} {})", others.collect::<String>())
}

/// Reads the scenario with this congestion control, beside a file `mine.wat`.
fn scenario(wat: &str, congestion: &str) -> Result<Scenario, ScenarioError> {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("mine.wat"), wat).unwrap();
    let path = place.path().join("scenario.toml");
    fs::write(&path, SCENARIO.replace("CONGESTION", congestion)).unwrap();
    Document::load(&path)?.scenario()
}

/// All that was recorded of the flows of a run, and how many packets were sent again.
#[derive(Debug, Default, PartialEq)]
struct Flows(Vec<String>, u64);

impl Recorder for Flows {
    fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError> {
        if let Observation::Flow(flow) = observation {
            self.0.push(format!("{flow:?}"));
            self.1 += flow.counters.retransmits;
        }
        Ok(())
    }
}

fn run(scenario: Scenario) -> Result<(RunSummary, Flows), RunError> {
    let mut simulation = Simulation::new(scenario).unwrap();
    let mut flows = Flows::default();
    let end = simulation.end();
    // The failure of a plug-in ends the first part after it.
    for part in 1..=10 {
        simulation.advance(Time::ZERO + end.since(Time::ZERO) * part / 10, &mut flows)?;
    }
    let summary = simulation.finish(&mut flows)?;
    Ok((summary, flows))
}

const MINE: &str = "{ plugin = \"mine.wat\" }";

#[test]
fn the_example_sends_what_the_built_in_aimd_sends() {
    let [own, again] = [0, 1].map(|_| run(scenario(AIMD, MINE).unwrap()).unwrap());
    let built_in = run(scenario(AIMD, "\"newreno\"").unwrap()).unwrap();
    assert_eq!(own.1, again.1);
    assert_eq!(own.1, built_in.1);
    assert_eq!(own.0.ports, built_in.0.ports);
    assert!(own.1.1 > 50, "{:?}", own.1);
}

#[test]
fn parameters_reach_the_module() {
    let goodput = |congestion: &str| {
        let (summary, _) = run(scenario(AIMD, congestion).unwrap()).unwrap();
        summary.groups["g"].delivered
    };
    let gentle = goodput("{ plugin = \"mine.wat\", factor = 0.9, max_rate = \"1Gbps\" }");
    let harsh = goodput("{ plugin = \"mine.wat\", factor = 0 }");
    assert!(gentle > harsh, "{gentle} {harsh}");
    let slow = goodput("{ plugin = \"mine.wat\", max_rate = \"1Mbps\" }");
    assert!(slow * 10 < harsh, "{slow} {harsh}");
}

#[test]
fn a_setting_replaces_an_algorithm_by_a_plug_in() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("mine.wat"), AIMD).unwrap();
    let path = place.path().join("scenario.toml");
    fs::write(&path, SCENARIO.replace("CONGESTION", "\"cubic\"")).unwrap();
    let setting = format!("groups.g.congestion={MINE}").parse().unwrap();
    let scenario = Document::load(&path).unwrap().with(&[setting]).unwrap();
    let scenario = scenario.scenario().unwrap();
    assert!(
        scenario
            .congestion()
            .all(|(_, spec)| spec.plugin().is_some())
    );
}

#[test]
fn the_general_form_names_the_file_and_its_digest() {
    let congestion = "{ plugin = \"mine.wat\", factor = 0.9, max_window = \"1MB\" }";
    let text = toml::to_string(&scenario(AIMD, congestion).unwrap()).unwrap();
    for part in [
        "plugin = \"mine.wat\"",
        "factor = 0.9",
        "max_window = \"1MB\"",
        "sha256 = \"",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("mine.wat"), AIMD).unwrap();
    let path = place.path().join("general.toml");
    fs::write(&path, &text).unwrap();
    let again = Document::load(&path).unwrap().scenario().unwrap();
    assert_eq!(toml::to_string(&again).unwrap(), text);
    // The digest holds the file to its contents.
    fs::write(place.path().join("mine.wat"), format!("{AIMD} ")).unwrap();
    let error = Document::load(&path).unwrap().scenario().unwrap_err();
    assert!(error.to_string().contains("it has changed"), "{error}");
}

#[test]
fn a_module_that_is_no_congestion_control_is_an_error_of_the_scenario() {
    let memory = |pages: u32| module(&format!("(memory {pages})"));
    let endless = "(func $loop (loop (br 0))) (start $loop)";
    for (wat, says) in [
        ("", "no module that can be used"),
        ("(module", "no module that can be used"),
        (
            "(module)",
            "must export a function `init(packet_bytes: i64, seed: i64)`",
        ),
        (
            &module("(func (export \"init\") (param i32))"),
            "`init(packet_bytes",
        ),
        (
            &module("(func (export \"rate\") (result f64) (f64.const 0))"),
            "`rate() -> i64`",
        ),
        (
            &module("(global (export \"on_sent\") i32 (i32.const 0))"),
            "`on_sent(now_ns",
        ),
        (
            &module("(import \"env\" \"clock\" (func))"),
            "imports `env.clock`",
        ),
        (&memory(1_000), "no module that can be used"),
        (
            &module(endless),
            "`start`: it has not returned after 1000000 instructions",
        ),
        (
            &module("(func (export \"init\") (param i64 i64) unreachable)"),
            "`init`: ",
        ),
        (
            &module("(func (export \"window\") (result i64) (i64.const 0))"),
            "a window of 0 bytes",
        ),
    ] {
        let error = scenario(wat, MINE).unwrap_err().to_string();
        assert!(error.contains(says), "{says}: {error}");
        assert!(error.contains("scenario.toml:"), "{error}");
        assert!(error.contains("groups.g.congestion.plugin"), "{error}");
    }
    for (congestion, says) in [
        ("{ plugin = \"other.wat\" }", "other.wat: No such file"),
        ("{ plugin = 5 }", "WebAssembly module"),
        ("{ plugin = \"mine.wat\", gain = 1 }", "no parameter `gain`"),
        ("{ plugin = \"mine.wat\", gain = 1 }", "it has `factor`"),
        ("{ plugin = \"mine.wat\", factor = \"1\" }", "is a number"),
        ("{ plugin = \"mine.wat\", max_rate = 1 }", "max_rate"),
        (
            "{ plugin = \"mine.wat\", name = \"cubic\" }",
            "`plugin` and `name`",
        ),
        (
            "{ plugin = \"mine.wat\", sha256 = \"0\" }",
            "it has changed",
        ),
    ] {
        let error = scenario(AIMD, congestion).unwrap_err().to_string();
        assert!(error.contains(says), "{says}: {error}");
    }
}

#[test]
fn a_failure_names_its_flow_and_time() {
    let ack = |body: &str| {
        let parameters = "(param i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i32)";
        let window = "(global $window (mut i64) (i64.const 30000)) \
                      (func (export \"window\") (result i64) (global.get $window))";
        module(&format!(
            "{window} (func (export \"on_ack\") {parameters} {body})"
        ))
    };
    for (body, says) in [
        (
            "(loop (br 0))",
            "`on_ack`: it has not returned after 1000000 instructions",
        ),
        ("unreachable", "`on_ack`: wasm `unreachable`"),
        (
            "(drop (i64.div_s (i64.const 1) (i64.const 0)))",
            "`on_ack`: ",
        ),
        (
            "(global.set $window (i64.const -5))",
            "a window of -5 bytes",
        ),
        ("(global.set $window (i64.const 0))", "a window of 0 bytes"),
    ] {
        let error = run(scenario(&ack(body), MINE).unwrap()).unwrap_err();
        let RunError::Plugin(failure) = &error else {
            panic!("{error}");
        };
        assert_eq!(failure.user, "g");
        assert!(failure.flow.is_some_and(|flow| flow < 2), "{error}");
        assert!(failure.at.is_some_and(|at| at > Time::ZERO), "{error}");
        assert!(error.to_string().contains(says), "{says}: {error}");
    }
}

#[test]
fn changes_set_the_limits_of_every_algorithm() {
    let change = |set: &str| {
        let congestion =
            format!("{MINE}\n[[changes]]\nat = \"30ms\"\ngroups = \"g\"\nset = {{ {set} }}");
        scenario(AIMD, &congestion)
    };
    let delivered = |scenario| run(scenario).unwrap().0.groups["g"].delivered;
    let slowed = delivered(change("congestion = { max_rate = \"1Mbps\" }").unwrap());
    let free = delivered(scenario(AIMD, MINE).unwrap());
    assert!(slowed < free * 3 / 4, "{slowed} {free}");
    let error = change("congestion = { factor = 0.9 }")
        .unwrap_err()
        .to_string();
    assert!(error.contains("`max_rate`"), "{error}");
}

#[test]
fn an_unbounded_window_is_paced_by_its_rate() {
    let wat = module(
        "(func (export \"window\") (result i64) (i64.const 0x7fffffffffffffff)) \
         (func (export \"rate\") (result i64) (i64.const 100000000))",
    );
    let (summary, _) = run(scenario(&wat, MINE).unwrap()).unwrap();
    // Two flows of 100 Mbit/s for 60 ms.
    let sent = summary.groups["g"].delivered.bytes();
    assert!((1_350_000..1_510_000).contains(&sent), "{sent}");
}

#[test]
fn the_example_is_that_of_the_documentation() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/plugins.md");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("examples/aimd.wat"));
    for name in [
        "init",
        "on_ack",
        "on_loss",
        "window",
        "rate",
        "wants_delivery",
        "on_sent",
        "on_spurious_loss",
        "on_idle_restart",
        "on_deadline",
        "on_packet_size",
    ] {
        assert!(page.contains(&format!("`{name}(")), "{name}");
    }
}
