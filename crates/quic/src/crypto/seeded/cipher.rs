//! The toy AEAD and the toy header protection: fast, deterministic, and without cryptographic
//! strength.
//!
//! The keystream is a counter folded with the key. The checksum covers the header, the packet
//! number and the ciphertext in four lanes of 64 bits, one word per lane and step. Each step is
//! bijective in both the lane and the word, and so is the final step of each lane. A change within
//! one word is always detected, any other with a probability of about 1 − 2⁻⁶⁴.

use super::mixing::{GOLDEN, Secret, fold, mix};
use crate::crypto::{HeaderKey, OpenError, PacketKey};

const TAG_LENGTH: usize = 16;
const SAMPLE_LENGTH: usize = 16;
const MAX_NUMBER_LENGTH: usize = 4;
const WORD: usize = 8;
const LANES: usize = 4;
const BLOCK: usize = WORD * LANES;

/// Odd, so that multiplying by it is bijective.
const LANE_FACTOR: u64 = 0xd6e8_feb8_6659_fd93;

/// Absorbs one word into one checksum lane.
const fn step(lane: u64, word: u64) -> u64 {
    (lane ^ word).wrapping_mul(LANE_FACTOR).rotate_left(29)
}

/// Reads the words of a block.
fn words(block: &[u8; BLOCK]) -> [u64; LANES] {
    let mut words = [0; LANES];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<WORD>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

/// Reads less than eight bytes as a word that is filled up with zeros.
fn partial_word(bytes: &[u8]) -> u64 {
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        // Both halves have the bytes in the middle.
        (Some(low), Some(high)) => {
            let (low, high) = (u32::from_le_bytes(*low), u32::from_le_bytes(*high));
            u64::from(low) | u64::from(high) << (8 * (bytes.len() - 4))
        }
        _ => bytes
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// The stand-in for an AEAD key.
pub(super) struct SeededPacketKey {
    stream: [u64; 2],
    tag: [u64; 2],
}

/// The state of sealing or opening one packet.
struct Pass {
    counter: u64,
    key: u64,
    lanes: [u64; LANES],
}

impl Pass {
    fn keystream(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(GOLDEN);
        fold(self.counter, self.counter ^ self.key)
    }

    /// Absorbs header bytes into the checksum; the last block is filled up with zeros.
    fn absorb(&mut self, mut bytes: &[u8]) {
        while let Some((block, rest)) = bytes.split_first_chunk::<BLOCK>() {
            self.absorb_block(words(block));
            bytes = rest;
        }
        if !bytes.is_empty() {
            let mut block = [0; LANES];
            let (full, rest) = bytes.as_chunks::<WORD>();
            for (word, bytes) in block.iter_mut().zip(full) {
                *word = u64::from_le_bytes(*bytes);
            }
            block[full.len()] = partial_word(rest);
            self.absorb_block(block);
        }
    }

    fn absorb_block(&mut self, block: [u64; LANES]) {
        for (lane, word) in self.lanes.iter_mut().zip(block) {
            *lane = step(*lane, word);
        }
    }

    /// Encrypts plaintext or, with `OPEN`, decrypts ciphertext.
    fn run<const OPEN: bool>(&mut self, text: &mut [u8]) {
        let (blocks, rest) = text.as_chunks_mut::<BLOCK>();
        for block in blocks {
            for (index, word) in block.as_chunks_mut::<WORD>().0.iter_mut().enumerate() {
                let before = u64::from_le_bytes(*word);
                let after = before ^ self.keystream();
                self.lanes[index] = step(self.lanes[index], if OPEN { before } else { after });
                *word = after.to_le_bytes();
            }
        }
        if !rest.is_empty() {
            self.run_last::<OPEN>(rest);
        }
    }

    /// The same for the rest of the text, which is shorter than a block: most of a small packet.
    fn run_last<const OPEN: bool>(&mut self, text: &mut [u8]) {
        let (words, rest) = text.as_chunks_mut::<WORD>();
        let mut block = [0; LANES];
        let full = words.len();
        for (absorbed, word) in block.iter_mut().zip(words) {
            let before = u64::from_le_bytes(*word);
            let after = before ^ self.keystream();
            *absorbed = if OPEN { before } else { after };
            *word = after.to_le_bytes();
        }
        if !rest.is_empty()
            && let Some(absorbed) = block.get_mut(full)
        {
            let before = partial_word(rest);
            let after = before ^ self.keystream();
            for (byte, new) in rest.iter_mut().zip(after.to_le_bytes()) {
                *byte = new;
            }
            *absorbed = if OPEN { before } else { partial_word(rest) };
        }
        self.absorb_block(block);
    }
}

impl SeededPacketKey {
    pub(super) fn new(secret: Secret) -> Self {
        let word = |label| secret.derive(label).word();
        Self {
            stream: [word(0), word(1)],
            tag: [word(2), word(3)],
        }
    }

    /// Starts a pass; the lengths are part of the checksum, so that no byte can move from the
    /// header into the payload.
    fn begin(&self, packet_number: u64, header: &[u8], payload_length: usize) -> Pass {
        let start = mix(self.tag[0] ^ packet_number);
        let lengths = (header.len() as u64) << 32 ^ payload_length as u64;
        let mut pass = Pass {
            counter: mix(self.stream[0] ^ packet_number),
            key: self.stream[1],
            lanes: [start, !start, start.rotate_left(32), mix(start ^ lengths)],
        };
        pass.absorb(header);
        pass
    }

    fn finish(&self, pass: &Pass) -> [u8; TAG_LENGTH] {
        let lanes = pass.lanes.iter();
        let low = lanes.clone().fold(self.tag[0], |sum, lane| mix(sum ^ lane));
        let high = lanes
            .rev()
            .fold(self.tag[1], |sum, lane| mix(sum ^ lane.rotate_left(32)));
        let mut tag = [0; TAG_LENGTH];
        tag[..WORD].copy_from_slice(&low.to_le_bytes());
        tag[WORD..].copy_from_slice(&high.to_le_bytes());
        tag
    }

    /// Returns the checksum of `data` as a tag.
    pub(super) fn checksum(&self, data: &[u8]) -> [u8; TAG_LENGTH] {
        self.finish(&self.begin(0, data, 0))
    }
}

impl PacketKey for SeededPacketKey {
    fn seal(&self, packet_number: u64, header_length: usize, packet: &mut [u8]) {
        let (header, rest) = packet.split_at_mut(header_length);
        let (payload, tag) = rest.split_at_mut(rest.len() - TAG_LENGTH);
        let mut pass = self.begin(packet_number, header, payload.len());
        pass.run::<false>(payload);
        tag.copy_from_slice(&self.finish(&pass));
    }

    fn open(
        &self,
        packet_number: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, OpenError> {
        let length = payload.len().checked_sub(TAG_LENGTH).ok_or(OpenError)?;
        let (text, tag) = payload.split_at_mut(length);
        let mut pass = self.begin(packet_number, header, length);
        pass.run::<true>(text);
        if self.finish(&pass) == *tag {
            Ok(length)
        } else {
            Err(OpenError)
        }
    }

    fn tag_length(&self) -> usize {
        TAG_LENGTH
    }

    /// The limit of AES-128-GCM (RFC 9001, section 6.6).
    fn confidentiality_limit(&self) -> u64 {
        1 << 23
    }

    /// The limit of AES-128-GCM (RFC 9001, section 6.6).
    fn integrity_limit(&self) -> u64 {
        1 << 52
    }
}

/// The stand-in for a header protection key.
pub(super) struct SeededHeaderKey {
    key: [u64; 2],
}

impl SeededHeaderKey {
    pub(super) fn new(secret: Secret) -> Self {
        Self {
            key: [secret.derive(4).word(), secret.derive(5).word()],
        }
    }

    /// Returns the mask: for the packet number in the low 32 bits, for the first byte above them.
    /// `None` if the packet is too short for the sample (RFC 9001, section 5.4.2).
    fn mask(&self, number_offset: usize, packet: &[u8]) -> Option<u64> {
        let sample = packet
            .get(number_offset..)?
            .get(MAX_NUMBER_LENGTH..)?
            .first_chunk::<SAMPLE_LENGTH>()?;
        let words = sample.as_chunks::<WORD>().0;
        Some(words.iter().zip(self.key).fold(0, |mask, (word, key)| {
            mix(mask ^ u64::from_le_bytes(*word) ^ key)
        }))
    }
}

/// Applies a mask to the first byte (RFC 9001, section 5.4.1).
fn mask_first(first: u8, mask: u64) -> u8 {
    let bits = if first & 0x80 == 0 { 0x1f } else { 0x0f };
    first ^ (mask >> 32) as u8 & bits
}

/// Applies a mask to a packet number whose length is in the first byte.
fn mask_number(first: u8, number: &mut [u8], mask: u64) -> usize {
    let length = usize::from(first & 0b11) + 1;
    for (byte, mask) in number.iter_mut().zip(mask.to_le_bytes()).take(length) {
        *byte ^= mask;
    }
    length
}

impl HeaderKey for SeededHeaderKey {
    fn protect(&self, number_offset: usize, packet: &mut [u8]) {
        let mask = self
            .mask(number_offset, packet)
            .expect("the packet holds the sample");
        let first = packet[0];
        mask_number(first, &mut packet[number_offset..], mask);
        packet[0] = mask_first(first, mask);
    }

    fn unprotect(&self, number_offset: usize, packet: &mut [u8]) -> Option<usize> {
        let mask = self.mask(number_offset, packet)?;
        let first = packet.first_mut()?;
        *first = mask_first(*first, mask);
        let first = *first;
        Some(mask_number(first, packet.get_mut(number_offset..)?, mask))
    }
}
