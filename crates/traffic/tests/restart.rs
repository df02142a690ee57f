//! A small restart storm: this program starts itself as the server. Only counts are checked: times are
//! those of `make bench-restart`.

#![allow(
    clippy::unwrap_used,
    reason = "a test, though without the harness by which clippy would know"
)]

use weir_traffic::calls::Launcher;
use weir_traffic::restart::{Contestant, Plan, Violations, run, serve};
use weir_units::Duration;

fn main() {
    if std::env::args().any(|argument| argument == "server") {
        return serve().unwrap();
    }
    let launcher = Launcher::this_program(&["server"]).unwrap();
    for contestant in Contestant::ALL {
        let plan = Plan {
            contestant,
            clients: 20,
            rate_per_s: 200.0,
            before: Duration::from_millis(500),
            after: Duration::from_millis(1000),
            // However slow this machine is, some calls are answered.
            deadline: Duration::from_secs(20),
            concurrent: 1000,
            seed: 22,
        };
        let report = run(&plan, &launcher).unwrap();
        assert_eq!(report.violations, Violations::default(), "{report:?}");
        let all = report.all();
        assert!(all.answered > 0 && all.all() > 200, "{report:?}");
        // Where the restart took long, few calls are left for the new server.
        assert!(
            report.after.all() < 50 || report.after.answered > 0,
            "{report:?}"
        );
    }
}
