//! Knobs: what can change while a scenario runs, with its value, its unit and its limits; and links, which can fail.

use serde::Serialize;
use serde_json::Value as Json;
use weir_congestion::{Parameter, Value};
use weir_scenario::{Group, Scenario, Switch, Workload};
use weir_units::{ByteSize, Duration, Rate};

use crate::script::quoted;

/// What a knob is for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Target {
    /// The queue of a port.
    Queue(String),
    /// The shared buffer of a switch.
    SharedBuffer(String),
    /// The congestion control of a group.
    Congestion(String),
    /// The workload of a group.
    Workload(String),
}

/// A link that can fail and be restored.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Link {
    pub(crate) id: String,
    /// The first of its two ports.
    pub(crate) port: String,
}

/// The title of all links.
pub(crate) const LINKS: &str = "links";

/// The unit of a knob's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Unit {
    #[serde(rename = "bytes")]
    Bytes,
    #[serde(rename = "bits/s")]
    BitsPerSecond,
    #[serde(rename = "seconds")]
    Seconds,
    #[serde(rename = "packets")]
    Packets,
    #[serde(rename = "ratio")]
    Ratio,
    #[serde(rename = "count")]
    Count,
}

/// Something that can change while the scenario runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Knob {
    pub(crate) id: String,
    pub(crate) target: Target,
    /// The key in the file.
    pub(crate) key: &'static str,
    pub(crate) unit: Unit,
    pub(crate) value: f64,
    pub(crate) range: Range,
}

/// The values that a knob takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    pub(crate) minimum: f64,
    pub(crate) maximum: f64,
    /// Whether the maximum stands for no limit at all.
    pub(crate) is_open: bool,
}

/// The keys of queues that are numbers and can change.
const QUEUE: [&str; 11] = [
    "buffer",
    "ecn_threshold",
    "ecn_min",
    "ecn_max",
    "probability",
    "red_min",
    "red_max",
    "drop_probability",
    "weight",
    "target",
    "interval",
];
const SHARED_BUFFER: [&str; 3] = ["size", "alpha", "per_port"];
/// The largest value of a knob whose setting has no limit: bytes, bits per second and seconds.
const OPEN: (f64, f64, f64) = (1e9, 1e12, 10.0);
/// A knob reaches from a hundredth of its first value to a hundred times of it.
const REACH: f64 = 100.0;

impl Knob {
    /// Returns all knobs of a scenario, with the values at its start.
    pub(crate) fn all(scenario: &Scenario) -> Vec<Self> {
        let topology = &scenario.topology;
        let mut knobs = Vec::new();
        for port in &scenario.measurements.ports {
            let port = topology.port(*port);
            let queue = serde_json::to_value(port.queue).unwrap_or_default();
            let target = || Target::Queue(port.name.clone());
            knobs.extend(of_table(&queue, &QUEUE, target));
        }
        knobs.extend(topology.switches.iter().flat_map(of_switch));
        knobs.extend(scenario.groups.iter().flat_map(of_group));
        knobs
    }

    fn new(target: Target, key: &'static str, unit: Unit, value: f64, range: Range) -> Self {
        let id = match &target {
            Target::Queue(name) => format!("queue/{name}/{key}"),
            Target::SharedBuffer(name) => format!("shared_buffer/{name}/{key}"),
            Target::Congestion(name) => format!("congestion/{name}/{key}"),
            Target::Workload(name) => format!("workload/{name}/{key}"),
        };
        Self {
            id,
            target,
            key,
            unit,
            value,
            range,
        }
    }

    /// Returns the title of the knobs that belong together with this one.
    pub(crate) fn section(&self) -> String {
        match &self.target {
            Target::Queue(port) => format!("queue {port}"),
            Target::SharedBuffer(switch) => format!("shared buffer of {switch}"),
            Target::Congestion(group) => format!("congestion control of {group}"),
            Target::Workload(group) => format!("workload of {group}"),
        }
    }

    /// Returns whether a value is within its limits.
    pub(crate) fn takes(&self, value: f64) -> bool {
        (self.range.minimum..=self.range.maximum).contains(&value)
    }

    /// Returns a value as people write it.
    pub(crate) fn text_of(&self, value: f64) -> String {
        if self.range.is_open && value >= self.range.maximum {
            return match self.target {
                Target::Congestion(_) => "unbounded".to_owned(),
                _ => "unlimited".to_owned(),
            };
        }
        match self.unit {
            Unit::Bytes => ByteSize::from_bytes(value.round() as u64).to_string(),
            Unit::BitsPerSecond => Rate::from_bits_per_second(value.round() as u64).to_string(),
            Unit::Seconds => Duration::from_secs_f64(value).to_string(),
            Unit::Packets => format!("{} packets", value.round()),
            Unit::Ratio => value.to_string(),
            Unit::Count => value.round().to_string(),
        }
    }

    /// Returns a value as a scenario file has it.
    pub(crate) fn written(&self, value: f64) -> String {
        let text = self.text_of(value);
        match self.unit {
            Unit::Ratio | Unit::Count => text,
            _ => quoted(&text),
        }
    }
}

/// Returns the knobs of a table of settings, as a file has it.
fn of_table(table: &Json, keys: &[&'static str], target: impl Fn() -> Target) -> Vec<Knob> {
    let entries = keys.iter().filter_map(|key| Some((*key, table.get(key)?)));
    let knobs = entries.filter_map(|(key, value)| {
        let (unit, value, range) = quantity(value)?;
        Some(Knob::new(target(), key, unit, value, range))
    });
    knobs.collect()
}

/// Returns unit, value and limits of a setting.
fn quantity(value: &Json) -> Option<(Unit, f64, Range)> {
    if let Some(number) = value.as_f64() {
        let maximum = if number <= 1.0 { 1.0 } else { number * REACH };
        return Some((Unit::Ratio, number, Range::closed(0.001, maximum)));
    }
    let text = value.as_str()?;
    if text == "unlimited" {
        let range = Range::open(1500.0, OPEN.0);
        return Some((Unit::Bytes, OPEN.0, range));
    }
    if let Some(packets) = text.split_once(" packet") {
        let packets: f64 = packets.0.parse().ok()?;
        return Some((Unit::Packets, packets, Range::closed(1.0, packets * REACH)));
    }
    if let Ok(size) = text.parse::<ByteSize>() {
        let bytes = size.bytes() as f64;
        return Some((Unit::Bytes, bytes, Range::around(bytes)));
    }
    if let Ok(rate) = text.parse::<Rate>() {
        let bits = rate.bits_per_second() as f64;
        return Some((Unit::BitsPerSecond, bits, Range::around(bits)));
    }
    let seconds = text.parse::<Duration>().ok()?.as_secs_f64();
    Some((Unit::Seconds, seconds, Range::around_fraction(seconds)))
}

fn of_switch(switch: &Switch) -> Vec<Knob> {
    let Some(buffer) = &switch.shared_buffer else {
        return Vec::new();
    };
    let table = serde_json::to_value(buffer).unwrap_or_default();
    of_table(&table, &SHARED_BUFFER, || {
        Target::SharedBuffer(switch.name.clone())
    })
}

fn of_group(group: &Group) -> Vec<Knob> {
    let mut knobs = Vec::new();
    if let Some(spec) = group.transport.congestion() {
        let parameters: Vec<&'static Parameter> = spec.algorithm().parameters().collect();
        for name in spec.adjustable() {
            let Some(parameter) = parameters.iter().find(|known| known.name == name) else {
                continue;
            };
            let mut set = spec.values().filter(|(set, _)| *set == name);
            let value = set.next().map_or(parameter.default, |(_, value)| value);
            let target = Target::Congestion(group.name.clone());
            knobs.extend(of_parameter(target, parameter, value));
        }
    }
    let target = || Target::Workload(group.name.clone());
    match (&group.workload, &group.load) {
        (Workload::Poisson { .. }, Some(offered)) => {
            let range = Range::closed(0.001, 1.5);
            knobs.push(Knob::new(
                target(),
                "load",
                Unit::Ratio,
                offered.load,
                range,
            ));
        }
        (Workload::Poisson { mean_interval, .. }, None) => {
            let seconds = mean_interval.as_secs_f64();
            let range = Range::around_fraction(seconds);
            let unit = Unit::Seconds;
            knobs.push(Knob::new(target(), "mean_interval", unit, seconds, range));
        }
        (Workload::Cbr { rate, .. }, _) => {
            let bits = rate.bits_per_second() as f64;
            let (unit, range) = (Unit::BitsPerSecond, Range::around(bits));
            knobs.push(Knob::new(target(), "rate", unit, bits, range));
        }
        _ => {}
    }
    knobs
}

/// Returns the knob of a parameter; none for one that is true or false.
fn of_parameter(target: Target, parameter: &Parameter, value: Value) -> Option<Knob> {
    let (unit, number, open) = match value {
        Value::Float(number) => (Unit::Ratio, number, None),
        Value::Integer(number) => (Unit::Count, number as f64, None),
        Value::Boolean(_) => return None,
        Value::Duration(Duration::MAX) => (Unit::Seconds, OPEN.2, Some(OPEN.2)),
        Value::Duration(span) => (Unit::Seconds, span.as_secs_f64(), Some(OPEN.2)),
        Value::Size(ByteSize::MAX) => (Unit::Bytes, OPEN.0, Some(OPEN.0)),
        Value::Size(size) => (Unit::Bytes, size.bytes() as f64, Some(OPEN.0)),
        Value::Rate(Rate::MAX) => (Unit::BitsPerSecond, OPEN.1, Some(OPEN.1)),
        Value::Rate(rate) => (
            Unit::BitsPerSecond,
            rate.bits_per_second() as f64,
            Some(OPEN.1),
        ),
    };
    let (least, most) = (float(parameter.min), float(parameter.max));
    let is_unlimited = |value| {
        matches!(
            value,
            Value::Duration(Duration::MAX) | Value::Size(ByteSize::MAX) | Value::Rate(Rate::MAX)
        )
    };
    let range = match open {
        Some(open) if is_unlimited(parameter.max) => Range::open(least.max(1e-9), open),
        _ => {
            let most = if number > 0.0 {
                most.min(number * REACH)
            } else {
                most
            };
            Range::closed(least, most.max(number))
        }
    };
    Some(Knob::new(target, parameter.name, unit, number, range))
}

/// Returns a value as a number in its unit.
fn float(value: Value) -> f64 {
    match value {
        Value::Float(number) => number,
        Value::Integer(number) => number as f64,
        Value::Boolean(is_set) => f64::from(u8::from(is_set)),
        Value::Duration(span) => span.as_secs_f64(),
        Value::Size(size) => size.bytes() as f64,
        Value::Rate(rate) => rate.bits_per_second() as f64,
    }
}

impl Link {
    /// Returns all links of a scenario.
    pub(crate) fn all(scenario: &Scenario) -> Vec<Self> {
        let ports = scenario.topology.ports.iter();
        // The ports of a link follow one another.
        let links = ports.step_by(2).map(|port| Self {
            id: format!("link/{}", port.name),
            port: port.name.clone(),
        });
        links.collect()
    }
}

impl Range {
    fn closed(minimum: f64, maximum: f64) -> Self {
        Self {
            minimum,
            maximum,
            is_open: false,
        }
    }

    fn open(minimum: f64, maximum: f64) -> Self {
        Self {
            is_open: true,
            ..Self::closed(minimum, maximum)
        }
    }

    /// Limits of a number that is whole.
    fn around(value: f64) -> Self {
        Self::closed((value / REACH).floor().max(1.0), (value * REACH).max(1.0))
    }

    fn around_fraction(value: f64) -> Self {
        Self::closed((value / REACH).max(1e-9), (value * REACH).max(1e-9))
    }

    /// Whether the values are so far apart that a slider has to be logarithmic.
    pub(crate) fn is_wide(&self) -> bool {
        self.minimum > 0.0 && self.maximum >= 50.0 * self.minimum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knob(unit: Unit, range: Range) -> Knob {
        Knob::new(
            Target::Queue("bottleneck".to_owned()),
            "buffer",
            unit,
            1.0,
            range,
        )
    }

    #[test]
    fn values_are_written_as_a_file_has_them() {
        let closed = Range::closed(0.0, 1e9);
        for (unit, value, written) in [
            (Unit::Bytes, 30_000.0, "\"30KB\""),
            (Unit::BitsPerSecond, 2.5e9, "\"2.5Gbps\""),
            (Unit::Seconds, 0.00002, "\"20us\""),
            (Unit::Packets, 65.0, "\"65 packets\""),
            (Unit::Ratio, 0.0625, "0.0625"),
            (Unit::Count, 10.0, "10"),
        ] {
            assert_eq!(knob(unit, closed).written(value), written);
        }
        let open = knob(Unit::Bytes, Range::open(1.0, 1e9));
        assert_eq!(open.written(1e9), "\"unlimited\"");
    }

    #[test]
    fn settings_become_quantities() {
        let quantity =
            |text: &str| quantity(&Json::from(text)).map(|(unit, value, _)| (unit, value));
        assert_eq!(quantity("30KB"), Some((Unit::Bytes, 30_000.0)));
        assert_eq!(quantity("65 packets"), Some((Unit::Packets, 65.0)));
        assert_eq!(quantity("10Gbps"), Some((Unit::BitsPerSecond, 1e10)));
        assert_eq!(quantity("5ms"), Some((Unit::Seconds, 0.005)));
        assert_eq!(quantity("unlimited"), Some((Unit::Bytes, OPEN.0)));
        assert_eq!(quantity("drop-tail"), None);
    }
}
