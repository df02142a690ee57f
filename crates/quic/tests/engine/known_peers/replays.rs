//! Random calls, replays, forgeries, restarts and losses.

use super::*;
use crate::world::attackers::{Impostor, negotiation};

/// What happens between two calls of the property test.
#[derive(Clone, Debug)]
enum Step {
    Call,
    /// The attacker sends a recorded datagram of the client again, from this address.
    Replay {
        index: prop::sample::Index,
        elsewhere: bool,
    },
    Restart {
        secret: u8,
        has_known_peers: bool,
    },
    /// An observer answers a recorded datagram with Version Negotiation.
    Deny {
        index: prop::sample::Index,
    },
    /// Packets reach an attacker without a certificate for a while.
    Impostor {
        reduced: bool,
        millis: u64,
    },
    /// The server forgets all secrets, as it does where its table is full.
    Forget,
    Wait {
        millis: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Call),
        3 => (any::<prop::sample::Index>(), any::<bool>())
            .prop_map(|(index, elsewhere)| Step::Replay { index, elsewhere }),
        1 => (2..5_u8, prop::bool::weighted(0.8))
            .prop_map(|(secret, has_known_peers)| Step::Restart { secret, has_known_peers }),
        2 => any::<prop::sample::Index>().prop_map(|index| Step::Deny { index }),
        1 => (any::<bool>(), 0..5_u64)
            .prop_map(|(reduced, millis)| Step::Impostor { reduced, millis }),
        1 => Just(Step::Forget),
        2 => (0..40_u64).prop_map(|millis| Step::Wait { millis }),
    ]
}

proptest! {
    /// No request is executed twice, and none is lost without an error.
    #[test]
    fn no_request_is_executed_twice_and_none_is_lost_without_an_error(
        steps in prop::collection::vec(step(), 1..25),
        seed in 0..1_000_000_u64,
        loss in 0..20_u32,
        duplication in 0..20_u32,
        reordering in 0..20_u32,
    ) {
        let share = |percent: u32| Probability::new(f64::from(percent) / 100.0).unwrap();
        let mut world = known_world(Plan { seed, ..Plan::default() });
        world.set_faults(FaultSettings {
            loss: share(loss),
            duplication: share(duplication),
            reordering: Reordering {
                probability: share(reordering),
                delay: Duration::from_micros(300),
            },
            ..FaultSettings::default()
        });
        let mut executions = Executions::default();
        let mut calls: Vec<Call> = Vec::new();
        let mut recorded: Vec<(ConnectionHandle, Vec<u8>)> = Vec::new();
        for step in steps {
            calls.iter_mut().for_each(|call| {
                call.poll(&mut world);
            });
            match step {
                Step::Call => {
                    let connection = world.connect();
                    // The handle of an earlier connection has no events any more.
                    world.hosts[CLIENT].events.retain(|(of, _)| *of != connection);
                    if !world.connection(CLIENT, connection).is_known_peer() {
                        world.run_until(Duration::from_secs(5), |world| {
                            executions.serve(world);
                            let client = world.hosts[CLIENT].connections.get(&connection);
                            client.is_none_or(|client| client.is_established())
                        });
                    }
                    let client = world.hosts[CLIENT].connections.get(&connection);
                    if client.is_some_and(|client| client.is_established()) {
                        let number = calls.len() as u32;
                        calls.push(Call::on(&mut world, connection, number));
                        let mut buffer = Vec::new();
                        let now = world.now;
                        let client = world.connection(CLIENT, connection);
                        if client.poll_transmit(now, &mut buffer, 1).is_some() {
                            // The original may be lost; the attacker has it.
                            if !number.is_multiple_of(3) {
                                let source = world.hosts[CLIENT].addresses[0];
                                deliver(&mut world, source, &buffer);
                            }
                            recorded.push((connection, buffer));
                        }
                    }
                }
                Step::Replay { index, elsewhere } if !recorded.is_empty() => {
                    let (_, datagram) = index.get(&recorded).clone();
                    let source = if elsewhere {
                        SocketAddr::from(([10, 0, 0, 66], 1))
                    } else {
                        world.hosts[CLIENT].addresses[0]
                    };
                    deliver(&mut world, source, &datagram);
                }
                Step::Replay { .. } => {}
                Step::Deny { index } if !recorded.is_empty() => {
                    let (connection, datagram) = index.get(&recorded);
                    if world.hosts[CLIENT].connections.contains_key(connection) {
                        world.inject(*connection, negotiation(datagram, &[1]));
                    }
                }
                Step::Deny { .. } => {}
                Step::Impostor { reduced, millis } => {
                    let end = world.now + Duration::from_millis(millis);
                    let server = Impostor::begin(&mut world, reduced);
                    world.run_until(Duration::from_millis(millis), |world| {
                        world.transmit();
                        false
                    });
                    world.now = end;
                    server.end(&mut world);
                }
                Step::Forget => {
                    if let Some(clients) = world.server_config().known_clients {
                        clients.clear(world.now);
                    }
                }
                Step::Restart { secret, has_known_peers } => {
                    world.restart_server(secret, has_known_peers);
                    executions.restart();
                }
                Step::Wait { millis } => {
                    let end = world.now + Duration::from_millis(millis);
                    world.run_until(Duration::from_millis(millis), |world| {
                        executions.serve(world);
                        world.transmit();
                        calls.iter_mut().for_each(|call| {
                            call.poll(world);
                        });
                        false
                    });
                    world.now = end;
                }
            }
        }
        world.run_until(Duration::from_secs(60), |world| {
            executions.serve(world);
            world.transmit();
            calls.iter_mut().filter_map(|call| (!call.poll(world)).then_some(())).count() == 0
        });
        for (request, count) in &executions.counts {
            prop_assert_eq!(*count, 1, "request {:?}", &request[..4]);
        }
        for call in &calls {
            prop_assert!(
                call.is_answered || call.is_over,
                "a call was lost without an error"
            );
            if call.is_answered {
                prop_assert!(executions.counts.contains_key(&call.request));
            }
        }
    }
}

/// Passes a datagram to the server.
fn deliver(world: &mut World, source: SocketAddr, datagram: &[u8]) {
    let now = world.now;
    let mut bytes = datagram.to_vec();
    let host = &mut world.hosts[SERVER];
    match host.endpoint.route(
        now,
        source,
        Some(host.addresses[0]),
        Ecn::NotEct,
        &mut bytes,
    ) {
        Route::Connection(handle) => {
            if let Some(connection) = host.connections.get_mut(&handle) {
                connection.handle_datagram(
                    now,
                    source,
                    Some(host.addresses[0]),
                    Ecn::NotEct,
                    &mut bytes,
                );
                connection.end_batch(now);
            }
        }
        Route::New(handle, connection) => {
            host.connections.insert(handle, *connection);
        }
        _ => {}
    }
}
