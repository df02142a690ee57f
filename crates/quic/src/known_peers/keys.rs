//! AES-128-GCM packet protection with keys from a path secret (RFC 9001, sections 5.3 and 5.4.3).

use aws_lc_rs::aead::quic::{AES_128, HeaderProtectionKey};
use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use zeroize::Zeroize;

use super::secret::expand;
use crate::crypto::{DirectionKeys, HeaderKey, KeyUpdates, OpenError, PacketKey, PacketKeys};

const KEY_LENGTH: usize = 16;
const TAG_LENGTH: usize = 16;
const SAMPLE_LENGTH: usize = 16;
/// The sample is taken as if the packet number had this length (RFC 9001, section 5.4.2).
const MAX_NUMBER_LENGTH: usize = 4;
/// RFC 9001, section 6.6.
const CONFIDENTIALITY_LIMIT: u64 = 1 << 23;
const INTEGRITY_LIMIT: u64 = 1 << 52;

/// Returns the keys of one direction from key, IV and header protection key.
pub(super) fn direction_keys(parts: &[u8]) -> DirectionKeys {
    let (key, rest) = parts.split_at(KEY_LENGTH);
    let (iv, header) = rest.split_at(NONCE_LEN);
    DirectionKeys {
        header: Box::new(AesHeaderKey(
            HeaderProtectionKey::new(&AES_128, header).expect("16 bytes"),
        )),
        packet: Box::new(AesPacketKey::new(key, iv)),
    }
}

struct AesPacketKey {
    key: LessSafeKey,
    iv: [u8; NONCE_LEN],
}

impl AesPacketKey {
    fn new(key: &[u8], iv: &[u8]) -> Self {
        Self {
            key: LessSafeKey::new(UnboundKey::new(&AES_128_GCM, key).expect("16 bytes")),
            iv: iv.try_into().expect("12 bytes"),
        }
    }

    fn nonce(&self, packet_number: u64) -> Nonce {
        let mut nonce = self.iv;
        for (byte, number) in nonce[4..].iter_mut().zip(packet_number.to_be_bytes()) {
            *byte ^= number;
        }
        Nonce::assume_unique_for_key(nonce)
    }
}

impl PacketKey for AesPacketKey {
    fn seal(&self, packet_number: u64, header_length: usize, packet: &mut [u8]) {
        let (header, rest) = packet.split_at_mut(header_length);
        let (payload, tag_room) = rest.split_at_mut(rest.len() - TAG_LENGTH);
        // Continuing after a failure would send the payload in the clear.
        let tag = self
            .key
            .seal_in_place_separate_tag(self.nonce(packet_number), Aad::from(&*header), payload)
            .expect("a packet is far shorter than what an AEAD takes");
        tag_room.copy_from_slice(tag.as_ref());
    }

    fn open(
        &self,
        packet_number: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, OpenError> {
        let nonce = self.nonce(packet_number);
        match self.key.open_in_place(nonce, Aad::from(header), payload) {
            Ok(plain) => Ok(plain.len()),
            Err(_) => Err(OpenError),
        }
    }

    fn tag_length(&self) -> usize {
        TAG_LENGTH
    }

    fn confidentiality_limit(&self) -> u64 {
        CONFIDENTIALITY_LIMIT
    }

    fn integrity_limit(&self) -> u64 {
        INTEGRITY_LIMIT
    }
}

struct AesHeaderKey(HeaderProtectionKey);

impl AesHeaderKey {
    /// Returns the first byte, the packet number as if of the greatest length, and the mask; `None`
    /// if the packet is too short.
    fn parts<'a>(
        &self,
        number_offset: usize,
        packet: &'a mut [u8],
    ) -> Option<(&'a mut u8, &'a mut [u8], [u8; 5])> {
        let (header, rest) = packet.split_at_mut_checked(number_offset)?;
        let (number, payload) = rest.split_at_mut_checked(MAX_NUMBER_LENGTH)?;
        let mask = self.0.new_mask(payload.get(..SAMPLE_LENGTH)?).ok()?;
        Some((header.first_mut()?, number, mask))
    }
}

/// Returns the bits of the first byte that are protected.
const fn protected_bits(first: u8) -> u8 {
    if first & 0x80 != 0 { 0x0f } else { 0x1f }
}

const fn number_length(first: u8) -> usize {
    (first & 0b11) as usize + 1
}

fn apply(mask: &[u8], number: &mut [u8]) {
    for (byte, mask) in number.iter_mut().zip(mask) {
        *byte ^= mask;
    }
}

impl HeaderKey for AesHeaderKey {
    fn protect(&self, number_offset: usize, packet: &mut [u8]) {
        let (first, number, mask) = self
            .parts(number_offset, packet)
            .expect("the packet holds the sample");
        apply(&mask[1..], &mut number[..number_length(*first)]);
        *first ^= mask[0] & protected_bits(*first);
    }

    fn unprotect(&self, number_offset: usize, packet: &mut [u8]) -> Option<usize> {
        let (first, number, mask) = self.parts(number_offset, packet)?;
        *first ^= mask[0] & protected_bits(*first);
        let length = number_length(*first);
        apply(&mask[1..], &mut number[..length]);
        Some(length)
    }
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
fn next_key(secret: &mut [u8; 32]) -> Box<dyn PacketKey> {
    let mut phase = [0; KEY_LENGTH + NONCE_LEN + 32];
    expand(secret, &[b"update"], &mut phase);
    let (parts, next) = phase.split_at(KEY_LENGTH + NONCE_LEN);
    let (key, iv) = parts.split_at(KEY_LENGTH);
    let key = AesPacketKey::new(key, iv);
    secret.copy_from_slice(next);
    phase.zeroize();
    Box::new(key)
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
