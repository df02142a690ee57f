//! Path secrets and their keys, against HKDF from another library.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::refusal::Refusal;
use super::{Abandonment, PathSecret, RefusalKind, refusal_token};
use crate::Side;
use crate::crypto::Keys;

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// RFC 5869, section 2.3.
fn expand(key: &[u8; 32], info: &[u8], length: usize) -> Vec<u8> {
    let mut output = Vec::new();
    let mut block = Vec::new();
    for number in 1_u8.. {
        if output.len() >= length {
            break;
        }
        block = mac(key, &[&block, info, &[number]]).to_vec();
        output.extend_from_slice(&block);
    }
    output.truncate(length);
    output
}

fn secret() -> PathSecret {
    PathSecret::from_exported(&[9; 32])
}

#[test]
fn a_secret_is_derived_as_documented() {
    let key = mac(b"weir known peers 1", &[&[9; 32]]);
    assert_eq!(
        secret().id().as_bytes()[..],
        expand(&key, b"credential", 16)
    );
    let mut output = [0; 40];
    assert!(secret().export(5, &mut output, b"label", b"context"));
    let digest = Sha256::digest(b"context");
    let info = [
        b"exporter",
        &5_u64.to_be_bytes()[..],
        &[0, 5],
        b"label",
        &digest[..],
    ]
    .concat();
    assert_eq!(output[..], expand(&key, &info, 40));
    let control = expand(&key, b"control", 32);
    let tag = mac(&control, &[&[3], &7_u64.to_be_bytes()]);
    assert_eq!(secret().refusal_tag(RefusalKind::Used, 7), tag[..16]);
}

/// Seals a packet with one side's keys and opens it with the other's.
fn passes(from: &Keys, to: &Keys, first: u8) -> bool {
    let mut packet = vec![first, 1, 2, 3, 0, 1];
    let header_length = packet.len();
    packet.extend_from_slice(b"a payload of some length");
    packet.extend_from_slice(&[0; 16]);
    let plain = packet.clone();
    from.local.packet.seal(1, header_length, &mut packet);
    from.local.header.protect(4, &mut packet);
    assert_ne!(packet, plain);
    if to.remote.header.unprotect(4, &mut packet) != Some(2) {
        return false;
    }
    let (header, payload) = packet.split_at_mut(header_length);
    let opened = to.remote.packet.open(1, header, payload);
    opened.is_ok_and(|length| payload[..length] == plain[header_length..][..length])
}

#[test]
fn both_sides_have_the_same_keys_and_other_key_ids_have_others() {
    let (client, mut client_updates) = secret().keys(1, Side::Client);
    let (server, mut server_updates) = secret().keys(1, Side::Server);
    let (other, _) = secret().keys(2, Side::Server);
    for first in [0x41, 0xc1] {
        assert!(passes(&client, &server, first) && passes(&server, &client, first));
        assert!(!passes(&client, &other, first) && !passes(&client, &client, first));
    }
    for _ in 0..3 {
        let (ours, theirs) = (client_updates.next_keys(), server_updates.next_keys());
        let mut packet = [0; 40];
        ours.local.seal(7, 10, &mut packet);
        let (header, payload) = packet.split_at_mut(10);
        assert_eq!(theirs.remote.open(7, header, payload), Ok(14));
    }
}

#[test]
fn keys_are_derived_as_documented() {
    let key = mac(b"weir known peers 1", &[&[9; 32]]);
    let info = [b"keys", &[0][..], &3_u64.to_be_bytes()].concat();
    let material = expand(&key, &info, 76);
    let (client, mut updates) = secret().keys(3, Side::Client);
    let sealed_by = |key: &[u8], iv: &[u8]| {
        use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, key).unwrap());
        let mut packet = vec![1, 2];
        let mut nonce: [u8; 12] = iv.try_into().unwrap();
        nonce[11] ^= 5;
        let mut payload = vec![3; 4];
        let nonce = Nonce::assume_unique_for_key(nonce);
        let aad = Aad::from([1, 2]);
        key.seal_in_place_append_tag(nonce, aad, &mut payload)
            .unwrap();
        packet.extend_from_slice(&payload);
        packet
    };
    let mut packet = [vec![1, 2], vec![3; 4], vec![0; 16]].concat();
    client.local.packet.seal(5, 2, &mut packet);
    assert_eq!(packet, sealed_by(&material[..16], &material[16..28]));
    let next: [u8; 32] = material[44..].try_into().unwrap();
    let material = expand(&next, b"update", 60);
    let mut packet = [vec![1, 2], vec![3; 4], vec![0; 16]].concat();
    updates.next_keys().local.seal(5, 2, &mut packet);
    assert_eq!(packet, sealed_by(&material[..16], &material[16..28]));
}

#[test]
fn refusals_are_read_as_written_and_never_longer_than_their_cause() {
    let kinds = [RefusalKind::Unknown, RefusalKind::TooOld, RefusalKind::Used];
    for kind in kinds {
        let refusal = Refusal { kind, tag: [4; 16] };
        let answer = refusal.answer(&[1; 8], &[2; 20], 500).unwrap();
        assert!(answer.len() <= 64);
        assert_eq!(Refusal::decode(&answer[answer.len() - 17..]), Some(refusal));
        assert_eq!(refusal.answer(&[1; 8], &[2; 20], answer.len() - 1), None);
        assert_eq!(
            refusal
                .answer(&[1; 20], &[2; 20], 500)
                .map(|answer| answer.len()),
            Some(64)
        );
    }
    assert_eq!(Refusal::decode(&[9; 17]), None);
    assert_eq!(Refusal::decode(&[1; 16]), None);
}

#[test]
fn tokens_and_results_are_distinct() {
    let key = |byte| aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, &[byte; 32]);
    let id = secret().id();
    assert_eq!(refusal_token(&key(1), &id), refusal_token(&key(1), &id));
    assert_ne!(refusal_token(&key(1), &id), refusal_token(&key(2), &id));
    for result in [Abandonment::Fresh, Abandonment::Used, Abandonment::Unknown] {
        assert_eq!(Abandonment::from_wire(result.as_u8()), Some(result));
    }
    assert_eq!(Abandonment::from_wire(0), None);
}
