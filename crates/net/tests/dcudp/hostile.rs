//! Attackers at the socket.

use std::net::UdpSocket;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use weir_net::dcudp::{DcudpListener, Stream};

use super::{config, loopback, pair, pattern, run};

/// A client's first packet: version 1, stream, no cookie.
fn request(socket: u32, cookie: u64) -> Vec<u8> {
    let mut packet = vec![0x80, 0, 0, 0];
    packet.extend([0; 12]);
    packet.extend(1_u32.to_be_bytes());
    packet.extend([0, 1, 0, 0]);
    packet.extend(7_u32.to_be_bytes());
    packet.extend(1452_u32.to_be_bytes());
    packet.extend(1024_u32.to_be_bytes());
    packet.extend(0_u32.to_be_bytes());
    packet.extend(socket.to_be_bytes());
    packet.extend(cookie.to_be_bytes());
    packet.extend([5; 16]);
    packet
}

#[test]
fn clients_without_a_cookie_use_no_connection() {
    run(async {
        let listener: DcudpListener = DcudpListener::bind(loopback(), config()).unwrap();
        let address = listener.local_address();
        let stranger = UdpSocket::bind(loopback()).unwrap();
        stranger.set_nonblocking(true).unwrap();
        let mut answers = 0;
        for number in 1..=200_u32 {
            for packet in [
                request(number, 0),
                request(number, u64::from(number) << 20),
                pattern(number.into(), number as usize),
                Vec::new(),
            ] {
                stranger.send_to(&packet, address).unwrap();
            }
            tokio::task::yield_now().await;
            let mut answer = [0; 2048];
            while let Ok(length) = stranger.recv(&mut answer) {
                assert!(length <= request(0, 0).len());
                answers += 1;
            }
        }
        let counters = loop {
            let counters = listener.counters();
            if counters.challenges >= 400 {
                break counters;
            }
            tokio::task::yield_now().await;
        };
        assert!(counters.dropped > 0 && answers > 0, "{counters:?}");
        // No connection has arrived.
        let limit = weir_net::Duration::from_millis(1);
        listener.wait_idle(limit).await.unwrap();
    });
}

#[test]
fn packets_from_other_addresses_do_not_affect_a_connection() {
    run(async {
        let mut pair = pair::<Stream>().await;
        let stranger = UdpSocket::bind(loopback()).unwrap();
        let address = pair.sockets.1.local_address();
        // All names that the listener's first connection may have.
        for random in 0..4096_u32 {
            let name = random << 20 | 1;
            let mut shutdown = vec![0x80, 5, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
            shutdown.extend(name.to_be_bytes());
            shutdown.extend([0; 12]);
            stranger.send_to(&shutdown, address).unwrap();
        }
        let data = pattern(9, 1_000_000);
        let mut received = vec![0; data.len()];
        let (sent, read) = tokio::join!(
            pair.client.write_all(&data),
            pair.server.read_exact(&mut received)
        );
        sent.unwrap();
        read.unwrap();
        assert!(received == data);
        assert_eq!(pair.server.stats().foreign, 1);
    });
}
