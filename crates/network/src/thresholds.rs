//! The thresholds of queues, for plots.

use indexmap::IndexMap;
use weir_results::Threshold;
use weir_scenario::{Buffer, ChangeSchedule, Level, Port, Scenario};
use weir_units::{ByteSize, Time};

/// Returns the thresholds of the measured ports' queues over time, by the port's name: marking, dropping, and the
/// buffer size. Packet counts become bytes, as if every packet had the length of the MTU.
pub fn thresholds(scenario: &Scenario) -> IndexMap<String, Vec<Threshold>> {
    let ports = || {
        let ports = scenario.measurements.ports.iter();
        ports.map(|port| (*port, &scenario.topology.port(*port).name))
    };
    let mut found: IndexMap<String, Vec<Threshold>> = ports()
        .map(|(port, name)| {
            let mut thresholds = Vec::new();
            update(&mut thresholds, Time::ZERO, scenario.topology.port(port));
            (name.clone(), thresholds)
        })
        .collect();
    let Some(mut schedule) = ChangeSchedule::new(scenario) else {
        return found;
    };
    while let Some(at) = schedule.timeout() {
        while schedule.due(at).is_some() {}
        for (port, name) in ports() {
            if let Some(thresholds) = found.get_mut(name) {
                update(thresholds, at, schedule.port(port));
            }
        }
    }
    found
}

/// Ends the thresholds that a port no longer has at a time, and begins those that it has from then on.
fn update(thresholds: &mut Vec<Threshold>, at: Time, port: &Port) {
    let mut current = of_port(port);
    for threshold in thresholds.iter_mut().filter(|found| found.until.is_none()) {
        let same = |(name, queue): &(String, ByteSize)| {
            *name == threshold.name && *queue == threshold.queue
        };
        match current.iter().position(same) {
            Some(index) => {
                current.remove(index);
            }
            None => threshold.until = Some(at),
        }
    }
    thresholds.extend(current.into_iter().map(|(name, queue)| Threshold {
        name,
        queue,
        from: at,
        until: None,
    }));
}

/// Returns the names and lengths of a port's thresholds; equal ones are one.
fn of_port(port: &Port) -> Vec<(String, ByteSize)> {
    let mut found: Vec<(String, ByteSize)> = Vec::new();
    let levels = port.queue.discipline.thresholds();
    let levels = levels.into_iter().map(|(key, level)| (label(key), level));
    let buffer = match port.queue.buffer {
        Buffer::Limited(level) => Some(("buffer".to_owned(), level)),
        Buffer::Unlimited => None,
    };
    for (name, level) in levels.chain(buffer) {
        let queue = length(level, port.mtu);
        match found.iter_mut().find(|(_, other)| *other == queue) {
            Some((other, _)) => *other = joined(other, &name),
            None => found.push((name, queue)),
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
        let change =
            "[[changes]]\nat = '100ms'\nports = 'bottleneck'\nset.queue.ecn_threshold = '30KB'\n";
        let scenario = Scenario::parse("test.toml", &format!("{text}{change}"), &[]);
        let found = thresholds(&scenario.unwrap().scenario);
        let ecn = found["bottleneck"].iter().filter(|line| line.name == "ECN");
        let at = Time::ZERO + weir_units::Duration::from_millis(100);
        let ecn: Vec<_> = ecn
            .map(|line| (line.queue.bytes(), line.from, line.until))
            .collect();
        assert_eq!(ecn, [(20_000, Time::ZERO, Some(at)), (30_000, at, None)]);
        assert_eq!(found["bottleneck"].len(), 3);
    }
}
