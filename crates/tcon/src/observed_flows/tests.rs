use proptest::prelude::*;
use weir_policy::{PolicyRule, TconControl};
use weir_units::Rate;
use weir_wire::tcp::Sequence;

use super::*;
use crate::progress_report::PLACES;

const BEGINNING: FlowStart = FlowStart {
    first: Sequence::new(1),
    segment_size: 1000,
    is_marked: false,
    rtt: Some(Duration::from_millis(1)),
};

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// Flows to port 80 are left alone, all others controlled.
fn flows(congestion: &str) -> ObservedFlows<u32> {
    let control = TconControl {
        congestion: congestion.parse().unwrap(),
        ecn: None,
        buffer: ByteSize::ZERO,
    };
    let web = PolicyRule {
        to_ports: vec!["80".parse().unwrap()],
        ..PolicyRule::new(None)
    };
    let rest = PolicyRule {
        line: 4,
        ..PolicyRule::new(Some(control))
    };
    let policy = Policy {
        rules: vec![web, rest],
    };
    ObservedFlows::new(policy, 20_000)
}

fn flow(port: u16) -> PolicyFlow<'static> {
    let to = std::net::SocketAddr::from(([192, 0, 2, 1], port));
    PolicyFlow::between("192.0.2.2:4000".parse().unwrap(), to)
}

/// This many bytes have arrived, and none are in flight.
fn report(now: Time, delivered: u64) -> ProgressReport {
    let end = Sequence::new(1 + delivered as u32);
    ProgressReport {
        now,
        delivered: ByteSize::from_bytes(delivered),
        marked: ByteSize::ZERO,
        retransmitted: ByteSize::ZERO,
        timeouts: 0,
        sent_at: now - Duration::from_millis(1),
        delivery_points: [None; PLACES],
        una: end,
        nxt: end,
        sacked: ByteSize::ZERO,
        sack_end: end,
        duplicates: 0,
        prior_in_flight: ByteSize::from_bytes(delivered),
        new_acks: 1,
        first_ack_at: now,
        limited_until: ByteSize::ZERO,
        app_limited_acks: 0,
        echo_acks: 0,
        skipped: ByteSize::ZERO,
        skipped_at: Time::ZERO,
        duplicated: ByteSize::ZERO,
    }
}

#[test]
fn classes_count_what_their_flows_report() {
    let mut flows = flows("cubic");
    let on = |interface, port| PolicyFlow {
        interface: Some(interface),
        ..flow(port)
    };
    for (number, interface) in [(1, "eth0"), (2, "eth0"), (3, "eth1")] {
        assert!(flows.on_opened(at(1), number, &on(interface, 81), &BEGINNING, 0));
    }
    assert!(!flows.on_opened(at(1), 4, &on("eth0", 80), &BEGINNING, 0));
    for (number, delivered, lowered) in [(1, 4000, 1), (1, 6000, 3), (2, 1000, 1)] {
        flows.on_report(at(2), number, &report(at(2), delivered), lowered);
    }
    flows.on_closed(1);
    // The number is used again, although its close was lost.
    assert!(flows.on_opened(at(3), 2, &on("eth0", 81), &BEGINNING, 0));
    let [first, second] = flows.classes() else {
        panic!("{:?}", flows.classes());
    };
    let name = |class: &FlowClass<String>| (class.egress.clone(), class.rule, class.congestion);
    assert_eq!(name(first), ("eth0".to_owned(), Some(4), "cubic"));
    assert_eq!(name(second), ("eth1".to_owned(), Some(4), "cubic"));
    assert_eq!((first.flows, first.begun, first.decisions), (1, 3, 3));
    assert_eq!(first.counters.delivered, ByteSize::from_bytes(7000));
    assert_eq!(first.counters.lowered, 4);
    let samples: u64 = first.rtt.buckets().map(|(_, count)| count).sum();
    assert_eq!(samples, 3);
    assert_eq!((second.flows, second.decisions), (1, 0));
}

#[test]
fn the_policy_determines_the_controlled_flows() {
    let mut flows = flows("cubic");
    assert!(!flows.on_opened(at(1), 1, &flow(80), &BEGINNING, 10));
    assert!(flows.on_opened(at(1), 2, &flow(81), &BEGINNING, 20));
    assert_eq!((flows.controlled(), flows.counters().passed), (1, 1));
    assert_eq!(flows.cap(1, |_| false), None);
    let cap = flows.cap(2, |_| false).unwrap();
    assert_eq!(cap.limit.allowed, ByteSize::from_bytes(10_000));
    let reports: Vec<_> = flows.reports(at(5), |_| false).collect();
    let (known_by, report) = &reports[0];
    assert_eq!(
        (**known_by, report.rule, report.congestion),
        (20, 4, "cubic")
    );

    flows.set_policy(Policy::default());
    assert!(!flows.on_opened(at(2), 3, &flow(81), &BEGINNING, 30));
    assert_eq!(flows.controlled(), 1, "flows keep what they have");
    assert!(!flows.on_opened(at(2), 2, &flow(81), &BEGINNING, 20));
    assert_eq!(flows.controlled(), 0, "another flow has the number");
}

#[test]
fn reports_are_counted_and_raise_the_window() {
    let mut flows = flows("cubic");
    assert!(flows.on_opened(at(1), 2, &flow(81), &BEGINNING, 20));
    flows.on_report(at(2), 2, &report(at(2), 5_000), 1);
    flows.on_report(at(3), 2, &report(at(3), 8_000), 3);
    flows.on_report(at(3), 9, &report(at(3), 8_000), 3);
    assert_eq!(flows.counters().delivered, ByteSize::from_bytes(8_000));
    let reports: Vec<_> = flows.reports(at(5), |_| false).collect();
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0].1.counters.lowered, 3);
    assert!(reports[0].1.enforced > ByteSize::from_bytes(10_000));
    flows.on_closed(2);
    assert_eq!(flows.caps(|_| false).count(), 0);
}

#[test]
fn rates_are_set_only_at_pacing_interfaces() {
    let mut flows = flows("bbr");
    assert!(flows.on_opened(at(1), 2, &flow(81), &BEGINNING, 20));
    for millis in 2..20 {
        let report = report(at(millis), (millis - 1) * 5_000);
        flows.on_report(at(millis), 2, &report, 0);
    }
    let [paced, other] = [true, false].map(|is| flows.cap(2, |_| is).unwrap());
    assert!(paced.rate > Some(Rate::ZERO), "{paced:?}");
    assert_eq!(other.rate, None);
    assert!(other.limit.allowed <= paced.limit.allowed);
    assert_eq!(
        flows.caps(|known_by| *known_by == 20).next(),
        Some((2, paced))
    );
}

#[test]
fn the_beginning_of_a_connection_is_left_alone_as_far_as_no_rule_limits_it() {
    let free = |congestion: &str| flows(congestion).free_window();
    let initial = free("cubic");
    assert_eq!(initial.segments, 10);
    assert!(initial.bytes >= ByteSize::from_kib(600), "{initial:?}");
    assert_eq!(free("cubic,initial_window=3").segments, 3);
    assert_eq!(free("cubic,initial_window=30").segments, 10);
    let bounded = free("cubic,max_window=5KB");
    assert_eq!(
        (bounded.segments, bounded.bytes),
        (3, ByteSize::from_bytes(5_000))
    );
    assert_eq!(free("cubic,max_rate=8Mbps"), FreeWindow::default());
}

#[test]
fn a_highest_rate_is_held_by_the_data_plane() {
    assert!(!flows("cubic").has_rates());
    let mut flows = flows("cubic,max_rate=8Mbps");
    assert!(flows.has_rates());
    assert!(flows.on_opened(at(1), 2, &flow(81), &BEGINNING, 20));
    for millis in 2..20 {
        let report = report(at(millis), (millis - 1) * 1_000);
        flows.on_report(at(millis), 2, &report, 0);
    }
    let [paced, other] = [true, false].map(|is| flows.cap(2, |_| is).unwrap());
    let rate = Some(Rate::from_mbps(8));
    assert_eq!((paced.rate, paced.max_rate), (rate, None));
    assert_eq!((other.rate, other.max_rate), (None, rate));
    assert_eq!((paced.socket_rate, other.socket_rate), (rate, rate));
    // The rate over the RTT of a millisecond, and ten more.
    assert_eq!(other.limit.allowed, ByteSize::from_bytes(11_000));
    let reports: Vec<_> = flows.reports(at(20), |_| false).collect();
    let (_, report) = &reports[0];
    assert_eq!(report.max_rate, rate);
    let measured = Rate::average(ByteSize::from_bytes(18_000), Duration::from_millis(19));
    assert_eq!(report.measured_rate, Some(measured));
}

#[test]
fn reports_wake_the_reader_until_a_flow_is_active() {
    let mut flows = flows("cubic");
    assert!(flows.on_opened(at(1), 2, &flow(81), &BEGINNING, 20));
    assert_eq!(flows.schedule().sleep, None);
    flows.on_report(at(2), 2, &report(at(2), 5_000), 0);
    assert!(flows.schedule().sleep.is_some());
    assert_eq!(flows.handle_timeout(at(250)), Some(SamplingRound::Caps));
    assert_eq!(flows.handle_timeout(at(499)), None);
    assert!(flows.schedule().sleep.is_some());
    assert_eq!(flows.handle_timeout(at(502)), Some(SamplingRound::Caps));
    assert_eq!(flows.schedule().sleep, None);
    let rounds = [752, 1002].map(|millis| flows.handle_timeout(at(millis)));
    assert_eq!(
        rounds,
        [
            Some(SamplingRound::Caps),
            Some(SamplingRound::CapsAndSilentFlows)
        ]
    );
}

#[test]
fn reports_of_senders_with_little_to_send_are_read_later() {
    let mut flows = flows("cubic");
    assert!(flows.on_opened(at(1), 2, &flow(81), &BEGINNING, 20));
    let limited = |now, delivered| ProgressReport {
        limited_until: ByteSize::from_bytes(delivered + 1),
        ..report(now, delivered)
    };
    flows.on_report(at(2), 2, &limited(at(2), 5_000), 0);
    let lazy = flows.schedule();
    assert!(lazy.opens_wake && lazy.sleep.is_some(), "{lazy:?}");
    // It has more to send, and then marks.
    flows.on_report(at(3), 2, &report(at(3), 10_000), 0);
    let busy = flows.schedule();
    assert!(!busy.opens_wake && busy.sleep < lazy.sleep, "{busy:?}");
    flows.on_report(at(4), 2, &limited(at(4), 15_000), 0);
    assert!(flows.handle_timeout(at(300)).is_some());
    assert_eq!(flows.schedule(), lazy);
    let marked = ProgressReport {
        marked: ByteSize::from_bytes(1_000),
        ..limited(at(301), 20_000)
    };
    flows.on_report(at(301), 2, &marked, 0);
    assert_eq!(flows.schedule(), busy);
}

#[test]
fn silent_flows_are_forgotten() {
    let mut flows = flows("cubic");
    for number in 1..=3 {
        assert!(flows.on_opened(at(0), number, &flow(81), &BEGINNING, number * 10));
    }
    let longest = ConnectionLimits::default().idle;
    let now = Time::ZERO + longest;
    let mut asked = Vec::new();
    let mut ask = |now: Time, flows: &mut ObservedFlows<u32>| {
        asked.clear();
        let gone = flows.forget_silent(now, |known_by| {
            asked.push(*known_by);
            // The second has been seen recently, the third is unknown.
            (*known_by < 30).then_some(if *known_by == 20 { now } else { Time::ZERO })
        });
        (gone, asked.clone())
    };
    flows.on_report(now, 1, &report(now, 1), 0);
    assert_eq!(ask(now, &mut flows), (vec![(3, 30)], vec![20, 30]));
    let soon = now + longest / 16;
    assert_eq!(
        ask(soon, &mut flows),
        (vec![], vec![]),
        "asked a moment ago"
    );
    let late = now + longest;
    assert_eq!(ask(late, &mut flows), (vec![(1, 10)], vec![10, 20]));
    assert_eq!((flows.counters().idle, flows.controlled()), (2, 1));
}

#[derive(Clone, Debug)]
enum Step {
    Open(u32, u16),
    Report(u32, u64),
    Close(u32),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0_u32..4, 80_u16..82).prop_map(|(number, port)| Step::Open(number, port)),
        (0_u32..4, 0_u64..100_000).prop_map(|(number, bytes)| Step::Report(number, bytes)),
        (0_u32..4).prop_map(Step::Close),
        (0_u64..5_000).prop_map(Step::Wait),
    ]
}

proptest! {
    /// With any sequence of calls, also for unknown flows: each controlled flow has a cap that allows
    /// two segments, and all others have none.
    #[test]
    fn a_flow_has_a_cap_as_long_as_it_is_controlled(steps in prop::collection::vec(step(), 0..60)) {
        let mut flows = flows("bbr");
        let mut open = std::collections::BTreeSet::new();
        let (mut now, mut delivered) = (1, [0; 4]);
        for step in steps {
            match step {
                Step::Open(number, port) => {
                    delivered[number as usize] = 0;
                    open.remove(&number);
                    if flows.on_opened(at(now), number, &flow(port), &BEGINNING, number) {
                        open.insert(number);
                    }
                }
                Step::Report(number, bytes) => {
                    let all = &mut delivered[number as usize];
                    *all += bytes;
                    flows.on_report(at(now), number, &report(at(now), *all), 0);
                }
                Step::Close(number) => {
                    open.remove(&number);
                    flows.on_closed(number);
                }
                Step::Wait(millis) => {
                    now += millis;
                    flows.handle_timeout(at(now));
                }
            }
            let capped: Vec<_> = flows.caps(|_| false).collect();
            prop_assert!(capped.iter().map(|(number, _)| number).eq(&open));
            for (_, cap) in capped {
                prop_assert!(cap.limit.floor == ByteSize::from_bytes(2_000));
                prop_assert!(cap.rate.is_none());
            }
            prop_assert_eq!(flows.controlled(), open.len() as u64);
        }
    }
}
