//! Every mistake is reported with its file, line and key, and with what would be accepted.

use weir_scenario::{Place, Scenario, ScenarioError, Setting};

const FILE: &str = r#"title = "A test"
source = "tests/mistakes.rs"
seed = 3
duration = "10s"
warm_up = "1s"

[parameters]
threshold = "100KB"
rate = "10Gbps"

[dumbbell]
rate = "$rate"
delay = "5us"
mtu = "1500B"
queue = "shared"

[dumbbell.senders.near]
count = 4
rtt = "50us"

[dumbbell.senders.far]
rtt = "50ms"

[queues.shared]
kind = "shared"
buffer = "1MB"
ecn_threshold = "$threshold"
red_min = "200KB"
red_max = "400KB"
drop_probability = 0.05

[groups.dctcp]
from = "near"
to = "receiver"
flows = 10
congestion = { name = "dctcp", g = 0.0625 }
workload = "bulk"
start_within = "1s"
stop = "9s"

[groups.dctcp.tcp]
min_rto = "10ms"

[groups.cubic]
from = ["far"]
to = "receiver"
workload = { kind = "transfer", size = "1GB" }

[groups.noise]
from = "far"
to = "receiver"
transport = "udp"
workload = { kind = "cbr", rate = "1Mbps" }

[[faults]]
kind = "loss"
ports = "bottleneck"
at = "2s"
until = "3s"
probability = 0.01

[measurements]
sample_interval = "10ms"
"#;

/// Loads the file with one text replaced by another, which must be a mistake.
fn mistake(from: &str, to: &str) -> String {
    assert!(FILE.contains(from), "{from}");
    let text = FILE.replacen(from, to, 1);
    match Scenario::parse("test.toml", &text, &[]) {
        Ok(_) => panic!("`{to}` is accepted"),
        Err(error) => error.to_string(),
    }
}

fn line_of(part: &str) -> usize {
    let offset = FILE.find(part).unwrap_or_else(|| panic!("{part}"));
    1 + FILE[..offset].matches('\n').count()
}

#[test]
fn the_file_itself_is_right() {
    Scenario::parse("test.toml", FILE, &[]).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn mistakes_are_found_where_they_are() {
    // What is replaced, by what, and what the message must say besides file and line.
    let cases: &[(&str, &str, &[&str])] = &[
        // Not TOML, or not a key.
        ("seed = 3", "seed = = 3", &[]),
        (
            "seed = 3",
            "sede = 3",
            &["sede: ", "did you mean `seed`?", "duration"],
        ),
        (
            "flows = 10",
            "flow = 10",
            &["groups.dctcp.flow: ", "did you mean `flows`?", "workload"],
        ),
        (
            "min_rto",
            "min_rot",
            &["groups.dctcp.tcp.min_rot", "did you mean `min_rto`?"],
        ),
        // Kinds of values and units.
        (
            "duration = \"10s\"",
            "duration = 10",
            &["duration: ", "a duration from", "the number 10"],
        ),
        (
            "duration = \"10s\"",
            "duration = \"10 parsecs\"",
            &["`parsecs`", "ns, us, ms"],
        ),
        (
            "duration = \"10s\"",
            "duration = \"600000000h\"",
            &["larger than a duration can be"],
        ),
        (
            "duration = \"10s\"",
            "duration = \"2000h\"",
            &["2000h is outside", "1000h"],
        ),
        (
            "duration = \"10s\"",
            "duration = \"0s\"",
            &["0s is outside"],
        ),
        (
            "duration = \"10s\"",
            "duration = 2026-11-21",
            &["the date 2026-11-21"],
        ),
        (
            "buffer = \"1MB\"",
            "buffer = \"1Mb\"",
            &["queues.shared.buffer", "`Mb`", "KiB"],
        ),
        (
            "buffer = \"1MB\"",
            "buffer = \"0B\"",
            &["0B is outside", "unlimited"],
        ),
        ("flows = 10", "flows = 0", &["0 is outside", "from 1"]),
        ("flows = 10", "flows = -1", &["-1 is outside"]),
        (
            "flows = 10",
            "flows = 1.5",
            &["a whole number", "the number 1.5"],
        ),
        (
            "flows = 10",
            "flows = 99999999999999999999",
            &["groups.dctcp.flows"],
        ),
        (
            "flows = 10",
            "flows = \"$flows\"",
            &["no parameter `flows`", "threshold, rate"],
        ),
        ("seed = 3", "seed = -3", &["-3 is outside"]),
        // Numbers that make no sense.
        (
            "rate = \"1Mbps\"",
            "rate = \"0bps\"",
            &["0bps is outside", "1kbps"],
        ),
        (
            "drop_probability = 0.05",
            "drop_probability = nan",
            &["NaN is outside", "from 0 to 1"],
        ),
        (
            "drop_probability = 0.05",
            "drop_probability = 5",
            &["5 is outside", "from 0 to 1"],
        ),
        (
            "drop_probability = 0.05",
            "drop_probability = \"5%\"",
            &["a probability from 0 to 1"],
        ),
        (
            "red_min = \"200KB\"",
            "red_min = \"500KB\"",
            &["red_min", "500KB is above `red_max`, 400KB"],
        ),
        (
            "red_max = \"400KB\"",
            "red_max = \"2MB\"",
            &["red_max", "2MB is above the buffer of 1MB"],
        ),
        (
            "mtu = \"1500B\"",
            "mtu = \"40B\"",
            &["dumbbell.mtu", "40B is outside", "128B"],
        ),
        (
            "warm_up = \"1s\"",
            "warm_up = \"10s\"",
            &["warm_up: ", "leaves nothing"],
        ),
        (
            "rtt = \"50us\"",
            "rtt = \"5us\"",
            &["senders.near.rtt", "shorter than"],
        ),
        (
            "rtt = \"50us\"",
            "rtt = \"50us\"\ndelay = \"1us\"",
            &["near.rtt", "write one of them"],
        ),
        (
            "flows = 10",
            "flows = 1000000",
            &["4000000 flows are too many", "100000", "state"],
        ),
        (
            "stop = \"9s\"",
            "stop = \"1s\"",
            &["groups.dctcp.stop", "may start as late as 1s"],
        ),
        (
            "start_within = \"1s\"",
            "start_within = \"10s\"",
            &["start_within", "set `stop` after"],
        ),
        (
            "at = \"2s\"",
            "at = \"20s\"",
            &["faults.0.at", "simulation ends at 10s"],
        ),
        (
            "until = \"3s\"",
            "until = \"1s\"",
            &["faults.0.until", "begins at 2s"],
        ),
        (
            "count = 4",
            "count = 100000",
            &["senders.near.count", "100000 is outside", "20000"],
        ),
        (
            "min_rto = \"10ms\"",
            "min_rto = \"10min\"",
            &["above `max_rto`, 2min"],
        ),
        (
            "min_rto = \"10ms\"",
            "mss = \"1461B\"",
            &["exceed the smallest MTU, 1.5KB", "1.46KB"],
        ),
        (
            "min_rto = \"10ms\"",
            "recovery = \"rack\"\nsack = false",
            &["without SACK"],
        ),
        // Words and names.
        (
            "kind = \"shared\"",
            "kind = \"shred\"",
            &["queues.shared.kind", "did you mean `shared`?", "qfx"],
        ),
        (
            "kind = \"loss\"",
            "kind = \"fire\"",
            &["faults.0.kind", "down, loss"],
        ),
        (
            "workload = \"bulk\"",
            "workload = \"bluk\"",
            &["did you mean `bulk`?", "incast"],
        ),
        (
            "transport = \"udp\"",
            "transport = \"quic\"",
            &["`quic` is none of tcp, udp"],
        ),
        (
            "name = \"dctcp\"",
            "name = \"dctpc\"",
            &["congestion.name", "`dctpc`", "cubic, dctcp"],
        ),
        (
            "g = 0.0625",
            "q = 0.0625",
            &["congestion.q", "no parameter `q`", "min_window"],
        ),
        ("g = 0.0625", "g = 7", &["congestion.g", "must lie between"]),
        (
            "queue = \"shared\"",
            "queue = \"share\"",
            &["no queue `share`", "did you mean `shared`?"],
        ),
        (
            "to = \"receiver\"",
            "to = \"reciever\"",
            &["no host `reciever`", "did you mean `receiver`?"],
        ),
        (
            "from = [\"far\"]",
            "from = [\"far\", \"farther*\"]",
            &["groups.cubic.from.1", "near1"],
        ),
        (
            "from = [\"far\"]",
            "from = []",
            &["groups.cubic.from", "at least one host"],
        ),
        (
            "from = [\"far\"]",
            "from = \"receiver\"",
            &["no sender has a receiver other"],
        ),
        (
            "from = [\"far\"]",
            "from = \"switch\"",
            &["no host `switch`"],
        ),
        (
            "ports = \"bottleneck\"",
            "ports = \"bottelneck\"",
            &["did you mean `bottleneck`?"],
        ),
        ("[groups.noise]", "[groups.\"a b\"]", &["`a b` is no name"]),
        (
            "[dumbbell.senders.far]",
            "[dumbbell.senders.near1]",
            &["`near1` is the name of another host"],
        ),
        // Things that do not go together.
        (
            "rate = \"1Mbps\" }",
            "rate = \"1Mbps\" }\ncongestion = \"cubic\"",
            &["noise.congestion", "no meaning"],
        ),
        (
            "{ kind = \"cbr\", rate = \"1Mbps\" }",
            "\"bulk\"",
            &["noise.workload", "UDP has no"],
        ),
        (
            "to = \"receiver\"",
            "to = \"receiver\"\npairing = \"one-to-one\"",
            &["4 senders and 1 receivers"],
        ),
        (
            "[measurements]",
            "[star]\n[measurements]",
            &["described twice"],
        ),
        (
            "[measurements]",
            "[[links]]\n[measurements]",
            &["links", "short form"],
        ),
        // What is not there.
        (
            "workload = \"bulk\"\n",
            "",
            &["groups.dctcp.workload: missing", "\"bulk\""],
        ),
        (
            "red_min = \"200KB\"\n",
            "",
            &["queues.shared.red_min: missing", "a size"],
        ),
        (
            "kind = \"shared\"\n",
            "",
            &["queues.shared.kind: missing", "drop-tail, red"],
        ),
        ("title = \"A test\"\n", "", &["title: missing"]),
        // Parameters.
        (
            "threshold = \"100KB\"",
            "threshold = \"100XB\"",
            &["ecn_threshold (parameters.threshold)", "`XB`"],
        ),
        (
            "threshold = \"100KB\"",
            "threshold = \"$rate\"",
            &["parameters.threshold", "another one"],
        ),
    ];
    for (from, to, parts) in cases {
        let message = mistake(from, to);
        for part in *parts {
            assert!(
                message.contains(part),
                "`{to}`: `{part}` is missing in:\n{message}"
            );
        }
        for line in message.lines() {
            assert!(line.starts_with("test.toml:"), "{line}");
        }
        // Something is said about the line, or about the table that it stands in.
        let near = |line: &str| {
            let number = line
                .split(':')
                .nth(1)
                .and_then(|number| number.parse().ok());
            number.is_some_and(|number: usize| number.abs_diff(line_of(from)) <= 12)
        };
        assert!(message.lines().any(near), "`{to}`:\n{message}");
    }
}

#[test]
fn parameters_that_nothing_uses_are_mistakes() {
    let message = mistake("\"$threshold\"", "\"1KB\"");
    assert!(message.starts_with("test.toml:8: parameters.threshold: nothing in the file uses"));
}

#[test]
fn a_thousand_mistakes_are_cut_short() {
    let hosts: String = (0..5000)
        .map(|n| format!("[hosts.a{n}]\ncount = 0\n"))
        .collect();
    let text = format!("title = \"t\"\nsource = \"s\"\nduration = \"1s\"\n{hosts}");
    let queues: String = (0..5000)
        .map(|n| format!("[queues.a{n}]\ncolour = 1\n"))
        .collect();
    for text in [format!("{text}{queues}"), "a = = 1\n".repeat(5000)] {
        let Err(ScenarioError::Invalid { problems }) = Scenario::parse("test.toml", &text, &[])
        else {
            panic!("accepted");
        };
        assert_eq!(problems.len(), 50);
    }
}

#[test]
fn faults_of_one_kind_do_not_overlap() {
    let with = |at: &str, kind: &str| {
        let fault = format!(
            "[[faults]]\n{kind}\nports = [\"near1->switch\", \"bottleneck\"]\nat = \"{at}\"\n"
        );
        Scenario::parse("test.toml", &format!("{FILE}{fault}"), &[])
    };
    let loss = "kind = \"loss\"\nprobability = 0.5";
    let message = with("2999ms", loss).expect_err("an overlap").to_string();
    assert!(
        message.contains(
            "faults.1: the port `bottleneck` still has another fault of this kind, `faults.0`"
        ),
        "{message}"
    );
    assert!(message.starts_with("test.toml:64: "), "{message}");
    assert!(with("3s", loss).is_ok());
    assert!(with("2s", "kind = \"down\"").is_ok());
}

#[test]
fn the_line_is_exact_where_a_value_is_wrong() {
    for (from, to) in [
        ("count = 4", "count = 0"),
        ("drop_probability = 0.05", "drop_probability = 2"),
        ("at = \"2s\"", "at = 2"),
        ("sample_interval = \"10ms\"", "sample_interval = \"0ms\""),
        ("from = [\"far\"]", "from = [\"for\"]"),
        ("threshold = \"100KB\"", "threshold = \"2MB\""),
        ("seed = 3", "seeds = 3"),
    ] {
        let expected = format!("test.toml:{}: ", line_of(from));
        let message = mistake(from, to);
        assert!(message.starts_with(&expected), "{expected}\n{message}");
    }
}

#[test]
fn several_mistakes_are_reported_at_once() {
    let text = FILE
        .replace("count = 4", "count = 0")
        .replace("flows = 10", "flows = 0")
        .replace("kind = \"loss\"", "kind = \"lose\"")
        .replace("red_max = \"400KB\"", "red_max = 400");
    let Err(ScenarioError::Invalid { problems }) = Scenario::parse("test.toml", &text, &[]) else {
        panic!("accepted");
    };
    // The network comes before what refers to it: groups and faults wait for it.
    let keys: Vec<_> = problems.iter().map(|problem| &problem.key[..]).collect();
    assert_eq!(
        keys,
        ["dumbbell.senders.near.count", "queues.shared.red_max"]
    );

    let text = FILE
        .replace("flows = 10", "flows = 0")
        .replace("kind = \"loss\"", "kind = \"lose\"")
        .replace("sample_interval = \"10ms\"", "sample_interval = 10");
    let Err(ScenarioError::Invalid { problems }) = Scenario::parse("test.toml", &text, &[]) else {
        panic!("accepted");
    };
    let keys: Vec<_> = problems.iter().map(|problem| &problem.key[..]).collect();
    assert_eq!(
        keys,
        [
            "groups.dctcp.flows",
            "faults.0.kind",
            "measurements.sample_interval"
        ]
    );
    let mut places: Vec<_> = problems.iter().map(|problem| &problem.place).collect();
    places.dedup();
    assert_eq!(places.len(), 3);
    assert!(places.is_sorted());
}

#[test]
fn settings_are_checked_like_the_file() {
    let set = |text: &str| {
        let setting: Setting = text.parse().expect(text);
        Scenario::parse("test.toml", FILE, &[setting])
    };
    for accepted in [
        "parameters.rate=5Gbps",
        "parameters.threshold=\"50KB\"",
        "groups.cubic.workload.size=1MB",
        "groups.dctcp.workload={ kind = \"transfer\", size = \"1MB\" }",
        "groups.cubic.congestion=newreno",
        "groups.cubic.congestion.name=newreno",
        "groups.cubic.tcp.sack=false",
        "groups.cubic.start=1s",
        "faults.0.probability=1",
        "faults=[]",
        "measurements.ports=*",
        "queues.shared.ecn_threshold=5KB",
        "title=Another one",
    ] {
        set(accepted).unwrap_or_else(|error| panic!("{accepted}: {error}"));
    }
    for (refused, parts) in [
        (
            "parameters.rat=5Gbps",
            vec!["no `parameters.rat`", "did you mean `rate`?"],
        ),
        (
            "groups.dctpc.flows=3",
            vec!["no `groups.dctpc`", "did you mean `dctcp`?", "noise"],
        ),
        (
            "groups.dctcp.flos=3",
            vec!["groups.dctcp.flos: there is no such key", "`flows`"],
        ),
        ("faults.1.probability=1", vec!["no `faults.1`", "0 to 0"]),
        ("seed.x=1", vec!["no `seed.x`", "which has no keys"]),
        (
            "sede=1",
            vec!["sede: there is no such key", "did you mean `seed`?"],
        ),
        (
            "parameters.rate=5GB",
            vec!["dumbbell.rate (parameters.rate)", "`GB`", "Gbps"],
        ),
        ("a..b=1", vec!["a."]),
        ("groups.dctcp={ a = 1 }", vec!["groups.dctcp.a"]),
    ] {
        let message = set(refused).expect_err(refused).to_string();
        for part in parts {
            assert!(
                message.contains(part),
                "{refused}: `{part}` is missing in:\n{message}"
            );
        }
        assert!(
            message.starts_with(&format!("test.toml: setting `{refused}`: ")),
            "{message}"
        );
    }
    assert!("no assignment".parse::<Setting>().is_err());
    assert!("=1".parse::<Setting>().is_err());
}

#[test]
fn variants_are_named_and_checked() {
    let with = |text: &str| Scenario::parse("test.toml", &format!("{FILE}\n{text}"), &[]);
    let loaded = with(
        r#"
        [variants.slow]
        "parameters.rate" = "1Gbps"
        groups.cubic.workload.size = "1MB"
        [variants.grid]
        "parameters.threshold" = ["50KB", "100KB"]
        "groups.dctcp.flows" = [1, 2, 3]
        [variants.short]
        "groups.cubic.workload" = "bulk"
        "#,
    );
    let loaded = loaded.unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<_> = loaded
        .variants
        .iter()
        .map(|variant| &variant.name[..])
        .collect();
    assert_eq!(
        names,
        [
            "slow",
            "short",
            "threshold=50KB,flows=1",
            "threshold=50KB,flows=2",
            "threshold=50KB,flows=3",
            "threshold=100KB,flows=1",
            "threshold=100KB,flows=2",
            "threshold=100KB,flows=3",
        ]
    );
    assert_eq!(
        loaded.variants[3].settings[1].to_string(),
        "groups.dctcp.flows=2"
    );
    assert_eq!(loaded.variants[3].scenario.groups[0].flows, 2);
    assert_eq!(loaded.scenario.groups[0].flows, 10);
    let plain = Scenario::parse("test.toml", FILE, &[]).unwrap();
    assert_eq!(
        loaded.scenario, plain.scenario,
        "variants leave the file's own values alone"
    );

    for (text, parts) in [
        (
            "[variants.a]\n\"groups.dctcp.flows\" = 0",
            vec!["test.toml:66: variant `a`: groups.dctcp.flows: 0 is outside"],
        ),
        (
            "[variants.a]\n\"groups.dctpc.flows\" = 1",
            vec!["test.toml:66: ", "did you mean `dctcp`?"],
        ),
        (
            "[variants.grid]\n\"seed\" = 1",
            vec!["variants.grid.seed", "a list of values"],
        ),
        ("[variants]\na = 1", vec!["variants.a", "a table"]),
        (
            "[variants.\"seed=1\"]\n[variants.grid]\nseed = [1]",
            vec!["`seed=1` is the name of another variant"],
        ),
    ] {
        let message = with(text).expect_err(text).to_string();
        for part in parts {
            assert!(
                message.contains(part),
                "{text}: `{part}` is missing in:\n{message}"
            );
        }
    }
    let values: Vec<_> = (0..200).map(|n| n.to_string()).collect();
    let values = values.join(",");
    let huge = format!("[variants.grid]\nseed = [{values}]\n\"groups.dctcp.flows\" = [{values}]");
    let message = with(&huge).expect_err("a huge grid").to_string();
    assert!(message.contains("40000 variants are too many"), "{message}");
}

#[test]
fn mistakes_in_the_general_form() {
    const GENERAL: &str = r#"title = "t"
source = "s"
duration = "1s"
[hosts.a]
count = 2
[hosts.b]
[hosts.lonely]
[switches.s]
[switches.t]
[[links]]
from = "a"
to = "s"
rate = "1Gbps"
delay = "1us"
[[links]]
from = "s"
to = "t"
rate = "1Gbps"
delay = "1us"
[[links]]
from = "t"
to = "b"
name = "last"
rate = "1Gbps"
delay = "1us"
[groups.g]
from = "a"
to = "b"
workload = "bulk"
"#;
    Scenario::parse("test.toml", GENERAL, &[]).unwrap_or_else(|error| panic!("{error}"));
    let route = |switch: &str, via: &str| {
        format!("[[routes]]\nswitch = \"{switch}\"\nto = \"b\"\nvia = {via}\n")
    };
    for (text, parts) in [
        (
            GENERAL.replace("to = \"b\"\nworkload", "to = \"lonely\"\nworkload"),
            vec!["test.toml:28: groups.g.to: no route leads from host `a1` to host `lonely`"],
        ),
        (
            GENERAL.replace("to = \"s\"", "to = \"x\""),
            vec!["no host or switch `x`", "a, b, lonely, s, t"],
        ),
        (
            GENERAL.replace("to = \"s\"", "to = \"a1\""),
            vec!["`a1` is at both ends"],
        ),
        (
            GENERAL.replace("to = \"s\"\n", "to = \"s\"\nname = \"up\"\n"),
            vec!["2 links cannot all be called `up`"],
        ),
        (
            GENERAL.replace("\"last\"", "\"a1->s\""),
            vec!["`a1->s` is no name"],
        ),
        (
            GENERAL.replace("from = \"t\"\nto = \"b\"", "from = \"s\"\nto = \"t\""),
            vec!["`s->t` is the name of another port"],
        ),
        (
            GENERAL.replace("[switches.t]", "[switches.b]"),
            vec!["`b` is the name of another host"],
        ),
        (
            GENERAL.replace(
                "[switches.t]",
                "[switches.t]\nshared_buffer = { size = \"1MB\" }",
            ),
            vec!["one of `alpha` and `per_port`"],
        ),
        (
            GENERAL.replace(
                "[switches.t]",
                "[switches.t]\nshared_buffer = { size = \"1MB\", per_port = \"2MB\" }",
            ),
            vec!["more than the whole buffer"],
        ),
        (
            format!("{GENERAL}{}", route("s", "\"b\"")),
            vec!["no neighbour of the switch `b`", "a1, a2, t"],
        ),
        (
            format!("{GENERAL}{}", route("a1", "\"b\"")),
            vec!["routes.0.switch", "the name of a switch"],
        ),
        (
            format!("{GENERAL}{}", route("t", "\"s\"")),
            vec!["no route leads"],
        ),
        (
            format!("{GENERAL}{}", route("s", "[\"t\", \"a1\"]")),
            vec!["no route leads"],
        ),
    ] {
        let message = Scenario::parse("test.toml", &text, &[])
            .expect_err(&text)
            .to_string();
        for part in parts {
            assert!(message.contains(part), "`{part}` is missing in:\n{message}");
        }
    }
}

#[test]
fn files_that_cannot_be_read_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none.toml");
    let message = Scenario::load(&missing, &[])
        .expect_err("no file")
        .to_string();
    assert!(message.contains("none.toml"), "{message}");
    let bytes = folder.path().join("bytes.toml");
    std::fs::write(&bytes, [0xff, 0xfe]).unwrap();
    let message = Scenario::load(&bytes, &[])
        .expect_err("no text")
        .to_string();
    assert!(message.contains("bytes.toml"), "{message}");
    let right = folder.path().join("right.toml");
    std::fs::write(&right, FILE).unwrap();
    assert!(Scenario::load(&right, &[]).is_ok());
}

#[test]
fn settings_have_a_place_of_their_own() {
    let setting: Setting = "groups.dctcp.flows=0".parse().unwrap();
    let Err(ScenarioError::Invalid { problems }) = Scenario::parse("test.toml", FILE, &[setting])
    else {
        panic!("accepted");
    };
    assert_eq!(problems.len(), 1);
    assert_eq!(
        problems[0].place,
        Place::Setting("groups.dctcp.flows=0".into())
    );
}
