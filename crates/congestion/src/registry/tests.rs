use proptest::prelude::*;
use weir_units::{ByteSize, Duration, Rate, Time};

use super::*;
use crate::algorithm::{Context, Parameter};
use crate::samples::{PACKET, ack, loss};
use crate::{Controller, LossCause, PacketSent};

const CONTEXT: Context = Context {
    packet_size: ByteSize::from_bytes(1_500),
    seed: 7,
    is_paced: false,
};

#[test]
fn every_algorithm_is_built_by_name_and_starts_with_ten_packets() {
    for algorithm in algorithms() {
        for size in [1_200, 1_452, 8_972, 65_000] {
            let context = Context {
                packet_size: ByteSize::from_bytes(size),
                seed: 0,
                is_paced: false,
            };
            let controller = AlgorithmSpec::new(algorithm.name).unwrap().build(&context);
            assert_eq!(controller.name(), algorithm.name);
            // A purely rate-based algorithm has no window.
            let window = match algorithm.name {
                "dcudp" | "dcudp-proportional" | "dcudp-rtt-fair" => ByteSize::MAX,
                _ => ByteSize::from_bytes(10 * size),
            };
            assert_eq!(controller.window(), window, "{controller:?}");
        }
    }
}

#[test]
fn names_and_parameters_are_unique_and_documented() {
    let names: Vec<_> = algorithms().map(|algorithm| algorithm.name).collect();
    for (index, name) in names.iter().enumerate() {
        assert!(!names[..index].contains(name));
    }
    for algorithm in algorithms() {
        assert!(!algorithm.summary.is_empty());
        let parameters: Vec<_> = algorithm.parameters().collect();
        for (index, parameter) in parameters.iter().enumerate() {
            assert!(!parameter.doc.is_empty());
            assert!(parameter.accepts(&parameter.default), "{}", parameter.name);
            assert!(
                !parameters[..index]
                    .iter()
                    .any(|other| other.name == parameter.name)
            );
        }
    }
}

#[test]
fn every_algorithm_and_parameter_is_in_the_documentation() {
    let page = include_str!("../../../../docs/algorithms.md");
    for algorithm in algorithms() {
        let row = format!("| `{}` |", algorithm.name);
        let row = page.lines().find(|line| line.starts_with(&row));
        let row = row.unwrap_or_else(|| panic!("no row for {}", algorithm.name));
        for parameter in algorithm.own_parameters {
            let mention = format!("`{}`", parameter.name);
            assert!(row.contains(&mention), "{}: {mention}", algorithm.name);
        }
    }
}

#[test]
fn a_spec_is_parsed_from_text_toml_and_json() {
    #[derive(serde::Deserialize, serde::Serialize)]
    struct File {
        congestion: AlgorithmSpec,
    }
    let expected = AlgorithmSpec::new("dctcp")
        .and_then(|spec| spec.with("g", Value::Float(0.125)))
        .and_then(|spec| spec.with("min_window", Value::Float(1.0)))
        .unwrap();
    assert_eq!(
        "dctcp, min_window = 1, g=0.125".parse(),
        Ok(expected.clone())
    );
    let toml = r#"congestion = { g = 0.125, name = "dctcp", min_window = 1 }"#;
    assert_eq!(toml::from_str::<File>(toml).unwrap().congestion, expected);
    let written = toml::to_string(&File {
        congestion: expected.clone(),
    })
    .unwrap();
    assert_eq!(
        toml::from_str::<File>(&written).unwrap().congestion,
        expected
    );
    let json = serde_json::to_string(&expected).unwrap();
    assert_eq!(
        serde_json::from_str::<AlgorithmSpec>(&json).unwrap(),
        expected
    );
    assert_eq!(
        serde_json::to_string(&AlgorithmSpec::default()).unwrap(),
        "\"cubic\"",
    );
    let limited: AlgorithmSpec =
        toml::from_str("name = \"cubic\"\nmax_rate = \"1Gbps\"\nhystart = false").unwrap();
    assert_eq!(limited.to_string(), "cubic,hystart=false,max_rate=1Gbps");
    assert_eq!(
        limited.build(&CONTEXT).pacing_rate(),
        Some(Rate::from_gbps(1))
    );
}

#[test]
fn parse_errors_list_the_valid_choices() {
    for (text, parts) in [
        (
            "cubik",
            vec![
                "`cubik`", "newreno", "cubic", "dctcp", "d2tcp", "swift", "bbr", "bbr3", "dcudp",
            ],
        ),
        ("", vec!["``", "cubic"]),
        (
            "dctcp,q=1",
            vec![
                "`dctcp` has no parameter `q`",
                "g, ",
                "min_window",
                "max_rate",
            ],
        ),
        ("dctcp,g", vec!["`g` is no parameter=value"]),
        ("dctcp,g=fast", vec!["`g` must be a number, not `fast`"]),
        ("dctcp,g=2", vec!["`g` must lie between", "not at 2"]),
        ("dctcp,g=NaN", vec!["`g` must lie between", "not at NaN"]),
        ("newreno,min_window=0", vec!["between 1 and"]),
        ("newreno,min_window=1.5", vec!["a whole number"]),
        ("dctcp,g=0.1,g=0.2", vec!["given twice"]),
        ("cubic,hystart=maybe", vec!["true or false"]),
        (
            "swift,base_target=5",
            vec!["base_target", "no unit", "ns, us"],
        ),
        (
            "cubic,max_rate=5GB",
            vec!["`GB` is not a unit of a rate", "Gbps"],
        ),
    ] {
        let message = text.parse::<AlgorithmSpec>().unwrap_err().to_string();
        for part in parts {
            assert!(
                message.contains(part),
                "{text:?}: {message:?} lacks {part:?}"
            );
        }
    }
    let message = toml::from_str::<AlgorithmSpec>("g = 1.0")
        .unwrap_err()
        .to_string();
    assert!(message.contains("`name` is missing"), "{message}");
    let message = toml::from_str::<AlgorithmSpec>("name = \"dctcp\"\ng = [1]")
        .unwrap_err()
        .to_string();
    assert!(message.contains("a parameter is a number"), "{message}");
    let message = toml::from_str::<AlgorithmSpec>("name = \"dctcp\"\ng = true")
        .unwrap_err()
        .to_string();
    assert!(message.contains("must be a number"), "{message}");
}

/// Returns a value within the parameter's range.
fn value_of(parameter: &Parameter, fraction: f64) -> Value {
    let between = |least: u64, most: u64| least + ((most - least) as f64 * fraction) as u64;
    match (parameter.min, parameter.max) {
        (Value::Float(least), Value::Float(most)) => {
            // Few digits: JSON readers may be off by the last one otherwise.
            let value = format!("{:.5e}", least + (most - least) * fraction);
            Value::Float(value.parse::<f64>().unwrap().clamp(least, most))
        }
        (Value::Integer(least), Value::Integer(most)) => {
            Value::Integer(between(least, most).min(most))
        }
        (Value::Duration(least), Value::Duration(most)) => Value::Duration(Duration::from_nanos(
            between(least.as_nanos(), most.as_nanos()),
        )),
        (Value::Size(least), Value::Size(most)) => {
            Value::Size(ByteSize::from_bytes(between(least.bytes(), most.bytes())))
        }
        (Value::Rate(least), Value::Rate(most)) => Value::Rate(Rate::from_bits_per_second(
            between(least.bits_per_second(), most.bits_per_second()),
        )),
        _ => Value::Boolean(fraction < 0.5),
    }
}

proptest! {
    #[test]
    fn every_spec_round_trips(
        index in 0..ALGORITHMS.len(),
        fractions in prop::collection::vec(prop::option::of(0.0..0.9_f64), 0..12),
    ) {
        let algorithm = ALGORITHMS[index];
        let mut spec = AlgorithmSpec::new(algorithm.name).unwrap();
        for (parameter, fraction) in algorithm.parameters().zip(fractions) {
            if let Some(fraction) = fraction {
                spec = spec.with(parameter.name, value_of(parameter, fraction)).unwrap();
            }
        }
        prop_assert_eq!(&spec.to_string().parse::<AlgorithmSpec>().unwrap(), &spec);
        let json = serde_json::to_string(&spec).unwrap();
        prop_assert_eq!(&serde_json::from_str::<AlgorithmSpec>(&json).unwrap(), &spec);
        prop_assert_eq!(spec.build(&CONTEXT).name(), algorithm.name);
    }

    #[test]
    fn parsing_arbitrary_text_never_panics(text: String) {
        let _ = text.parse::<AlgorithmSpec>();
    }
}

/// Another value of a parameter than its default, not far from it.
fn other_value(parameter: &Parameter) -> Value {
    let value = match parameter.default {
        Value::Float(value) => Value::Float(value / 2.0 + 0.01),
        Value::Integer(value) => Value::Integer(value + 1),
        Value::Boolean(value) => Value::Boolean(!value),
        Value::Duration(value) => Value::Duration(value / 2 + Duration::from_micros(1)),
        Value::Size(ByteSize::MAX) => Value::Size(ByteSize::from_bytes(20_000)),
        Value::Size(value) => Value::Size(value / 2),
        Value::Rate(_) => Value::Rate(Rate::from_mbps(500)),
    };
    assert!(parameter.accepts(&value), "{}: {value}", parameter.name);
    value
}

/// The window and the rate after each of many events.
fn states(controller: &mut dyn Controller) -> Vec<(ByteSize, Option<Rate>)> {
    let mut states = Vec::new();
    for round in 1..=200_u64 {
        let now = 100 * round;
        controller.on_sent(&PacketSent {
            now: Time::ZERO + Duration::from_micros(now - 90),
            size: PACKET,
            in_flight: PACKET * 3,
        });
        if round % 23 == 0 {
            let cause = match round % 46 {
                0 => LossCause::Timeout,
                _ => LossCause::Acks,
            };
            controller.on_loss(&loss(now - 1, now - 60, 1, cause));
        }
        let mut sample = ack(now, now - 20 - 40 * (round % 3), 1 + round % 4);
        sample.min_rtt = Duration::from_micros(20);
        sample.round_ended = round % 2 == 0;
        if round % 7 == 0 {
            sample.ce_marked = PACKET;
        }
        controller.on_ack(&sample);
        states.push((controller.window(), controller.pacing_rate()));
    }
    states
}

#[test]
fn a_changed_parameter_acts_as_one_that_was_set() {
    for algorithm in algorithms() {
        let plain = AlgorithmSpec::new(algorithm.name).unwrap();
        let names = plain.adjustable();
        for name in &names {
            let parameter = plain.parameter(name).unwrap();
            let changes = [(parameter.name, other_value(parameter))];
            let prepared = plain.prepared_for(&changes);
            let changed = prepared.with_changed(&changes).unwrap();
            let (mut built, mut running) = (changed.build(&CONTEXT), prepared.build(&CONTEXT));
            running.set_parameters(&changed);
            assert_eq!(states(&mut *built), states(&mut *running), "{changed}");
            // Back again, it acts as if nothing had been.
            let (mut built, mut running) = (plain.build(&CONTEXT), changed.build(&CONTEXT));
            running.set_parameters(&prepared);
            if *name != "min_window" {
                assert_eq!(states(&mut *built), states(&mut *running), "{name}");
            }
        }
    }
}

#[test]
fn values_are_changed_within_their_range() {
    let spec: AlgorithmSpec = "dctcp,g=0.5,min_window=1".parse().unwrap();
    let changed = spec.with_changed(&[("g", Value::Float(0.25))]).unwrap();
    assert_eq!(changed, "dctcp,min_window=1,g=0.25".parse().unwrap());
    assert!(spec.with_changed(&[("g", Value::Float(2.0))]).is_err());
    assert!(spec.with_changed(&[("beta", Value::Float(0.1))]).is_err());
}

#[test]
fn the_documentation_lists_the_parameters_that_change() {
    let page = include_str!("../../../../docs/algorithms.md");
    for algorithm in algorithms() {
        let names = AlgorithmSpec::of(algorithm).adjustable();
        // The caps of all algorithms come last.
        let own = names[..names.len() - 2]
            .iter()
            .map(|name| format!("`{name}`"));
        let own = own.collect::<Vec<_>>().join(", ");
        let row = format!("| `{}`, changing | {own} |", algorithm.name);
        assert!(page.lines().any(|line| line == row), "{row}");
    }
}
