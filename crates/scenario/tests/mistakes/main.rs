//! Every mistake is reported with its file, line and key, and with what would be accepted.

mod faults;
mod files;
mod groups;
mod names;
mod network;
mod settings;
mod several;
mod values;
mod variants;

use weir_scenario::Scenario;

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

/// A mistake: the text to replace, its replacement, and the parts that the message must contain
/// besides file and line.
type Case = (&'static str, &'static str, &'static [&'static str]);

/// Each mistake is reported near the line where it is, and with all parts of its message.
fn check(cases: &[Case]) {
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
        // The message refers to the line, or to its table.
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
fn the_file_itself_is_right() {
    Scenario::parse("test.toml", FILE, &[]).unwrap_or_else(|error| panic!("{error}"));
}
