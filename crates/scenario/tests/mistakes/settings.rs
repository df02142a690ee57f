//! Settings from outside the file.

use weir_scenario::{Position, Scenario, ScenarioError, Setting};

use crate::FILE;

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
            "seeds=1",
            vec!["seeds: there is no such key", "did you mean `seed`?"],
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
fn a_mistake_in_a_setting_has_its_position() {
    let setting: Setting = "groups.dctcp.flows=0".parse().unwrap();
    let Err(ScenarioError::Invalid { problems }) = Scenario::parse("test.toml", FILE, &[setting])
    else {
        panic!("accepted");
    };
    assert_eq!(problems.len(), 1);
    assert_eq!(
        problems[0].position,
        Position::Setting("groups.dctcp.flows=0".into())
    );
}
