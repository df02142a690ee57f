//! The table of known clients: limits, lifetimes, memory.

use super::*;
use crate::Side;
use crate::transport_parameters::TransportParameters;

const NOW: Time = Time::from_nanos(1_700_000_000_000_000_000);

fn record(number: u32, address: IpAddr) -> KnownClientRecord {
    KnownClientRecord {
        secret: PathSecret::from_exported(&number.to_be_bytes()),
        identity: Identity::default(),
        peer_parameters: Box::default(),
        own_parameters: Box::default(),
        address,
    }
}

fn address(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

#[test]
fn a_client_with_many_secrets_evicts_its_own_and_not_those_of_others() {
    let config = KnownClientsConfig {
        capacity: 10,
        per_client: 4,
        ..KnownClientsConfig::default()
    };
    let clients = KnownClients::new(config, NOW);
    let honest = record(0, address(1));
    let id = honest.secret.id();
    assert_eq!(clients.add(NOW, honest), Some(config.lifetime));
    for number in 1..100 {
        let later = NOW + Duration::from_millis(u64::from(number));
        clients.add(later, record(number, address(2)));
    }
    assert_eq!(clients.counters().held, 5);
    assert!(clients.find(NOW, &id).is_some());
}

#[test]
fn a_client_that_is_not_accepted_any_more_has_no_secret_and_gets_none() {
    let clients = KnownClients::new(KnownClientsConfig::default(), NOW);
    let named = |number: u32, name: &[u8]| KnownClientRecord {
        identity: Identity {
            peer_certificates: vec![name.to_vec()],
            ..Identity::default()
        },
        ..record(number, address(1))
    };
    let ids: Vec<_> = (0..10)
        .map(|number| {
            let name: &[u8] = if number < 4 { b"good" } else { b"revoked" };
            let record = named(number, name);
            let id = record.secret.id();
            assert!(clients.add(NOW, record).is_some());
            id
        })
        .collect();
    clients.restrict(NOW, |client| client.peer_certificates[0] == b"good");
    let found = ids.iter().filter(|id| clients.find(NOW, id).is_some());
    assert_eq!((found.count(), clients.counters().held), (4, 4));
    assert_eq!(clients.memory(NOW), Duration::ZERO);
    assert!(clients.add(NOW, named(20, b"revoked")).is_none());
    assert!(clients.add(NOW, named(21, b"good")).is_some());
}

#[test]
fn a_full_table_takes_from_the_client_that_holds_most() {
    let config = KnownClientsConfig {
        capacity: 10,
        per_client: 100,
        ..KnownClientsConfig::default()
    };
    let clients = KnownClients::new(config, NOW);
    let honest = record(0, address(1));
    let id = honest.secret.id();
    clients.add(NOW, honest);
    for number in 1..50 {
        let later = NOW + Duration::from_millis(u64::from(number));
        clients.add(later, record(number, address(2)));
    }
    assert!(clients.find(NOW, &id).is_some());
    assert_eq!(clients.counters().held, 10);
    assert_eq!(clients.counters().evicted, 40);
}

#[test]
fn a_secret_ends_with_its_lifetime_or_the_certificate() {
    let clients = KnownClients::new(KnownClientsConfig::default(), NOW);
    let mut expiring = record(1, address(1));
    expiring.identity.expires = Some(NOW + Duration::from_secs(5));
    let id = expiring.secret.id();
    assert_eq!(clients.add(NOW, expiring), Some(Duration::from_secs(5)));
    assert!(clients.find(NOW + Duration::from_secs(4), &id).is_some());
    assert!(clients.find(NOW + Duration::from_secs(5), &id).is_none());
    assert_eq!(clients.counters().held, 0);
    let mut over = record(2, address(1));
    over.identity.expires = Some(NOW);
    assert_eq!(clients.add(NOW, over), None);
}

#[test]
fn an_abandoned_key_id_cannot_be_used() {
    let clients = KnownClients::new(KnownClientsConfig::default(), NOW);
    let record = record(1, address(1));
    let id = record.secret.id();
    clients.add(NOW, record);
    let client = clients.find(NOW, &id).unwrap();
    assert_eq!(clients.abandon(NOW, &id, 7), Abandonment::Fresh);
    assert_eq!(clients.use_up(&client, 7), Verdict::Used);
    assert_eq!(clients.use_up(&client, 8), Verdict::Fresh);
    assert_eq!(clients.abandon(NOW, &id, 8), Abandonment::Used);
    clients.clear(NOW);
    assert_eq!(clients.abandon(NOW, &id, 9), Abandonment::Unknown);
}

/// With what a handshake of this engine establishes, without a client's certificate.
#[test]
fn ten_thousand_clients_take_less_than_a_kilobyte_each() {
    const CLIENTS: u32 = 10_000;
    let parameters = |side| {
        let parameters = TransportParameters {
            initial_max_data: 1 << 22,
            initial_max_stream_data_bidi_local: 1 << 20,
            initial_max_stream_data_bidi_remote: 1 << 20,
            initial_max_stream_data_uni: 1 << 20,
            initial_max_streams_bidi: 1024,
            initial_max_streams_uni: 1024,
            max_idle_timeout: Duration::from_secs(30),
            max_ack_delay: Duration::from_millis(8),
            min_ack_delay: Some(Duration::from_micros(50)),
            fine_max_ack_delay: Some(Duration::from_micros(500)),
            ..TransportParameters::default()
        };
        parameters.to_remembered(side)
    };
    let clients = KnownClients::new(KnownClientsConfig::default(), NOW);
    let used = allocation_counter::measure(|| {
        for number in 0..CLIENTS {
            let mut record = record(number, IpAddr::from(number.to_be_bytes()));
            record.identity.application_protocol = Some(b"weir".to_vec());
            record.identity.server_name = Some("server.example".to_owned());
            record.peer_parameters = parameters(Side::Client);
            record.own_parameters = parameters(Side::Server);
            clients.add(NOW, record);
        }
    });
    assert_eq!(clients.counters().held, CLIENTS as usize);
    let each = used.bytes_current / i64::from(CLIENTS);
    assert!((300..=1024).contains(&each), "{each} bytes");
}

#[test]
fn ipv6_clients_of_a_network_are_one() {
    let one = Owner::of(&Identity::default(), "2001:db8::1".parse().unwrap());
    let other = Owner::of(&Identity::default(), "2001:db8::2:3".parse().unwrap());
    let far = Owner::of(&Identity::default(), "2001:db8:1::1".parse().unwrap());
    assert_eq!(one, other);
    assert_ne!(one, far);
}

#[test]
fn a_removed_secret_ends_the_time_that_the_table_is_complete() {
    let config = KnownClientsConfig {
        capacity: 1,
        ..KnownClientsConfig::default()
    };
    let clients = KnownClients::new(config, NOW);
    let at = |seconds| NOW + Duration::from_secs(seconds);
    assert_eq!(clients.memory(at(5)), Duration::from_secs(5));
    clients.add(at(6), record(1, address(1)));
    assert_eq!(clients.memory(at(10)), Duration::from_secs(10));
    // The second one takes the place of the first.
    clients.add(at(20), record(2, address(2)));
    assert_eq!(clients.memory(at(25)), Duration::from_secs(5));
    let id = record(2, address(2)).secret.id();
    assert!(clients.find(at(10_000), &id).is_none());
    assert_eq!(clients.memory(at(10_001)), Duration::from_secs(1));
    clients.clear(at(10_002));
    assert_eq!(clients.memory(at(10_002)), Duration::ZERO);
}
