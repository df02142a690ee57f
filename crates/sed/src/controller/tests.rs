use std::net::IpAddr;

use proptest::prelude::*;
use weir_units::{ByteSize, Duration};
use weir_wire::tcp::Sequence;

use super::*;
use crate::demand::{Demand, DemandRule};

const PORT: PortId = PortId { switch: 3, port: 1 };

fn at(micros: u64) -> Time {
    Time::from_nanos(micros * 1000)
}

fn flow(number: u32) -> FlowKey {
    FlowKey {
        source: IpAddr::from([10, 1, (number >> 8) as u8, number as u8]),
        destination: IpAddr::from([10, 0, 0, 1]),
        source_port: 40_000,
        destination_port: 80,
        protocol: FlowKey::TCP,
    }
}

fn controller(config: ControllerConfig) -> Controller {
    let mut controller = Controller::new(config, DemandTable::new(Vec::new(), 1000));
    controller.add_port(PORT, Rate::from_gbps(1));
    controller
}

fn demand(bytes: u64, millis: u64) -> Demand {
    Demand {
        size: ByteSize::from_bytes(bytes),
        within: Duration::from_millis(millis),
    }
}

fn opened(flow: FlowKey, port: u32) -> SwitchReport {
    SwitchReport::Opened {
        flow,
        port,
        age: Duration::ZERO,
        demand: None,
    }
}

/// Opens a flow that has registered before.
fn open(controller: &mut Controller, now: Time, number: u32, demand: Option<Demand>) {
    let flow = flow(number);
    if let Some(demand) = demand {
        let demands = controller.demands_mut();
        demands.register(flow.source, flow, demand).unwrap();
    }
    let port = PORT.port;
    controller.receive(now, PORT.switch, opened(flow, port));
    let accepted = SwitchReport::Accepted {
        flow,
        segment: 1460,
        reverse_port: 2,
    };
    controller.receive(now, PORT.switch, accepted);
}

fn congest(controller: &mut Controller, now: Time, congested: bool) {
    let port = PORT.port;
    let report = if congested {
        SwitchReport::Congested { port }
    } else {
        SwitchReport::Recovered { port }
    };
    controller.receive(now, PORT.switch, report);
}

fn orders(controller: &mut Controller, now: Time) -> Vec<WindowOrder> {
    if controller.timeout(now).is_some_and(|time| time <= now) {
        controller.handle_timeout(now);
    }
    let orders = std::iter::from_fn(|| controller.next_order());
    let orders: Vec<_> = orders
        .map(|(switch, order)| {
            assert_eq!(switch, PORT.switch);
            order
        })
        .collect();
    orders
}

fn windows(controller: &Controller) -> Vec<Option<u32>> {
    controller.flows(PORT).map(|entry| entry.window).collect()
}

#[test]
fn no_flow_is_limited_without_congestion() {
    let mut controller = controller(ControllerConfig::paper());
    for number in 0..100 {
        open(&mut controller, at(0), number, Some(demand(20_000, 200)));
    }
    assert_eq!(orders(&mut controller, at(1)), []);
    assert!(windows(&controller).iter().all(Option::is_none));
}

#[test]
fn windows_are_set_at_congestion_and_released_afterwards() {
    let mut controller = controller(ControllerConfig::paper());
    open(&mut controller, at(0), 1, None);
    open(&mut controller, at(0), 2, Some(demand(8_000_000, 300)));
    congest(&mut controller, at(10), true);
    let expected = [
        // 8 MB in 300 ms at 560 us are 10.2 segments.
        WindowOrder::Allow {
            flow: flow(2),
            window: 11 * 1460,
        },
        WindowOrder::Allow {
            flow: flow(1),
            window: 35 * 1460,
        },
        WindowOrder::Renew,
    ];
    assert_eq!(orders(&mut controller, at(10)), expected);
    // A second report of the same changes nothing.
    congest(&mut controller, at(10), true);
    assert_eq!(orders(&mut controller, at(10)), []);
    congest(&mut controller, at(20), false);
    let released = [2, 1].map(|number| WindowOrder::Release { flow: flow(number) });
    assert_eq!(orders(&mut controller, at(20)), released);
}

#[test]
fn waiting_flows_start_only_when_others_end() {
    let mut controller = controller(ControllerConfig::paper());
    for number in 0..60 {
        open(&mut controller, at(0), number, Some(demand(20_000, 200)));
    }
    congest(&mut controller, at(10), true);
    orders(&mut controller, at(10));
    let stopped = |controller: &Controller| {
        let windows = windows(controller).into_iter();
        windows.filter(|window| *window == Some(0)).count()
    };
    assert_eq!(stopped(&controller), 14);
    congest(&mut controller, at(20), false);
    assert_eq!(orders(&mut controller, at(20)), []);
    for number in 0..10 {
        let flow = flow(number);
        controller.receive(at(30), PORT.switch, SwitchReport::Closed { flow });
    }
    let orders_then = orders(&mut controller, at(30));
    let allowed = |order: &&WindowOrder| matches!(order, WindowOrder::Allow { window: 1460, .. });
    assert_eq!(orders_then.iter().filter(allowed).count(), 10);
    assert_eq!(stopped(&controller), 4);
    for number in 10..30 {
        let flow = flow(number);
        controller.receive(at(40), PORT.switch, SwitchReport::Closed { flow });
    }
    orders(&mut controller, at(40));
    // All flows have a window now, and the queue is short: the next report of it ends all this.
    congest(&mut controller, at(50), false);
    orders(&mut controller, at(50));
    assert!(windows(&controller).iter().all(Option::is_none));
}

#[test]
fn leases_are_renewed_while_windows_are_in_force() {
    let mut controller = controller(ControllerConfig::paper());
    open(&mut controller, at(0), 1, None);
    congest(&mut controller, at(0), true);
    assert_eq!(
        orders(&mut controller, at(0)).last(),
        Some(&WindowOrder::Renew)
    );
    let next = controller.timeout(at(1)).unwrap();
    assert_eq!(next.since(at(0)), ControllerConfig::paper().lease / 3);
    assert_eq!(orders(&mut controller, next), [WindowOrder::Renew]);
}

#[test]
fn counters_only_reduce_the_remaining_size() {
    let mut controller = controller(ControllerConfig::paper());
    open(&mut controller, at(0), 1, Some(demand(20_000, 200)));
    let mut reported = |bytes| {
        let acknowledged = vec![(flow(1), bytes), (flow(9), 5)];
        let report = SwitchReport::Counters { acknowledged };
        controller.receive(at(1), PORT.switch, report);
        let entry = controller.flows(PORT).next().unwrap();
        entry.job(at(1)).unwrap().size.bytes()
    };
    assert_eq!(reported(5000), 15_000);
    assert_eq!(reported(4000), 15_000);
    assert_eq!(reported(u64::MAX), 0);
}

#[test]
fn the_reverse_flow_may_have_the_deadline() {
    let rule = DemandRule {
        source_ports: vec![80..=80],
        demand: Some(demand(50_000, 10)),
        ..DemandRule::default()
    };
    let mut controller =
        Controller::new(ControllerConfig::paper(), DemandTable::new(vec![rule], 1));
    for port in 0..3 {
        controller.add_port(PortId { port, ..PORT }, Rate::from_gbps(1));
    }
    open(&mut controller, at(0), 1, None);
    let back: Vec<_> = controller.flows(PortId { port: 2, ..PORT }).collect();
    assert_eq!(back[0].flow, flow(1).reversed());
    assert_eq!(back[0].demand, Some(demand(50_000, 10)));
}

#[test]
fn only_rsed_orders_retransmissions_of_drops() {
    let mut config = ControllerConfig::paper();
    let (number, sequence) = (flow(1), Sequence::new(77));
    let dropped = SwitchReport::Dropped {
        flow: number,
        sequence,
    };
    for retransmit in [false, true] {
        config.retransmit = retransmit;
        let mut controller = controller(config);
        open(&mut controller, at(0), 1, None);
        controller.receive(at(1), PORT.switch, dropped.clone());
        let order = WindowOrder::Retransmit {
            flow: number,
            sequence,
        };
        let expected = retransmit.then_some(order);
        assert_eq!(orders(&mut controller, at(1)), Vec::from_iter(expected));
    }
}

#[test]
fn a_plan_does_not_wait_for_the_queue() {
    let config = ControllerConfig {
        method: Method::Planned,
        ..ControllerConfig::paper()
    };
    let mut controller = controller(config);
    for number in 0..4 {
        open(&mut controller, at(0), number, Some(demand(20_000, 200)));
    }
    assert_eq!(orders(&mut controller, at(1)), []);
    for number in 4..100 {
        open(&mut controller, at(2), number, Some(demand(20_000, 200)));
    }
    orders(&mut controller, at(2));
    let windows = windows(&controller);
    assert_eq!(windows.iter().flatten().sum::<u32>(), 46);
    assert_eq!(&windows[..8], [7, 7, 7, 7, 7, 7, 4, 0].map(Some));
}

#[test]
fn tables_are_bounded_and_silent_flows_removed() {
    let config = ControllerConfig {
        flows_per_port: 10,
        ..ControllerConfig::paper()
    };
    let mut controller = controller(config);
    for number in 0..12 {
        open(&mut controller, at(0), number, None);
        // A retransmitted SYN adds no flow.
        open(&mut controller, at(0), number, None);
    }
    assert_eq!(controller.flows(PORT).count(), 10);
    assert_eq!(controller.counters().refused, 4);
    let next = controller.timeout(at(1)).unwrap();
    assert_eq!(next.since(at(0)), config.idle);
    let later = next + config.idle;
    orders(&mut controller, later);
    assert_eq!(controller.flows(PORT).count(), 0);
    assert_eq!(controller.counters().idle, 10);
    assert_eq!(controller.timeout(later), None);
}

#[derive(Clone, Debug)]
enum Step {
    Open(u8, Option<(u64, u64)>),
    Close(u8),
    Congested(bool),
    Acknowledged(u8, u64),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let demand = prop::option::of((1_u64..1 << 50, 1_u64..100_000));
    prop_oneof![
        4 => (any::<u8>(), demand).prop_map(|(flow, demand)| Step::Open(flow, demand)),
        2 => any::<u8>().prop_map(Step::Close),
        2 => any::<bool>().prop_map(Step::Congested),
        1 => (any::<u8>(), any::<u64>()).prop_map(|(flow, bytes)| Step::Acknowledged(flow, bytes)),
        2 => (0_u64..2_000_000).prop_map(Step::Wait),
    ]
}

proptest! {
    /// With any sequence of reports: the switches' state is what the controller assumes, flows are in
    /// the order of their deadlines, and the sum is kept.
    #[test]
    fn the_switch_state_matches_the_controllers_table(steps in prop::collection::vec(step(), 0..120), planned: bool) {
        let config = ControllerConfig {
            method: if planned { Method::Planned } else { Method::Paper },
            ..ControllerConfig::paper()
        };
        let mut controller = controller(config);
        let mut now = Time::ZERO;
        let mut known: BTreeMap<FlowKey, u32> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Open(number, wanted) => {
                    let demand = wanted.map(|(bytes, millis)| demand(bytes, millis));
                    open(&mut controller, now, number.into(), demand);
                }
                Step::Close(number) => {
                    let flow = flow(number.into());
                    controller.receive(now, PORT.switch, SwitchReport::Closed { flow });
                }
                Step::Congested(congested) => congest(&mut controller, now, congested),
                Step::Acknowledged(number, bytes) => {
                    let acknowledged = vec![(flow(number.into()), bytes)];
                    controller.receive(now, PORT.switch, SwitchReport::Counters { acknowledged });
                }
                Step::Wait(micros) => now += Duration::from_micros(micros),
            }
            for order in orders(&mut controller, now) {
                match order {
                    WindowOrder::Allow { flow, window } => {
                        known.insert(flow, window);
                    }
                    WindowOrder::Release { flow } => {
                        known.remove(&flow);
                    }
                    _ => {}
                }
            }
            let table: BTreeMap<_, _> = controller
                .flows(PORT)
                .filter_map(|entry| Some((entry.flow, entry.window? * 1460)))
                .collect();
            prop_assert_eq!(&table, &known);
            let endless = controller.flows(PORT).filter(|entry| entry.demand.is_none()).count();
            let sum: u32 = known.values().map(|window| window / 1460).sum();
            prop_assert!(sum as usize <= 46.max(endless));
            prop_assert!(controller.flows(PORT).is_sorted_by_key(Entry::deadline));
        }
    }
}

#[test]
fn an_open_flow_may_change_its_demand() {
    let mut controller = controller(ControllerConfig::paper());
    for number in 0..60 {
        open(&mut controller, at(0), number, Some(demand(200_000, 400)));
    }
    congest(&mut controller, at(10), true);
    orders(&mut controller, at(10));
    let source = flow(7).source;
    let changed = controller.register(at(6000), source, flow(7), demand(200_000, 10));
    assert_eq!(changed, Ok(()));
    orders(&mut controller, at(6000));
    let first = controller.flows(PORT).next().unwrap();
    assert_eq!((first.flow, first.deadline()), (flow(7), at(10_000)));
    assert!(first.window.unwrap() > 10, "{first:?}");
}

#[test]
fn a_restarted_switch_is_removed_and_may_report_old_flows() {
    let config = ControllerConfig {
        remember: true,
        ..ControllerConfig::paper()
    };
    let mut controller = controller(config);
    open(&mut controller, at(0), 1, Some(demand(200_000, 400)));
    let reported = WindowOrder::Remember {
        flow: flow(1),
        demand: demand(200_000, 400),
    };
    assert_eq!(orders(&mut controller, at(0)), [reported]);
    controller.remove_switch(PORT.switch);
    assert_eq!(
        (controller.flow_count(), controller.ports().count()),
        (0, 0)
    );
    controller.demands_mut().forget(&flow(1));
    controller.add_port(PORT, Rate::from_gbps(1));
    let again = SwitchReport::Opened {
        flow: flow(1),
        port: PORT.port,
        age: Duration::from_millis(30),
        demand: Some(demand(200_000, 400)),
    };
    controller.receive(at(50_000), PORT.switch, again);
    let entry = controller.flows(PORT).next().unwrap();
    assert_eq!(entry.deadline(), at(420_000));
}

#[test]
fn slack_is_early_or_late() {
    let mut controller = controller(ControllerConfig::paper());
    open(&mut controller, at(0), 1, Some(demand(1_460_000, 400)));
    congest(&mut controller, at(10), true);
    orders(&mut controller, at(10));
    let mut entry = *controller.flows(PORT).next().unwrap();
    entry.window = Some(10);
    let rtt = Duration::from_micros(200);
    // 100 round trips.
    let slack = entry.slack(at(0), rtt);
    assert_eq!(slack, Some(Slack::Early(Duration::from_millis(380))));
    let late = entry.slack(at(390_000), rtt);
    assert_eq!(late, Some(Slack::Late(Duration::from_millis(10))));
    let later = entry.slack(at(500_000), rtt);
    assert_eq!(later, Some(Slack::Late(Duration::from_millis(120))));
}

/// Numbers that an attacker would choose.
fn hostile() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(u64::MAX),
        Just(1 << 63),
        0_u64..100_000,
        any::<u64>()
    ]
}

fn hostile_report() -> impl Strategy<Value = SwitchReport> {
    let flow = (0_u32..6).prop_map(flow);
    let port = prop_oneof![Just(1_u32), 0_u32..3, any::<u32>()];
    (0_u8..9, flow, port, hostile(), hostile(), hostile()).prop_map(
        |(kind, flow, port, one, other, third)| match kind {
            0 | 1 => SwitchReport::Opened {
                flow,
                port,
                age: Duration::from_nanos(one),
                demand: (third % 3 > 0).then_some(Demand {
                    size: ByteSize::from_bytes(other),
                    within: Duration::from_nanos(third),
                }),
            },
            2 => SwitchReport::Accepted {
                flow,
                segment: one as u32,
                reverse_port: other as u32,
            },
            3 => SwitchReport::Closed { flow },
            4 => SwitchReport::Congested { port },
            5 => SwitchReport::Recovered { port },
            6 => SwitchReport::Active {
                flow,
                port,
                segment: one as u32,
                age: Duration::from_nanos(other),
                acknowledged: third,
                demand: None,
            },
            7 => SwitchReport::Progress {
                flows: vec![crate::FlowProgress {
                    flow,
                    acknowledged: one,
                    in_flight: other as u32,
                    is_idle: third % 2 == 0,
                }],
                queues: vec![crate::QueueState {
                    port,
                    backlog: one,
                    idle: Duration::from_nanos(third),
                    in_flight: other,
                    is_window_limited: third % 2 == 0,
                }],
            },
            _ => SwitchReport::Counters {
                acknowledged: vec![(flow, one), (flow, other)],
            },
        },
    )
}

proptest! {
    /// With any reports, and any rate of a port: the controller continues, and no flow gets a larger
    /// window than the total.
    #[test]
    fn arbitrary_reports_do_not_break_the_controller(
        reports in prop::collection::vec((hostile_report(), 0_u64..3_000_000), 0..60),
        rate in hostile(),
        method in prop_oneof![Just(Method::EarliestDeadline), Just(Method::Paper), Just(Method::Planned)],
    ) {
        let config = ControllerConfig {
            method,
            remember: true,
            retransmit: true,
            ..ControllerConfig::paper()
        };
        let mut controller = Controller::new(config, DemandTable::new(Vec::new(), 1000));
        controller.add_port(PORT, Rate::from_bits_per_second(rate));
        let mut now = at(5_000_000);
        for (report, micros) in reports {
            now += Duration::from_micros(micros);
            controller.receive(now, PORT.switch, report);
            controller.handle_timeout(now);
            while controller.next_order().is_some() {}
            for entry in controller.flows(PORT) {
                let _ = (entry.slack(now, config.rtt), entry.window_size());
            }
        }
    }
}
