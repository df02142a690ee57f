//! The packet protection of known peers: AES-128-GCM with keys from a path secret
//! (`docs/known-peers.md`, section 3).

use aws_lc_rs::aead::NONCE_LEN;
use aws_lc_rs::aead::quic::AES_128;
use zeroize::Zeroize;

use super::hkdf::PseudorandomKey;
use crate::crypto::packet_protection::{Aead, AeadPacketKey, ProtectionHeaderKey};
use crate::crypto::{AnyHeaderKey, AnyPacketKey, DirectionKeys, KeyUpdates, Keys, PacketKeys};

const KEY_LENGTH: usize = 16;

/// Returns the keys of both directions, each from key, IV and header protection key.
pub(super) fn keys(local: &[u8], remote: &[u8]) -> Keys {
    let parts = [local, remote].map(|parts| {
        let (key, rest) = parts.split_at(KEY_LENGTH);
        let (iv, header) = rest.split_at(NONCE_LEN);
        (
            packet_key(key, iv),
            ProtectionHeaderKey::new(&AES_128, header),
        )
    });
    let [(local_packet, local_header), (remote_packet, remote_header)] = parts;
    let [local_header, remote_header] = AnyHeaderKey::pair([local_header, remote_header]);
    Keys {
        local: DirectionKeys {
            header: local_header,
            packet: local_packet,
        },
        remote: DirectionKeys {
            header: remote_header,
            packet: remote_packet,
        },
    }
}

fn packet_key(key: &[u8], iv: &[u8]) -> AnyPacketKey {
    let iv = iv.try_into().expect("12 bytes");
    AeadPacketKey::new(Aead::AES_128_GCM, key, iv).into()
}

/// Derives the key phases of both directions.
pub(super) struct KnownKeyUpdates {
    local: [u8; 32],
    remote: [u8; 32],
}

impl KnownKeyUpdates {
    pub(super) fn new(local: [u8; 32], remote: [u8; 32]) -> Self {
        Self { local, remote }
    }
}

/// Returns the packet key of the next phase, and replaces the secret by that of the phase after it.
fn next_key(secret: &mut [u8; 32]) -> AnyPacketKey {
    let mut phase = [0; KEY_LENGTH + NONCE_LEN + 32];
    PseudorandomKey::new(secret).expand(&[b"update"], &mut phase);
    let (parts, next) = phase.split_at(KEY_LENGTH + NONCE_LEN);
    let (key, iv) = parts.split_at(KEY_LENGTH);
    let key = packet_key(key, iv);
    secret.copy_from_slice(next);
    phase.zeroize();
    key
}

impl KeyUpdates for KnownKeyUpdates {
    fn next_keys(&mut self) -> PacketKeys {
        PacketKeys {
            local: next_key(&mut self.local),
            remote: next_key(&mut self.remote),
        }
    }
}

impl Drop for KnownKeyUpdates {
    fn drop(&mut self) {
        self.local.zeroize();
        self.remote.zeroize();
    }
}
