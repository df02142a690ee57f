//! Handshakes with packet loss, resumption, early data, and failures.

use crate::world::{CLIENT, Plan, SERVER, World, pattern};
use weir_fabric::{FaultSettings, Probability, Script, Verdict};
use weir_quic::crypto::seeded::{SeededEarlyData, SeededFault, SeededServer};
use weir_quic::{
    Code, ConnectionError, Direction, Event, ReadError, Route, TransportError, WriteError,
};
use weir_units::Duration;

#[test]
fn the_handshake_takes_one_round_trip_on_a_clean_network() {
    let mut world = World::new(Plan::default());
    let (client, _) = world.connected();
    let took = world.connection(CLIENT, client).stats().handshake.unwrap();
    assert!(
        took > Duration::from_micros(50) && took < Duration::from_micros(70),
        "{took}"
    );
}

#[test]
fn the_handshake_survives_the_loss_of_any_of_its_packets() {
    for host in [CLIENT, SERVER] {
        for lost in 0..6 {
            let mut world = World::new(Plan::default());
            let now = world.now;
            world.egress_ports[host].set_script(now, Some(Script::nth([lost], Verdict::Drop)));
            let (client, server) = world.connected();
            let data = pattern(5000);
            let got = world.transfer(
                (CLIENT, client),
                (SERVER, server),
                &data,
                Duration::from_secs(5),
            );
            assert!(got == Some(data), "host {host}, packet {lost}");
        }
    }
}

#[test]
fn the_handshake_survives_heavy_loss() {
    for seed in 0..20 {
        let faults = FaultSettings {
            loss: Probability::new(0.3).unwrap(),
            ..FaultSettings::default()
        };
        World::new(Plan {
            seed,
            faults,
            ..Plan::default()
        })
        .connected();
    }
}

/// The client's data fills its window before the server can read it, and no ACK from the server
/// shows that. The rest of the handshake must not wait for room.
#[test]
fn data_filling_the_window_do_not_block_the_handshake() {
    for seed in 0..100 {
        let faults = FaultSettings {
            loss: Probability::new(0.3).unwrap(),
            ..FaultSettings::default()
        };
        let mut world = World::new(Plan {
            seed,
            faults,
            ..Plan::default()
        });
        let client = world.connect();
        let connected = world.run_until(Duration::from_secs(20), |world| {
            world.hosts[CLIENT].connections[&client].is_established()
        });
        assert!(connected, "seed {seed}");
        let server = *world.hosts[SERVER].connections.keys().next().unwrap();
        let data = pattern(20_000);
        let got = world.transfer(
            (CLIENT, client),
            (SERVER, server),
            &data,
            Duration::from_secs(20),
        );
        assert!(got == Some(data), "seed {seed}");
    }
}

/// A peer that has discarded its Initial keys may drop a whole datagram that starts with an Initial
/// packet: one of the server's two probes does not start with one.
#[test]
fn server_probes_include_handshake_packets() {
    let mut world = World::new(Plan::default());
    world.connect();
    assert!(world.run_until(Duration::from_millis(1), |world| {
        !world.hosts[SERVER].connections.is_empty()
    }));
    let now = world.now;
    world.egress_ports[CLIENT].set_script(now, Some(Script::matching(|_| true, Verdict::Drop)));
    world.run_for(Duration::from_micros(200));
    let server = *world.hosts[SERVER].connections.keys().next().unwrap();
    let connection = world.connection(SERVER, server);
    let mut first_bytes = Vec::new();
    while first_bytes.len() < 2 {
        let due = connection.timeout().unwrap();
        connection.handle_timeout(due);
        let mut datagram = Vec::new();
        while connection.poll_transmit(due, &mut datagram, 1).is_some() {
            first_bytes.push(datagram[0]);
            datagram.clear();
        }
    }
    // RFC 9000, sections 17.2.2 and 17.2.4.
    assert_eq!(first_bytes[0] & 0xf0, 0xc0, "an Initial packet");
    assert_eq!(first_bytes[1] & 0xf0, 0xe0, "a Handshake packet");
}

#[test]
fn a_large_server_flight_waits_for_address_validation() {
    let plan = Plan::default();
    let server = SeededServer::new(plan.seed).with_certificate_length(12_000);
    let mut world = World::with_server(plan, server);
    let mut sent_before_validation = 0;
    world.connect();
    world.run_until(Duration::from_secs(5), |world| {
        let host = &world.hosts[SERVER];
        let Some(connection) = host.connections.values().next() else {
            return false;
        };
        let path = &connection.stats().paths[0];
        if connection.is_handshaking() && path.bytes_received.bytes() <= 1200 {
            sent_before_validation = path.bytes_sent.bytes();
        }
        connection.is_established()
    });
    assert!(
        (1..=3600).contains(&sent_before_validation),
        "{sent_before_validation}"
    );
    assert!(
        world.hosts[SERVER]
            .connections
            .values()
            .all(|connection| connection.is_established())
    );
}

/// Resumes a connection, with a request in its early data.
fn early(server: SeededEarlyData) -> (World, weir_quic::ConnectionHandle, weir_quic::StreamId) {
    let plan = Plan {
        early_data: true,
        ..Plan::default()
    };
    let server = SeededServer::new(plan.seed).with_early_data(server);
    let mut world = World::with_server(plan, server);
    let (first, _) = world.connected();
    world.run_for(Duration::from_millis(5));
    let now = world.now;
    world.connection(CLIENT, first).close(now, 0, b"");
    world.run_for(Duration::from_secs(1));
    world.hosts.iter_mut().for_each(|host| host.events.clear());
    let client = world.connect();
    let connection = world.connection(CLIENT, client);
    assert!(connection.has_early_keys());
    let id = connection.open(Direction::Bidirectional).unwrap();
    connection.write(id, b"early").unwrap();
    connection.finish(id).unwrap();
    (world, client, id)
}

#[test]
fn early_data_arrive_within_half_a_round_trip() {
    let (mut world, _, id) = early(SeededEarlyData::Accept);
    let begun = world.now;
    let mut early = false;
    assert!(world.run_until(Duration::from_secs(1), |world| {
        let Some(connection) = world.hosts[SERVER].connections.values_mut().next() else {
            return false;
        };
        let Some(id) = connection.accept(Direction::Bidirectional) else {
            return false;
        };
        early = connection.is_early_data(id);
        connection.read(id, 100).unwrap().unwrap() == b"early"[..]
    }));
    assert!(early, "{id} is not known as early data");
    assert!(world.now.since(begun) < Duration::from_micros(35));
}

#[test]
fn an_early_request_and_its_answer_leave_with_the_handshake() {
    let (mut world, client, _) = early(SeededEarlyData::Accept);
    let now = world.now;
    let mut request = Vec::new();
    let connection = world.connection(CLIENT, client);
    let sent = connection.poll_transmit(now, &mut request, 64).unwrap();
    assert_eq!((sent.size, sent.segment_size), (1200, None));
    assert!(connection.poll_transmit(now, &mut Vec::new(), 64).is_none());
    let remote = world.hosts[CLIENT].addresses[0];
    let Route::New(_, mut server) = world.route(remote, &request) else {
        panic!("a new connection expected");
    };
    assert!(server.accepts_early_data());
    let id = server.accept(Direction::Bidirectional).unwrap();
    assert_eq!(server.read(id, 100).unwrap().unwrap(), b"early"[..]);
    server.write(id, &[1; 2000]).unwrap();
    server.finish(id).unwrap();
    let mut answer = Vec::new();
    let sent = server.poll_transmit(now, &mut answer, 64).unwrap();
    assert_eq!(sent.segment_size, Some(1200));
    assert!(
        (2000..3600).contains(&sent.size),
        "the whole answer: {}",
        sent.size
    );
}

#[test]
fn rejected_early_data_must_be_sent_anew() {
    let (mut world, client, id) = early(SeededEarlyData::Reject);
    assert!(world.run_until(Duration::from_secs(1), |world| {
        world.hosts[CLIENT].connections[&client].is_established()
    }));
    assert!(
        world.hosts[CLIENT]
            .events
            .contains(&(client, Event::EarlyDataRejected))
    );
    let connection = world.connection(CLIENT, client);
    assert_eq!(
        connection.write(id, b"more"),
        Err(WriteError::EarlyDataRejected)
    );
    assert_eq!(connection.read(id, 10), Err(ReadError::EarlyDataRejected));
    let server = *world.hosts[SERVER].connections.keys().next().unwrap();
    let data = pattern(50_000);
    let got = world.transfer(
        (CLIENT, client),
        (SERVER, server),
        &data,
        Duration::from_secs(1),
    );
    assert!(got == Some(data));
}

#[test]
fn a_refused_handshake_reports_the_servers_alert() {
    let plan = Plan::default();
    let server = SeededServer::new(plan.seed).with_fault(SeededFault::Refuse { alert: 40 });
    let mut world = World::with_server(plan, server);
    let client = world.connect();
    world.run_for(Duration::from_secs(1));
    let closed = world.hosts[CLIENT].events.iter().any(|(handle, event)| {
        *handle == client
            && matches!(event, Event::Closed(ConnectionError::PeerTransport { code, .. })
                if code.tls_alert() == Some(40))
    });
    assert!(closed, "{:?}", world.hosts[CLIENT].events);
    assert!(
        world
            .hosts
            .iter()
            .all(|host| host.endpoint.connections() == 0)
    );
}

#[test]
fn a_wrong_server_finished_fails_the_handshake() {
    let plan = Plan::default();
    let server = SeededServer::new(plan.seed).with_fault(SeededFault::WrongFinished);
    let mut world = World::with_server(plan, server);
    let client = world.connect();
    world.run_for(Duration::from_secs(1));
    let told = world.hosts[CLIENT].events.iter().any(|(handle, event)| {
        *handle == client
            && matches!(event, Event::Closed(ConnectionError::Transport(TransportError { code, .. }))
                if *code != Code::NO_ERROR)
    });
    assert!(told, "{:?}", world.hosts[CLIENT].events);
    assert!(
        !world.hosts[CLIENT]
            .events
            .contains(&(client, Event::Connected))
    );
}
