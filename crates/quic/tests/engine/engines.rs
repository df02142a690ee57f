//! Several engines at one port: connection IDs name them, and stateless resets do not.

use std::num::NonZeroU8;

use crate::resets::restart;
use crate::world::{CLIENT, Plan, World};
use weir_quic::{ConnectionIdLayout, Direction, Endpoint, EndpointConfig, EndpointSecret, Route};
use weir_units::Duration;
use weir_wire::Ecn;

const ENGINES: u8 = 3;

fn config(engine: u8) -> EndpointConfig {
    let engines = NonZeroU8::new(ENGINES).unwrap();
    EndpointConfig {
        connection_ids: ConnectionIdLayout::new(8).of_engine(engine, engines),
        secret: Some(EndpointSecret::new([1; 32])),
        ..EndpointConfig::default()
    }
}

fn engines(world: &World) -> Vec<Endpoint> {
    let engine = |index| {
        let server = world.server_config();
        Endpoint::new(config(index), Some(server), [index; 32])
    };
    (0..ENGINES).map(engine).collect()
}

/// The engine that a packet with this destination ID belongs to.
fn named(id: &[u8]) -> usize {
    usize::from(id[0] % ENGINES)
}

#[test]
fn one_engine_accepts_a_client_and_the_others_name_it() {
    let mut world = World::new(Plan::default());
    let remote = world.hosts[CLIENT].addresses[0];
    for _ in 0..10 {
        let client = world.connect();
        let first = world.datagram(client);
        // Byte 5 of a long header is the length of the destination ID that follows.
        let owner = named(&first[6..]);
        for (index, engine) in engines(&world).iter_mut().enumerate() {
            let route = engine.route(world.now, remote, None, Ecn::NotEct, &mut first.clone());
            match route {
                Route::New(..) => assert_eq!(index, owner),
                Route::Engine(other) => {
                    assert!(index != owner && other == owner, "{index}: {other}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn only_the_named_engine_answers_unknown_packets_and_asks_the_others() {
    let world = World::new(Plan::default());
    let remote = world.hosts[CLIENT].addresses[0];
    for first in [0, 4, 8, 255] {
        let mut packet = vec![0x40; 100];
        packet[1] = first;
        for (index, engine) in engines(&world).iter_mut().enumerate() {
            let route = engine.route(world.now, remote, None, Ecn::NotEct, &mut packet);
            match route {
                Route::EveryEngine(reply) => {
                    assert_eq!(index, named(&[first]));
                    assert!(reply.len() < packet.len());
                }
                Route::Engine(other) => assert_eq!(other, named(&[first])),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn an_engine_recognizes_a_reset_that_another_one_received() {
    let mut world = World::new(Plan::default());
    let (client, _) = world.connected();
    let remote = world.hosts[CLIENT].addresses[0];
    world.run_for(Duration::from_millis(5));
    // The server loses its state, and answers a packet of the client's.
    let connection = world.connection(CLIENT, client);
    let stream = connection.open(Direction::Unidirectional).unwrap();
    connection.write(stream, &[1; 500]).unwrap();
    let packet = world.datagram(client);
    restart(&mut world, 2);
    let Route::Reply(reset) = world.route(remote, &packet) else {
        panic!("a stateless reset expected");
    };
    let now = world.now;
    let route = world.hosts[CLIENT].endpoint.route_reset(now, &reset);
    assert!(matches!(route, Some(Route::Connection(handle)) if handle == client));
    // One of another connection is none.
    let mut other = reset;
    *other.last_mut().unwrap() ^= 1;
    let route = world.hosts[CLIENT].endpoint.route_reset(now, &other);
    assert!(route.is_none(), "{route:?}");
}
