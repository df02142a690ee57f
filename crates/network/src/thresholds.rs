//! The thresholds of queues, for plots.

use indexmap::IndexMap;
use weir_results::Threshold;
use weir_scenario::{Buffer, Level, Port, Scenario};
use weir_units::ByteSize;

/// Returns the thresholds of the measured ports' queues, by the port's name: marking, dropping, and the
/// buffer size. Packet counts become bytes, as if every packet had the length of the MTU.
pub fn thresholds(scenario: &Scenario) -> IndexMap<String, Vec<Threshold>> {
    let ports = scenario.measurements.ports.iter();
    ports
        .map(|port| scenario.topology.port(*port))
        .map(|port| (port.name.clone(), of_port(port)))
        .collect()
}

fn of_port(port: &Port) -> Vec<Threshold> {
    let mut found: Vec<Threshold> = Vec::new();
    let levels = port.queue.discipline.thresholds();
    let levels = levels.into_iter().map(|(key, level)| (label(key), level));
    let buffer = match port.queue.buffer {
        Buffer::Limited(level) => Some(("buffer".to_owned(), level)),
        Buffer::Unlimited => None,
    };
    for (name, level) in levels.chain(buffer) {
        let queue = length(level, port.mtu);
        match found.iter_mut().find(|other| other.queue == queue) {
            Some(other) => other.name = joined(&other.name, &name),
            None => found.push(Threshold { name, queue }),
        }
    }
    found
}

fn length(level: Level, packet: ByteSize) -> ByteSize {
    match level {
        Level::Bytes(size) => size,
        Level::Packets(count) => packet * count,
    }
}

/// Returns one name for two equal thresholds: `RED` if both are RED's.
fn joined(one: &str, other: &str) -> String {
    let kind = |name: &str| name.split(' ').next().map(str::to_owned);
    match kind(one) {
        Some(first) if kind(other).as_ref() == Some(&first) => first,
        _ => format!("{one}, {other}"),
    }
}

/// Returns the label of a key: `ECN` for `ecn_threshold`, `RED min` for `red_min`.
fn label(key: &str) -> String {
    match key.split_once('_') {
        Some((what, "threshold")) => what.to_uppercase(),
        Some((what, which)) => format!("{} {which}", what.to_uppercase()),
        None => key.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_thresholds_are_merged_and_packets_become_bytes() {
        let text = r#"
            title = "thresholds"
            source = "a test"
            duration = "1s"

            [dumbbell]
            rate = "1Gbps"
            queue = "here"
            [dumbbell.senders.sender]
            rtt = "1ms"

            [queues.here]
            kind = "shared"
            buffer = "100 packets"
            ecn_threshold = "20KB"
            red_min = "150KB"
            red_max = "150KB"
            drop_probability = 0.1

            [groups.flow]
            from = "sender"
            to = "receiver"
            workload = "bulk"
        "#;
        let lines = |text: &str| -> Vec<(String, u64)> {
            let scenario = Scenario::parse("test.toml", text, &[]).unwrap().scenario;
            let found = thresholds(&scenario);
            let found = found["bottleneck"].iter();
            found
                .map(|line| (line.name.clone(), line.queue.bytes()))
                .collect()
        };
        assert_eq!(
            lines(text),
            [
                ("ECN".to_owned(), 20_000),
                ("RED, buffer".to_owned(), 150_000)
            ]
        );
        let apart = text.replace(r#"red_max = "150KB""#, r#"red_max = "149KB""#);
        let apart = apart.replace(r#"red_min = "150KB""#, r#"red_min = "50KB""#);
        let names: Vec<_> = lines(&apart).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["ECN", "RED min", "RED max", "buffer"]);
    }
}
