//! The size of packets over a simulated network: negotiation, probes, policies.

use crate::world::flow::{Flow, bytes, data_center, path, plan, set_path_mtu, wan_plan};
use crate::world::{CLIENT, Plan, SERVER, World, interfaces};
use weir_fabric::Rule;
use weir_quic::{MoveCause, MtuPhase, PacketSizePolicy, PathSnapshot, TransportConfig};
use weir_units::{Duration, Rate};

#[test]
fn the_wide_area_profile_probes_up_to_the_ethernet_mtu() {
    let mut world = World::new(wan_plan());
    let (client, server) = world.connected();
    assert_eq!(path(&mut world, CLIENT, client).mtu, bytes(1200));
    world.run_for(Duration::from_secs(2));
    for (host, handle) in [(CLIENT, client), (SERVER, server)] {
        let path = path(&mut world, host, handle);
        assert_eq!(path.mtu, bytes(1452));
        assert_eq!(path.mtu_phase, MtuPhase::SearchComplete);
        assert_eq!((path.mtu_probes_sent, path.mtu_probes_lost), (2, 0));
    }
}

#[test]
fn the_data_center_profile_probes_only_if_configured() {
    let mut world = World::new(plan(TransportConfig::data_center()));
    let (client, server) = world.connected();
    let mut flow = Flow::new(&mut world, (CLIENT, client), (SERVER, server), 1_000_000);
    flow.run_to(&mut world, 1_000_000, Duration::from_secs(10));
    let path = path(&mut world, CLIENT, client);
    assert_eq!((path.mtu, path.mtu_probes_sent), (bytes(1452), 0));
}

/// Hosts on one network, with interfaces of these MTUs.
fn on_one_link(client: u64, server: u64) -> World {
    let mut world = World::new(plan(TransportConfig::data_center()));
    world.set_on_link_mtu(CLIENT, client);
    world.set_on_link_mtu(SERVER, server);
    world
}

#[test]
fn packets_on_the_link_begin_at_the_size_of_the_interface() {
    let mut world = on_one_link(9000, 9000);
    let (client, server) = world.connected();
    for (host, handle) in [(CLIENT, client), (SERVER, server)] {
        let path = path(&mut world, host, handle);
        assert_eq!((path.mtu, path.mtu_probes_sent), (bytes(8972), 0));
        assert!(path.window >= bytes(10 * 8972), "{}", path.window);
    }
}

#[test]
fn a_peer_with_a_smaller_interface_gets_its_size_and_ten_packets_of_it() {
    let mut world = on_one_link(9000, 1500);
    let (client, _) = world.connected();
    let path = path(&mut world, CLIENT, client);
    assert_eq!(path.mtu, bytes(1472));
    assert!(path.window <= bytes(11 * 1472), "{}", path.window);
}

#[test]
fn a_link_that_carries_less_than_its_interfaces_is_a_black_hole_once() {
    let mut world = on_one_link(9000, 9000);
    set_path_mtu(&mut world, 1500);
    let mut black_holes = Vec::new();
    for _ in 0..2 {
        let (client, server) = world.connected();
        let mut flow = Flow::new(&mut world, (CLIENT, client), (SERVER, server), 1_000_000);
        flow.run_to(&mut world, 1_000_000, Duration::from_secs(10));
        let path = path(&mut world, CLIENT, client);
        assert!(path.mtu <= bytes(1472));
        black_holes.push(path.black_holes);
    }
    assert_eq!(black_holes, [1, 0], "later connections know");
}

#[test]
fn beyond_a_router_the_full_size_is_probed_for_once_per_peer() {
    let mut world = World::new(plan(TransportConfig::data_center()));
    world.set_interface_mtu(CLIENT, 9000);
    world.set_interface_mtu(SERVER, 9000);
    let sizes = |world: &mut World| {
        let (client, _) = world.connected();
        let begin = path(world, CLIENT, client).mtu;
        world.run_for(Duration::from_millis(5));
        let path = path(world, CLIENT, client);
        (begin, path.mtu, path.mtu_probes_sent)
    };
    assert_eq!(sizes(&mut world), (bytes(1452), bytes(8972), 1));
    assert_eq!(sizes(&mut world), (bytes(8972), bytes(8972), 0));
}

/// RFC 9002, section 7.2.
#[test]
fn the_initial_window_is_ten_of_the_larger_packets_that_a_probe_finds() {
    let mut world = World::new(plan(TransportConfig::data_center()));
    world.set_interface_mtu(CLIENT, 9000);
    world.set_interface_mtu(SERVER, 9000);
    let (client, _) = world.connected();
    let begin = path(&mut world, CLIENT, client);
    assert_eq!(begin.mtu, bytes(1452));
    assert!(begin.window <= bytes(12 * 1452), "{}", begin.window);
    world.run_for(Duration::from_millis(5));
    let found = path(&mut world, CLIENT, client);
    assert_eq!(found.mtu, bytes(8972));
    assert!(found.window >= bytes(10 * 8972), "{}", found.window);
}

fn probing_to(limit: u64) -> TransportConfig {
    TransportConfig {
        probe_up_to: Some(bytes(limit)),
        ..TransportConfig::data_center()
    }
}

#[test]
fn probes_find_jumbo_frames_while_the_window_is_full() {
    let mut world = World::new(Plan {
        rate: Rate::from_gbps(1),
        rules: vec![Rule::tail_drop(bytes(200_000))],
        ..plan(probing_to(8972))
    });
    let (client, server) = world.connected();
    let mut flow = Flow::new(&mut world, (CLIENT, client), (SERVER, server), 2_000_000);
    flow.run_to(&mut world, 1_000_000, Duration::from_secs(10));
    assert_eq!(path(&mut world, CLIENT, client).mtu, bytes(8972));
}

#[test]
fn lost_probes_do_not_reduce_the_window() {
    let mut world = World::new(plan(probing_to(8972)));
    set_path_mtu(&mut world, 1500);
    let (client, server) = world.connected();
    let mut flow = Flow::new(&mut world, (CLIENT, client), (SERVER, server), 3_000_000);
    flow.run_to(&mut world, 3_000_000, Duration::from_secs(10));
    let path = path(&mut world, CLIENT, client);
    assert!(path.mtu_probes_lost >= 3, "{}", path.mtu_probes_lost);
    assert_eq!(path.mtu, bytes(1472));
    assert_eq!((path.congestion_events, path.black_holes), (0, 0));
}

#[test]
fn packets_grow_when_the_path_mtu_recovers() {
    let transport = TransportConfig {
        probe_interval: Duration::from_secs(1),
        ..TransportConfig::data_center()
    };
    let mut world = World::new(plan(transport));
    let (client, server) = world.connected();
    let ends = ((CLIENT, client), (SERVER, server));
    set_path_mtu(&mut world, 1300);
    let mut flow = Flow::new(&mut world, ends.0, ends.1, 500_000);
    flow.run_to(&mut world, 500_000, Duration::from_secs(10));
    world.run_for(Duration::from_millis(100));
    assert!(path(&mut world, CLIENT, client).mtu.bytes() <= 1272);
    set_path_mtu(&mut world, 1500);
    world.run_for(Duration::from_secs(2));
    // An idle connection is not woken for it; one in use sends probes.
    assert!(path(&mut world, CLIENT, client).mtu.bytes() <= 1272);
    let mut flow = Flow::new(&mut world, ends.0, ends.1, 500_000);
    flow.run_to(&mut world, 500_000, Duration::from_secs(10));
    assert_eq!(path(&mut world, CLIENT, client).mtu, bytes(1452));
}

fn both_paths(world: &mut World) -> [PathSnapshot; 2] {
    let (client, server) = world.connected();
    let ends = ((CLIENT, client), (SERVER, server));
    for ends in [ends, (ends.1, ends.0)] {
        let mut flow = Flow::new(world, ends.0, ends.1, 200_000);
        flow.run_to(world, 200_000, Duration::from_secs(1));
    }
    let paths = [(CLIENT, client), (SERVER, server)].map(|(host, end)| path(world, host, end));
    for path in &paths {
        assert_eq!((path.black_holes, path.mtu_probes_lost), (0, 0));
    }
    paths
}

#[test]
fn both_ends_respect_the_smaller_interface_mtu() {
    for (mtus, carried) in [
        ([9000, 1500], 1472),
        ([1500, 9000], 1472),
        ([9000, 9000], 8972),
        ([9216, 65_536], 9000),
        // QUIC's smallest packets are sent whatever the interface's MTU.
        ([9000, 1000], 1200),
    ] {
        let mut world = World::new(plan(data_center(9000)));
        for (host, mtu) in [CLIENT, SERVER].into_iter().zip(mtus) {
            let host = &mut world.hosts[host];
            let interfaces = interfaces(&[(host.addresses[0], mtu)]);
            host.endpoint.set_interfaces(interfaces);
        }
        for path in both_paths(&mut world) {
            let expected = (bytes(carried), bytes(carried));
            assert_eq!((path.mtu, path.mtu_limit), expected, "{mtus:?}");
        }
    }
}

#[test]
fn a_configured_limit_below_the_interface_mtu_applies() {
    let mut plan = plan(data_center(9000));
    plan.server.max_udp_payload_size = bytes(3000);
    let mut world = World::new(plan);
    for host in [CLIENT, SERVER] {
        world.set_interface_mtu(host, 9000);
    }
    let [client, server] = both_paths(&mut world);
    assert_eq!((client.mtu, server.mtu), (bytes(3000), bytes(8972)));
}

#[test]
fn probes_stay_within_the_interface_mtu() {
    let mut world = World::new(plan(probing_to(8972)));
    world.set_interface_mtu(CLIENT, 1500);
    // The server does not know its own interface; only the client's limit keeps packets small.
    let [client, server] = both_paths(&mut world);
    assert_eq!((client.mtu, server.mtu), (bytes(1472), bytes(1472)));
    assert!(client.mtu_probes_sent > 0 && server.mtu_probes_sent > 0);
}

#[test]
fn receive_size_uses_the_smallest_interface_send_size_the_used_one() {
    let mut world = World::new(plan(data_center(8972)));
    let (first, second) = (world.hosts[CLIENT].addresses[0], world.add_interface());
    world.hosts[CLIENT].standby = vec![first, second];
    let known = interfaces(&[(first, 9000), (second, 1500)]);
    world.hosts[CLIENT].endpoint.set_interfaces(known);
    let (client, server) = world.connected();
    world.run_for(Duration::from_millis(10));
    assert_eq!(path(&mut world, SERVER, server).mtu, bytes(1472));
    assert_eq!(path(&mut world, CLIENT, client).mtu, bytes(8972));
    let now = world.now;
    let connection = world.connection(CLIENT, client);
    let spare = connection.stats().paths[1].id;
    connection
        .move_to(now, spare, MoveCause::Requested)
        .unwrap();
    let mut flow = Flow::new(&mut world, (CLIENT, client), (SERVER, server), 100_000);
    flow.run_to(&mut world, 100_000, Duration::from_secs(1));
    let used = path(&mut world, CLIENT, client);
    assert_eq!((used.local, used.mtu), (Some(second), bytes(1472)));
    assert_eq!(used.black_holes, 0);
}

#[test]
fn packets_follow_an_interface_that_shrinks_and_grows() {
    let mut world = World::new(plan(data_center(8972)));
    for host in [CLIENT, SERVER] {
        world.set_interface_mtu(host, 9000);
    }
    let (client, server) = world.connected();
    let ends = ((CLIENT, client), (SERVER, server));
    let mut flow = Flow::new(&mut world, ends.0, ends.1, 3_000_000);
    flow.run_to(&mut world, 500_000, Duration::from_secs(1));
    world.set_interface_mtu(CLIENT, 1500);
    assert_eq!(path(&mut world, CLIENT, client).mtu, bytes(1472));
    flow.run_to(&mut world, 1_000_000, Duration::from_secs(1));
    world.set_interface_mtu(CLIENT, 9000);
    flow.run_to(&mut world, 3_000_000, Duration::from_secs(1));
    let path = path(&mut world, CLIENT, client);
    assert_eq!((path.mtu, path.black_holes), (bytes(8972), 0));
}

#[test]
fn the_papers_policy_sets_packet_size_by_task_size() {
    let transport = TransportConfig {
        packet_size_policy: PacketSizePolicy::ByTask,
        ..data_center(9000)
    };
    let mut world = World::new(plan(transport));
    let (client, server) = world.connected();
    let ends = ((CLIENT, client), (SERVER, server));
    let mut small = Flow::new(&mut world, ends.0, ends.1, 100_000);
    small.run_to(&mut world, 100_000, Duration::from_secs(1));
    assert_eq!(path(&mut world, CLIENT, client).mtu, bytes(8972));
    let mut large = Flow::new(&mut world, ends.0, ends.1, 3_000_000);
    large.run_to(&mut world, 500_000, Duration::from_secs(1));
    assert_eq!(path(&mut world, CLIENT, client).mtu, bytes(5000));
    large.run_to(&mut world, 3_000_000, Duration::from_secs(1));
    world.run_for(Duration::from_millis(2));
    let mut small = Flow::new(&mut world, ends.0, ends.1, 100_000);
    small.run_to(&mut world, 100_000, Duration::from_secs(1));
    assert_eq!(path(&mut world, CLIENT, client).mtu, bytes(8972));

    // A declared large task uses its packet size from the first byte on.
    world
        .connection(CLIENT, client)
        .set_task_size(Some(bytes(1_000_000)));
    let mut large = Flow::new(&mut world, ends.0, ends.1, 1_000_000);
    large.run_to(&mut world, 100, Duration::from_secs(1));
    assert_eq!(path(&mut world, CLIENT, client).mtu, bytes(5000));
}

#[test]
fn a_fixed_size_applies_up_to_the_path_limit() {
    let mut world = World::new(plan(data_center(8972)));
    let (client, server) = world.connected();
    let ends = ((CLIENT, client), (SERVER, server));
    for (size, expected) in [(5000, 5000), (20_000, 8972)] {
        world
            .connection(CLIENT, client)
            .set_packet_size_policy(PacketSizePolicy::Fixed(bytes(size)))
            .unwrap();
        let mut flow = Flow::new(&mut world, ends.0, ends.1, 100_000);
        flow.run_to(&mut world, 100_000, Duration::from_secs(1));
        assert_eq!(path(&mut world, CLIENT, client).mtu, bytes(expected));
    }
    let wrong = PacketSizePolicy::Fixed(bytes(1199));
    let connection = world.connection(CLIENT, client);
    assert!(connection.set_packet_size_policy(wrong).is_err());
}

#[test]
fn invalid_packet_sizes_are_rejected() {
    let probing = |size| TransportConfig {
        probe_up_to: Some(bytes(size)),
        ..TransportConfig::wan()
    };
    let error = probing(1199).validate().unwrap_err().to_string();
    assert!(error.contains("probe_up_to is 1.199KB"), "{error}");
    assert!(probing(65_528).validate().is_err());
    assert_eq!(probing(9000).validate(), Ok(()));
    let fixed = TransportConfig {
        packet_size_policy: PacketSizePolicy::Fixed(bytes(100)),
        ..TransportConfig::wan()
    };
    let error = fixed.validate().unwrap_err().to_string();
    assert!(error.contains("packet_size_policy"), "{error}");
}
