//! Tests of each algorithm alone on a bottleneck: it uses the full rate and goes through its
//! phases.

mod support;

use support::{Bottleneck, PACKET, SenderState, run, utilization};
use weir_congestion::algorithms;
use weir_units::{ByteSize, Duration, Rate, Time};

fn after(moments: &[SenderState], from: Duration) -> impl Iterator<Item = &SenderState> {
    moments
        .iter()
        .filter(move |moment| moment.now >= Time::ZERO + from)
}

/// Returns the phases in order, without consecutive duplicates.
fn phases(moments: &[SenderState]) -> Vec<&'static str> {
    let mut phases: Vec<_> = moments.iter().map(|moment| moment.phase).collect();
    phases.dedup();
    phases
}

#[test]
fn every_algorithm_fills_the_pipe() {
    for algorithm in algorithms() {
        let mut pipe = Bottleneck::new();
        if ["dctcp", "d2tcp"].contains(&algorithm.name) {
            pipe.mark_above = Some(pipe.bdp() / 4);
        }
        let moments = run(algorithm.name, pipe, Duration::from_secs(2));
        let used = utilization(&moments, pipe, Duration::from_millis(200));
        assert!(used >= 0.9, "{}: {used}", algorithm.name);
        assert!(used <= 1.001, "{}: {used}", algorithm.name);
    }
}

#[test]
fn dctcp_holds_the_queue_at_the_threshold() {
    let mut pipe = Bottleneck::new();
    let threshold = pipe.bdp() / 4;
    pipe.mark_above = Some(threshold);
    let moments = run("dctcp", pipe, Duration::from_secs(1));
    let highest = after(&moments, Duration::from_millis(100))
        .map(|moment| moment.queue)
        .max();
    assert!(highest.unwrap() < threshold + PACKET * 20, "{highest:?}");
    let lost_before = after(&moments, Duration::from_millis(100))
        .next()
        .unwrap()
        .lost;
    assert_eq!(moments.last().unwrap().lost, lost_before);
}

#[test]
fn swift_holds_the_queue_at_its_target() {
    let moments = run(
        "swift,flow_scaling=0ns",
        Bottleneck::new(),
        Duration::from_secs(1),
    );
    // 25 us of a Gbit/s are 3125 bytes.
    let highest = after(&moments, Duration::from_millis(200))
        .map(|moment| moment.queue)
        .max();
    assert!(
        highest.unwrap() < ByteSize::from_bytes(3_125) + PACKET * 6,
        "{highest:?}"
    );
}

#[test]
fn loss_based_algorithms_have_a_low_loss_rate() {
    for name in ["newreno", "cubic"] {
        let moments = run(name, Bottleneck::new(), Duration::from_secs(2));
        let last = moments.last().unwrap();
        assert!(last.lost * 50 < last.delivered, "{name}: {last:?}");
    }
}

#[test]
fn a_rate_cap_is_respected() {
    let pipe = Bottleneck::new();
    for algorithm in algorithms() {
        let spec = format!("{},max_rate=100Mbps", algorithm.name);
        let moments = run(&spec, pipe, Duration::from_secs(1));
        let used = utilization(&moments, pipe, Duration::from_millis(300));
        assert!((0.08..0.101).contains(&used), "{spec}: {used}");
    }
}

#[test]
fn every_algorithm_is_deterministic() {
    for algorithm in algorithms() {
        let runs: Vec<_> = (0..2)
            .map(|_| {
                format!(
                    "{:?}",
                    run(algorithm.name, Bottleneck::new(), Duration::from_millis(50))
                )
            })
            .collect();
        assert_eq!(runs[0], runs[1]);
    }
}

#[test]
fn bbr_starts_up_drains_and_cycles() {
    let pipe = Bottleneck::new();
    let moments = run(
        "bbr,probe_rtt_interval=500ms,max_send_quantum=1500B",
        pipe,
        Duration::from_secs(1),
    );
    assert_eq!(
        phases(&moments)[..4],
        ["startup", "drain", "probe-bw", "probe-rtt"]
    );
    let cycling: Vec<_> = after(&moments, Duration::from_millis(100))
        .filter(|moment| moment.phase == "probe-bw")
        .collect();
    // Pacing rate over bandwidth gives the gain; the bandwidth estimate is the link's.
    let mut gains: Vec<u64> = Vec::new();
    for moment in &cycling {
        let bandwidth = moment.bandwidth.unwrap().bits_per_second() as f64;
        assert!((bandwidth / 1e9 - 1.0).abs() < 0.02, "{bandwidth}");
        gains.push(
            (moment.pacing.unwrap().bits_per_second() as f64 / bandwidth * 100.0).round() as u64,
        );
    }
    gains.dedup();
    assert!(gains.len() > 20);
    for pair in gains.windows(2) {
        assert!(
            [[125, 75], [75, 100], [100, 125]].contains(&[pair[0], pair[1]]),
            "{pair:?}"
        );
    }
}

#[test]
fn bbr_probe_rtt_drains_the_queue_and_resumes() {
    for name in ["bbr", "bbr3"] {
        let spec = format!("{name},probe_rtt_interval=400ms,probe_rtt_duration=50ms");
        let pipe = Bottleneck::new();
        let moments = run(&spec, pipe, Duration::from_secs(2));
        let probing: Vec<_> = moments
            .iter()
            .filter(|moment| moment.phase == "probe-rtt")
            .collect();
        assert!(!probing.is_empty(), "{spec}");
        let smallest = probing.iter().map(|moment| moment.window).min().unwrap();
        let expected = if name == "bbr" {
            PACKET * 4
        } else {
            pipe.bdp() / 2
        };
        assert!(smallest <= expected + PACKET * 2, "{spec}: {smallest}");
        assert!(
            probing.iter().any(|moment| moment.queue <= PACKET),
            "{spec}"
        );
        let end = moments.last().unwrap();
        let cycling = moments
            .iter()
            .rfind(|moment| moment.phase.starts_with("probe-bw"));
        assert!(cycling.unwrap().window > pipe.bdp());
        assert!(end.bandwidth.unwrap() > Rate::from_mbps(950));
    }
}

#[test]
fn bbr3_goes_through_its_cycle() {
    let moments = run("bbr3", Bottleneck::new(), Duration::from_secs(2));
    let seen = phases(&moments);
    assert_eq!(seen[..2], ["startup", "drain"]);
    let cycle = [
        "probe-bw-down",
        "probe-bw-cruise",
        "probe-bw-refill",
        "probe-bw-up",
    ];
    assert!(seen.len() > 20, "{seen:?}");
    for pair in seen[2..].windows(2) {
        let at = cycle.iter().position(|phase| *phase == pair[0]).unwrap();
        assert_eq!(pair[1], cycle[(at + 1) % 4], "{seen:?}");
    }
}

#[test]
fn bbr3_bounds_its_flight_in_a_shallow_buffer() {
    let mut pipe = Bottleneck::new();
    pipe.buffer = pipe.bdp() / 5;
    let lost = |name: &str| {
        let moments = run(name, pipe, Duration::from_secs(2));
        let used = utilization(&moments, pipe, Duration::from_millis(200));
        assert!(used > 0.8, "{name}: {used}");
        let start = after(&moments, Duration::from_millis(200)).next().unwrap();
        let end = moments.last().unwrap();
        (end.lost - start.lost).bytes() as f64 / (end.delivered - start.delivered).bytes() as f64
    };
    let (first, third) = (lost("bbr"), lost("bbr3"));
    assert!(third < 0.01, "{third}");
    assert!(third < first / 2.0, "{third} against {first}");
}
