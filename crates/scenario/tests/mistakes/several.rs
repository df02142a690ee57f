//! More than one mistake.

use weir_scenario::{Scenario, ScenarioError};

use crate::FILE;

#[test]
fn thousands_of_mistakes_are_truncated() {
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
fn several_mistakes_are_reported_at_once() {
    let text = FILE
        .replace("count = 4", "count = 0")
        .replace("flows = 10", "flows = 0")
        .replace("kind = \"loss\"", "kind = \"lose\"")
        .replace("red_max = \"400KB\"", "red_max = 400");
    let Err(ScenarioError::Invalid { problems }) = Scenario::parse("test.toml", &text, &[]) else {
        panic!("accepted");
    };
    // The network is read before the groups and faults that refer to it.
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
    let mut places: Vec<_> = problems.iter().map(|problem| &problem.position).collect();
    places.dedup();
    assert_eq!(places.len(), 3);
    assert!(places.is_sorted());
}
