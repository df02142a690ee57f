//! A sweep over algorithms, resumed by programs with other code.

use std::fs;

use super::*;
use crate::RunObserver;
use crate::code::Code;
use crate::journal::Journal;
use crate::plan::{Shard, Sweep};

const SCENARIO: &str = r#"
    title = "A flow"
    source = "a test"
    duration = "5ms"
    [dumbbell]
    rate = "1Gbps"
    queue = { kind = "drop-tail", buffer = "100KB" }
    [dumbbell.senders.sender]
    rtt = "100us"
    [groups.one]
    from = "sender"
    to = "receiver"
    workload = "bulk"
"#;
const SWEEP: &str = r#"
    title = "Algorithms"
    source = "a test"
    scenario = "flow.toml"
    seeds = [1, 2]
    [grid]
    "groups.one.congestion" = ["cubic", "dctcp", "swift"]
"#;

struct Unwatched;

impl RunObserver for Unwatched {
    fn should_continue(&self) -> bool {
        true
    }
    fn on_finished(&self, _: &Row) {}
}

#[test]
fn a_sweep_keeps_the_rows_whose_code_has_not_changed() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("sweep.toml");
    fs::write(place.path().join("flow.toml"), SCENARIO).unwrap();
    fs::write(&path, SWEEP).unwrap();
    let out = place.path().join("out");
    let resume = |code: Code| {
        let sweep = Sweep::load(&path).unwrap().under(code);
        let plan = sweep.plan();
        let (journal, rows, reuse) = Journal::open(&out, Shard::WHOLE, &plan, true).unwrap();
        let rows = sweep.execute_remaining(&plan, rows, &journal, 1, &Unwatched);
        assert_eq!(rows.unwrap().len(), 6);
        reuse.lines().join("; ")
    };
    let own = || Code::own().clone();
    assert_eq!(resume(own()), "");
    assert_eq!(resume(own()), "kept: the rows of 6 runs");
    // An algorithm is added, and one that no run uses is changed.
    let other = || {
        own()
            .with("congestion/vegas", "1")
            .with("congestion/bbr", "1")
    };
    assert_eq!(resume(other()), "kept: the rows of 6 runs");
    let changed = || other().with("congestion/dctcp", "1");
    assert_eq!(
        resume(changed()),
        "kept: the rows of 4 runs; again: 2 runs, whose code has changed: congestion/dctcp"
    );
    assert_eq!(
        resume(changed()),
        "kept: the rows of 6 runs; \
         left alone: 2 rows of other values, of other parts of the sweep, or replaced by newer rows"
    );
    // The newest row of each run tells the reason.
    assert_eq!(
        resume(changed().with("simulator", "1")),
        "again: 6 runs, whose code has changed: simulator; \
         left alone: 2 rows of other values, of other parts of the sweep, or replaced by newer rows"
    );
}
