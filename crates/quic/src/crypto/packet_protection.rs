//! Packet protection with keys that are not rustls's (RFC 9001, sections 5.3 and 5.4): for compatible
//! versions, and for known peers.

use aws_lc_rs::aead::quic::{self, HeaderProtectionKey};
use aws_lc_rs::aead::{self, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use super::{HeaderKey, OpenError, PacketKey};

const SAMPLE_LENGTH: usize = 16;
/// The longest packet number; the sample follows it (RFC 9001, section 5.4.2).
const MAX_NUMBER_LENGTH: usize = 4;

/// An AEAD with its limits (RFC 9001, section 6.6).
#[derive(Clone, Copy)]
pub(crate) struct Aead {
    pub(crate) algorithm: &'static aead::Algorithm,
    /// How many packets may be sealed.
    confidentiality_limit: u64,
    /// How many packets may fail authentication.
    integrity_limit: u64,
}

impl Aead {
    pub(crate) const AES_128_GCM: Self = Self::aes(&aead::AES_128_GCM);
    pub(crate) const AES_256_GCM: Self = Self::aes(&aead::AES_256_GCM);
    pub(crate) const CHACHA20_POLY1305: Self = Self {
        algorithm: &aead::CHACHA20_POLY1305,
        confidentiality_limit: u64::MAX,
        integrity_limit: 1 << 36,
    };

    const fn aes(algorithm: &'static aead::Algorithm) -> Self {
        Self {
            algorithm,
            confidentiality_limit: 1 << 23,
            integrity_limit: 1 << 52,
        }
    }
}

/// The AEAD of one direction.
pub(crate) struct AeadPacketKey {
    key: LessSafeKey,
    iv: [u8; NONCE_LEN],
    aead: Aead,
}

impl AeadPacketKey {
    /// Creates a key from the bytes that its AEAD asks for.
    pub(crate) fn new(aead: Aead, key: &[u8], iv: [u8; NONCE_LEN]) -> Self {
        let key = UnboundKey::new(aead.algorithm, key).expect("the length that the AEAD asks for");
        Self {
            key: LessSafeKey::new(key),
            iv,
            aead,
        }
    }

    fn nonce(&self, packet_number: u64) -> Nonce {
        let mut nonce = self.iv;
        let number = packet_number.to_be_bytes();
        for (byte, number) in nonce[NONCE_LEN - number.len()..].iter_mut().zip(number) {
            *byte ^= number;
        }
        Nonce::assume_unique_for_key(nonce)
    }
}

impl PacketKey for AeadPacketKey {
    fn seal(&self, packet_number: u64, header_length: usize, packet: &mut [u8]) {
        let (header, rest) = packet.split_at_mut(header_length);
        let (payload, tag_room) = rest.split_at_mut(rest.len() - self.tag_length());
        // Continuing after a failure would send the payload in the clear.
        let tag = self
            .key
            .seal_in_place_separate_tag(self.nonce(packet_number), Aad::from(header), payload)
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
        self.key.algorithm().tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.aead.confidentiality_limit
    }

    fn integrity_limit(&self) -> u64 {
        self.aead.integrity_limit
    }
}

/// Header protection of one direction.
pub(crate) struct ProtectionHeaderKey(HeaderProtectionKey);

impl ProtectionHeaderKey {
    /// Creates a key from the bytes that its algorithm asks for.
    pub(crate) fn new(algorithm: &'static quic::Algorithm, key: &[u8]) -> Self {
        let key = HeaderProtectionKey::new(algorithm, key);
        Self(key.expect("the length that the algorithm asks for"))
    }

    fn mask(&self, number_offset: usize, packet: &[u8]) -> Option<[u8; 5]> {
        let sample = packet
            .get(number_offset..)?
            .get(MAX_NUMBER_LENGTH..)?
            .get(..SAMPLE_LENGTH)?;
        self.0.new_mask(sample).ok()
    }
}

/// Returns the protected bits of the first byte (RFC 9001, section 5.4.1).
const fn protected_bits(first: u8) -> u8 {
    if first & 0x80 == 0 { 0x1f } else { 0x0f }
}

fn mask_number(first: u8, number: &mut [u8], mask: [u8; 5]) -> usize {
    let length = usize::from(first & 0b11) + 1;
    for (byte, mask) in number.iter_mut().zip(&mask[1..]).take(length) {
        *byte ^= mask;
    }
    length
}

impl HeaderKey for ProtectionHeaderKey {
    fn protect(&self, number_offset: usize, packet: &mut [u8]) {
        let mask = self
            .mask(number_offset, packet)
            .expect("the packet holds the sample");
        let first = packet[0];
        mask_number(first, &mut packet[number_offset..], mask);
        packet[0] = first ^ mask[0] & protected_bits(first);
    }

    fn unprotect(&self, number_offset: usize, packet: &mut [u8]) -> Option<usize> {
        let mask = self.mask(number_offset, packet)?;
        let first = packet.first_mut()?;
        *first ^= mask[0] & protected_bits(*first);
        let first = *first;
        Some(mask_number(first, packet.get_mut(number_offset..)?, mask))
    }
}
