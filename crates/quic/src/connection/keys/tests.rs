//! Key phases, and when a side may start the next one.

use super::*;
use crate::crypto::{AnyHeaderKey, DirectionKeys, HeaderKey, OpenError};

/// Opens packets that were sealed in the phase with the same number.
struct Phase(u8);

impl PacketKey for Phase {
    fn seal(&self, _: u64, _: usize, packet: &mut [u8]) {
        packet.fill(self.0);
    }
    fn open(&self, _: u64, _: &[u8], payload: &mut [u8]) -> Result<usize, OpenError> {
        (payload == [self.0]).then_some(1).ok_or(OpenError)
    }
    fn tag_length(&self) -> usize {
        0
    }
    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }
    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HeaderKey for Phase {
    fn protect(&self, _: usize, _: &mut [u8]) {}
    fn unprotect(&self, _: usize, _: &mut [u8]) -> Option<usize> {
        None
    }
}

struct Phases(u8);

impl KeyUpdates for Phases {
    fn next_keys(&mut self) -> PacketKeys {
        self.0 += 1;
        PacketKeys {
            local: AnyPacketKey::new(Phase(self.0)),
            remote: AnyPacketKey::new(Phase(self.0)),
        }
    }
}

fn keys() -> OneRttKeys {
    let direction = || DirectionKeys {
        header: AnyHeaderKey::new(Phase(0)),
        packet: AnyPacketKey::new(Phase(0)),
    };
    let keys = Keys {
        local: direction(),
        remote: direction(),
    };
    OneRttKeys::new(keys, Box::new(Phases(0)))
}

const RETENTION: Duration = Duration::from_micros(10);

fn at(micros: u64) -> Time {
    Time::ZERO + Duration::from_micros(micros)
}

/// Receives a packet that the peer sealed in that phase; returns whether it could be opened.
fn receive(keys: &mut OneRttKeys, phase: u8, number: u64) -> bool {
    let bit = phase % 2 == 1;
    let (key, opened) = keys.remote(bit, number);
    if key.open(number, &[], &mut [phase]).is_err() {
        return false;
    }
    keys.on_opened(opened, bit, number, 100);
    true
}

#[test]
fn a_second_update_before_our_ack_is_an_error() {
    let mut keys = keys();
    assert!(receive(&mut keys, 0, 0) && receive(&mut keys, 1, 1));
    assert!(!keys.too_early, "the first update needs no acknowledgment");
    keys.on_ack_sent(0);
    assert!(receive(&mut keys, 2, 2));
    assert!(
        keys.too_early,
        "what was acknowledged is of the phase before"
    );
}

#[test]
fn the_peer_may_update_again_after_our_ack() {
    let mut keys = keys();
    let mut number = 0;
    for phase in 0..10 {
        assert!(receive(&mut keys, phase, number));
        keys.on_ack_sent(number);
        // A reordered packet is opened by the keys of its phase.
        assert!(receive(&mut keys, phase, number + 1));
        number += 2;
    }
    assert!(!keys.too_early);
    assert_eq!(keys.update_count, 9);
}

#[test]
fn both_sides_may_update_simultaneously() {
    let mut keys = keys();
    assert!(receive(&mut keys, 0, 0));
    keys.begin_update(at(0), 7, RETENTION).unwrap();
    assert!(receive(&mut keys, 0, 2) && receive(&mut keys, 1, 3));
    assert!(receive(&mut keys, 0, 1), "it was overtaken");
    assert_eq!((keys.update_count, keys.too_early), (1, false));
    // It must not carry an ACK of packets that we sent since.
    assert!(keys.opened_by_previous && keys.first_sent == 7);
    assert!(receive(&mut keys, 1, 4) && !keys.opened_by_previous);
}

#[test]
fn an_update_waits_for_the_previous_one_and_old_keys_expire() {
    let mut keys = keys();
    keys.begin_update(at(0), 7, RETENTION).unwrap();
    assert!(receive(&mut keys, 1, 3));
    keys.on_acked(at(1), 6, RETENTION);
    assert_eq!(
        keys.begin_update(at(1), 8, RETENTION),
        Err(UpdateKeysError::Unacknowledged)
    );
    keys.on_acked(at(2), 7, RETENTION);
    assert_eq!(
        keys.begin_update(at(5), 8, RETENTION),
        Err(UpdateKeysError::TooSoon(Duration::from_micros(7)))
    );
    assert!(receive(&mut keys, 0, 2), "old keys are still there");
    keys.on_acked(at(12), 8, RETENTION);
    assert!(!receive(&mut keys, 0, 1), "old keys are gone");
    assert_eq!(keys.begin_update(at(12), 9, RETENTION), Ok(()));
    assert_eq!(keys.update_count, 2);
}
