use proptest::prelude::*;

use super::search::MAX_SIZES;
use super::*;

const RAISE: Duration = Duration::from_secs(600);
const ROUND_TRIP: Duration = Duration::from_millis(1);

fn plan(start: usize, limit: usize) -> MtuPlan {
    MtuPlan {
        start,
        limit,
        headers: 28,
        limit_first: false,
        is_searched: false,
        raise_interval: RAISE,
    }
}

fn started_discovery(start: usize, limit: usize) -> MtuDiscovery {
    let mut discovery = MtuDiscovery::new();
    discovery.begin(Time::ZERO, plan(start, limit));
    discovery
}

fn at(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

/// Runs the search over a path that carries `carried` bytes; returns the sizes of the probes.
fn search(discovery: &mut MtuDiscovery, now: Time, carried: usize) -> Vec<usize> {
    let mut probes = Vec::new();
    while let Some(size) = discovery.next_probe(now) {
        probes.push(size);
        assert!(probes.len() < 100, "an endless search: {probes:?}");
        discovery.on_probe_sent();
        assert_eq!(discovery.next_probe(now), None, "two probes at once");
        if size <= carried {
            discovery.on_probe_acked(size)
        } else {
            discovery.on_probe_lost(size)
        }
    }
    probes
}

/// Loses full packets from `number` on until discovery falls back; returns the number of losses.
fn lose_until_black_hole(discovery: &mut MtuDiscovery, mut number: u64, size: usize) -> u64 {
    let first = number;
    while !discovery.on_lost(number, size, at(number), ROUND_TRIP) {
        number += 1;
        assert!(number < first + 100, "not detected");
    }
    number - first + 1
}

#[test]
fn no_probe_is_sent_before_the_peers_limit_is_known() {
    let mut discovery = MtuDiscovery::new();
    assert_eq!(discovery.phase, MtuPhase::Disabled);
    assert_eq!(discovery.next_probe(at(1)), None);
    assert_eq!(discovery.current, BASE);
}

#[test]
fn a_configured_size_applies_at_once_without_probing() {
    let mut discovery = started_discovery(8972, 8972);
    assert_eq!(discovery.current, 8972);
    assert_eq!(discovery.next_probe(at(1)), None);
    assert_eq!(discovery.phase, MtuPhase::SearchComplete);
}

#[test]
fn common_mtu_sizes_are_probed_first() {
    let mut discovery = started_discovery(1200, 8972);
    assert_eq!(
        search(&mut discovery, at(1), 8972),
        [1252, 1452, 1472, 4068, 8972]
    );
    assert_eq!(discovery.current, 8972);
    let mut discovery = started_discovery(1200, 1452);
    assert_eq!(search(&mut discovery, at(1), 1452), [1252, 1452]);
    let mut discovery = MtuDiscovery::new();
    discovery.begin(
        Time::ZERO,
        MtuPlan {
            headers: 48,
            ..plan(1200, 8952)
        },
    );
    assert_eq!(
        search(&mut discovery, at(1), 8952),
        [1232, 1432, 1452, 4048, 8952]
    );
}

#[test]
fn an_uncommon_mtu_is_found_by_binary_search() {
    let mut discovery = started_discovery(1200, 1452);
    let probes = search(&mut discovery, at(1), 1372);
    assert_eq!(probes[..4], [1252, 1452, 1452, 1452]);
    assert!(
        (1346..=1372).contains(&discovery.current),
        "{}",
        discovery.current
    );
    assert_eq!(discovery.phase, MtuPhase::SearchComplete);
}

#[test]
fn fewer_than_max_probes_lost_is_not_a_failure() {
    let mut discovery = started_discovery(1200, 1452);
    for _ in 0..MAX_PROBES - 1 {
        assert_eq!(discovery.next_probe(at(1)), Some(1252));
        discovery.on_probe_sent();
        discovery.on_probe_lost(1252);
    }
    assert_eq!(discovery.next_probe(at(1)), Some(1252));
    discovery.on_probe_sent();
    discovery.on_probe_acked(1252);
    assert_eq!(discovery.current, 1252);
}

#[test]
fn a_probe_on_an_abandoned_path_is_sent_again() {
    let mut discovery = started_discovery(1200, 1452);
    assert_eq!(discovery.next_probe(at(1)), Some(1252));
    discovery.on_probe_sent();
    discovery.on_path_left();
    assert_eq!(discovery.next_probe(at(1)), Some(1252));
    assert_eq!(discovery.stats.probes_lost, 0);
}

#[test]
fn outcomes_of_stale_probes_are_ignored() {
    let mut discovery = started_discovery(1200, 1452);
    discovery.on_probe_acked(1452);
    discovery.on_probe_lost(1252);
    assert_eq!(discovery.current, 1200);
    assert_eq!(discovery.next_probe(at(1)), Some(1252));
    // Reported lost without having been sent.
    (0..10).for_each(|_| discovery.on_probe_lost(1252));
    assert_eq!(discovery.next_probe(at(1)), Some(1252));
}

#[test]
fn the_raise_timer_searches_again() {
    let mut discovery = started_discovery(1200, 1452);
    search(&mut discovery, at(1), 1200);
    assert_eq!(discovery.current, 1200);
    let raised = at(1) + RAISE;
    assert_eq!(
        discovery.next_probe(raised - Duration::from_millis(1)),
        None
    );
    search(&mut discovery, raised, 1452);
    assert_eq!(discovery.current, 1452);
}

#[test]
fn an_unconfirmed_size_is_probed_again() {
    let mut discovery = started_discovery(1452, 1452);
    search(&mut discovery, at(1), 1452);
    assert_eq!(search(&mut discovery, at(1) + RAISE, 1452), [1452]);
    // Confirmed by that probe: the next round sends none.
    assert!(search(&mut discovery, at(1) + RAISE * 2, 1452).is_empty());
    // Not confirmed in that round; the path MTU has decreased meanwhile.
    let probes = search(&mut discovery, at(1) + RAISE * 3, 1300);
    assert_eq!(probes[..3], [1452; 3]);
    assert!((1252..=1300).contains(&discovery.current));
    assert_eq!(discovery.stats.black_holes, 1);
}

#[test]
fn the_size_follows_the_interface_limit_down_and_up() {
    let mut discovery = started_discovery(8972, 8972);
    discovery.next_probe(at(0));
    discovery.set_limit(1472);
    assert_eq!((discovery.current, discovery.limit()), (1472, 1472));
    assert_eq!(search(&mut discovery, at(1), 1472), []);
    // Losses of larger packets sent earlier are not evidence.
    for number in 0..10 {
        assert!(!discovery.on_lost(number, 8972, at(number), ROUND_TRIP));
    }
    assert_eq!(discovery.stats.black_holes, 0);
    discovery.set_limit(8972);
    assert_eq!(discovery.current, 1472);
    assert_eq!(search(&mut discovery, at(2), 8972), [4068, 8972]);
    // The same limit starts no search.
    discovery.set_limit(8972);
    assert_eq!(discovery.phase, MtuPhase::SearchComplete);
    discovery.set_limit(100);
    assert_eq!((discovery.current, discovery.limit()), (BASE, BASE));
}

#[test]
fn zero_turns_the_raise_timer_off() {
    let mut discovery = MtuDiscovery::new();
    discovery.begin(
        Time::ZERO,
        MtuPlan {
            raise_interval: Duration::ZERO,
            ..plan(1200, 1452)
        },
    );
    search(&mut discovery, at(1), 1200);
    assert_eq!(discovery.next_probe(Time::MAX), None);
}

#[test]
fn losses_of_large_packets_while_small_ones_pass_are_a_black_hole() {
    let mut discovery = started_discovery(8972, 8972);
    search(&mut discovery, at(0), 8972);
    assert_eq!(lose_until_black_hole(&mut discovery, 10, 8972), 3);
    assert_eq!(discovery.current, BASE);
    assert_eq!(discovery.phase, MtuPhase::Searching);
    // The rest of the flight changes nothing.
    assert!(!discovery.on_lost(14, 8972, at(14), ROUND_TRIP));
    search(&mut discovery, at(20), 1472);
    assert_eq!(discovery.current, 1472);
}

#[test]
fn losses_within_one_round_trip_are_congestion() {
    let mut discovery = started_discovery(8972, 8972);
    for number in 0..50 {
        assert!(!discovery.on_lost(number, 8972, at(5), ROUND_TRIP));
    }
    // The next flight arrives.
    discovery.on_acked(60, 8972);
    for number in 61..63 {
        assert!(!discovery.on_lost(number, 8972, at(number), ROUND_TRIP));
    }
}

#[test]
fn losses_before_a_delivered_packet_of_equal_size_are_congestion() {
    let mut discovery = started_discovery(8972, 8972);
    discovery.on_acked(100, 8972);
    for number in 0..100 {
        assert!(!discovery.on_lost(number, 8972, at(number), ROUND_TRIP));
    }
    // Smaller packets do not explain the loss.
    discovery.on_acked(200, 1300);
    assert_eq!(lose_until_black_hole(&mut discovery, 101, 8972), 3);
}

#[test]
fn losses_of_small_packets_are_ignored() {
    let mut discovery = started_discovery(8972, 8972);
    for number in 0..100 {
        assert!(!discovery.on_lost(number, BASE, at(number), ROUND_TRIP));
    }
}

#[test]
fn the_size_recovers_from_three_false_black_holes_but_not_from_four() {
    let mut discovery = started_discovery(1452, 1452);
    for alarm in 0..3 {
        lose_until_black_hole(&mut discovery, 10 * alarm, 1452);
        search(&mut discovery, at(10 * alarm), 1452);
        assert_eq!(discovery.current, 1452);
    }
    lose_until_black_hole(&mut discovery, 30, 1452);
    search(&mut discovery, at(40), 1452);
    assert!(discovery.current < 1452);
    search(&mut discovery, at(40) + RAISE, 1452);
    assert_eq!(discovery.current, 1452);
}

#[test]
fn a_probe_lost_with_other_packets_says_little() {
    let mut discovery = started_discovery(1200, 1452);
    let lose = |discovery: &mut MtuDiscovery, is_losing: bool| {
        let size = discovery.next_probe(at(1)).unwrap();
        discovery.on_probe_sent();
        if is_losing {
            discovery.on_lost(7, BASE, at(1), ROUND_TRIP);
        }
        discovery.on_probe_lost(size);
        size
    };
    let first = lose(&mut discovery, true);
    for _ in 0..8 {
        assert_eq!(lose(&mut discovery, true), first);
    }
    for _ in 0..3 {
        assert_eq!(lose(&mut discovery, false), first);
    }
    assert!(discovery.next_probe(at(1)).unwrap() < first);
}

#[test]
fn a_size_rejected_by_the_interface_is_abandoned_at_once() {
    let mut discovery = started_discovery(1200, 8972);
    assert_eq!(discovery.next_probe(at(1)), Some(1252));
    discovery.on_probe_sent();
    assert!(!discovery.on_too_large(1252));
    assert!(discovery.next_probe(at(1)).unwrap() < 1252);

    let mut discovery = started_discovery(8972, 8972);
    assert!(discovery.on_too_large(8972));
    assert_eq!(discovery.current, BASE);
    let probes = search(&mut discovery, at(1), 1472);
    assert!(probes.iter().all(|&size| size < 8972), "{probes:?}");
    assert!(!discovery.on_too_large(BASE), "nothing to fall back to");
}

#[derive(Clone, Debug)]
enum Event {
    Wait(u64),
    Probe { carried: usize },
    Sent,
    ProbeAcked(usize),
    ProbeLost(usize),
    Acked { number: u64, size: usize },
    Lost { number: u64, size: usize },
    TooLarge(usize),
}

fn event() -> impl Strategy<Value = Event> {
    let size = prop_oneof![1000..2000usize, 1000..70_000usize, Just(1200), Just(1452)];
    prop_oneof![
        (0..900_000u64).prop_map(Event::Wait),
        (1200..70_000usize).prop_map(|carried| Event::Probe { carried }),
        Just(Event::Sent),
        size.clone().prop_map(Event::ProbeAcked),
        size.clone().prop_map(Event::ProbeLost),
        (0..1000u64, size.clone()).prop_map(|(number, size)| Event::Acked { number, size }),
        (0..1000u64, size.clone()).prop_map(|(number, size)| Event::Lost { number, size }),
        size.prop_map(Event::TooLarge),
    ]
}

proptest! {
    /// Any order of events: no panic, and every size is between the base and the limit.
    #[test]
    fn sizes_stay_within_bounds(
        start in 0..70_000usize,
        limit in 0..70_000usize,
        events in prop::collection::vec(event(), 0..200),
    ) {
        let mut discovery = started_discovery(start, limit);
        let limit = limit.max(BASE);
        let mut now = Time::ZERO;
        for event in events {
            let probe = discovery.next_probe(now);
            match event {
                Event::Wait(millis) => now += Duration::from_millis(millis),
                Event::Probe { carried } => if let Some(size) = probe {
                    discovery.on_probe_sent();
                    if size <= carried { discovery.on_probe_acked(size) } else { discovery.on_probe_lost(size) }
                },
                Event::Sent => discovery.on_probe_sent(),
                Event::ProbeAcked(size) => discovery.on_probe_acked(size),
                Event::ProbeLost(size) => discovery.on_probe_lost(size),
                Event::Acked { number, size } => discovery.on_acked(number, size),
                Event::Lost { number, size } => {
                    let fell = discovery.on_lost(number, size, now, ROUND_TRIP);
                    prop_assert!(!fell || discovery.current == BASE);
                }
                Event::TooLarge(size) => {
                    let fell = discovery.on_too_large(size);
                    prop_assert!(!fell || discovery.current == BASE);
                }
            }
            prop_assert!((BASE..=limit).contains(&discovery.current));
            if let Some(size) = discovery.next_probe(now) {
                prop_assert!((BASE + 1..=limit).contains(&size));
            }
        }
    }

    /// A search ends, within a bounded number of probes, at a size that the path carries and close
    /// to the largest one.
    #[test]
    fn a_search_finds_what_the_path_carries(
        start in 1200..1453usize,
        limit in 1200..65_528usize,
        carried in 1200..65_528usize,
    ) {
        let start = start.min(limit).min(carried);
        let mut discovery = started_discovery(start, limit);
        let probes = search(&mut discovery, Time::ZERO, carried);
        prop_assert_eq!(discovery.phase, MtuPhase::SearchComplete);
        let mut sizes = probes.clone();
        sizes.dedup();
        prop_assert!(sizes.len() <= usize::from(MAX_SIZES));
        let largest = limit.min(carried);
        let found = discovery.current;
        prop_assert!((start..=largest).contains(&found));
        // Beyond jumbo frames the bounded number of probes leaves more.
        let tolerance = if largest <= 8972 { found / 4 } else { found };
        prop_assert!(largest - found <= tolerance.max(16), "{} of {}", found, largest);
    }
}
