//! Every written scenario is read back, or rejected with a line; nothing panics.

use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;
use weir_scenario::{Position, Scenario, ScenarioError, Setting};

/// Text that is one of these.
fn one_of(texts: &'static [&'static str]) -> BoxedStrategy<String> {
    prop::sample::select(texts).prop_map(str::to_owned).boxed()
}

/// `key = value` lines, each present or not.
fn some_of(keys: Vec<(&'static str, BoxedStrategy<String>)>) -> BoxedStrategy<String> {
    let line = |(key, value): (&'static str, BoxedStrategy<String>)| {
        prop::option::of(value.prop_map(move |value| format!("{key} = {value}\n")))
            .prop_map(Option::unwrap_or_default)
    };
    let lines: Vec<_> = keys.into_iter().map(line).collect();
    lines.prop_map(|lines| lines.concat()).boxed()
}

fn boolean() -> BoxedStrategy<String> {
    any::<bool>().prop_map(|value| value.to_string()).boxed()
}

fn count(range: std::ops::Range<u32>) -> BoxedStrategy<String> {
    range.prop_map(|value| value.to_string()).boxed()
}

fn text(value: impl Strategy<Value = String> + 'static) -> BoxedStrategy<String> {
    value.prop_map(|value| format!("\"{value}\"")).boxed()
}

fn span(range: std::ops::Range<u64>) -> BoxedStrategy<String> {
    text(range.prop_map(|nanos| weir_units::Duration::from_nanos(nanos).to_string()))
}

fn size(range: std::ops::Range<u64>) -> BoxedStrategy<String> {
    text(range.prop_map(|bytes| weir_units::ByteSize::from_bytes(bytes).to_string()))
}

fn rate() -> BoxedStrategy<String> {
    text(
        (1_000_u64..400_000_000_000)
            .prop_map(|bits| weir_units::Rate::from_bits_per_second(bits).to_string()),
    )
}

fn probability() -> BoxedStrategy<String> {
    let value = prop_oneof![0.0..=1.0_f64, 0.0..1e-9_f64, Just(0.0), Just(1.0)];
    value.prop_map(|value| format!("{value:?}")).boxed()
}

fn queue() -> BoxedStrategy<String> {
    let threshold = || size(0..100_000);
    let red = (size(0..100_000), size(100_000..200_000), probability()).prop_map(
        |(min, max, probability)| {
            format!("red_min = {min}, red_max = {max}, drop_probability = {probability}")
        },
    );
    let buffer = prop_oneof![
        size(200_000..1 << 39),
        Just("\"unlimited\"".to_owned()),
        text((1_u64..1000).prop_map(|packets| format!("{packets} packets"))),
    ];
    let level = prop_oneof![threshold(), Just("\"1 packet\"".to_owned())];
    let rest = prop_oneof![
        Just("kind = \"drop-tail\"".to_owned()),
        level.prop_map(|level| format!("kind = \"step\", ecn_threshold = {level}")),
        threshold().prop_map(|level| format!("kind = \"qfx\", ecn_threshold = {level}")),
        (span(1..100_000_000), boolean()).prop_map(|(target, mark)| format!(
            "kind = \"codel\", target = {target}, interval = \"200ms\", mark = {mark}"
        )),
        (prop::option::of(threshold()), one_of(&["ect", "not-ect"])).prop_map(|(level, high)| {
            let level =
                level.map_or_else(String::new, |level| format!(", ecn_threshold = {level}"));
            format!("kind = \"strict-priority\", high = \"{high}\"{level}")
        }),
        (threshold(), red.clone())
            .prop_map(|(level, red)| format!("kind = \"shared\", ecn_threshold = {level}, {red}")),
        (red.clone(), boolean()).prop_map(|(red, ecn)| format!(
            "kind = \"red\", length = \"instantaneous\", ecn = {ecn}, {red}"
        )),
        (red, probability(), boolean()).prop_map(|(red, weight, gentle)| format!(
            "kind = \"red\", weight = {}, gentle = {gentle}, {red}",
            if weight.len() > 12 { "0.5" } else { "0.002" }
        )),
        (threshold(), size(100_000..200_000), probability()).prop_map(|(min, max, probability)| {
            format!(
                "kind = \"two-threshold\", ecn_min = {min}, ecn_max = {max}, \
                 probability = {probability}"
            )
        }),
    ];
    // A buffer in packets is compared with thresholds in packets only.
    (rest, buffer)
        .prop_map(|(rest, buffer)| format!("{{ {rest}, buffer = {buffer} }}"))
        .boxed()
}

/// A network whose hosts are `a1` …, and `receiver` or `receiver1` ….
fn network() -> BoxedStrategy<String> {
    let link = || some_of(vec![("mtu", size(500..9_001)), ("framing", size(0..100))]);
    let dumbbell = (
        link(),
        rate(),
        queue(),
        1_u32..6,
        prop::option::of(1_u32..4),
        span(0..1_000_000_000),
    );
    let dumbbell = dumbbell.prop_map(|(link, rate, queue, senders, receivers, delay)| {
        let receivers = receivers.map(|count| format!("[dumbbell.receivers]\ncount = {count}\n"));
        format!(
            "[dumbbell]\nrate = {rate}\nqueue = {queue}\n{link}{}\
             [dumbbell.senders.a]\ncount = {senders}\ndelay = {delay}\n",
            receivers.unwrap_or_default()
        )
    });
    let shared = prop_oneof![
        Just(String::new()),
        size(1_000..1_000_000)
            .prop_map(|size| format!("shared_buffer = {{ size = {size}, alpha = 0.5 }}\n")),
        size(1_000..1_000_000)
            .prop_map(|size| format!("shared_buffer = {{ size = {size}, per_port = \"1KB\" }}\n")),
    ]
    .boxed();
    let star = (
        link(),
        rate(),
        queue(),
        1_u32..6,
        shared.clone(),
        span(0..1_000_000),
    );
    let star = star.prop_map(|(link, rate, queue, count, shared, delay)| {
        format!(
            "[star]\nrate = {rate}\nqueue = {queue}\ndelay = {delay}\n{link}{shared}\
             [star.hosts.a]\ncount = {count}\n[star.hosts.receiver]\n"
        )
    });
    let general = (
        link(),
        rate(),
        queue(),
        queue(),
        1_u32..6,
        shared,
        any::<bool>(),
    );
    let general = general.prop_map(|(link, rate, queue, reverse, count, shared, routed)| {
        let one = |from: &str, to: &str, more: &str| {
            format!(
                "[[links]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = {rate}\ndelay = \"1us\"\n\
                 {link}{more}"
            )
        };
        let queues = format!("queue = {queue}\nreverse_queue = {reverse}\n");
        let route = "[[routes]]\nswitch = \"s\"\nto = \"receiver\"\nvia = [\"t\", \"u\"]\n";
        [
            format!("[hosts.a]\ncount = {count}\n[hosts.receiver]\n[switches.s]\n{shared}"),
            "[switches.t]\n[switches.u]\n".to_owned(),
            one("a", "s", ""),
            one("s", "t", &format!("name = \"trunk\"\n{queues}")),
            one("s", "u", &format!("{queues}count = {}\n", 1 + count % 3)),
            one("t", "receiver", ""),
            one("u", "receiver", ""),
            if routed { route } else { "" }.to_owned(),
        ]
        .concat()
    });
    prop_oneof![dumbbell, star, general].boxed()
}

fn group() -> BoxedStrategy<String> {
    let tcp = some_of(vec![
        ("mss", size(64..400)),
        ("handshake", boolean()),
        ("ecn", text(one_of(&["off", "rfc3168", "dctcp"]))),
        ("sack", boolean()),
        ("timestamps", boolean()),
        ("limited_transmit", boolean()),
        ("prr", boolean()),
        ("ack_every", count(1..10)),
        ("delayed_ack_timeout", span(1..1_000_000_000)),
        ("quick_ack_segments", count(0..20)),
        ("initial_rto", span(1..10_000_000_000)),
        ("min_rto", span(1..1_000_000_000)),
        ("rto_floor", text(one_of(&["linux", "rfc6298"]))),
        ("frto", boolean()),
        ("early_timer_margin", span(0..10_000_000)),
        ("push_small_windows", boolean()),
        ("partial_ack_timer", text(one_of(&["each", "first"]))),
        ("max_rto", span(1_000_000_000..100_000_000_000)),
        ("pacing", text(one_of(&["controller", "window"]))),
        ("tso_segments", count(1..44)),
        ("send_buffer", one_of(&["\"unlimited\"", "\"64KiB\""])),
        ("receive_buffer", size(9_000..1 << 32)),
        ("idle_restart", boolean()),
        ("nagle", boolean()),
        ("small_queues", boolean()),
    ]);
    let congestion = one_of(&[
        "\"cubic\"",
        "\"dctcp\"",
        "{ name = \"dctcp\", g = 0.1, min_window = 1 }",
        "{ name = \"swift\", base_target = \"30us\" }",
        "{ name = \"bbr3\", max_rate = \"1.5Gbps\" }",
        "\"newreno,initial_window=2\"",
    ]);
    let workload = prop_oneof![
        Just("\"bulk\"".to_owned()),
        (rate(), size(64..500), one_of(&["regular", "poisson"])).prop_map(
            |(rate, packet, arrivals)| format!(
                "{{ kind = \"cbr\", rate = {rate}, packet = {packet}, arrivals = \"{arrivals}\" }}"
            )
        ),
        (size(1..1 << 39), 2_u32..9, span(1..1 << 30), any::<bool>()).prop_map(
            |(size, rounds, interval, once)| {
                let rounds = if once { String::new() } else { format!(", rounds = {rounds}, interval = {interval}") };
                format!("{{ kind = \"transfer\", size = {size}{rounds} }}")
            }
        ),
        (size(1..1 << 39), count(1..100), span(0..1_000_000), span(0..1_000_000)).prop_map(
            |(size, rounds, pause, spread)| format!(
                "{{ kind = \"incast\", response = {size}, rounds = {rounds}, pause = {pause}, \
                 spread = {spread} }}"
            )
        ),
        (size(1..1 << 20), size(1..1 << 20), prop::option::of(1_u32..9)).prop_map(
            |(request, response, requests)| {
                let requests = requests.map(|count| format!(", requests = {count}"));
                format!(
                    "{{ kind = \"request-response\", request = {request}, response = {response}{} }}",
                    requests.unwrap_or_default()
                )
            }
        ),
        (
            span(1_000_000..1 << 40),
            one_of(&["\"web-search\"", "\"google-rpc-2008\"", "[[\"1KB\", 0.3], [\"1MB\", 1]]"]),
            one_of(&["host", "group"]),
        )
            .prop_map(|(interval, sizes, per)| format!(
                "{{ kind = \"poisson\", mean_interval = {interval}, per = \"{per}\", distribution = {sizes} }}"
            )),
    ];
    let keys = some_of(vec![
        ("start", span(0..2_000_000_000)),
        ("start_within", span(0..2_000_000_000)),
        ("stop", span(5_000_000_000..20_000_000_000)),
        ("congestion", congestion),
    ]);
    (keys, tcp, workload, 1_u32..50)
        .prop_map(|(keys, tcp, workload, flows)| {
            let (keys, flows) = if workload.contains("poisson\", mean") {
                let keys = keys
                    .lines()
                    .filter(|line| !line.starts_with("start_within"));
                (
                    keys.map(|line| format!("{line}\n")).collect(),
                    String::new(),
                )
            } else {
                (keys, format!("flows = {flows}\n"))
            };
            format!(
                "{keys}{flows}workload = {workload}\ntcp = {{ {} }}",
                tcp.trim().replace('\n', ", ")
            )
        })
        .boxed()
}

fn fault() -> BoxedStrategy<String> {
    let kind = prop_oneof![
        Just("kind = \"down\"".to_owned()),
        (one_of(&["loss", "duplicate", "corrupt"]), probability())
            .prop_map(|(kind, value)| format!("kind = \"{kind}\"\nprobability = {value}")),
        (probability(), span(1..1 << 30)).prop_map(|(value, delay)| format!(
            "kind = \"reorder\"\nprobability = {value}\ndelay = {delay}"
        )),
        (one_of(&["delay", "jitter"]), span(1..1 << 30))
            .prop_map(|(kind, span)| format!("kind = \"{kind}\"\n{kind} = {span}")),
        rate().prop_map(|rate| format!("kind = \"rate\"\nrate = {rate}")),
    ];
    let until = some_of(vec![("until", span(10_000_000_000..20_000_000_000))]);
    (kind, span(0..10_000_000_000), until)
        .prop_map(|(kind, at, until)| {
            format!("[[faults]]\n{kind}\nports = [\"*->a1\", \"a1*\"]\nat = {at}\n{until}")
        })
        .boxed()
}

/// A change of groups and one of ports, that fit whatever these have: a cap on windows and rates, a larger buffer.
fn change() -> BoxedStrategy<String> {
    let caps = some_of(vec![("max_window", size(1..1 << 30)), ("max_rate", rate())]);
    let target = prop_oneof![
        caps.prop_map(|caps| {
            let caps = caps.trim().replace('\n', ", ");
            let caps = if caps.is_empty() {
                "max_rate = \"unbounded\"".to_owned()
            } else {
                caps
            };
            format!("groups = \"g0\"\nset = {{ congestion = {{ {caps} }} }}")
        }),
        prop_oneof![size(1 << 38..1 << 39), Just("\"unlimited\"".to_owned())]
            .prop_map(|size| format!("ports = [\"*->a1\", \"a*\"]\nset.queue.buffer = {size}")),
    ];
    (target, span(0..10_000_000_000))
        .prop_map(|(target, at)| format!("[[changes]]\nat = {at}\n{target}\n"))
        .boxed()
}

prop_compose! {
    fn file()(
        seed in 0..=i64::MAX,
        duration in span(10_000_000_001..1 << 50),
        warm_up in span(0..10_000_000_000),
        network in network(),
        groups in prop::collection::vec(group(), 1..4),
        mut faults in prop::collection::vec(fault(), 0..4),
        changes in prop::collection::vec(change(), 0..4),
        sed in prop::option::of(some_of(vec![
            ("threshold", one_of(&["\"1 packet\"", "\"30KB\""])),
            ("total_rtt", one_of(&["\"base\"", "\"loaded\""])),
            // Each allocation has a key of its own.
            ("allocation", one_of(&[
                "\"paper\"",
                "\"planned\"\nbase = 3",
                "\"earliest-deadline\"\nbest_effort = 20",
            ])),
            ("retransmit", boolean()),
            ("latency", span(0..1_000_000)),
            ("rate", rate()),
        ])),
        measurements in some_of(vec![
            ("sample_interval", span(1_000..1 << 40)),
            ("ports", one_of(&["\"*\"", "[\"a1*\", \"*->a1\"]"])),
            ("snap_length", size(64..65_535)),
        ]),
    ) -> String {
        let mut text = format!(
            "title = \"Any\"\nsource = \"tests/properties.rs\"\nseed = {seed}\n\
             duration = {duration}\nwarm_up = {warm_up}\n{network}"
        );
        for (index, group) in groups.iter().enumerate() {
            text += &format!("[groups.g{index}]\nfrom = \"a*\"\nto = \"receiver\"\n{group}\n");
        }
        // Faults of one kind must not overlap.
        let mut kinds = std::collections::HashSet::new();
        let kind = |fault: &String| fault.lines().nth(1).map(str::to_owned);
        faults.retain(|fault| kinds.insert(kind(fault)));
        text += &faults.concat();
        // One setting changes once at a time.
        let mut times = std::collections::HashSet::new();
        let time = |change: &String| change.lines().nth(1).map(str::to_owned);
        let changes = changes.into_iter().filter(|change| times.insert(time(change)));
        text += &changes.collect::<String>();
        if let Some(sed) = sed {
            text += &format!("[sed]\nrtt = \"1ms\"\n{sed}");
        }
        text + "[measurements]\n" + &measurements
    }
}

/// The shipped files, for damaging.
static SHIPPED: LazyLock<Vec<String>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the scenarios")
        .map(|entry| entry.expect("a scenario").path())
        .collect();
    paths.sort();
    let files = paths
        .iter()
        .map(|path| std::fs::read_to_string(path).expect("a scenario"));
    files.collect()
});

/// A change of a text.
#[derive(Clone, Debug)]
enum Damage {
    /// Removes a line.
    Drop(prop::sample::Index),
    /// Repeats a line.
    Repeat(prop::sample::Index),
    /// Swaps two lines.
    Swap(prop::sample::Index, prop::sample::Index),
    /// Replaces a word with another word of the file.
    Replace(prop::sample::Index, prop::sample::Index),
    /// Replaces a word with other text.
    Insert(prop::sample::Index, String),
    /// Removes a character.
    Cut(prop::sample::Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    use prop::sample::Index;
    let odd = prop_oneof![
        one_of(&[
            "0",
            "-1",
            "1e308",
            "nan",
            "inf",
            "true",
            "\"\"",
            "[]",
            "{}",
            "[[1]]",
            "\"$\"",
            "\"$x\"",
            "\"*\"",
            "99999999999999999999",
            "\"0B\"",
            "\"18446744073709551615B\"",
            "1979-05-27",
            "\"unlimited\"",
            "\"99999999999Tbps\"",
            "\"0ns\"",
            "=",
            "\"\\u0000\"",
            "0xff",
            "1_000",
            "{ kind = 1 }",
            "[\"a\", 1]",
            "\"0 packets\"",
        ]),
        "\\PC{0,8}",
    ];
    prop_oneof![
        any::<Index>().prop_map(Damage::Drop),
        any::<Index>().prop_map(Damage::Repeat),
        any::<(Index, Index)>().prop_map(|(a, b)| Damage::Swap(a, b)),
        any::<(Index, Index)>().prop_map(|(a, b)| Damage::Replace(a, b)),
        (any::<Index>(), odd).prop_map(|(at, text)| Damage::Insert(at, text)),
        any::<Index>().prop_map(Damage::Cut),
    ]
}

fn apply(text: &str, damage: &Damage) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let words: Vec<&str> = text.split_whitespace().collect();
    if lines.is_empty() || words.is_empty() {
        return text.to_owned();
    }
    let replaced = |at: &prop::sample::Index, by: &str| {
        let word = words[at.index(words.len())];
        let start = word.as_ptr() as usize - text.as_ptr() as usize;
        format!("{}{by}{}", &text[..start], &text[start + word.len()..])
    };
    match damage {
        Damage::Drop(at) => {
            lines.remove(at.index(lines.len()));
        }
        Damage::Repeat(at) => {
            let at = at.index(lines.len());
            lines.insert(at, lines[at]);
        }
        Damage::Swap(a, b) => {
            let (a, b) = (a.index(lines.len()), b.index(lines.len()));
            lines.swap(a, b);
        }
        Damage::Replace(at, by) => return replaced(at, words[by.index(words.len())]),
        Damage::Insert(at, by) => return replaced(at, by),
        Damage::Cut(at) => {
            let mut characters: Vec<char> = text.chars().collect();
            characters.remove(at.index(characters.len()));
            return characters.into_iter().collect();
        }
    }
    lines.join("\n")
}

/// Checks that all mistakes are on lines of the text, or in a setting.
fn check(text: &str, settings: &[Setting]) -> Result<(), TestCaseError> {
    match Scenario::parse("test.toml", text, settings) {
        Ok(loaded) => {
            // An accepted scenario can be written out and read back unchanged.
            let written = toml::to_string(&loaded.scenario)
                .map_err(|error| TestCaseError::fail(format!("{error}")))?;
            let again = Scenario::parse("written.toml", &written, &[]);
            let again =
                again.map_err(|error| TestCaseError::fail(format!("{error}\n{written}")))?;
            prop_assert_eq!(again.scenario, loaded.scenario);
        }
        Err(ScenarioError::Invalid { problems }) => {
            prop_assert!(!problems.is_empty());
            let lines = text.lines().count() as u32;
            for problem in problems {
                let message = problem.to_string();
                match problem.position {
                    // A truncated file may have its mistake after the last line.
                    Position::Line(line) => {
                        prop_assert!(
                            (1..=lines + 1).contains(&line),
                            "{} of {}: {}",
                            line,
                            lines,
                            message
                        );
                        let start = format!("test.toml:{line}: ");
                        prop_assert!(message.starts_with(&start), "{}", message);
                    }
                    Position::Setting(setting) => {
                        prop_assert!(settings.iter().any(|set| set.to_string() == *setting));
                    }
                }
            }
        }
        Err(other) => prop_assert!(false, "{}", other),
    }
    Ok(())
}

proptest! {
    #[test]
    fn valid_scenarios_survive_being_written_out(text in file()) {
        let loaded = Scenario::parse("test.toml", &text, &[]);
        prop_assert!(loaded.is_ok(), "{}\n{}", loaded.unwrap_err(), text);
        check(&text, &[])?;
    }

    #[test]
    fn damaged_files_are_read_or_refused(
        which in any::<prop::sample::Index>(),
        damages in prop::collection::vec(damage(), 1..5),
    ) {
        let mut text = SHIPPED[which.index(SHIPPED.len())].clone();
        for damage in &damages {
            text = apply(&text, damage);
        }
        check(&text, &[])?;
    }

    #[test]
    fn damaged_valid_files_are_read_or_refused(
        text in file(),
        damages in prop::collection::vec(damage(), 1..3),
    ) {
        let text = damages.iter().fold(text, |text, damage| apply(&text, damage));
        check(&text, &[])?;
    }

    #[test]
    fn any_text_is_refused_with_a_line(text: String) {
        check(&text, &[])?;
    }

    #[test]
    fn any_setting_is_taken_or_refused(
        which in any::<prop::sample::Index>(),
        path in "(groups|parameters|dumbbell|queues|faults|seed|variants|a)(\\.(dctcp|flows|shared|0|tcp|sack|rate|x|)){0,4}",
        value in prop_oneof!["[0-9]{1,20}", "\\PC{0,10}", Just("{ kind = \"red\" }".to_owned())],
    ) {
        let setting = Setting { path, value };
        check(&SHIPPED[which.index(SHIPPED.len())], &[setting])?;
    }
}
