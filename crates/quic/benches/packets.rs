//! What a packet costs the engine, without sockets: a stream fills packets of 1452 and 8972 bytes, in
//! batches as GSO sends them. `make bench-packets` prints the time per packet of the sender, the receiver
//! and the acknowledgments, beside what AES-128-GCM alone takes to seal and open as many bytes.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark")]

#[path = "support/credentials.rs"]
mod credentials;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use bytes::Bytes;
use weir_quic::{
    ClientConfig, Connection, Direction, Endpoint, EndpointConfig, Route, ServerConfig, StreamId,
    TransportConfig,
};
use weir_units::{ByteSize, Duration, Time};
use weir_wire::{Ecn, Transmit};

use credentials::credentials;

/// UDP payloads.
const SIZES: [u64; 2] = [1452, 8972];
/// Bytes per round, and the rounds of which the median is printed.
const BYTES: u64 = 100_000_000;
const ROUNDS: usize = 7;
/// Header, packet number and tag of a packet in the comparison.
const HEADER: usize = 11;
const TAG: usize = 16;
/// The time of a batch on its way.
const DELAY: Duration = Duration::from_micros(20);
const CLIENT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 4000);
const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 4433);

/// Nanoseconds per packet.
#[derive(Clone, Copy)]
struct Costs {
    send: f64,
    receive: f64,
    acknowledge: f64,
}

fn main() {
    // `cargo test` runs benchmarks too.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    println!(
        "ns per packet, medians of {ROUNDS} rounds of {} MB",
        BYTES / 1_000_000
    );
    println!("UDP payload   send  receive  ACKs    all  AES-GCM alone  all / AES-GCM");
    for size in SIZES {
        let mut pair = Pair::connect(size);
        let mut rounds: Vec<Costs> = (0..ROUNDS).map(|_| pair.transfer()).collect();
        rounds.sort_by(|a, b| a.sum().total_cmp(&b.sum()));
        let costs = rounds[ROUNDS / 2];
        let alone = aes_gcm(size as usize);
        println!(
            "{size:11} {:6.0} {:8.0} {:5.0} {:6.0} {:14.0} {:14.2}",
            costs.send,
            costs.receive,
            costs.acknowledge,
            costs.sum(),
            alone,
            costs.sum() / alone
        );
    }
}

impl Costs {
    fn sum(&self) -> f64 {
        self.send + self.receive + self.acknowledge
    }
}

/// Two connections that are connected to each other.
struct Pair {
    now: Time,
    client: Connection,
    server: Connection,
    stream: StreamId,
    buffer: Vec<u8>,
    block: Bytes,
}

impl Pair {
    fn connect(size: u64) -> Self {
        let (client_tls, server_tls) = credentials();
        let transport = Arc::new(TransportConfig {
            packet_size: Some(ByteSize::from_bytes(size)),
            pacing: false,
            ..TransportConfig::data_center()
        });
        let mut now = Time::from_nanos(1_000_000_000);
        let config = EndpointConfig::default;
        let server_config = ServerConfig::new(server_tls, Arc::clone(&transport));
        let mut dialer = Endpoint::new(config(), None, [1; 32]);
        let mut listener = Endpoint::new(config(), Some(server_config), [2; 32]);
        let client_config = ClientConfig::new(client_tls, transport);
        let connected = dialer.connect(now, client_config, SERVER, Some(CLIENT), "localhost");
        let (_, mut client) = connected.unwrap();
        let mut server: Option<Connection> = None;
        let mut buffer = Vec::new();
        for _ in 0..20 {
            now += DELAY;
            while let Some(sent) = batch(&mut client, now, &mut buffer) {
                for datagram in segments(&mut buffer, &sent) {
                    match &mut server {
                        Some(server) => {
                            server.handle_datagram(now, CLIENT, Some(SERVER), Ecn::Ect0, datagram);
                        }
                        None => {
                            let route =
                                listener.route(now, CLIENT, Some(SERVER), Ecn::Ect0, datagram);
                            let Route::New(_, connection) = route else {
                                continue;
                            };
                            server = Some(*connection);
                        }
                    }
                }
            }
            let Some(server) = &mut server else { continue };
            server.end_batch(now);
            now += DELAY;
            while let Some(sent) = batch(server, now, &mut buffer) {
                for datagram in segments(&mut buffer, &sent) {
                    client.handle_datagram(now, SERVER, Some(CLIENT), Ecn::Ect0, datagram);
                }
            }
            client.end_batch(now);
        }
        assert!(client.is_established());
        let stream = client.open(Direction::Unidirectional).unwrap();
        Self {
            now,
            client: *client,
            server: server.unwrap(),
            stream,
            buffer,
            block: Bytes::from(vec![7; 256 * 1024]),
        }
    }

    /// Transfers [`BYTES`] from the client to the server.
    fn transfer(&mut self) -> Costs {
        let (mut send, mut receive, mut acknowledge) = (0, 0, 0);
        let (mut packets, mut left) = (0_u64, BYTES);
        let mut written = BYTES;
        let mut copies = Vec::new();
        while left > 0 {
            let begin = Instant::now();
            while written > 0 {
                let length = self.block.len().min(written as usize);
                let mut block = self.block.slice(..length);
                match self.client.write_bytes(self.stream, &mut block) {
                    Ok(count) if count > 0 => written -= count as u64,
                    _ => break,
                }
            }
            let sent = batch(&mut self.client, self.now, &mut self.buffer);
            send += begin.elapsed().as_nanos();
            self.now += DELAY;
            if let Some(sent) = sent {
                packets += segments(&mut self.buffer, &sent).count() as u64;
                // The kernel copies what it delivers.
                copies.clear();
                copies.extend_from_slice(&self.buffer);
                let begin = Instant::now();
                for datagram in segments(&mut copies, &sent) {
                    let (now, server) = (self.now, &mut self.server);
                    server.handle_datagram(now, CLIENT, Some(SERVER), Ecn::Ect0, datagram);
                }
                self.server.end_batch(self.now);
                while self.server.accept(Direction::Unidirectional).is_some() {}
                left -= read(&mut self.server, self.stream);
                receive += begin.elapsed().as_nanos();
            }
            let begin = Instant::now();
            while self.server.poll_event().is_some() {}
            while let Some(sent) = batch(&mut self.server, self.now, &mut self.buffer) {
                for datagram in segments(&mut self.buffer, &sent) {
                    let (now, client) = (self.now, &mut self.client);
                    client.handle_datagram(now, SERVER, Some(CLIENT), Ecn::Ect0, datagram);
                }
                self.client.end_batch(self.now);
            }
            if self.client.timeout().is_some_and(|due| due <= self.now) {
                self.client.handle_timeout(self.now);
            }
            if self.server.timeout().is_some_and(|due| due <= self.now) {
                self.server.handle_timeout(self.now);
            }
            while self.client.poll_event().is_some() {}
            acknowledge += begin.elapsed().as_nanos();
        }
        let per_packet = |nanoseconds: u128| nanoseconds as f64 / packets as f64;
        Costs {
            send: per_packet(send),
            receive: per_packet(receive),
            acknowledge: per_packet(acknowledge),
        }
    }
}

fn batch(connection: &mut Connection, now: Time, buffer: &mut Vec<u8>) -> Option<Transmit> {
    buffer.clear();
    connection.poll_transmit(now, buffer, 64)
}

fn segments<'b>(buffer: &'b mut [u8], sent: &Transmit) -> impl Iterator<Item = &'b mut [u8]> {
    buffer.chunks_mut(sent.segment_size.unwrap_or(sent.size).max(1))
}

/// Reads all that has arrived; returns its bytes.
fn read(connection: &mut Connection, stream: StreamId) -> u64 {
    let mut total = 0;
    while let Ok(Some(data)) = connection.read(stream, 64 * 1024) {
        if data.is_empty() {
            break;
        }
        total += data.len() as u64;
    }
    total
}

/// Returns the time to seal and open a packet of this size in place, in nanoseconds.
fn aes_gcm(size: usize) -> f64 {
    const COUNT: u32 = 20_000;
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &[7; 16]).unwrap());
    let nonce = || Nonce::assume_unique_for_key([0; 12]);
    let header = [1; HEADER];
    let mut payload = vec![0; size - HEADER];
    let end = payload.len() - TAG;
    let mut rounds = [0.0; ROUNDS];
    for round in &mut rounds {
        let begin = Instant::now();
        for _ in 0..COUNT {
            let (data, tag) = payload.split_at_mut(end);
            let sealed = key.seal_in_place_separate_tag(nonce(), Aad::from(header), data);
            tag.copy_from_slice(sealed.unwrap().as_ref());
            key.open_in_place(nonce(), Aad::from(header), &mut payload)
                .unwrap();
        }
        *round = begin.elapsed().as_nanos() as f64 / f64::from(COUNT);
    }
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}
