//! Keys of another version than the one of a client's rustls connection.
//!
//! A server may answer a client's first flight in a compatible version (RFC 9368, section 2.3), in
//! which the same TLS secrets produce other keys (RFC 9369, section 3.3.2). rustls fixes the
//! version when a connection starts and exposes secrets only to its key log. A client that allows
//! such an answer therefore reads the key log, and derives the keys itself if necessary. A client
//! with a single version, the default, has no cost.

use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::aead::{NONCE_LEN, quic};
use aws_lc_rs::hkdf::{self, KeyType, Prk};
use rustls::{CipherSuite, KeyLog};

use crate::Version;
use crate::crypto::packet_protection::{Aead, AeadPacketKey, ProtectionHeaderKey};
use crate::crypto::{AnyHeaderKey, AnyPacketKey, DirectionKeys, KeyUpdates, Keys, PacketKeys};

/// The labels of the handshake and application secrets, the client's and the server's (NSS key log
/// format).
const LABELS: [[&str; 2]; 2] = [
    [
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    ],
    ["CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"],
];

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
    aead: Aead,
    header: &'static quic::Algorithm,
}

impl Suite {
    fn new(suite: CipherSuite) -> Option<Self> {
        Some(match suite {
            CipherSuite::TLS13_AES_128_GCM_SHA256 => Self {
                hkdf: hkdf::HKDF_SHA256,
                aead: Aead::AES_128_GCM,
                header: &quic::AES_128,
            },
            CipherSuite::TLS13_AES_256_GCM_SHA384 => Self {
                hkdf: hkdf::HKDF_SHA384,
                aead: Aead::AES_256_GCM,
                header: &quic::AES_256,
            },
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => Self {
                hkdf: hkdf::HKDF_SHA256,
                aead: Aead::CHACHA20_POLY1305,
                header: &quic::CHACHA20,
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

    fn packet_key(&self) -> AnyPacketKey {
        let key = self.expand("key", self.suite.aead.algorithm.key_len());
        let mut iv = [0; NONCE_LEN];
        iv.copy_from_slice(&self.expand("iv", NONCE_LEN));
        AeadPacketKey::new(self.suite.aead, &key, iv).into()
    }

    fn direction_keys(&self) -> DirectionKeys {
        let key = self.expand("hp", self.suite.header.key_len());
        DirectionKeys {
            header: AnyHeaderKey::new(ProtectionHeaderKey::new(self.suite.header, &key)),
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
