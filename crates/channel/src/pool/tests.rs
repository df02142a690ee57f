use std::future::{Future, pending};

use proptest::prelude::*;
use weir_net::ConnectionError;
use weir_units::Duration;

use super::*;

const NOW: Time = Time::from_nanos(1);

/// A connection that may be usable.
impl Link for bool {
    fn is_usable(&self) -> bool {
        *self
    }

    fn draining(&self) -> impl Future<Output = ()> + Send {
        pending()
    }

    fn error(&self) -> Option<ConnectionError> {
        None
    }
}

fn address(index: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, index as u8], 1))
}

fn pool(balancing: Balancing, states: impl IntoIterator<Item = LinkState<bool>>) -> Pool<bool> {
    let mut pool = Pool::new(balancing, 1, Arc::new(Sources::new().unwrap()));
    let states: Vec<_> = states.into_iter().collect();
    let addresses: Vec<_> = (0..states.len()).map(address).collect();
    assert_eq!(pool.set_addresses(&addresses).0, addresses);
    for (index, state) in states.into_iter().enumerate() {
        pool.set_state(address(index), state);
    }
    pool
}

fn server(pool: &Pool<bool>, index: usize) -> &Server {
    pool.members()[index].server()
}

fn now() -> Time {
    NOW
}

fn ready() -> LinkState<bool> {
    LinkState::Ready(true)
}

fn failed() -> LinkState<bool> {
    LinkState::Failed("refused".to_owned())
}

fn picked(pick: Pick<bool>) -> (SocketAddr, Outstanding) {
    match pick {
        Pick::Ready { call, .. } => (call.server().address, call),
        other => panic!("{other:?}"),
    }
}

#[test]
fn pick_first_takes_the_first_that_is_ready() {
    let pool = pool(Balancing::PickFirst, [failed(), ready(), ready()]);
    for _ in 0..3 {
        assert_eq!(picked(pool.pick(&[], now)).0, address(1));
    }
    assert_eq!(picked(pool.pick(&[address(1)], now)).0, address(2));
}

#[test]
fn pick_first_wants_connections_up_to_the_first_that_is_ready() {
    let wanted = |states: [LinkState<bool>; 3]| pool(Balancing::PickFirst, states).wanted();
    let (idle, connecting) = (|| LinkState::Idle, || LinkState::Connecting);
    assert_eq!(wanted([idle(), idle(), idle()]), 1);
    assert_eq!(wanted([connecting(), idle(), idle()]), 1);
    assert_eq!(wanted([failed(), idle(), idle()]), 2);
    assert_eq!(wanted([failed(), connecting(), idle()]), 2);
    assert_eq!(wanted([failed(), failed(), failed()]), 3);
    // The second stays while the first is tried again.
    assert_eq!(wanted([connecting(), ready(), idle()]), 2);
    assert_eq!(wanted([ready(), ready(), idle()]), 1);
    // A connection that drains is as good as none.
    assert_eq!(wanted([LinkState::Ready(false), idle(), idle()]), 1);
    assert_eq!(pool(Balancing::RoundRobin, [idle(), idle()]).wanted(), 2);
}

#[test]
fn round_robin_takes_each_in_turn() {
    let pool = pool(Balancing::RoundRobin, [ready(), failed(), ready(), ready()]);
    let order: Vec<_> = (0..6).map(|_| picked(pool.pick(&[], now)).0).collect();
    let expected = [0, 2, 3, 0, 2, 3].map(address);
    assert_eq!(order, expected);
}

#[test]
fn least_loaded_takes_the_one_with_fewer_calls() {
    let pool = pool(Balancing::LeastLoaded, [ready(), ready()]);
    let mut calls = Vec::new();
    for _ in 0..100 {
        calls.push(picked(pool.pick(&[], now)));
        let load = |index: usize| server(&pool, index).outstanding();
        assert!(load(0).abs_diff(load(1)) <= 1);
    }
    drop(calls);
    assert_eq!(server(&pool, 0).outstanding(), 0);
}

#[test]
fn a_server_that_was_tried_is_the_last_choice() {
    let pool = pool(Balancing::RoundRobin, [ready(), ready()]);
    for _ in 0..3 {
        assert_eq!(picked(pool.pick(&[address(0)], now)).0, address(1));
    }
    picked(pool.pick(&[address(0), address(1)], now));
}

#[test]
fn an_unhealthy_server_is_avoided_while_there_is_another() {
    let mut pool = pool(Balancing::RoundRobin, [ready(), ready()]);
    for _ in 0..5 {
        server(&pool, 0).on_failure_at(NOW, 0);
    }
    for _ in 0..3 {
        assert_eq!(picked(pool.pick(&[], now)).0, address(1));
    }
    pool.set_state(address(1), failed());
    assert_eq!(picked(pool.pick(&[], now)).0, address(0));
    pool.set_state(address(1), ready());
    server(&pool, 0).on_answer();
    let order = [(); 2].map(|()| picked(pool.pick(&[], now)).0);
    assert_ne!(order[0], order[1]);
    for _ in 0..5 {
        server(&pool, 0).on_failure_at(NOW, 0);
    }
    let later = NOW + Duration::from_secs(1);
    let order = [(); 2].map(|()| picked(pool.pick(&[], || later)).0);
    assert_ne!(order[0], order[1]);
}

#[test]
fn calls_wait_while_a_connection_may_come_and_fail_where_none_can() {
    let waiting = pool(Balancing::LeastLoaded, [failed(), LinkState::Connecting]);
    assert!(matches!(waiting.pick(&[], now), Pick::Wait));
    let draining = pool(Balancing::LeastLoaded, [LinkState::Ready(false)]);
    assert!(matches!(draining.pick(&[], now), Pick::Wait));
    let none = pool(Balancing::LeastLoaded, [failed(), failed()]);
    let Pick::Failed(reason) = none.pick(&[], now) else {
        panic!("there is a server");
    };
    assert_eq!(reason, "10.0.0.1:1: refused");
    let empty = pool(Balancing::LeastLoaded, []);
    assert!(matches!(empty.pick(&[], now), Pick::Failed(_)));
}

#[test]
fn servers_that_stay_keep_their_state() {
    let mut pool = pool(Balancing::RoundRobin, [ready(), ready()]);
    let (_, call) = picked(pool.pick(&[], now));
    let (added, removed) = pool.set_addresses(&[address(2), address(0)]);
    assert_eq!((added, removed.len()), (vec![address(2)], 1));
    assert_eq!(server(&pool, 1).outstanding(), 1);
    assert_eq!(picked(pool.pick(&[], now)).0, address(0));
    drop(call);
    assert_eq!(server(&pool, 1).outstanding(), 0);
    // What is reported about a server that is gone is forgotten.
    pool.set_state(address(1), ready());
    assert_eq!(pool.members().len(), 2);
}

fn state() -> impl Strategy<Value = LinkState<bool>> {
    prop_oneof![
        Just(LinkState::Idle),
        Just(LinkState::Connecting),
        any::<bool>().prop_map(LinkState::Ready),
        Just(failed()),
    ]
}

fn balancing() -> impl Strategy<Value = Balancing> {
    prop_oneof![
        Just(Balancing::PickFirst),
        Just(Balancing::RoundRobin),
        Just(Balancing::LeastLoaded),
    ]
}

proptest! {
    #[test]
    fn a_pick_is_usable_and_new_where_there_is_one(
        balancing in balancing(),
        states in prop::collection::vec(state(), 0..8),
        tried in prop::collection::vec(0usize..8, 0..8),
        picks in 1..10,
        seed: u64,
    ) {
        let usable: Vec<_> = states.iter().enumerate()
            .filter(|(_, state)| matches!(state, LinkState::Ready(true)))
            .map(|(index, _)| address(index))
            .collect();
        let tried: Vec<_> = tried.into_iter().map(address).collect();
        let has_new = usable.iter().any(|address| !tried.contains(address));
        let may_come = !states.iter().all(|state| matches!(state, LinkState::Failed(_)));
        let mut pool = pool(balancing, states);
        pool.choices = Choices::new(seed);
        for _ in 0..picks {
            match pool.pick(&tried, now) {
                Pick::Ready { call, .. } => {
                    let address = call.server().address;
                    prop_assert!(usable.contains(&address));
                    prop_assert!(!has_new || !tried.contains(&address));
                }
                Pick::Wait => prop_assert!(usable.is_empty() && may_come),
                Pick::Failed(_) => prop_assert!(usable.is_empty() && !may_come),
            }
        }
        prop_assert!(pool.wanted() <= pool.members().len());
    }
}

/// Each server whose connection is usable is chosen as often as the others, also beside one that is
/// not.
#[test]
fn least_loaded_spreads_calls_evenly_over_those_that_are_ready() {
    for states in [
        vec![ready(), ready(), ready(), ready()],
        vec![
            failed(),
            ready(),
            ready(),
            LinkState::Connecting,
            ready(),
            ready(),
        ],
    ] {
        let pool = pool(Balancing::LeastLoaded, states);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..4_000 {
            *counts.entry(picked(pool.pick(&[], now)).0).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 4);
        let is_fair = |count: &i32| (900..1_100).contains(count);
        assert!(counts.values().all(is_fair), "{counts:?}");
    }
}
