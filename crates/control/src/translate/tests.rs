use proptest::prelude::*;
use weir_sed::{FlowProgress, QueueState, SwitchReport, WindowOrder};
use weir_wire::tcp::Sequence;

use super::*;

fn any_address() -> impl Strategy<Value = (IpAddr, IpAddr)> {
    prop_oneof![
        any::<([u8; 4], [u8; 4])>().prop_map(|(one, other)| (one.into(), other.into())),
        // IPv4-mapped addresses equal the IPv4 addresses.
        any::<([u8; 15], [u8; 15])>().prop_map(|(one, other)| {
            let six = |bytes: [u8; 15]| {
                let mut all = [0xfd; 16];
                all[1..].copy_from_slice(&bytes);
                IpAddr::from(all)
            };
            (six(one), six(other))
        }),
    ]
}

fn any_flow() -> impl Strategy<Value = FlowKey> {
    (any_address(), any::<(u16, u16, u8)>()).prop_map(|((source, destination), rest)| FlowKey {
        source,
        destination,
        source_port: rest.0,
        destination_port: rest.1,
        protocol: rest.2,
    })
}

fn any_demand() -> impl Strategy<Value = Demand> {
    (any::<u64>(), 0..=i64::MAX as u64).prop_map(|(size, within)| Demand {
        size: ByteSize::from_bytes(size),
        within: Duration::from_nanos(within),
    })
}

fn any_report() -> impl Strategy<Value = SwitchReport> {
    let flow = any_flow();
    prop_oneof![
        (
            any_flow(),
            any::<(u32, u64)>(),
            prop::option::of(any_demand())
        )
            .prop_map(|(flow, (port, age), demand)| SwitchReport::Opened {
                flow,
                port,
                age: Duration::from_nanos(age),
                demand,
            }),
        (any_flow(), any::<(u32, u32)>()).prop_map(|(flow, (segment, reverse_port))| {
            SwitchReport::Accepted {
                flow,
                segment,
                reverse_port,
            }
        }),
        any_flow().prop_map(|flow| SwitchReport::Closed { flow }),
        any::<u32>().prop_map(|port| SwitchReport::Congested { port }),
        any::<u32>().prop_map(|port| SwitchReport::Recovered { port }),
        prop::collection::vec((any_flow(), any::<u64>()), 0..5)
            .prop_map(|acknowledged| SwitchReport::Counters { acknowledged }),
        (flow, any::<u32>()).prop_map(|(flow, sequence)| SwitchReport::Dropped {
            flow,
            sequence: Sequence::new(sequence),
        }),
        (
            any_flow(),
            any::<(u32, u32, u64, u64)>(),
            prop::option::of(any_demand())
        )
            .prop_map(|(flow, (port, segment, age, acknowledged), demand)| {
                SwitchReport::Active {
                    flow,
                    port,
                    segment,
                    age: Duration::from_nanos(age),
                    acknowledged,
                    demand,
                }
            }),
        (
            prop::collection::vec((any_flow(), any::<(u64, u32, bool)>()), 0..5),
            prop::collection::vec(any::<(u32, u64, u64, u64, bool)>(), 0..3),
        )
            .prop_map(|(flows, queues)| SwitchReport::Progress {
                flows: flows.into_iter().map(progress).collect(),
                queues: queues.into_iter().map(queue).collect(),
            }),
    ]
}

fn progress(
    (flow, (acknowledged, in_flight, is_idle)): (FlowKey, (u64, u32, bool)),
) -> FlowProgress {
    FlowProgress {
        flow,
        acknowledged,
        in_flight,
        is_idle,
    }
}

fn queue(
    (port, backlog, idle, in_flight, is_window_limited): (u32, u64, u64, u64, bool),
) -> QueueState {
    QueueState {
        port,
        backlog,
        idle: Duration::from_nanos(idle),
        in_flight,
        is_window_limited,
    }
}

fn any_order() -> impl Strategy<Value = WindowOrder> {
    prop_oneof![
        (any_flow(), any::<u32>()).prop_map(|(flow, window)| WindowOrder::Allow { flow, window }),
        any_flow().prop_map(|flow| WindowOrder::Release { flow }),
        (any_flow(), any::<u32>()).prop_map(|(flow, sequence)| WindowOrder::Retransmit {
            flow,
            sequence: Sequence::new(sequence),
        }),
        Just(WindowOrder::Renew),
        Just(WindowOrder::Describe),
        (any_flow(), any_demand())
            .prop_map(|(flow, demand)| WindowOrder::Remember { flow, demand }),
    ]
}

proptest! {
    #[test]
    fn reports_round_trip(told in any_report()) {
        prop_assert_eq!(report(to_report(&told)), Ok(told));
    }

    #[test]
    fn orders_round_trip(told in any_order()) {
        prop_assert_eq!(order(to_order(&told)), Ok(told));
    }
}

#[test]
fn invalid_messages_are_decode_errors() {
    let good = v1::Flow {
        source: vec![10, 0, 0, 1],
        destination: vec![10, 0, 0, 2],
        source_port: 1,
        destination_port: 2,
        protocol: 6,
    };
    assert_eq!(flow(None), Err(DecodeError::Missing("flow")));
    let short = v1::Flow {
        source: vec![1, 2],
        ..good.clone()
    };
    assert_eq!(flow(Some(short)), Err(DecodeError::Address(2)));
    let mixed = v1::Flow {
        source: vec![0xfd; 16],
        ..good.clone()
    };
    assert_eq!(flow(Some(mixed)), Err(DecodeError::Families));
    let port = v1::Flow {
        source_port: 65_536,
        ..good.clone()
    };
    assert!(
        flow(Some(port))
            .unwrap_err()
            .to_string()
            .contains("source_port")
    );
    let protocol = v1::Flow {
        protocol: 256,
        ..good
    };
    assert!(
        flow(Some(protocol))
            .unwrap_err()
            .to_string()
            .contains("256")
    );
    let past = v1::Demand {
        size_bytes: 1,
        within_nanoseconds: -5,
    };
    assert_eq!(demand(Some(past)), Err(DecodeError::Past(-5)));
}
