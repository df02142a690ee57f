//! A first flight keeps to what the peer's receive buffer takes.

use crate::world::{CLIENT, Plan, World};
use weir_quic::{Direction, TransportConfig};
use weir_units::ByteSize;

/// Returns the bytes that a client with a lot of data sends before it receives anything.
fn first_flight(receive_burst: Option<ByteSize>) -> usize {
    let transport = TransportConfig {
        packet_size: Some(ByteSize::from_bytes(8_972)),
        ..TransportConfig::data_center()
    };
    let mut world = World::new(Plan {
        client: transport.clone(),
        server: transport,
        receive_burst,
        ..Plan::default()
    });
    let (client, _) = world.connected();
    let now = world.now;
    let connection = world.connection(CLIENT, client);
    let stream = connection.open(Direction::Bidirectional).unwrap();
    connection.write(stream, &vec![7; 1_000_000]).unwrap();
    let mut sent = Vec::new();
    while connection.poll_transmit(now, &mut sent, 64).is_some() {}
    sent.len()
}

#[test]
fn a_first_flight_fits_the_announced_receive_buffer() {
    let unbounded = first_flight(None);
    assert!(unbounded > 80_000, "{unbounded}");
    let bounded = first_flight(Some(ByteSize::from_bytes(40_000)));
    assert!((30_000..=40_000).contains(&bounded), "{bounded}");
    // A peer cannot stop the sender.
    let least = first_flight(Some(ByteSize::ZERO));
    assert!((8_000..=14_720).contains(&least), "{least}");
}
