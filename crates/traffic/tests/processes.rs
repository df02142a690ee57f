//! A whole run with worker processes: this program starts itself as a worker.

#![allow(
    clippy::unwrap_used,
    reason = "a test, though without the harness by which clippy would know"
)]

use std::process::ExitCode;

use weir_traffic::calls::driver::Phase;
use weir_traffic::calls::identity::new_identity;
use weir_traffic::calls::mix::Workload;
use weir_traffic::calls::run::{BulkPlan, Latency, MixPlan, OpenMixPlan, Servers};
use weir_traffic::calls::{
    Launcher, Network, Placement, Plan, Report, TransportSpecification, standard_drivers, worker,
};
use weir_units::{ByteSize, Duration};

fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == "worker") {
        return match worker::run(&standard_drivers()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    every_transport_is_measured();
    a_transport_that_cannot_start_fails_alone();
    ExitCode::SUCCESS
}

fn plan(transports: &[&str]) -> Plan {
    Plan {
        transports: transports
            .iter()
            .map(|text| text.parse::<TransportSpecification>().unwrap())
            .collect(),
        placements: vec![Placement::OneCore, Placement::Free],
        servers: Servers::Local(new_identity().unwrap()),
        network: Network::loopback(),
        latencies: Phase::ALL
            .into_iter()
            .map(|phase| Latency {
                phase,
                size: ByteSize::from_bytes(10_000),
                iterations: 7,
                rounds: 2,
                warm_up: 1,
            })
            .collect(),
        bulk: Some(BulkPlan {
            size: ByteSize::from_bytes(5_000_000),
            warm_up: ByteSize::from_bytes(1_000_000),
            rounds: 2,
        }),
        mixes: vec![MixPlan {
            workload: Workload::WebSearch,
            connections: 20,
            calls: 4,
            stall: Duration::from_secs(20),
        }],
        open_mixes: vec![OpenMixPlan {
            workload: Workload::WebSearch,
            connections: 10,
            calls: 200,
            rounds: 2,
            load: 0.5,
            reference: "tcp-tls".to_owned(),
            seed: 1,
            stall: Duration::from_secs(20),
        }],
        baselines: vec!["tcp-tls".to_owned()],
        limit: Duration::from_secs(60),
        date: "today".to_owned(),
    }
}

fn run(plan: &Plan) -> Report {
    let launcher = Launcher::this_program(&["worker"]).unwrap();
    let (mut last, mut total) = (None, 0);
    let report = weir_traffic::calls::run(plan, &standard_drivers(), &launcher, &mut |progress| {
        assert!(last.is_none_or(|last| progress.done > last));
        last = Some(progress.done);
        total = progress.total;
    })
    .unwrap();
    assert!(last.unwrap() < total);
    report
}

fn every_transport_is_measured() {
    let report = run(&plan(&["dcquic", "tcp-tls", "tcp"]));
    assert_eq!(report.failures, []);
    // Only DCQUIC knows peers, and plain TCP has no resumption.
    assert_eq!(report.measurements.len(), 2 * (5 + 4 + 3));
    for measurement in &report.measurements {
        assert_eq!(measurement.iterations, 7);
        assert!(measurement.median_us > 0.0);
        assert!(measurement.p999_us >= measurement.p99_us);
        assert_eq!(measurement.network, "loopback");
        let is_closed = measurement.phase != Phase::Established;
        assert_eq!(measurement.teardown_us.is_some(), is_closed);
    }
    // Connections without a handshake stand beside fresh ones of TCP + TLS.
    assert_eq!(report.ratios.len(), 2 * (5 + 3));
    assert_eq!(report.bulk.len(), 2 * 3);
    for bulk in &report.bulk {
        assert!(bulk.gbit_per_s > 0.0 && bulk.cpu_s_per_gb.unwrap() > 0.0);
    }
    assert_eq!(report.mixes.len(), 2 * 2 * 3);
    for mix in &report.mixes {
        let calls = mix.offered_per_s.map_or(80, |_| 200);
        assert_eq!((mix.completed, mix.errors, mix.stalls), (calls, 0, 0));
        assert!(mix.calls_per_s > 0.0);
    }
    assert_eq!(report.mix_ratios.len(), 2 * 2 * 2);
    assert_eq!(report.environment.date, "today");
    assert_eq!(report.environment.placements.len(), 2);
}

fn a_transport_that_cannot_start_fails_alone() {
    let mut plan = plan(&["dcquic", "tcp-tls", "tcp/no-such-control"]);
    plan.placements = vec![Placement::Free];
    plan.latencies.truncate(1);
    plan.bulk = None;
    plan.mixes.clear();
    plan.open_mixes.clear();
    let report = run(&plan);
    assert_eq!(report.measurements.len(), 2);
    assert!(
        report
            .failures
            .iter()
            .all(|failure| failure.transport == "tcp/no-such-control")
    );
    assert!(!report.failures.is_empty());
}
