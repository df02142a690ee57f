//! Measurements in networks other than loopback, where this process may create network namespaces. This
//! program starts itself as a worker.

#![allow(
    clippy::unwrap_used,
    reason = "a test, though without the harness by which clippy would know"
)]

use std::path::Path;
use std::process::ExitCode;

use weir_lab::network::{LinkSettings, NetworkKind};
use weir_traffic::calls::driver::Phase;
use weir_traffic::calls::identity::new_identity;
use weir_traffic::calls::run::{Latency, Servers};
use weir_traffic::calls::{Launcher, Network, Placement, Plan, Report, table, worker};
use weir_traffic_peers::drivers;
use weir_units::{ByteSize, Duration};

/// The delay of the link in each direction.
const DELAY: Duration = Duration::from_micros(25);

fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == "worker") {
        return match worker::run(&drivers()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let mtu = ByteSize::from_bytes(1500);
    if possible("calls over a veth pair") {
        measure(NetworkKind::Veth { mtu });
    }
    if possible("calls over a link") && has_tap("calls over a link") {
        let mtu = ByteSize::from_bytes(9000);
        let report = measure(NetworkKind::Link(LinkSettings {
            delay: DELAY,
            mtu,
            ..LinkSettings::default()
        }));
        let round_trip = 2.0 * DELAY.as_micros() as f64;
        for row in &report.measurements {
            assert!(row.p10_us >= round_trip, "{row:?}");
        }
    }
    ExitCode::SUCCESS
}

fn possible(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("SKIPPED: {test}: network namespaces take root");
    }
    is_root
}

fn has_tap(test: &str) -> bool {
    let exists = Path::new("/dev/net/tun").exists();
    if !exists {
        eprintln!("SKIPPED: {test}: there is no /dev/net/tun");
    }
    exists
}

/// Measures calls of two transports over a network, and checks that both are in the report with its name.
fn measure(kind: NetworkKind) -> Report {
    let private = kind.create().unwrap();
    let report = run(private.network().clone());
    assert_eq!(report.failures, []);
    let rows = report.measurements.iter();
    let rows: Vec<_> = rows
        .map(|row| (row.transport.as_str(), row.iterations, row.network.clone()))
        .collect();
    let name = kind.to_string();
    let expected = ["dcquic", "tcp-tls"].map(|transport| (transport, 20, name.clone()));
    assert_eq!(rows, expected);
    let text = table::render(&report, &[]);
    assert!(
        text.contains(&format!("Latency, one core, {kind}\n")),
        "{text}"
    );
    report
}

fn run(network: Network) -> Report {
    let plan = Plan {
        transports: ["dcquic", "tcp-tls"]
            .map(|text| text.parse().unwrap())
            .into(),
        placements: vec![Placement::OneCore],
        servers: Servers::Local(new_identity().unwrap()),
        network,
        latencies: vec![Latency {
            phase: Phase::Established,
            size: ByteSize::from_bytes(10_000),
            iterations: 20,
            rounds: 2,
            warm_up: 2,
        }],
        bulk: None,
        mixes: Vec::new(),
        open_mixes: Vec::new(),
        baselines: Vec::new(),
        limit: Duration::from_secs(60),
        date: String::new(),
    };
    let launcher = Launcher::this_program(&["worker"]).unwrap();
    weir_traffic::calls::run(&plan, &drivers(), &launcher, &mut |_| {}).unwrap()
}
