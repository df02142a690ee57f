//! Invalid TOML, missing keys, and invalid values.

use weir_scenario::{Scenario, Setting};

use crate::{FILE, check, line_of, mistake};

#[test]
fn unknown_keys_are_refused() {
    check(&[
        ("seed = 3", "seed = = 3", &[]),
        (
            "seed = 3",
            "seeds = 3",
            &["seeds: ", "did you mean `seed`?", "duration"],
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
    ]);
}

#[test]
fn wrong_types_and_units_are_refused() {
    check(&[
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
    ]);
}

#[test]
fn numbers_out_of_range_are_refused() {
    check(&[
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
            "queue = \"shared\"",
            "queue = { kind = \"codel\", buffer = \"1MB\", target = \"100ms\" }",
            &[
                "dumbbell.queue.target",
                "100ms is not below `interval`, 100ms",
            ],
        ),
        (
            "queue = \"shared\"",
            "queue = { kind = \"strict-priority\", buffer = \"1MB\", high = \"etc\" }",
            &["dumbbell.queue.high", "none of ect, not-ect"],
        ),
        (
            "queue = \"shared\"",
            "queue = { kind = \"strict-priority\", buffer = \"1MB\", high = \"ect\", ecn_threshold = \"2MB\" }",
            &[
                "dumbbell.queue.ecn_threshold",
                "2MB is above the buffer of 1MB",
            ],
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
    ]);
}

#[test]
fn missing_keys_are_refused() {
    check(&[
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
    ]);
}

#[test]
fn parameters() {
    check(&[
        (
            "threshold = \"100KB\"",
            "threshold = \"100XB\"",
            &["ecn_threshold (parameters.threshold)", "`XB`"],
        ),
        (
            "threshold = \"100KB\"",
            "threshold = \"$rate\"",
            &["ecn_threshold (parameters.threshold)", "`Gbps`"],
        ),
        (
            "threshold = \"100KB\"",
            "threshold = \"$threshold\"",
            &[
                "parameters.threshold",
                "`$threshold` stands for itself",
                "$threshold, $threshold",
            ],
        ),
        (
            "threshold = \"100KB\"",
            "threshold = \"$one\"\none = [\"$two\"]\ntwo = { a = \"$threshold\" }",
            &["stands for itself", "$threshold, $one, $two, $threshold"],
        ),
        (
            "threshold = \"100KB\"",
            "threshold = \"$none\"",
            &["parameters.threshold", "no parameter `none`"],
        ),
    ]);
}

#[test]
fn parameters_may_refer_to_one_another() {
    let text = FILE.replace(
        "threshold = \"100KB\"",
        "threshold = \"$base\"\nbase = \"$least\"\nleast = \"70KB\"",
    );
    let load = |settings: &[Setting]| Scenario::parse("test.toml", &text, settings).unwrap();
    let direct = FILE.replace("threshold = \"100KB\"", "threshold = \"70KB\"");
    let direct = Scenario::parse("test.toml", &direct, &[]).unwrap();
    assert_eq!(load(&[]).scenario, direct.scenario);
    let setting = "parameters.least=80KB".parse().unwrap();
    assert_ne!(load(&[setting]).scenario, direct.scenario);
}

#[test]
fn a_key_that_is_written_twice_is_named() {
    check(&[
        (
            "seed = 3",
            "seed = 3\nseed = 4",
            &["the key `seed` is written twice"],
        ),
        (
            "[groups.cubic]",
            "[groups.dctcp]",
            &["the key `dctcp` is written twice"],
        ),
    ]);
}

#[test]
fn unused_parameters_are_mistakes() {
    let message = mistake("\"$threshold\"", "\"1KB\"");
    assert!(message.starts_with("test.toml:8: parameters.threshold: nothing in the file uses"));
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
