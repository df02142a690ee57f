use proptest::prelude::*;

use super::*;

const MICROSECOND: u64 = 1000;

fn settings(method: Method) -> AllocationSettings {
    AllocationSettings {
        method,
        total: 46,
        rtt: Duration::from_micros(560),
        rate: Rate::from_mbps(949),
        base: 1,
        late: LatePolicy::Spare,
        best_effort: 0.05,
        most: 400,
        round: 0,
    }
}

/// A flow with these remaining bytes and microseconds.
fn with_deadline(bytes: u64, micros: u64) -> FlowDemand {
    FlowDemand {
        segment: 1460,
        job: Some(Job {
            size: ByteSize::from_bytes(bytes),
            due: Duration::from_nanos(micros * MICROSECOND),
        }),
        usable: u32::MAX,
        in_flight: u32::MAX,
        expected: u32::MAX,
        is_growing: true,
    }
}

const ENDLESS: FlowDemand = FlowDemand {
    segment: 1460,
    job: None,
    usable: u32::MAX,
    in_flight: u32::MAX,
    expected: u32::MAX,
    is_growing: true,
};

#[test]
fn the_total_window_matches_the_paper() {
    // 30 packets and 25,000 bytes: 46.67 packets (section 4).
    let packet = ByteSize::from_bytes(1500);
    let rtt = Duration::from_micros(200);
    let total = total_window(packet * 30, Rate::from_gbps(1), rtt, packet);
    assert_eq!(total, 46);
}

#[test]
fn the_small_scale_flows_get_the_windows_they_need() {
    let flows = [
        with_deadline(8_000_000, 300_000),
        with_deadline(12_000_000, 800_000),
        with_deadline(30_000_000, 1_000_000),
        with_deadline(50_000_000, 3_000_000),
        with_deadline(64_000_000, 5_000_000),
        ENDLESS,
    ];
    // 10.2, 5.8, 11.5, 6.4 and 4.9 segments, and the rest.
    let windows = allocate(&settings(Method::Paper), &flows);
    assert_eq!(windows, [11, 6, 12, 7, 5, 5]);
    // With the base RTT in equation 4 they get half of what they need.
    let base = AllocationSettings {
        rtt: Duration::from_micros(200),
        ..settings(Method::Paper)
    };
    assert_eq!(allocate(&base, &flows), [4, 3, 5, 3, 2, 29]);
}

#[test]
fn flows_beyond_the_total_window_wait() {
    let mut flows = vec![with_deadline(20_000, 200_000); 60];
    let windows = allocate(&settings(Method::Paper), &flows);
    assert_eq!(windows.iter().filter(|window| **window == 1).count(), 46);
    assert!(windows[..46].iter().all(|window| *window == 1));
    // A flow without deadline is served first.
    flows.push(ENDLESS);
    let windows = allocate(&settings(Method::Paper), &flows);
    assert_eq!((windows[44], windows[45], windows[60]), (1, 0, 1));
}

#[test]
fn the_rest_goes_first_to_flows_without_deadline() {
    let late = with_deadline(5000, 0);
    let need = with_deadline(1000, 200_000);
    let paper = settings(Method::Paper);
    assert_eq!(allocate(&paper, &[late, need, ENDLESS]), [22, 1, 23]);
    assert_eq!(allocate(&paper, &[need, need, need]), [16, 15, 15]);
    let stop = AllocationSettings {
        late: LatePolicy::Stop,
        ..paper
    };
    assert_eq!(allocate(&stop, &[late, need, ENDLESS]), [0, 1, 45]);
    assert_eq!(allocate(&paper, &[]), [0_u32; 0]);
}

#[test]
fn the_base_rate_is_a_floor() {
    let flows = vec![ENDLESS; 60];
    let mut expected = vec![1; 60];
    assert_eq!(allocate(&settings(Method::Paper), &flows), expected);
    expected.push(0);
    let flows = [flows, vec![with_deadline(1000, 1000)]].concat();
    assert_eq!(allocate(&settings(Method::Planned), &flows), expected);
}

#[test]
fn turns_go_by_deadline_and_skip_flows_that_would_be_late() {
    // At 118.6 bytes per microsecond, two round trips before the deadline: the first can be in time or the
    // next two.
    let flows = [
        with_deadline(110_000, 2120),
        with_deadline(60_000, 2220),
        with_deadline(60_000, 2320),
        with_deadline(4000, 90_000),
    ];
    let windows = allocate(&settings(Method::Planned), &flows);
    // Their need exceeds a turn of 7 segments; the last flow has only three segments left.
    assert_eq!(windows, [2, 21, 20, 3]);
}

/// A flow with so many segments in flight, whose congestion window has stopped growing.
fn steady(bytes: u64, micros: u64, in_flight: u32) -> FlowDemand {
    FlowDemand {
        usable: 2 * in_flight + 10,
        in_flight,
        expected: in_flight,
        is_growing: false,
        ..with_deadline(bytes, micros)
    }
}

#[test]
fn only_flows_that_are_soon_due_lengthen_the_queue() {
    // Beside 20 waiting flows Twin may grow to 400: for the first two, not for what waits.
    let soon = FlowDemand {
        usable: 20,
        in_flight: 20,
        expected: 20,
        ..with_deadline(1_000_000, 20_000)
    };
    let mut flows = vec![soon; 2];
    flows.extend([with_deadline(1_000_000, 60_000); 20]);
    flows.push(ENDLESS);
    let windows = allocate(&settings(Method::EarliestDeadline), &flows);
    assert!(windows[0] > 46, "{windows:?}");
    assert_eq!(windows[1], 20);
    assert!(windows[2..22].iter().all(|window| *window == 1));
    // A twentieth of what will be in flight, which is 60 and itself.
    assert_eq!(windows[22], 4);
}

#[test]
fn what_a_slow_sender_leaves_is_used() {
    let slow = steady(10_000_000, 200_000, 4);
    let settings = settings(Method::EarliestDeadline);
    let windows = allocate(&settings, &[slow, ENDLESS]);
    assert_eq!(windows[1], 46 - 4);
    // While it grows, it may soon use all.
    let growing = FlowDemand {
        is_growing: true,
        ..slow
    };
    let windows = allocate(&settings, &[growing, ENDLESS]);
    assert_eq!(windows[1], 2);
    // A later one is served beside it.
    let windows = allocate(&settings, &[slow, steady(10_000_000, 300_000, 30)]);
    assert!(windows[1] > 20, "{windows:?}");
}

fn candidates() -> impl Strategy<Value = Vec<FlowDemand>> {
    let job = (any::<u64>(), 0_u64..1 << 40);
    let candidate = (1_u32..9000, prop::option::of(job)).prop_map(|(segment, job)| FlowDemand {
        segment,
        usable: u32::MAX,
        in_flight: u32::MAX,
        expected: u32::MAX,
        is_growing: true,
        job: job.map(|(size, due)| Job {
            size: ByteSize::from_bytes(size),
            due: Duration::from_nanos(due),
        }),
    });
    prop::collection::vec(candidate, 0..80).prop_map(|mut flows| {
        flows.sort_by_key(|flow| flow.job.map_or(Duration::MAX, |job| job.due));
        flows
    })
}

proptest! {
    /// The sum is Twin at most, except for the floor of flows without deadline; and nothing is left
    /// over while a flow could take it.
    #[test]
    fn the_windows_add_up_to_the_total(
        flows in candidates(),
        total in 0_u32..200,
        base in 0_u32..4,
        planned: bool,
        stop: bool,
    ) {
        let settings = AllocationSettings {
            total,
            base,
            late: if stop { LatePolicy::Stop } else { LatePolicy::Spare },
            ..settings(if planned { Method::Planned } else { Method::Paper })
        };
        let windows = allocate(&settings, &flows);
        let sum: u64 = windows.iter().copied().map(u64::from).sum();
        let endless = flows.iter().filter(|flow| flow.job.is_none()).count() as u64;
        let floor = endless * u64::from(base);
        prop_assert!(sum <= u64::from(total).max(floor));
        if endless > 0 {
            prop_assert_eq!(sum, u64::from(total).max(floor));
        }
        for (window, flow) in windows.iter().zip(&flows) {
            prop_assert!(flow.job.is_some() || *window >= base);
            if let (Some(job), LatePolicy::Stop) = (flow.job, settings.late) {
                prop_assert!(!job.due.is_zero() || *window == 0);
            }
        }
    }

    /// No flow has less than one segment.
    #[test]
    fn every_flow_has_a_segment(flows in candidates(), total in 0_u32..200, stop: bool) {
        let settings = AllocationSettings {
            total,
            late: if stop { LatePolicy::Stop } else { LatePolicy::Spare },
            ..settings(Method::EarliestDeadline)
        };
        let windows = allocate(&settings, &flows);
        prop_assert_eq!(windows.len(), flows.len());
        prop_assert!(windows.iter().all(|window| *window >= 1));
    }

    /// No flow waits for one with a later deadline that needs as much or more.
    #[test]
    fn earliest_deadline_first(flows in candidates(), total in 1_u32..200) {
        let settings = AllocationSettings { total, ..settings(Method::Paper) };
        let windows = allocate(&settings, &flows);
        let in_time = windows.iter().zip(&flows).filter_map(|(window, flow)| {
            let job = flow.job.filter(|job| !job.due.is_zero())?;
            Some((*window, flow.needed(&job, settings.rtt)))
        });
        let in_time: Vec<_> = in_time.collect();
        for (index, (window, needed)) in in_time.iter().enumerate() {
            prop_assert!(*window == 0 || window >= needed);
            let behind = &in_time[index + 1..];
            prop_assert!(*window > 0 || behind.iter().all(|(window, other)| *window == 0 || other < needed));
        }
    }
}
