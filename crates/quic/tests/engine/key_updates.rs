//! Key updates by the application (RFC 9001, section 6), on either side and on both at once.

use crate::world::{CLIENT, Plan, SERVER, World, pattern};
use weir_fabric::{FaultSettings, Probability, Reordering};
use weir_quic::UpdateKeysError;
use weir_units::{ByteSize, Duration};

fn probability(value: f64) -> Probability {
    Probability::new(value).unwrap()
}

fn impaired_link() -> FaultSettings {
    FaultSettings {
        loss: probability(0.02),
        duplication: probability(0.02),
        reordering: Reordering {
            probability: probability(0.05),
            delay: Duration::from_micros(150),
        },
        ..Default::default()
    }
}

#[test]
fn keys_are_updated_during_transfers() {
    for (seed, hosts) in [
        (0, &[CLIENT][..]),
        (1, &[SERVER]),
        (2, &[CLIENT, SERVER]),
        (3, &[CLIENT, SERVER]),
        (4, &[SERVER, CLIENT]),
    ] {
        let mut plan = Plan {
            seed,
            faults: impaired_link(),
            ..Plan::default()
        };
        // Small packets: more of them.
        plan.client.packet_size = Some(ByteSize::from_bytes(1200));
        plan.server.packet_size = Some(ByteSize::from_bytes(1200));
        let mut world = World::new(plan);
        let (client, server) = world.connected();
        let handles = [client, server];
        let mut began = [0_u64; 2];
        for round in 0..20 {
            for host in hosts {
                let now = world.now;
                if world
                    .connection(*host, handles[*host])
                    .update_keys(now)
                    .is_ok()
                {
                    began[*host] += 1;
                }
            }
            let data = pattern(30_000);
            let limit = Duration::from_secs(10);
            let (from, to) = match round % 2 {
                0 => ((CLIENT, client), (SERVER, server)),
                _ => ((SERVER, server), (CLIENT, client)),
            };
            assert!(
                world.transfer(from, to, &data, limit) == Some(data),
                "{seed}"
            );
            world.run_for(Duration::from_millis(5));
        }
        for host in hosts {
            assert!(
                began[*host] >= 10,
                "host {host} began {} updates",
                began[*host]
            );
        }
        let updates = handles
            .iter()
            .enumerate()
            .map(|(host, handle)| world.connection(host, *handle).stats().key_updates);
        let updates: Vec<_> = updates.collect();
        assert_eq!(updates[0], updates[1], "both are in the same phase");
        assert!(updates[0] >= began[0].max(began[1]));
        if hosts.len() == 2 {
            assert!(updates[0] < began[0] + began[1], "some were simultaneous");
        }
    }
}

#[test]
fn premature_key_updates_are_rejected() {
    let mut world = World::new(Plan::default());
    let client = world.connect();
    let now = world.now;
    let connection = world.connection(CLIENT, client);
    assert_eq!(
        connection.update_keys(now),
        Err(UpdateKeysError::NotConfirmed)
    );
    world.run_for(Duration::from_millis(50));
    let now = world.now;
    let connection = world.connection(CLIENT, client);
    assert_eq!(connection.update_keys(now), Ok(()));
    assert_eq!(
        connection.update_keys(now),
        Err(UpdateKeysError::Unacknowledged)
    );
    assert_eq!(connection.stats().key_updates, 1);
    // The PING notifies the peer.
    assert!(world.run_until(Duration::from_millis(10), |world| {
        let server = world.hosts[SERVER].connections.values().next().unwrap();
        server.stats().key_updates == 1
    }));
    assert!(world.run_until(Duration::from_millis(10), |world| {
        let now = world.now;
        let connection = world.connection(CLIENT, client);
        matches!(
            connection.update_keys(now),
            Err(UpdateKeysError::TooSoon(_))
        )
    }));
    let now = world.now;
    let Err(UpdateKeysError::TooSoon(wait)) = world.connection(CLIENT, client).update_keys(now)
    else {
        panic!("too soon");
    };
    world.run_for(wait);
    let now = world.now;
    let connection = world.connection(CLIENT, client);
    assert_eq!(connection.update_keys(now), Ok(()));
    connection.close(now, 0, b"");
    assert_eq!(connection.update_keys(now), Err(UpdateKeysError::Closed));
}

#[test]
fn an_update_after_the_peers_update_needs_no_data() {
    let mut world = World::new(Plan::default());
    let (client, server) = world.connected();
    world.run_for(Duration::from_millis(50));
    let now = world.now;
    let updated = world.connection(SERVER, server).update_keys(now);
    assert_eq!(updated, Ok(()));
    world.run_for(Duration::from_millis(50));
    let now = world.now;
    let connection = world.connection(CLIENT, client);
    assert_eq!(connection.stats().key_updates, 1);
    // No packet that the client sent under the server's new keys was ack-eliciting.
    assert_eq!(
        connection.update_keys(now),
        Err(UpdateKeysError::Unacknowledged)
    );
    world.run_for(Duration::from_millis(50));
    let now = world.now;
    assert_eq!(world.connection(CLIENT, client).update_keys(now), Ok(()));
}
