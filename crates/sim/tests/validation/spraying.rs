//! Packets over equal paths: all of a flow's by one of them, or each by a random one.

use weir_results::RunSummary;
use weir_sim::{Simulation, Threads};
use weir_units::Time;

use crate::observe::{Rows, run, scenario};

const FILE: &str = r#"
title = "Spraying"
source = "a test"
duration = "4ms"
leaf_spine = { leaves = 4, spines = 4, hosts = 2, rate = "10Gbps", delay = "1us", queue = "port" }
[queues.port]
kind = "step"
ecn_threshold = "30KB"
buffer = "60KB"
[groups.bulk]
from = ["host1", "host4", "host5"]
to = ["host3", "host8", "host2"]
pairing = "one-to-one"
congestion = "dctcp"
workload = "bulk"
tcp.min_rto = "1ms"
[measurements]
ports = "leaf->spine"
sample_interval = "100us"
"#;

/// Returns the data packets that `leaf1` has sent to each spine.
fn packets(summary: &RunSummary) -> [u64; 4] {
    [1, 2, 3, 4].map(|spine| summary.ports[&format!("leaf1->spine{spine}")].packets)
}

#[test]
fn a_flow_takes_one_path_and_its_packets_all() {
    let alone = "groups.bulk={ from = \"host1\", to = \"host3\", congestion = \"dctcp\", workload = \"bulk\" }".to_owned();
    let by_flow = packets(&run(FILE, std::slice::from_ref(&alone)));
    let total: u64 = by_flow.iter().sum();
    assert!(total > 1_000, "{by_flow:?}");
    assert!(by_flow.contains(&total), "{by_flow:?}");
    let spray = "leaf_spine.load_balancing=packet".to_owned();
    let by_packet = packets(&run(FILE, &[alone, spray]));
    let total: u64 = by_packet.iter().sum();
    assert!(total > 1_000, "{by_packet:?}");
    for packets in by_packet {
        // Four standard deviations.
        let expected = total as f64 / 4.0;
        assert!(
            (packets as f64 - expected).abs() < 4.0 * expected.sqrt(),
            "{by_packet:?}"
        );
    }
}

#[test]
fn sprayed_packets_take_the_same_paths_in_any_order_of_events() {
    let settings = ["leaf_spine.load_balancing=packet".to_owned()];
    let rows = |threads: usize, ahead: bool| {
        let threads = Threads {
            most: threads,
            least_hosts: 1,
        };
        let simulation = Simulation::with_threads(scenario(FILE, &settings), threads).unwrap();
        let mut simulation = if ahead {
            simulation
        } else {
            simulation.without_running_ahead()
        };
        let mut rows = Rows::default();
        simulation.advance(Time::MAX, &mut rows).unwrap();
        let used = simulation.threads();
        simulation.finish(&mut rows).unwrap();
        (rows.text, used)
    };
    let (alone, threads) = rows(1, true);
    assert_eq!(threads, 1);
    assert!(alone.len() > 100);
    assert!(rows(1, false).0 == alone, "one event for each arrival");
    let (together, threads) = rows(4, true);
    assert_eq!(threads, 4);
    assert!(together == alone, "four threads");
}

/// Requests with pauses: each begins a flowlet. Endless data without a gap are one.
#[test]
fn flowlets_take_other_paths_after_gaps() {
    let flow = |workload: &str| {
        format!(
            "groups.bulk={{ from = \"host1\", to = \"host3\", congestion = \"dctcp\", workload = {workload} }}"
        )
    };
    let flowlets = "leaf_spine={ load_balancing = \"flowlet\", flowlet_gap = \"50us\" }".to_owned();
    let endless = packets(&run(FILE, &[flow("\"bulk\""), flowlets.clone()]));
    let total: u64 = endless.iter().sum();
    assert!(
        endless
            .iter()
            .filter(|packets| **packets * 10 > total * 9)
            .count()
            == 1,
        "{endless:?}"
    );
    let requests = flow(
        "{ kind = \"request-response\", request = \"3KB\", response = \"1KB\", pause = \"60us\" }",
    );
    let by_flowlet = packets(&run(FILE, &[requests.clone(), flowlets.clone()]));
    assert!(
        by_flowlet.iter().all(|packets| *packets > 5),
        "{by_flowlet:?}"
    );
    let by_flow = packets(&run(FILE, std::slice::from_ref(&requests)));
    assert_eq!(
        by_flow.iter().filter(|packets| **packets > 0).count(),
        1,
        "{by_flow:?}"
    );
    // The same bytes with packets that do not run ahead, and on several threads.
    let rows = |settings: &[String], threads: usize, ahead: bool| {
        let threads = Threads {
            most: threads,
            least_hosts: 1,
        };
        let mut simulation = Simulation::with_threads(scenario(FILE, settings), threads).unwrap();
        if !ahead {
            simulation = simulation.without_running_ahead();
        }
        let mut rows = Rows::default();
        simulation.advance(Time::MAX, &mut rows).unwrap();
        rows.text
    };
    for settings in [&[requests, flowlets.clone()][..], &[flowlets]] {
        let one = rows(settings, 1, true);
        assert!(one == rows(settings, 1, false));
        assert!(one == rows(settings, 4, true));
    }
}
