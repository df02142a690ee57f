//! Packet protection with a pre-shared key.
//!
//! HKDF-SHA256 (RFC 5869) derives a key for the tags of handshake packets (HMAC-SHA256, half of it)
//! and a secret for each connection and direction. AES-128-GCM seals packets, with the packet
//! number in the nonce as in TLS 1.3 (RFC 8446, section 5.3). Every 2²⁴ packets the secret yields a
//! new key, as no AES-GCM key should seal many more (RFC 9001, appendix B).
//!
//! There is no forward secrecy: the key decrypts previously recorded traffic.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use aws_lc_rs::{error::Unspecified, hmac};

use crate::protection::{ASSOCIATED_LENGTH, PacketProtection, Session, SharedKey};

const KEY_LENGTH: usize = 32;
const TAG_LENGTH: usize = 16;
const NONCE_LENGTH: usize = 12;
/// Packets sealed per AEAD key, as a power of two.
const EPOCH_BITS: u32 = 24;

/// An invalid key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The text is not a key.
    #[error("a key is 64 hexadecimal digits, as `openssl rand -hex 32` writes them")]
    Malformed,
    /// The cryptographic library cannot derive keys.
    #[error("keys cannot be derived")]
    Derivation,
}

/// A key of 32 random bytes, shared by both ends beforehand.
pub struct PreSharedKey {
    mac: hmac::Key,
    root: Prk,
}

impl PreSharedKey {
    /// Creates a key from these bytes. They must be random: guessing them allows forging packets.
    ///
    /// # Errors
    /// [`KeyError::Derivation`].
    pub fn new(secret: &[u8; KEY_LENGTH]) -> Result<Self, KeyError> {
        let root = Salt::new(HKDF_SHA256, b"weir dcudp 1").extract(secret);
        let mac: [u8; KEY_LENGTH] =
            expand(&root, &[b"handshake"]).map_err(|_| KeyError::Derivation)?;
        Ok(Self {
            mac: hmac::Key::new(hmac::HMAC_SHA256, &mac),
            root,
        })
    }

    /// Parses a key from 64 hexadecimal digits, optionally surrounded by space.
    ///
    /// # Errors
    /// [`KeyError`] for any other text.
    pub fn from_hex(text: &str) -> Result<Self, KeyError> {
        let (pairs, rest) = text.trim().as_bytes().as_chunks::<2>();
        let secret: Option<Vec<u8>> = pairs.iter().map(byte_of).collect();
        let secret = secret.filter(|_| rest.is_empty());
        let secret = secret.and_then(|secret| <[u8; KEY_LENGTH]>::try_from(secret).ok());
        Self::new(&secret.ok_or(KeyError::Malformed)?)
    }
}

fn byte_of(digits: &[u8; 2]) -> Option<u8> {
    let value = |digit: u8| char::from(digit).to_digit(16);
    u8::try_from(value(digits[0])? << 4 | value(digits[1])?).ok()
}

impl fmt::Debug for PreSharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreSharedKey").finish_non_exhaustive()
    }
}

impl SharedKey for PreSharedKey {
    fn tag(&self, message: &[u8]) -> [u8; TAG_LENGTH] {
        let tag = hmac::sign(&self.mac, message);
        tag.as_ref().first_chunk().copied().unwrap_or_default()
    }

    fn session(&self, session: &Session) -> Box<dyn PacketProtection> {
        let secret = |label: &[u8]| {
            let (client, server) = (session.client.0, session.server.0);
            expand(
                &self.root,
                &[
                    label,
                    &session.client_random,
                    &session.server_random,
                    &client.to_be_bytes(),
                    &server.to_be_bytes(),
                ],
            )
            .map(|secret: [u8; KEY_LENGTH]| Prk::new_less_safe(HKDF_SHA256, &secret))
            .ok()
        };
        let (to_server, to_client) = (secret(b"to server"), secret(b"to client"));
        let (sealing, opening) = if session.is_client {
            (to_server, to_client)
        } else {
            (to_client, to_server)
        };
        Box::new(SealingKey {
            sealing: Direction::new(sealing),
            opening: Direction::new(opening),
        })
    }
}

#[derive(Debug)]
struct SealingKey {
    sealing: Direction,
    opening: Direction,
}

/// The keys of one direction.
#[derive(Debug)]
struct Direction {
    /// `None` if the derivation failed: nothing is sealed or opened then.
    secret: Option<Prk>,
    current: Mutex<Option<EpochKey>>,
}

/// The key of the packets whose numbers differ only in their last [`EPOCH_BITS`].
#[derive(Debug)]
struct EpochKey {
    epoch: u64,
    key: LessSafeKey,
    iv: [u8; NONCE_LENGTH],
}

impl EpochKey {
    fn new(secret: &Prk, epoch: u64) -> Result<Self, Unspecified> {
        let made: [u8; KEY_LENGTH] = expand(secret, &[b"key", &epoch.to_be_bytes()])?;
        let (key, rest) = made.split_first_chunk::<16>().ok_or(Unspecified)?;
        let iv = *rest.first_chunk().ok_or(Unspecified)?;
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, key)?);
        Ok(Self { epoch, key, iv })
    }

    fn nonce(&self, number: u64) -> Nonce {
        let mut nonce = self.iv;
        let tail = nonce.iter_mut().rev().zip(number.to_le_bytes());
        tail.for_each(|(byte, part)| *byte ^= part);
        Nonce::assume_unique_for_key(nonce)
    }
}

impl Direction {
    fn new(secret: Option<Prk>) -> Self {
        Self {
            secret,
            current: Mutex::new(None),
        }
    }

    /// Calls `work` with the key for this number. The key is cached only on success, so that a
    /// forged number does not evict the key in use.
    fn with_key<T>(&self, number: u64, work: impl FnOnce(&EpochKey) -> Option<T>) -> Option<T> {
        let epoch = number >> EPOCH_BITS;
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = current.as_ref().filter(|key| key.epoch == epoch) {
            return work(key);
        }
        let key = EpochKey::new(self.secret.as_ref()?, epoch).ok()?;
        let result = work(&key)?;
        *current = Some(key);
        Some(result)
    }
}

impl PacketProtection for SealingKey {
    fn overhead(&self) -> usize {
        TAG_LENGTH
    }

    fn seal(
        &self,
        number: u64,
        associated: &[u8; ASSOCIATED_LENGTH],
        buffer: &mut Vec<u8>,
        body: usize,
    ) {
        let tag = self.sealing.with_key(number, |key| {
            let rest = buffer.get_mut(body..)?;
            let associated = Aad::from(associated);
            key.key
                .seal_in_place_separate_tag(key.nonce(number), associated, rest)
                .ok()
        });
        match tag {
            Some(tag) => buffer.extend_from_slice(tag.as_ref()),
            // Nothing is sent unsealed. The peer cannot open this packet, and the connection times
            // out.
            None => {
                buffer.truncate(body);
                buffer.resize(body + TAG_LENGTH, 0);
            }
        }
    }

    fn open(
        &self,
        number: u64,
        associated: &[u8; ASSOCIATED_LENGTH],
        body: &mut [u8],
    ) -> Option<usize> {
        self.opening.with_key(number, |key| {
            let opened = key
                .key
                .open_in_place(key.nonce(number), Aad::from(associated), body);
            opened.ok().map(|opened| opened.len())
        })
    }
}

/// HKDF-Expand to 32 bytes.
fn expand(secret: &Prk, info: &[&[u8]]) -> Result<[u8; KEY_LENGTH], Unspecified> {
    struct HkdfLength;
    impl KeyType for HkdfLength {
        fn len(&self) -> usize {
            KEY_LENGTH
        }
    }
    let mut made = [0; KEY_LENGTH];
    secret.expand(info, HkdfLength)?.fill(&mut made)?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::SocketId;

    const NUMBERS: [u64; 4] = [0, 1, 1 << EPOCH_BITS, u64::MAX];

    fn pair(
        client_key: &PreSharedKey,
        server_key: &PreSharedKey,
    ) -> [Box<dyn PacketProtection>; 2] {
        let client = Session {
            is_client: true,
            client_random: [1; 16],
            server_random: [2; 16],
            client: SocketId(3),
            server: SocketId(4),
        };
        let server = Session {
            is_client: false,
            ..client
        };
        [client_key.session(&client), server_key.session(&server)]
    }

    fn seal(by: &dyn PacketProtection, number: u64) -> Vec<u8> {
        let mut buffer = b"head payload".to_vec();
        by.seal(number, &[9; ASSOCIATED_LENGTH], &mut buffer, 5);
        assert_eq!(buffer.len(), 12 + by.overhead());
        assert!(buffer.starts_with(b"head ") && !buffer.ends_with(b"payload"));
        buffer.split_off(5)
    }

    #[test]
    fn each_end_opens_only_packets_sealed_by_its_peer() {
        let key = PreSharedKey::new(&[7; 32]).unwrap();
        let other = PreSharedKey::new(&[8; 32]).unwrap();
        let [client, server] = pair(&key, &key);
        let [_, stranger] = pair(&key, &other);
        for number in NUMBERS {
            for (from, to) in [(&client, &server), (&server, &client)] {
                let sealed = seal(&**from, number);
                let associated = [9; ASSOCIATED_LENGTH];
                let mut body = sealed.clone();
                assert_eq!(to.open(number, &associated, &mut body), Some(7));
                assert!(body.starts_with(b"payload"));
                let opens = |by: &dyn PacketProtection, number, associated, flip: usize| {
                    let mut body = sealed.clone();
                    body[flip] ^= u8::from(flip > 0);
                    by.open(number, associated, &mut body).is_some()
                };
                assert!(!opens(&**from, number, &associated, 0));
                assert!(!opens(&*stranger, number, &associated, 0));
                assert!(!opens(&**to, number ^ 1, &associated, 0));
                assert!(!opens(&**to, number, &[8; ASSOCIATED_LENGTH], 0));
                assert!(!opens(&**to, number, &associated, 3));
            }
        }
        assert_ne!(key.tag(b"hello"), other.tag(b"hello"));
        assert_eq!(key.tag(b"hello"), key.tag(b"hello"));
    }

    #[test]
    fn keys_are_64_hex_digits() {
        let digits = "0123456789abcdefABCDEF00112233445566778899aabbccddeeff0011223344";
        assert!(PreSharedKey::from_hex(&format!(" {digits}\n")).is_ok());
        for wrong in [
            "",
            "00",
            &digits[1..],
            &digits.replace('a', "g"),
            &format!("{digits}00"),
        ] {
            let error = PreSharedKey::from_hex(wrong).unwrap_err();
            assert!(matches!(error, KeyError::Malformed), "{wrong}");
        }
    }
}
