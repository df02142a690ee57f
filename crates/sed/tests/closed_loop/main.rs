//! Agent and controller around a switch, between senders that obey their windows: no flow stalls while
//! the link has room, whatever the channel between the two loses, delays and repeats.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod frame;
mod world;

use proptest::prelude::*;
use weir_sed::{ControllerConfig, Demand};
use weir_units::{ByteSize, Duration};

use world::{Channel, FlowPlan, MSS, World};

fn plan(size: u64, demand: Option<(u64, u64)>) -> FlowPlan {
    FlowPlan {
        start: Duration::ZERO,
        bursts: vec![(Duration::ZERO, size)],
        demand: demand.map(|(bytes, millis)| Demand {
            size: ByteSize::from_bytes(bytes),
            within: Duration::from_millis(millis),
        }),
    }
}

fn run(plans: Vec<FlowPlan>, channel: Channel, millis: u64) -> World {
    let mut world = World::new(ControllerConfig::earliest_deadline(), plans, channel);
    world.run(Duration::from_millis(millis));
    world
}

#[test]
fn a_late_flow_ends_beside_endless_ones() {
    // 1 MB takes 42 ms; its deadline is over after 20.
    let mut plans = vec![plan(1_000_000, Some((1_000_000, 20)))];
    plans.extend((0..4).map(|_| plan(50_000_000, None)));
    let world = run(plans, Channel::PERFECT, 400);
    assert_eq!(world.acknowledged(0), 1_000_000);
    assert!(world.longest_stall() <= 2.0, "{}", world.longest_stall());
}

/// What the paper's algorithm does: a late flow has no window while others need all of Twin.
#[test]
fn the_papers_algorithm_starves_a_late_flow() {
    let mut plans = vec![plan(1_000_000, Some((1_000_000, 20)))];
    plans.extend((0..40).map(|_| plan(2_000_000, Some((2_000_000, 60_000)))));
    let mut world = World::new(ControllerConfig::paper(), plans, Channel::PERFECT);
    world.run(Duration::from_millis(400));
    assert_eq!(world.smallest_window(), 0);
    assert!(world.longest_stall() > 10.0, "{}", world.longest_stall());
}

#[test]
fn a_flow_with_a_deadline_passes_flows_without() {
    let mut plans = vec![plan(4_000_000, Some((4_000_000, 200)))];
    plans.extend((0..4).map(|_| plan(50_000_000, None)));
    // It starts into their queue.
    plans[0].start = Duration::from_millis(50);
    let world = run(plans, Channel::PERFECT, 260);
    let took = world.completed(0).unwrap();
    assert!(took <= Duration::from_millis(200), "{took}");
    // Together they keep a twentieth.
    let others: u64 = (1..5).map(|flow| world.acknowledged(flow)).sum();
    assert!(others >= 25_000_000 * 210 / 1000 / 20, "{others}");
}

#[test]
fn the_window_of_an_idle_flow_goes_to_others_and_comes_back() {
    let pause = Duration::from_millis(100);
    let often_idle = FlowPlan {
        bursts: vec![(Duration::ZERO, 500_000), (pause, 500_000)],
        ..plan(0, Some((1_000_000, 10_000)))
    };
    let world = run(
        vec![often_idle, plan(50_000_000, None)],
        Channel::PERFECT,
        300,
    );
    // While it pauses, the other has all of the link.
    let (from, until) = (Duration::from_millis(60), Duration::from_millis(95));
    let carried = world.carried(1, from, until);
    let most = 25_000_000 * 35 / 1000;
    assert!(carried * 100 >= most * 85, "{carried} of {most}");
    assert_eq!(world.acknowledged(0), 1_000_000);
}

#[test]
fn flows_that_end_or_fall_silent_leave_the_table() {
    let plans = vec![plan(100_000, Some((100_000, 100))), plan(30_000, None)];
    let mut world = run(plans, Channel::PERFECT, 30);
    // The one is complete; the other may continue.
    assert_eq!(world.flows_in_table(), 1);
    world.run(Duration::from_millis(1000));
    assert_eq!(world.flows_in_table(), 0);
}

#[test]
fn a_sender_that_ignores_its_window_is_policed() {
    let mut plans = vec![
        plan(4_000_000, Some((4_000_000, 220))),
        plan(50_000_000, None),
    ];
    plans[0].start = Duration::from_millis(300);
    let mut world = World::new(
        ControllerConfig::earliest_deadline(),
        plans,
        Channel::PERFECT,
    );
    world.ignore_windows(1);
    world.run(Duration::from_millis(600));
    let took = world.completed(0).unwrap();
    assert!(took <= Duration::from_millis(220), "{took}");
    assert!(world.policed() > 0);
}

/// Hosts that wait for a processor for up to 4 ms, more than twice what the queue at the threshold lasts.
#[test]
fn the_link_stays_busy_through_the_pauses_of_hosts() {
    let plans = vec![plan(10_000_000, Some((10_000_000, 2_000)))];
    let mut world = World::new(
        ControllerConfig::earliest_deadline(),
        plans,
        Channel::PERFECT,
    );
    world.pause_hosts(Duration::from_millis(20), Duration::from_millis(4));
    world.run(Duration::from_millis(600));
    let took = world.completed(0).unwrap();
    // 10 MB take 425 ms, and the first round trips 20 more.
    assert!(took <= Duration::from_millis(450), "{took}");
}

fn flow_plan() -> impl Strategy<Value = FlowPlan> {
    let burst = (0_u64..80, 1_u64..600_000);
    let bursts = prop::collection::vec(burst, 1..4);
    let demand = prop::option::of((1_u64..2_000_000, 1_u64..300));
    (0_u64..100, bursts, demand).prop_map(|(start, bursts, demand)| FlowPlan {
        start: Duration::from_millis(start),
        bursts: bursts
            .into_iter()
            .map(|(pause, bytes)| (Duration::from_millis(pause), bytes))
            .collect(),
        ..plan(0, demand)
    })
}

fn channel() -> impl Strategy<Value = Channel> {
    (0_u8..60, 0_u64..20_000, 0_u8..50, any::<u64>()).prop_map(|(lost, micros, repeated, seed)| {
        Channel {
            lost_reports: f64::from(lost) / 100.0,
            latest: Duration::from_micros(micros),
            repeated_orders: f64::from(repeated) / 100.0,
            seed,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Whatever is lost, late or repeated: no flow that has something to send waits longer than two
    /// round trips, and every window has room for a segment.
    #[test]
    fn no_flow_stalls(plans in prop::collection::vec(flow_plan(), 1..12), channel in channel()) {
        let world = run(plans, channel, 500);
        prop_assert!(world.smallest_window() >= u64::from(MSS), "{}", world.smallest_window());
        prop_assert!(world.longest_stall() <= 2.0, "{} round trips", world.longest_stall());
    }
}
