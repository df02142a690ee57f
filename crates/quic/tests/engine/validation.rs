//! Retry and address validation tokens between two endpoints.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::world::{CLIENT, Plan, SERVER, World};
use proptest::prelude::*;
use weir_fabric::{Script, Verdict};
use weir_quic::crypto::Provider;
use weir_quic::crypto::seeded::SeededClient;
use weir_quic::frame;
use weir_quic::packet::{self, Header, Kind, LongFields, LongKind};
use weir_quic::{
    Code, ConnectionError, ConnectionHandle, ConnectionId, Direction, Endpoint, EndpointConfig,
    EndpointEvent, EndpointSecret, Event, RetryPolicy, Route, Side, TokenStore, TransportError,
    Version,
};
use weir_units::Duration;
use weir_wire::Ecn;

const ROUND_TRIP: Duration = Duration::from_micros(50);

fn retry_always_plan() -> Plan {
    Plan {
        retry: RetryPolicy::Always,
        ..Plan::default()
    }
}

/// Whether a handshake took this many round trips.
fn took(world: &mut World, client: ConnectionHandle, round_trips: u64) -> bool {
    let handshake = world.connection(CLIENT, client).stats().handshake.unwrap();
    (ROUND_TRIP * round_trips..ROUND_TRIP * (round_trips + 1)).contains(&handshake)
}

fn kind(datagram: &[u8]) -> Kind {
    Header::decode(datagram, 8).unwrap().kind
}

#[test]
fn a_retry_costs_one_round_trip_and_a_token_avoids_it() {
    let mut world = World::new(retry_always_plan());
    let (client, server) = world.connected();
    assert!(took(&mut world, client, 2));
    assert!(world.moves_data(client, server));
    for _ in 0..3 {
        assert_eq!(world.tokens.len(), 1);
        let (client, server) = world.connected();
        assert!(took(&mut world, client, 1));
        assert!(world.moves_data(client, server));
    }
}

#[test]
fn an_unreachable_client_gets_no_connection() {
    let mut world = World::new(retry_always_plan());
    world.nat = Some(SocketAddr::from(([10, 0, 0, 9], 0)));
    world.connect();
    world.run_for(Duration::from_secs(1));
    let server = &world.hosts[SERVER];
    assert!(server.connections.is_empty() && server.endpoint.counters().retries == 0);
    world.nat = None;
    world.connected();
}

#[test]
fn a_retry_survives_loss_or_duplication_of_any_packet() {
    for verdict in [Verdict::Drop, Verdict::Duplicate] {
        for host in [CLIENT, SERVER] {
            for number in 0..6 {
                let mut world = World::new(retry_always_plan());
                let now = world.now;
                world.egress_ports[host].set_script(now, Some(Script::nth([number], verdict)));
                let (client, server) = world.connected();
                assert!(
                    world.moves_data(client, server),
                    "{verdict:?} of packet {number} of host {host}"
                );
            }
        }
    }
}

/// Builds a Retry packet with a valid tag in answer to a client's datagram, as an observer could.
fn forged_retry(datagram: &[u8], original: ConnectionId, source: u8, token: &[u8]) -> Vec<u8> {
    let header = Header::decode(datagram, 8).unwrap();
    let source = ConnectionId::new(&[source; 8]).unwrap();
    let mut retry = Vec::new();
    packet::write_retry(&mut retry, Version::V1, &header.source, &source, token, 0);
    let tag = SeededClient::new(0).retry_tag(Version::V1, &original, &retry);
    retry.extend_from_slice(&tag);
    retry
}

#[test]
fn only_the_first_retry_with_a_valid_tag_is_accepted() {
    let mut world = World::new(Plan::default());
    let client = world.connect();
    let first = world.datagram(client);
    let original = Header::decode(&first, 8).unwrap().destination;
    let mut wrong = forged_retry(&first, original, 1, b"wrong");
    *wrong.last_mut().unwrap() ^= 1;
    world.inject(client, wrong);
    for (source, token) in [(2, b"one"), (3, b"two")] {
        let retry = forged_retry(&first, original, source, token);
        world.inject(client, retry);
    }
    let second = world.datagram(client);
    let header = Header::decode(&second, 8).unwrap();
    assert_eq!(&second[header.token.clone()], b"one");
    assert_eq!(header.destination.as_bytes(), [2; 8]);
    assert_eq!(
        world.connection(CLIENT, client).stats().packets_dropped,
        2,
        "the wrong one and the second one"
    );
}

/// Returns the client's datagrams that are due now.
fn all_datagrams(world: &mut World, client: ConnectionHandle) -> Vec<Vec<u8>> {
    let now = world.now;
    let connection = world.connection(CLIENT, client);
    let next = || {
        let mut datagram = Vec::new();
        connection.poll_transmit(now, &mut datagram, 1)?;
        Some(datagram)
    };
    std::iter::from_fn(next).collect()
}

#[test]
fn a_long_retry_token_leaves_room_for_the_handshake() {
    let mut world = World::new(Plan::default());
    let client = world.connect();
    let first = world.datagram(client);
    let original = Header::decode(&first, 8).unwrap().destination;
    // Whatever is longer is dropped, and a shorter one is accepted after it.
    for length in [1105, 1150, 60_000] {
        let token = vec![7; length];
        world.inject(client, forged_retry(&first, original, 1, &token));
        assert_eq!(all_datagrams(&mut world, client), Vec::<Vec<u8>>::new());
    }
    assert_eq!(world.connection(CLIENT, client).stats().packets_dropped, 3);
    let token = vec![7; 1104];
    world.inject(client, forged_retry(&first, original, 2, &token));
    let datagrams = all_datagrams(&mut world, client);
    // The ClientHello takes several packets, each with the token.
    assert!(datagrams.len() > 1, "{}", datagrams.len());
    for datagram in &datagrams {
        let header = Header::decode(datagram, 8).unwrap();
        assert_eq!(header.kind, Kind::Initial);
        assert_eq!(&datagram[header.token.clone()], token);
        assert_eq!(datagram.len(), 1200);
    }
}

#[test]
fn a_forged_retry_is_a_transport_parameter_error() {
    let mut world = World::new(Plan::default());
    let client = world.connect();
    let first = world.datagram(client);
    let original = Header::decode(&first, 8).unwrap().destination;
    world.inject(client, forged_retry(&first, original, 2, b"token"));
    world.run_for(Duration::from_millis(5));
    match world.closed(client) {
        Some(ConnectionError::Transport(TransportError { code, .. })) => {
            assert_eq!(code, Code::TRANSPORT_PARAMETER_ERROR);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_retry_in_an_established_connection_is_ignored() {
    let mut world = World::new(Plan::default());
    let client = world.connect();
    let first = world.datagram(client);
    let original = Header::decode(&first, 8).unwrap().destination;
    let remote = world.hosts[CLIENT].addresses[0];
    let Route::New(server, connection) = world.route(remote, &first) else {
        panic!("a connection expected");
    };
    world.hosts[SERVER].connections.insert(server, *connection);
    assert!(world.run_until(Duration::from_secs(1), |world| {
        world.hosts[CLIENT].connections[&client].is_established()
    }));
    world.inject(client, forged_retry(&first, original, 2, b"token"));
    assert!(world.moves_data(client, server));
}

/// Creates a client that has answered a Retry packet with this datagram.
fn answered_retry(world: &mut World) -> (ConnectionHandle, Vec<u8>) {
    let client = world.connect();
    let first = world.datagram(client);
    let remote = world.hosts[CLIENT].addresses[0];
    let Route::Reply(retry) = world.route(remote, &first) else {
        panic!("a Retry packet expected");
    };
    assert_eq!(kind(&retry), Kind::Retry);
    assert!(retry.len() < first.len());
    assert_eq!(world.hosts[SERVER].endpoint.connections(), 0);
    world.inject(client, retry);
    (client, world.datagram(client))
}

#[test]
fn an_expired_or_moved_retry_token_is_an_invalid_token_error() {
    for (wait, port) in [(Duration::from_secs(16), None), (Duration::ZERO, Some(9))] {
        let mut world = World::new(retry_always_plan());
        let (client, second) = answered_retry(&mut world);
        world.now += wait;
        let mut remote = world.hosts[CLIENT].addresses[0];
        remote.set_port(port.unwrap_or(remote.port()));
        let Route::Reply(refusal) = world.route(remote, &second) else {
            panic!("a refusal expected");
        };
        assert_eq!(world.hosts[SERVER].endpoint.connections(), 0);
        world.inject(client, refusal);
        let Some(Event::Closed(ConnectionError::PeerTransport { code, .. })) =
            world.connection(CLIENT, client).poll_event()
        else {
            panic!("the client was not told");
        };
        assert_eq!(code, Code::INVALID_TOKEN);
    }
}

/// Returns the first datagram of a client that was connected to the server before.
fn returning_client(plan: Plan) -> (World, Vec<u8>) {
    let mut world = World::new(plan);
    world.connected();
    world.run_for(Duration::from_millis(5));
    let client = world.connect();
    let first = world.datagram(client);
    let header = Header::decode(&first, 8).unwrap();
    assert!(!header.token.is_empty());
    (world, first)
}

#[test]
fn a_new_token_is_valid_once_before_expiry_at_its_address() {
    let plan = Plan {
        token_lifetime: Duration::from_secs(10),
        ..retry_always_plan()
    };
    let is_taken = |world: &mut World, remote, first: &[u8]| match world.route(remote, first) {
        Route::New(..) => true,
        Route::Reply(retry) => {
            assert_eq!(kind(&retry), Kind::Retry);
            false
        }
        other => panic!("{other:?}"),
    };
    let (mut world, first) = returning_client(plan.clone());
    let mut remote = world.hosts[CLIENT].addresses[0];
    let elsewhere = SocketAddr::from(([10, 0, 0, 99], remote.port()));
    assert!(!is_taken(&mut world, elsewhere, &first));
    assert!(is_taken(&mut world, remote, &first));
    remote.set_port(77);
    assert!(!is_taken(&mut world, remote, &first), "played again");

    let (mut world, first) = returning_client(plan);
    world.now += Duration::from_secs(11);
    let remote = world.hosts[CLIENT].addresses[0];
    assert!(!is_taken(&mut world, remote, &first), "too old");
}

#[test]
fn servers_sharing_a_secret_accept_each_others_tokens() {
    let (mut world, first) = returning_client(retry_always_plan());
    let (now, remote) = (world.now, world.hosts[CLIENT].addresses[0]);
    let replace = |secret: u8| {
        let other = World::new(retry_always_plan());
        let server = other.server_config();
        let config = EndpointConfig {
            secret: Some(EndpointSecret::new([secret; 32])),
            ..EndpointConfig::default()
        };
        let mut endpoint = Endpoint::new(config, Some(server), [99; 32]);
        endpoint.route(now, remote, None, Ecn::NotEct, &mut first.clone())
    };
    assert!(matches!(replace(2), Route::New(..)));
    assert!(matches!(replace(3), Route::Reply(_)));
    world.run_for(Duration::ZERO);
}

/// Resumes a client with a request in early data, which the server answers with 10 KB. Returns the
/// time until the whole answer has arrived. `token`: whether the client still has one.
fn early_answer(plan: Plan, token: bool) -> Duration {
    let mut world = World::new(Plan {
        early_data: true,
        ..plan
    });
    world.connected();
    world.run_for(Duration::from_millis(5));
    if !token {
        world.tokens = Arc::new(TokenStore::new(1));
    }
    let before: Vec<_> = world.hosts[SERVER].connections.keys().copied().collect();
    let begun = world.now;
    let client = world.connect();
    let connection = world.connection(CLIENT, client);
    assert!(connection.has_early_keys());
    let id = connection.open(Direction::Bidirectional).unwrap();
    connection.write(id, b"request").unwrap();
    connection.finish(id).unwrap();
    let (mut answered, mut got) = (false, 0);
    assert!(world.run_until(Duration::from_secs(5), |world| {
        let new = world.hosts[SERVER]
            .connections
            .iter_mut()
            .find(|(handle, _)| !before.contains(handle));
        if let Some((_, connection)) = new
            && !answered
            && let Some(id) = connection.accept(Direction::Bidirectional)
        {
            assert!(connection.is_early_data(id));
            assert_eq!(connection.write(id, &[5; 10_000]), Ok(10_000));
            connection.finish(id).unwrap();
            answered = true;
            world.transmit();
        }
        let connection = world.connection(CLIENT, client);
        while let Ok(Some(bytes)) = connection.read(id, usize::MAX) {
            got += bytes.len();
        }
        got == 10_000
    }));
    assert_eq!(
        world.hosts[CLIENT]
            .events
            .iter()
            .filter(|(_, event)| *event == Event::EarlyDataRejected)
            .count(),
        0
    );
    world.now.since(begun)
}

#[test]
fn a_10_kb_early_response_is_not_delayed_for_a_known_client() {
    let known = early_answer(Plan::default(), true);
    assert!(known < ROUND_TRIP + ROUND_TRIP / 2, "{known}");
    let unknown = early_answer(Plan::default(), false);
    assert!(unknown > ROUND_TRIP * 2, "{unknown}");
}

#[test]
fn early_data_survive_a_retry() {
    let took = early_answer(retry_always_plan(), false);
    assert!(
        (ROUND_TRIP * 2..ROUND_TRIP * 5 / 2).contains(&took),
        "{took}"
    );
}

#[test]
fn a_flood_from_spoofed_addresses_is_answered_with_retries() {
    let mut world = World::new(Plan {
        retry: RetryPolicy::UnderLoad { half_open: 4 },
        ..Plan::default()
    });
    for port in 1..=50 {
        let client = world.connect();
        let first = world.datagram(client);
        let invented = SocketAddr::from(([10, 0, 0, 77], port));
        let route = world.route(invented, &first);
        assert_eq!(matches!(route, Route::New(..)), port <= 4);
        if let Route::New(handle, connection) = route {
            world.hosts[SERVER].connections.insert(handle, *connection);
        }
        world.hosts[CLIENT].connections.remove(&client);
    }
    let server = &world.hosts[SERVER].endpoint;
    assert_eq!((server.half_open(), server.connections()), (4, 4));
    let (client, server) = world.connected();
    assert!(took(&mut world, client, 2));
    assert!(world.moves_data(client, server));
    // The four handshakes end in time, and no client needs validation then.
    world.run_for(Duration::from_secs(11));
    assert_eq!(world.hosts[SERVER].endpoint.half_open(), 0);
    world.tokens = Arc::new(TokenStore::new(1));
    let (client, _) = world.connected();
    assert!(took(&mut world, client, 1));
}

#[test]
fn a_half_open_handshake_uses_bounded_memory() {
    let mut world = World::new(Plan::default());
    let (destination, source) = (
        ConnectionId::new(&[1; 8]).unwrap(),
        ConnectionId::new(&[2; 8]).unwrap(),
    );
    let keys = SeededClient::new(0).initial_keys(Version::V1, &destination, Side::Client);
    let initial = |offset| {
        let mut datagram = Vec::new();
        let fields = LongFields {
            version: Version::V1,
            kind: LongKind::Initial { token: &[] },
            destination,
            source,
            number: 0,
            number_length: 4,
            size_limit: 1200,
        };
        let header = packet::write_long_header(&mut datagram, &fields);
        let payload = datagram.len();
        frame::write::crypto(&mut datagram, offset, &[0; 100]);
        datagram.resize(1200, 0);
        header.finish(&mut datagram, 1200);
        keys.local.packet.seal(0, payload, &mut datagram);
        keys.local
            .header
            .protect(header.number_offset, &mut datagram);
        datagram
    };
    let remote = world.hosts[CLIENT].addresses[0];
    for (offset, closed) in [(16_284, false), (16_285, true), ((1 << 62) - 101, true)] {
        let Route::New(handle, mut connection) = world.route(remote, &initial(offset)) else {
            panic!("a connection expected");
        };
        assert_eq!(connection.is_closed(), closed, "{offset}");
        while let Some(event) = connection.poll_event() {
            let Event::Closed(ConnectionError::Transport(error)) = event else {
                panic!("{event:?}");
            };
            assert_eq!(error.code, Code::CRYPTO_BUFFER_EXCEEDED);
        }
        let server = &mut world.hosts[SERVER].endpoint;
        server.handle_event(
            handle,
            EndpointEvent::Drained {
                draining_until: None,
            },
        );
        assert_eq!((server.half_open(), server.connections()), (0, 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn initial_packets_with_any_token_are_harmless(
        token in prop::collection::vec(any::<u8>(), 1..300),
        always: bool,
    ) {
        let retry = if always { RetryPolicy::Always } else { RetryPolicy::Never };
        let mut world = World::new(Plan { retry, ..Plan::default() });
        let client = world.connect();
        let first = world.datagram(client);
        let original = Header::decode(&first, 8).unwrap().destination;
        world.inject(client, forged_retry(&first, original, 9, &token));
        let second = world.datagram(client);
        let remote = world.hosts[CLIENT].addresses[0];
        let is_new = matches!(world.route(remote, &second), Route::New(..));
        prop_assert_eq!(is_new, !always);
    }
}
