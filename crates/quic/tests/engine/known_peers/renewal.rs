//! Renewal of secrets on open connections.

use super::*;

/// A world whose clients renew secrets after a second.
fn renewing_world() -> World {
    let mut world = World::new(Plan::default()).with_known_peers(KnownClientsConfig::default());
    let servers = KnownServers::new(10).with_renewal_interval(Duration::from_secs(1));
    world.known_servers = Some(Arc::new(servers));
    world
}

#[test]
fn an_open_connection_renews_the_secret() {
    let mut world = renewing_world();
    let (client, server) = world.connected();
    world.run_for(Duration::from_millis(5));
    let mut executions = Executions::default();
    // Two first packets under the old secret, still under way.
    let late = [1, 2].map(|number| {
        let (call, first, source) = first_datagram(&mut world, number);
        world.hosts[CLIENT].connections.remove(&call.connection);
        (source, first)
    });
    for rounds in 2..5 {
        world.run_for(Duration::from_secs(1));
        assert!(world.moves_data(client, server));
        assert_eq!(server_counters(&world).held, rounds);
    }
    let [(source, soon), (_, later)] = late;
    assert!(matches!(world.route(source, &soon), Route::New(..)));
    let took = call(&mut world, &mut executions, 3);
    assert!(took < ROUND_TRIP + Duration::from_micros(10), "{took}");
    world.run_for(Duration::from_secs(40));
    assert!(matches!(world.route(source, &later), Route::Reply(_)));
}

#[test]
fn a_known_peer_renews_the_secret_too_and_a_lost_key_is_sent_again() {
    for lost in 0..4 {
        let mut world = renewing_world();
        world.connected();
        world.run_for(Duration::from_millis(5));
        let (client, server) = world.connected();
        assert!(world.connection(CLIENT, client).is_known_peer());
        assert!(world.moves_data(client, server));
        world.run_for(Duration::from_millis(890));
        let now = world.now;
        for host in [CLIENT, SERVER] {
            let script = Script::nth([lost], Verdict::Drop);
            world.egress_ports[host].set_script(now, Some(script));
        }
        world.run_for(Duration::from_secs(1));
        assert!(server_counters(&world).held >= 2, "packet {lost}");
        assert!(world.moves_data(client, server));
        let mut executions = Executions::default();
        let took = call(&mut world, &mut executions, 2);
        assert!(took < ROUND_TRIP * 2, "{took}");
    }
}

#[test]
fn a_secret_is_never_renewed_where_the_interval_is_zero() {
    let mut world = World::new(Plan::default()).with_known_peers(KnownClientsConfig::default());
    let servers = KnownServers::new(10).with_renewal_interval(Duration::ZERO);
    world.known_servers = Some(Arc::new(servers));
    world.connected();
    world.run_for(Duration::from_millis(5));
    let (client, server) = world.connected();
    assert!(world.connection(CLIENT, client).is_known_peer());
    world.run_for(Duration::from_secs(20));
    assert!(world.moves_data(client, server));
    assert_eq!(server_counters(&world).held, 1);
}

#[test]
fn a_secret_that_comes_twice_does_not_begin_its_key_ids_again() {
    for micros in (100..3000).step_by(100) {
        for lost in 1..4 {
            let mut world =
                World::new(Plan::default()).with_known_peers(KnownClientsConfig::default());
            world.connected();
            // The server does not learn that its offer has arrived, and sends it again.
            let now = world.now;
            let script = Script::nth((0..lost).collect::<Vec<_>>(), Verdict::Drop);
            world.egress_ports[CLIENT].set_script(now, Some(script));
            world.run_for(Duration::from_micros(micros));
            world.egress_ports[CLIENT].set_script(world.now, None);
            let mut executions = Executions::default();
            for number in 1..4 {
                call(&mut world, &mut executions, number);
                world.run_for(Duration::from_millis(300));
            }
            let replays = server_counters(&world).replays;
            assert_eq!(replays, 0, "{lost} packets, {micros} us");
        }
    }
}
