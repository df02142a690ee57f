//! Packet protection with a toy cipher in place of an AEAD: modified, replayed or forged packets
//! have no effect.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod world;

use std::sync::Arc;

use weir_dcudp::protection::{ASSOCIATED_LENGTH, PacketProtection, Session, SharedKey};
use weir_dcudp::{ConnectionError, TransportConfig};
use weir_fabric::{FaultSettings, Probability, Reordering};
use weir_units::{ByteSize, Duration};
use world::{CLIENT, Plan, SERVER, World};

const MINUTE: Duration = Duration::from_secs(60);

/// A toy, not a cipher.
#[derive(Debug)]
struct Toy(u64);

#[derive(Debug)]
struct ToySession {
    sending: u64,
    receiving: u64,
}

fn mix(key: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(key, |hash, byte| {
        (hash.rotate_left(7) ^ u64::from(*byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

fn tag_of(key: u64, number: u64, associated: &[u8], body: &[u8]) -> [u8; 16] {
    let hash = mix(mix(key ^ number, associated), body);
    let hash = u128::from(hash) << 64 | u128::from(mix(hash, b"again"));
    hash.to_be_bytes()
}

impl SharedKey for Toy {
    fn tag(&self, message: &[u8]) -> [u8; 16] {
        tag_of(self.0, 0, b"handshake", message)
    }

    fn session(&self, session: &Session) -> Box<dyn PacketProtection> {
        let base = mix(mix(self.0, &session.client_random), &session.server_random);
        let base = base ^ u64::from(session.client.0) << 32 ^ u64::from(session.server.0);
        let (client, server) = (mix(base, b"client"), mix(base, b"server"));
        let (sending, receiving) = if session.is_client {
            (client, server)
        } else {
            (server, client)
        };
        Box::new(ToySession { sending, receiving })
    }
}

impl PacketProtection for ToySession {
    fn overhead(&self) -> usize {
        16
    }

    fn seal(
        &self,
        number: u64,
        associated: &[u8; ASSOCIATED_LENGTH],
        buffer: &mut Vec<u8>,
        body: usize,
    ) {
        let tag = tag_of(self.sending, number, associated, &buffer[body..]);
        buffer.extend_from_slice(&tag);
    }

    fn open(
        &self,
        number: u64,
        associated: &[u8; ASSOCIATED_LENGTH],
        body: &mut [u8],
    ) -> Option<usize> {
        let length = body.len().checked_sub(16)?;
        let (rest, tag) = body.split_at(length);
        (tag_of(self.receiving, number, associated, rest) == tag).then_some(length)
    }
}

fn keyed(key: u64) -> impl Fn(&mut TransportConfig) {
    move |config| config.shared_key = Some(Arc::new(Toy(key)))
}

fn transfer(mut world: World, amount: u64) -> World {
    world.hosts[CLIENT].flow.to_send = amount;
    for host in &mut world.hosts {
        host.flow.finishes = true;
    }
    world.service(CLIENT);
    world.run(MINUTE);
    assert_eq!(world.hosts[SERVER].flow.received, amount);
    assert_eq!(world.hosts[SERVER].closed(), Some(None));
    world
}

#[test]
fn sealed_packets_fit_the_packet_size_and_are_delivered() {
    let probability = |value| Probability::new(value).unwrap();
    let faults = FaultSettings {
        loss: probability(0.05),
        duplication: probability(0.2),
        reordering: Reordering {
            probability: probability(0.1),
            delay: Duration::from_micros(200),
        },
        ..FaultSettings::default()
    };
    let plan = Plan {
        faults,
        ..Plan::default()
    };
    let mut world = World::new(plan.both(keyed(5)));
    world.tap = Some(Box::new(|_, _, datagram| {
        assert!(datagram.bytes.len() <= 1472);
        true
    }));
    let mut world = transfer(world, 1_000_000);
    // Replayed copies are detected by their numbers.
    assert!(world.hosts[SERVER].connection().stats().unauthentic > 10);
    let size = world.hosts[SERVER].connection().stats().packet_size;
    assert_eq!(size, ByteSize::from_bytes(1472));
}

#[test]
fn tampered_packets_are_dropped_and_retransmitted() {
    let mut world = World::new(Plan::default().both(keyed(5)));
    let mut count = 0_usize;
    world.tap = Some(Box::new(move |_, _, datagram| {
        count += 1;
        // Headers too, except for the socket id, which routes the packet.
        let place = [0, 5, 9, 17, 30, 60][count % 6];
        if count.is_multiple_of(5)
            && let Some(byte) = datagram.bytes.get_mut(place)
        {
            *byte ^= 1 << (count % 8);
        }
        true
    }));
    transfer(world, 500_000);
}

#[test]
fn ends_with_different_keys_do_not_connect() {
    let with = |client: Option<u64>, server: Option<u64>| {
        let mut plan = Plan::default();
        if let Some(key) = client {
            keyed(key)(&mut plan.client);
        }
        if let Some(key) = server {
            keyed(key)(&mut plan.server);
        }
        let mut world = World::new(plan);
        world.run_until(MINUTE, |world| world.hosts[CLIENT].closed().is_some());
        assert!(world.hosts[SERVER].connection.is_none());
        world.hosts[CLIENT].closed().flatten().unwrap()
    };
    let refused = |error| matches!(error, ConnectionError::Refused(_));
    let silent = |error| matches!(error, ConnectionError::HandshakeTimeout(_));
    assert!(silent(with(Some(1), Some(2))));
    assert!(refused(with(None, Some(2))));
    // A refusal without a tag could be forged.
    assert!(silent(with(Some(1), None)));
}
