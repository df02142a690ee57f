//! Version negotiation between two endpoints, and attacks on it.

use crate::world::{CLIENT, Plan, SERVER, World};
use weir_fabric::{Script, Verdict};
use weir_quic::packet::{self, Header};
use weir_quic::{
    Code, ConnectionError, Event, RetryPolicy, Route, TransportError, Version, Versions,
};
use weir_units::Duration;

const ROUND_TRIP: Duration = Duration::from_micros(50);

fn versions(version: Version, client: Versions, server: Versions) -> Plan {
    Plan {
        version,
        client_versions: client,
        server_versions: server,
        ..Plan::default()
    }
}

/// Connects and transfers data; returns the version and the round trips of the handshake.
fn negotiated(world: &mut World) -> (Version, u64) {
    let (client, server) = world.connected();
    assert!(world.moves_data(client, server));
    let version = world.connection(SERVER, server).version();
    let connection = world.connection(CLIENT, client);
    assert_eq!(connection.version(), version);
    let handshake = connection.stats().handshake.unwrap();
    (version, handshake.as_nanos() / ROUND_TRIP.as_nanos())
}

#[test]
fn versions_are_negotiated_by_both_preferences() {
    use Version::{V1, V2};
    let (both, only_v1, only_v2) = (Versions::V2_AND_V1, Versions::V1, Versions::only(V2));
    for (plan, version, round_trips) in [
        (versions(V1, only_v1, both), V1, 1),
        (versions(V2, only_v2, Versions::V1_AND_V2), V2, 1),
        // Compatible: without a round trip.
        (versions(V1, both, both), V2, 1),
        (versions(V2, both, Versions::V1_AND_V2), V1, 1),
        // Incompatible: by a Version Negotiation packet.
        (versions(V2, both, only_v1), V1, 2),
        (versions(V1, both, only_v2), V2, 2),
    ] {
        let mut world = World::new(plan.clone());
        assert_eq!(negotiated(&mut world), (version, round_trips));
        let mut world = World::new(Plan {
            retry: RetryPolicy::Always,
            ..plan
        });
        assert_eq!(negotiated(&mut world), (version, round_trips + 1));
    }
}

#[test]
fn negotiation_survives_the_loss_of_any_packet() {
    use Version::{V1, V2};
    for host in [CLIENT, SERVER] {
        for number in 0..7 {
            for plan in [
                versions(V1, Versions::V2_AND_V1, Versions::V2_AND_V1),
                versions(V2, Versions::V2_AND_V1, Versions::V1),
            ] {
                let mut world = World::new(plan);
                let now = world.now;
                let script = Script::nth([number], Verdict::Drop);
                world.egress_ports[host].set_script(now, Some(script));
                negotiated(&mut world);
            }
        }
    }
}

#[test]
fn early_data_keep_their_version() {
    let plan = versions(Version::V1, Versions::V2_AND_V1, Versions::V2_AND_V1);
    // The first connection used version 2, whose sessions are not valid for version 1.
    let mut world = World::new(Plan {
        early_data: true,
        ..plan
    });
    assert_eq!(negotiated(&mut world).0, Version::V2);
    let client = world.connect();
    assert!(!world.connection(CLIENT, client).has_early_keys());

    let mut world = World::new(Plan {
        early_data: true,
        ..versions(Version::V1, Versions::V1, Versions::V2_AND_V1)
    });
    world.connected();
    world.run_for(Duration::from_millis(5));
    world.set_client_versions(Versions::V2_AND_V1);
    let client = world.connect();
    assert!(world.connection(CLIENT, client).has_early_keys());
    assert!(world.run_until(Duration::from_secs(1), |world| {
        world.hosts[CLIENT].connections[&client].is_established()
    }));
    let version = world.connection(CLIENT, client).version();
    assert_eq!(version, Version::V1);
    assert!(
        !world.hosts[CLIENT]
            .events
            .contains(&(client, Event::EarlyDataRejected))
    );
}

#[test]
fn a_missing_common_version_is_reported_with_the_servers_versions() {
    let plan = versions(Version::V1, Versions::V1, Versions::only(Version::V2));
    let mut world = World::new(plan);
    let client = world.connect();
    world.run_for(Duration::from_secs(1));
    let error = world.closed(client).unwrap();
    assert!(matches!(error, ConnectionError::NoCommonVersion { .. }));
    let words = error.to_string();
    assert!(
        words.contains("any version of ours (QUIC version 1): it offers QUIC version 2"),
        "{words}"
    );
}

/// Builds a Version Negotiation packet in answer to a client's datagram, as an observer could.
fn forged_negotiation(datagram: &[u8], offered: &[Version]) -> Vec<u8> {
    let header = Header::decode(datagram, 8).unwrap();
    let numbers: Vec<_> = offered.iter().map(|version| version.as_u32()).collect();
    let mut forged = Vec::new();
    packet::write_version_negotiation(
        &mut forged,
        header.source.as_bytes(),
        header.destination.as_bytes(),
        &numbers,
        0,
    );
    forged
}

#[test]
fn a_downgrade_attack_is_detected() {
    let plan = versions(Version::V2, Versions::V2_AND_V1, Versions::V2_AND_V1);
    let mut world = World::new(plan);
    let client = world.connect();
    let first = world.datagram(client);
    world.inject(client, forged_negotiation(&first, &[Version::V1]));
    world.run_for(Duration::from_millis(5));
    match world.closed(client) {
        Some(ConnectionError::Transport(TransportError { code, .. })) => {
            assert_eq!(code, Code::VERSION_NEGOTIATION_ERROR);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn version_negotiation_with_our_own_version_or_too_late_is_ignored() {
    let mut world = World::new(Plan::default());
    let client = world.connect();
    let first = world.datagram(client);
    let own = forged_negotiation(&first, &[Version::V2, Version::V1]);
    world.inject(client, own);
    let other = forged_negotiation(&first, &[Version::V2]);
    let remote = world.hosts[CLIENT].addresses[0];
    let Route::New(server, connection) = world.route(remote, &first) else {
        panic!("a connection expected");
    };
    world.hosts[SERVER].connections.insert(server, *connection);
    assert!(world.run_until(Duration::from_secs(1), |world| {
        world.hosts[CLIENT].connections[&client].is_established()
    }));
    world.inject(client, other);
    assert!(world.moves_data(client, server));
}
