//! Every key has an effect: a scenario differs when its value does. A key that the loader lists but
//! does not read would silently do nothing.

mod changes;
mod faults;
mod groups;
mod network;
mod queues;

use crate::reference::sections;
use crate::{Document, Scenario, Setting};

const FILE: &str = r#"
title = "t"
source = "s"
duration = "10s"

[dumbbell]
rate = "10Gbps"
delay = "5us"
queue = "q"
[dumbbell.senders.near]
count = 4
rtt = "1ms"
[dumbbell.senders.far]
delay = "1ms"

[queues.q]
kind = "drop-tail"
buffer = "1MB"

[groups.g]
from = "near"
to = "receiver"
workload = "bulk"

[[faults]]
kind = "down"
ports = "bottleneck"
at = "1s"
"#;

/// Workloads that other keys require.
const REQUESTS: &str =
    "groups.g.workload={ kind = \"request-response\", request = \"1KB\", response = \"1MB\" }";
const EPOCHS: &str =
    "groups.g.workload={ kind = \"epochs\", request = \"1KB\", response = \"1MB\", count = 9 }";

const TWO_GROUPS: &str = r#"
title = "t"
source = "s"
duration = "10s"
[star]
rate = "10Gbps"
delay = "5us"
queue = "unlimited"
[star.hosts.a]
[star.hosts.b]
[groups.g]
from = "a"
to = "b"
workload = { kind = "transfer", size = "1MB" }
[groups.h]
from = "a"
to = "b"
workload = { kind = "transfer", size = "1MB" }
[groups.i]
from = "a"
to = "b"
workload = { kind = "transfer", size = "1MB" }
"#;

const TRACE: &str = r#"
title = "t"
source = "s"
duration = "10s"
[dumbbell]
rate = "10Gbps"
queue = "unlimited"
[dumbbell.senders.host]
count = 4
rtt = "1ms"
[groups.g]
from = "host"
to = "receiver"
workload = { kind = "trace", file = "../../docs/examples/flows.csv" }
"#;

const STAR: &str = r#"
title = "t"
source = "s"
duration = "10s"
[star]
rate = "10Gbps"
delay = "5us"
queue = "unlimited"
shared_buffer = { size = "1MB", per_port = "100KB" }
[star.hosts.a]
count = 4
[star.hosts.b]
count = 4
[groups.g]
from = "a"
to = "b"
workload = "bulk"
"#;

const LEAF_SPINE: &str = r#"
title = "t"
source = "s"
duration = "10s"
leaf_spine = { leaves = 2, spines = 2, hosts = 2, rate = "10Gbps", delay = "1us", queue = "unlimited" }
[groups.g]
from = "rack1"
to = "rack2"
workload = "bulk"
"#;

const FAT_TREE: &str = r#"
title = "t"
source = "s"
duration = "10s"
fat_tree = { k = 4, rate = "10Gbps", delay = "1us", queue = "unlimited" }
[groups.g]
from = "pod1"
to = "rack3"
workload = "bulk"
"#;

const PARKING_LOT: &str = r#"
title = "t"
source = "s"
duration = "10s"
parking_lot = { hops = 2, rate = "10Gbps", delay = "1us", queue = "unlimited" }
[groups.g]
from = "sender"
to = "receiver"
workload = "bulk"
[groups.h]
from = "entry"
to = "exit"
pairing = "one-to-one"
workload = "bulk"
"#;

const GENERAL: &str = r#"
title = "t"
source = "s"
duration = "10s"
[hosts.a]
count = 2
[hosts.b]
[hosts.c]
[switches.s]
[switches.t]
[switches.u]
[[links]]
from = "a"
to = "s"
rate = "10Gbps"
delay = "5us"
[[links]]
from = "s"
to = "t"
rate = "10Gbps"
delay = "5us"
[[links]]
from = "s"
to = "u"
rate = "10Gbps"
delay = "5us"
[[links]]
from = "t"
to = "b"
rate = "10Gbps"
delay = "5us"
[[links]]
from = "u"
to = "b"
rate = "10Gbps"
delay = "5us"
[[links]]
from = "u"
to = "c"
rate = "10Gbps"
delay = "5us"
[[routes]]
switch = "s"
to = "b"
via = "u"
[groups.g]
from = "a"
to = "b"
workload = "bulk"
"#;

/// A section, with a file, settings that add the section, and for each key a setting that changes
/// its value.
struct Case {
    title: &'static str,
    file: &'static str,
    base: &'static [&'static str],
    keys: &'static [(&'static str, &'static str)],
}

const fn case(
    title: &'static str,
    file: &'static str,
    base: &'static [&'static str],
    keys: &'static [(&'static str, &'static str)],
) -> Case {
    Case {
        title,
        file,
        base,
        keys,
    }
}

/// Returns the cases of all sections.
fn cases() -> impl Iterator<Item = &'static Case> {
    let rooms = [
        network::CASES,
        groups::CASES,
        queues::CASES,
        faults::CASES,
        changes::CASES,
    ];
    rooms.into_iter().flatten()
}

/// `parameters` and `variants` change what is read, not a scenario; `kind` chooses the section; `sha256`
/// refuses other files.
const ELSEWHERE: [&str; 4] = ["parameters", "variants", "kind", "sha256"];

fn load(file: &str, settings: &[&str]) -> Scenario {
    let settings: Vec<Setting> = settings
        .iter()
        .map(|text| text.parse().expect(text))
        .collect();
    let document = Document::parse("test.toml", file).and_then(|file| file.with(&settings));
    document
        .and_then(|document| document.scenario())
        .unwrap_or_else(|error| panic!("{settings:?}: {error}"))
}

#[test]
fn every_key_changes_the_scenario() {
    for case in cases() {
        let base = load(case.file, case.base);
        for (key, setting) in case.keys {
            let settings: Vec<_> = case.base.iter().copied().chain([*setting]).collect();
            let changed = load(case.file, &settings) != base;
            assert!(changed, "{}: {key}: {setting} does nothing", case.title);
        }
    }
}

#[test]
fn every_key_has_a_test_case() {
    let tested = |title: &str, key: &str| {
        let mut cases = cases().filter(|case| case.title == title);
        cases.any(|case| case.keys.iter().any(|(tested, _)| *tested == key))
    };
    for section in sections() {
        assert!(
            cases().any(|case| case.title == section.title),
            "{}",
            section.title
        );
        for key in section.keys {
            let elsewhere = ELSEWHERE.contains(&key.name);
            assert!(
                elsewhere || tested(section.title, key.name),
                "{}: {}",
                section.title,
                key.name
            );
        }
    }
    for case in cases() {
        assert!(
            sections().any(|section| section.title == case.title),
            "{}",
            case.title
        );
    }
}
