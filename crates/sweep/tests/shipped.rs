//! The shipped sweeps have the runs of the paper's tables.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::path::Path;

use weir_sweep::{Shard, Sweep};

fn sweep(name: &str) -> Sweep {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sweeps");
    Sweep::load(&folder.join(name)).unwrap()
}

#[test]
fn each_shipped_sweep_has_its_documented_number_of_runs() {
    for (name, runs) in [
        ("table1.toml", 10_395),
        ("table1-literal.toml", 35_910),
        ("figure2.toml", 297),
    ] {
        assert_eq!(sweep(name).runs(), runs, "{name}");
    }
}

#[test]
fn shards_and_subsets_are_parts_of_the_plan() {
    let sweep = sweep("figure2.toml");
    let whole = sweep.plan();
    assert!(whole.iter().all(|run| run.scenario.is_ok()));
    let part = |index| sweep.plan_of(Shard { index, of: 4 });
    let mut numbers: Vec<u64> = (0..4).flat_map(part).map(|run| run.number).collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..297));
    let some = sweep.plan_subset(30);
    assert_eq!(some.len(), 30);
    // A third of them is at each line rate, which is the slowest key.
    let first = some.iter().filter(|run| run.number < 99).count();
    assert_eq!(first, 10);
}
