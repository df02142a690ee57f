//! Several paths: standby, migration, changed addresses, and attacks (RFC 9000, section 9).

use std::net::SocketAddr;

use crate::world::{CLIENT, Plan, SERVER, World, pattern};
use weir_fabric::{FaultSettings, Probability};
use weir_quic::{
    ConnectionHandle, Direction, Event, MoveCause, PathError, PathEvent, PathId,
    PreferredAddresses, StreamId,
};
use weir_units::{Duration, Time};

const LIMIT: Duration = Duration::from_secs(5);

/// A client with two interfaces, the second with a standby path.
struct Armed {
    world: World,
    client: ConnectionHandle,
    server: ConnectionHandle,
    spare: SocketAddr,
}

impl Armed {
    fn new(plan: Plan) -> Self {
        let mut world = World::new(plan);
        let (client, server) = world.connected();
        let spare = world.add_interface();
        let now = world.now;
        world
            .connection(CLIENT, client)
            .add_local_address(now, spare);
        let mut armed = Self {
            world,
            client,
            server,
            spare,
        };
        armed.world.run_for(Duration::from_millis(5));
        armed
    }

    fn path_events(&mut self, host: usize) -> Vec<PathEvent> {
        let events = self.world.hosts[host].events.drain(..);
        events
            .filter_map(|(_, event)| match event {
                Event::Path(event) => Some(event),
                _ => None,
            })
            .collect()
    }

    fn spare_path(&mut self) -> PathId {
        let spare = self.spare;
        let stats = self.world.connection(CLIENT, self.client).stats();
        let path = stats.paths.iter().find(|path| path.local == Some(spare));
        path.unwrap().id
    }

    fn move_to_spare(&mut self) {
        let (now, path) = (self.world.now, self.spare_path());
        let client = self.world.connection(CLIENT, self.client);
        client.move_to(now, path, MoveCause::Requested).unwrap();
    }

    fn transfers(&mut self) {
        let ends = [(CLIENT, self.client), (SERVER, self.server)];
        let data = pattern(200_000);
        for (from, to) in [(0, 1), (1, 0)] {
            let got = self.world.transfer(ends[from], ends[to], &data, LIMIT);
            assert!(got.as_deref() == Some(&data[..]));
        }
    }

    /// Drops all packets over the first interface from now on.
    fn darken_first(&mut self) {
        let dark = FaultSettings {
            loss: Probability::new(1.0).unwrap(),
            ..FaultSettings::default()
        };
        for pipe in &mut self.world.egress_ports {
            pipe.set_faults(self.world.now, dark);
        }
    }
}

#[test]
fn a_standby_path_is_validated_in_advance_by_both_sides() {
    let mut armed = Armed::new(Plan::default());
    let spare = armed.spare_path();
    let events = armed.path_events(CLIENT);
    assert!(
        matches!(events[..], [PathEvent::Validated { path, rtt }]
            if path == spare && rtt >= Duration::from_micros(50) && rtt < Duration::from_micros(60)),
        "{events:?}"
    );
    let server = armed.server;
    let stats = armed.world.connection(SERVER, server).stats();
    assert_eq!(stats.paths.len(), 2);
    assert!(stats.paths.iter().all(|path| path.validated), "{stats:?}");
    assert_eq!(stats.paths[1].remote, armed.spare);
    assert!(
        armed.world.spare_pipes[0][CLIENT]
            .counters()
            .departed
            .packets
            > 0
    );
}

#[test]
fn standby_paths_are_revalidated_while_the_connection_is_active() {
    let mut armed = Armed::new(Plan::default());
    let asked = |armed: &Armed| {
        armed.world.spare_pipes[0][CLIENT]
            .counters()
            .departed
            .packets
    };
    let before = asked(&armed);
    armed.world.run_for(Duration::from_secs(10));
    let idle = asked(&armed);
    assert!(idle - before <= 1, "{before} {idle}");
    for _ in 0..5 {
        armed.transfers();
        armed.world.run_for(Duration::from_secs(1));
    }
    assert!((4..=7).contains(&(asked(&armed) - idle)));
}

#[test]
fn a_connection_moves_to_a_standby_path_and_back() {
    let mut armed = Armed::new(Plan::default());
    let first = PathId::FIRST;
    let spare = armed.spare_path();
    armed.move_to_spare();
    armed.transfers();
    let before = armed.world.egress_ports[SERVER].counters().arrived.packets;
    armed.transfers();
    let after = armed.world.egress_ports[SERVER].counters().arrived.packets;
    assert_eq!(before, after, "data on the path that was left");
    let moved = |from, to, cause| PathEvent::Moved { from, to, cause };
    let there = moved(first, spare, MoveCause::Requested);
    assert!(armed.path_events(CLIENT).contains(&there));
    assert!(armed.path_events(SERVER).iter().any(|event| matches!(
        event,
        PathEvent::Moved {
            cause: MoveCause::Peer,
            ..
        }
    )));
    let now = armed.world.now;
    let client = armed.world.connection(CLIENT, armed.client);
    client.move_to(now, first, MoveCause::Requested).unwrap();
    armed.transfers();
    let back = moved(spare, first, MoveCause::Requested);
    assert!(armed.path_events(CLIENT).contains(&back));
}

/// Returns the time from a move to the first byte that was in flight when the old path went dark.
fn interruption(from: usize, seed: u64) -> Duration {
    let mut armed = Armed::new(Plan {
        seed,
        ..Plan::default()
    });
    armed.transfers();
    let ends = [(CLIENT, armed.client), (SERVER, armed.server)];
    let (sender, receiver) = (ends[from], ends[1 - from]);
    let data = pattern(400_000);
    let id = armed
        .world
        .connection(sender.0, sender.1)
        .open(Direction::Unidirectional)
        .unwrap();
    let written = armed
        .world
        .connection(sender.0, sender.1)
        .write(id, &data)
        .unwrap();
    armed
        .world
        .connection(sender.0, sender.1)
        .finish(id)
        .unwrap();
    let mut got = 0;
    let mut accepted = None;
    let count = |world: &mut World, got: &mut usize, accepted: &mut Option<StreamId>| {
        let connection = world.connection(receiver.0, receiver.1);
        *accepted = accepted.or_else(|| connection.accept(Direction::Unidirectional));
        while let Some(id) = *accepted
            && let Ok(Some(bytes)) = connection.read(id, usize::MAX)
        {
            *got += bytes.len();
        }
    };
    armed.world.run_until(LIMIT, |world| {
        count(world, &mut got, &mut accepted);
        got > 50_000
    });
    armed.darken_first();
    armed.world.run_for(Duration::from_micros(100));
    count(&mut armed.world, &mut got, &mut accepted);
    let before = got;
    let moved_at: Time = armed.world.now;
    armed.move_to_spare();
    armed.world.run_until(LIMIT, |world| {
        count(world, &mut got, &mut accepted);
        got > before
    });
    let first_byte = armed.world.now.since(moved_at);
    armed.world.run_until(LIMIT, |world| {
        count(world, &mut got, &mut accepted);
        got == written
    });
    assert_eq!(got, written);
    first_byte
}

#[test]
fn packets_in_flight_on_a_dark_path_are_retransmitted_at_once() {
    for seed in 0..20 {
        // An RTT of 50 µs, and the time to send a batch.
        let upload = interruption(CLIENT, seed);
        assert!(upload < Duration::from_micros(80), "{upload}");
        let download = interruption(SERVER, seed);
        assert!(download < Duration::from_micros(130), "{download}");
    }
}

#[test]
fn a_connection_survives_a_client_address_change() {
    for seed in 0..20 {
        let mut armed = Armed::new(Plan {
            seed,
            ..Plan::default()
        });
        armed.transfers();
        // The first interface is gone, and the second one has no standby path.
        let (spare, client) = (armed.spare, armed.client);
        let now = armed.world.now;
        let connection = armed.world.connection(CLIENT, client);
        connection.remove_local_address(now, spare);
        armed.world.hosts[CLIENT].addresses.remove(0);
        let connection = armed.world.connection(CLIENT, client);
        connection.rebind(now, spare).unwrap();
        armed.transfers();
        let events = armed.path_events(SERVER);
        assert!(
            events.iter().any(|event| matches!(
                event,
                PathEvent::Moved {
                    cause: MoveCause::Peer,
                    ..
                }
            )),
            "{events:?}"
        );
        let stats = armed.world.connection(SERVER, armed.server).stats();
        assert!(stats.paths[0].validated);
        assert_eq!(stats.paths[0].remote, spare);
    }
}

#[test]
fn a_nat_port_change_keeps_the_path_state() {
    let mut armed = Armed::new(Plan::default());
    armed.transfers();
    let server = armed.server;
    let before = armed.world.connection(SERVER, server).stats().paths[0].clone();
    armed.world.nat = Some(SocketAddr::from(([10, 0, 0, 1], 9999)));
    armed.transfers();
    let events = armed.path_events(SERVER);
    assert!(
        events.iter().any(|event| matches!(
            event,
            PathEvent::Moved {
                cause: MoveCause::PeerRebound,
                ..
            }
        )),
        "{events:?}"
    );
    let after = armed.world.connection(SERVER, server).stats().paths[0].clone();
    assert_eq!(after.remote.port(), 9999);
    assert!(after.validated);
    assert_eq!(after.id, before.id);
    assert!(
        after.window >= before.window,
        "{} {}",
        after.window,
        before.window
    );
    assert!(
        armed
            .path_events(CLIENT)
            .iter()
            .all(|event| !matches!(event, PathEvent::Moved { .. }))
    );
}

/// An attacker who can copy datagrams sends them from its own address, ahead of the originals.
#[test]
fn copies_from_a_spoofed_address_do_not_hijack_the_path() {
    for seed in 0..50 {
        let mut armed = Armed::new(Plan {
            seed,
            ..Plan::default()
        });
        armed.transfers();
        armed.world.copies_from = Some(SocketAddr::from(([10, 0, 0, 66], 6666)));
        armed.transfers();
        armed.world.copies_from = None;
        armed.transfers();
        armed.world.run_for(Duration::from_secs(1));
        armed.transfers();
        let stats = armed.world.connection(SERVER, armed.server).stats();
        assert_eq!(stats.paths[0].remote.port(), 4001, "{seed}: {stats:?}");
        assert!(stats.paths[0].validated);
    }
}

#[test]
fn packets_from_ever_new_addresses_take_bounded_memory() {
    let mut armed = Armed::new(Plan::default());
    for port in 10_000..10_100 {
        armed.world.nat = Some(SocketAddr::from(([10, 0, 0, 1], port)));
        let now = armed.world.now;
        let client = armed.world.connection(CLIENT, armed.client);
        let id = client.open(Direction::Unidirectional).unwrap();
        client.write(id, b"from elsewhere").unwrap();
        client.finish(id).unwrap();
        armed.world.advance_to(now + Duration::from_micros(10));
    }
    armed.world.run_for(Duration::from_millis(1));
    let server = armed.world.connection(SERVER, armed.server);
    while server.accept(Direction::Unidirectional).is_some() {}
    let stats = armed.world.connection(SERVER, armed.server).stats();
    assert!(stats.paths.len() <= 8, "{}", stats.paths.len());
    armed.transfers();
}

#[test]
fn late_packets_of_the_old_path_do_not_move_the_server_back() {
    let mut armed = Armed::new(Plan::default());
    armed.transfers();
    // Data sent now arrives long after the move.
    let now = armed.world.now;
    armed.world.egress_ports[CLIENT].set_delay(now, Duration::from_millis(3));
    let client = armed.world.connection(CLIENT, armed.client);
    let id = client.open(Direction::Unidirectional).unwrap();
    client.write(id, &pattern(20_000)).unwrap();
    client.finish(id).unwrap();
    armed.world.transmit();
    armed.move_to_spare();
    armed.world.run_for(Duration::from_millis(1));
    armed.path_events(SERVER);
    armed.world.run_for(Duration::from_millis(10));
    let events = armed.path_events(SERVER);
    assert!(
        events
            .iter()
            .all(|event| !matches!(event, PathEvent::Moved { .. })),
        "{events:?}"
    );
    let server = armed.world.connection(SERVER, armed.server);
    server.accept(Direction::Unidirectional).unwrap();
    armed.transfers();
}

#[test]
fn migration_is_refused_if_the_peer_forbids_it() {
    let mut plan = Plan::default();
    plan.server.allow_migration = false;
    let mut armed = Armed::new(plan);
    let now = armed.world.now;
    let client = armed.world.connection(CLIENT, armed.client);
    assert_eq!(client.stats().paths.len(), 1);
    assert_eq!(
        client.rebind(now, "10.0.9.9:1".parse().unwrap()),
        Err(PathError::Forbidden)
    );
    armed.transfers();
}

#[test]
fn only_validated_paths_can_be_moved_to() {
    let mut armed = Armed::new(Plan::default());
    let now = armed.world.now;
    let server = armed.world.connection(SERVER, armed.server);
    let refused = server.move_to(now, PathId::FIRST, MoveCause::Requested);
    assert_eq!(refused, Err(PathError::NotClient));
    // An interface without a network behind it.
    let nowhere: SocketAddr = "10.0.0.200:1".parse().unwrap();
    let client = armed.world.connection(CLIENT, armed.client);
    client.add_local_address(now, nowhere);
    armed.world.run_for(Duration::from_millis(1));
    let client = armed.world.connection(CLIENT, armed.client);
    let stats = client.stats();
    let path = stats
        .paths
        .iter()
        .find(|path| path.local == Some(nowhere))
        .unwrap()
        .id;
    let refused = client.move_to(now, path, MoveCause::Requested);
    assert_eq!(refused, Err(PathError::NotValidated(path)));
    armed.world.run_for(Duration::from_secs(1));
    assert!(
        armed
            .path_events(CLIENT)
            .contains(&PathEvent::Failed { path })
    );
    armed.transfers();
}

#[test]
fn removing_an_interface_removes_its_paths() {
    let mut armed = Armed::new(Plan::default());
    armed.transfers();
    let first = armed.world.hosts[CLIENT].addresses.remove(0);
    let now = armed.world.now;
    let client = armed.world.connection(CLIENT, armed.client);
    client.remove_local_address(now, first);
    let stats = client.stats();
    assert_eq!(stats.paths.len(), 1);
    assert_eq!(stats.paths[0].local, Some(armed.spare));
    armed.transfers();
}

#[test]
fn a_client_migrates_to_the_servers_preferred_address() {
    let preferred = "10.0.0.7:4443".parse().unwrap();
    let plan = Plan {
        preferred: PreferredAddresses {
            ipv4: Some(preferred),
            ipv6: None,
        },
        ..Plan::default()
    };
    let mut world = World::new(plan.clone());
    world.hosts[SERVER].addresses.push(preferred.into());
    let (client, server) = world.connected();
    world.run_for(Duration::from_millis(1));
    let stats = world.connection(CLIENT, client).stats();
    assert_eq!(stats.paths.len(), 1);
    assert_eq!(stats.paths[0].remote, preferred.into());
    let data = pattern(200_000);
    for (from, to) in [
        ((CLIENT, client), (SERVER, server)),
        ((SERVER, server), (CLIENT, client)),
    ] {
        assert!(world.transfer(from, to, &data, LIMIT).as_deref() == Some(&data[..]));
    }
    let stats = world.connection(SERVER, server).stats();
    assert_eq!(stats.paths[0].local, Some(preferred.into()));
    assert!(stats.paths[0].validated);

    // If the preferred address does not answer, the connection stays.
    let mut world = World::new(plan);
    let (client, server) = world.connected();
    world.run_for(Duration::from_secs(1));
    let ends = ((CLIENT, client), (SERVER, server));
    assert!(world.transfer(ends.0, ends.1, &data, LIMIT).as_deref() == Some(&data[..]));
    let used = world.connection(CLIENT, client).remote();
    assert_eq!(used, world.hosts[SERVER].addresses[0]);
}

/// Neither address answers while the path to the client is dark: the server falls back to the last
/// validated one (RFC 9000, section 9.3.2).
#[test]
fn a_server_returns_to_the_last_validated_address() {
    let mut armed = Armed::new(Plan::default());
    armed.transfers();
    let dark = FaultSettings {
        down: true,
        ..FaultSettings::default()
    };
    let now = armed.world.now;
    armed.world.egress_ports[SERVER].set_faults(now, dark);
    armed.world.spare_pipes[0][SERVER].set_faults(now, dark);
    armed.world.copies_from = Some(SocketAddr::from(([10, 0, 0, 66], 6666)));
    let client = armed.world.connection(CLIENT, armed.client);
    let id = client.open(Direction::Unidirectional).unwrap();
    client.write(id, b"copied").unwrap();
    client.finish(id).unwrap();
    armed.world.run_for(Duration::from_micros(200));
    armed.world.copies_from = None;
    let remote = |armed: &mut Armed| armed.world.connection(SERVER, armed.server).remote();
    assert_eq!(remote(&mut armed).port(), 6666);
    // No packets of the client arrive either, which could move the server back.
    let now = armed.world.now;
    armed.world.egress_ports[CLIENT].set_faults(now, dark);
    armed.world.spare_pipes[0][CLIENT].set_faults(now, dark);
    armed.world.run_for(Duration::from_millis(200));
    assert_ne!(remote(&mut armed).port(), 6666);
}
