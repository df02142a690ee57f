//! Keys of another version than the one of a client's rustls connection.
//!
//! A server may answer a client's first flight in a compatible version (RFC 9368, section 2.3), in
//! which the same TLS secrets produce other keys (RFC 9369, section 3.3.2). rustls fixes the
//! version when a connection starts and exposes secrets only to its key log. A client that allows
//! such an answer therefore reads the key log, and derives the keys itself if necessary. A client
//! with a single version, the default, has no cost.

use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey, quic};
use aws_lc_rs::hkdf::{self, KeyType, Prk};
use rustls::{CipherSuite, KeyLog};

use crate::Version;
use crate::crypto::{DirectionKeys, HeaderKey, KeyUpdates, Keys, OpenError, PacketKey, PacketKeys};

/// The labels of the handshake and application secrets, the client's and the server's (NSS key log
/// format).
const LABELS: [[&str; 2]; 2] = [
    [
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    ],
    ["CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"],
];

const NONCE_LENGTH: usize = 12;
const SAMPLE_LENGTH: usize = 16;
/// The longest packet number; the sample follows it (RFC 9001, section 5.4.2).
const MAX_NUMBER_LENGTH: usize = 4;

/// The stage that secrets belong to.
#[derive(Clone, Copy)]
pub(super) enum Stage {
    Handshake = 0,
    OneRtt = 1,
}

type Pair = [Option<Vec<u8>>; 2];

/// A connection's key log that stores the secrets and forwards them to the configured one.
pub(super) struct Secrets {
    configured: Arc<dyn KeyLog>,
    kept: Mutex<[Pair; 2]>,
}

impl Secrets {
    pub(super) fn new(configured: Arc<dyn KeyLog>) -> Self {
        Self {
            configured,
            kept: Mutex::default(),
        }
    }

    /// Returns the keys of a client at this stage, in this version, once both secrets are known.
    pub(super) fn keys(
        &self,
        stage: Stage,
        suite: CipherSuite,
        version: Version,
    ) -> Option<(Keys, Box<dyn KeyUpdates>)> {
        let suite = Suite::new(suite)?;
        let [local, remote] = {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let [client, server] = &kept[stage as usize];
            [client.clone()?, server.clone()?].map(|secret| Secret {
                suite,
                version,
                prk: Prk::new_less_safe(suite.hkdf, &secret),
            })
        };
        let keys = Keys {
            local: local.direction_keys(),
            remote: remote.direction_keys(),
        };
        Some((keys, Box::new(Updates { local, remote })))
    }
}

impl KeyLog for Secrets {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        if self.configured.will_log(label) {
            self.configured.log(label, client_random, secret);
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        for (pair, labels) in kept.iter_mut().zip(LABELS) {
            for (slot, expected) in pair.iter_mut().zip(labels) {
                if label == expected {
                    *slot = Some(secret.to_vec());
                }
            }
        }
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

/// The algorithms of a TLS 1.3 cipher suite (RFC 9001, section 5).
#[derive(Clone, Copy)]
struct Suite {
    hkdf: hkdf::Algorithm,
    aead: &'static aead::Algorithm,
    header: &'static quic::Algorithm,
    /// RFC 9001, section 6.6: how many packets may be sealed, and how many may fail authentication.
    limits: (u64, u64),
}

impl Suite {
    fn new(suite: CipherSuite) -> Option<Self> {
        const AES_LIMITS: (u64, u64) = (1 << 23, 1 << 52);
        Some(match suite {
            CipherSuite::TLS13_AES_128_GCM_SHA256 => Self {
                hkdf: hkdf::HKDF_SHA256,
                aead: &aead::AES_128_GCM,
                header: &quic::AES_128,
                limits: AES_LIMITS,
            },
            CipherSuite::TLS13_AES_256_GCM_SHA384 => Self {
                hkdf: hkdf::HKDF_SHA384,
                aead: &aead::AES_256_GCM,
                header: &quic::AES_256,
                limits: AES_LIMITS,
            },
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => Self {
                hkdf: hkdf::HKDF_SHA256,
                aead: &aead::CHACHA20_POLY1305,
                header: &quic::CHACHA20,
                limits: (u64::MAX, 1 << 36),
            },
            _ => return None,
        })
    }
}

/// A traffic secret in use.
struct Secret {
    suite: Suite,
    version: Version,
    prk: Prk,
}

/// The length of HKDF's output.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

impl Secret {
    /// HKDF-Expand-Label with a QUIC label (RFC 9001, section 5.1; RFC 9369, section 3.3.2).
    fn expand(&self, purpose: &str, length: usize) -> Vec<u8> {
        let prefix = match self.version {
            Version::V1 => "tls13 quic ",
            Version::V2 => "tls13 quicv2 ",
        };
        let label_length = [(prefix.len() + purpose.len()) as u8];
        let info = [
            &(length as u16).to_be_bytes()[..],
            &label_length,
            prefix.as_bytes(),
            purpose.as_bytes(),
            &[0],
        ];
        let mut output = vec![0; length];
        self.prk
            .expand(&info, Length(length))
            .and_then(|okm| okm.fill(&mut output))
            .expect("HKDF gives out as much as a key or a secret needs");
        output
    }

    fn packet_key(&self) -> Box<dyn PacketKey> {
        let key = self.expand("key", self.suite.aead.key_len());
        let mut iv = [0; NONCE_LENGTH];
        iv.copy_from_slice(&self.expand("iv", NONCE_LENGTH));
        let key =
            UnboundKey::new(self.suite.aead, &key).expect("the length that the AEAD asks for");
        Box::new(CompatiblePacketKey {
            key: LessSafeKey::new(key),
            iv,
            limits: self.suite.limits,
        })
    }

    fn direction_keys(&self) -> DirectionKeys {
        let key = self.expand("hp", self.suite.header.key_len());
        let key = quic::HeaderProtectionKey::new(self.suite.header, &key)
            .expect("the length that the algorithm asks for");
        DirectionKeys {
            header: Box::new(CompatibleHeaderKey(key)),
            packet: self.packet_key(),
        }
    }

    /// Derives the secret of the next key phase (RFC 9001, section 6.1).
    fn update(&mut self) {
        let length = self
            .suite
            .hkdf
            .hmac_algorithm()
            .digest_algorithm()
            .output_len;
        self.prk = Prk::new_less_safe(self.suite.hkdf, &self.expand("ku", length));
    }
}

struct Updates {
    local: Secret,
    remote: Secret,
}

impl KeyUpdates for Updates {
    fn next_keys(&mut self) -> PacketKeys {
        self.local.update();
        self.remote.update();
        PacketKeys {
            local: self.local.packet_key(),
            remote: self.remote.packet_key(),
        }
    }
}

struct CompatiblePacketKey {
    key: LessSafeKey,
    iv: [u8; NONCE_LENGTH],
    limits: (u64, u64),
}

impl CompatiblePacketKey {
    fn nonce(&self, packet_number: u64) -> Nonce {
        let mut nonce = self.iv;
        let number = packet_number.to_be_bytes();
        for (byte, number) in nonce[NONCE_LENGTH - number.len()..].iter_mut().zip(number) {
            *byte ^= number;
        }
        Nonce::assume_unique_for_key(nonce)
    }
}

impl PacketKey for CompatiblePacketKey {
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
        self.limits.0
    }

    fn integrity_limit(&self) -> u64 {
        self.limits.1
    }
}

struct CompatibleHeaderKey(quic::HeaderProtectionKey);

impl CompatibleHeaderKey {
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

impl HeaderKey for CompatibleHeaderKey {
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
