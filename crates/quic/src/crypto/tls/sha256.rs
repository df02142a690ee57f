//! SHA-256, HMAC and HKDF for TLS handshakes, by the RustCrypto crates.
//!
//! A handshake derives some twenty secrets and keys from a handful of others. An HMAC key stored as
//! the hash states after its two padded blocks (RFC 2104, section 4) takes half of the work for
//! each of them, and needs no allocation.

use hmac::{Hmac, KeyInit, Mac};
use rustls::crypto::hash::{self, HashAlgorithm};
use rustls::crypto::hmac::{self as tls_hmac, Tag};
use rustls::crypto::tls13::HkdfUsingHmac;
use sha2::{Digest, Sha256};

const OUTPUT_LENGTH: usize = 32;

/// HKDF with SHA-256 (RFC 5869).
pub(super) static HKDF: HkdfUsingHmac<'static> = HkdfUsingHmac(&HmacSha256);

/// SHA-256.
pub(super) struct Hash;

impl hash::Hash for Hash {
    fn start(&self) -> Box<dyn hash::Context> {
        Box::new(Context(Sha256::new()))
    }

    fn hash(&self, data: &[u8]) -> hash::Output {
        hash::Output::new(&Sha256::digest(data))
    }

    fn output_len(&self) -> usize {
        OUTPUT_LENGTH
    }

    fn algorithm(&self) -> HashAlgorithm {
        HashAlgorithm::SHA256
    }
}

struct Context(Sha256);

impl hash::Context for Context {
    fn fork_finish(&self) -> hash::Output {
        hash::Output::new(&self.0.clone().finalize())
    }

    fn fork(&self) -> Box<dyn hash::Context> {
        Box::new(Self(self.0.clone()))
    }

    fn finish(self: Box<Self>) -> hash::Output {
        hash::Output::new(&self.0.finalize())
    }

    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }
}

struct HmacSha256;

impl tls_hmac::Hmac for HmacSha256 {
    fn with_key(&self, key: &[u8]) -> Box<dyn tls_hmac::Key> {
        let keyed = Hmac::new_from_slice(key).expect("HMAC takes keys of any length");
        Box::new(Key(keyed))
    }

    fn hash_output_len(&self) -> usize {
        OUTPUT_LENGTH
    }
}

/// A key as hash states.
struct Key(Hmac<Sha256>);

impl tls_hmac::Key for Key {
    fn sign_concat(&self, first: &[u8], middle: &[&[u8]], last: &[u8]) -> Tag {
        let mut mac = self.0.clone();
        mac.update(first);
        middle.iter().for_each(|part| mac.update(part));
        mac.update(last);
        Tag::new(&mac.finalize().into_bytes())
    }

    fn tag_len(&self) -> usize {
        OUTPUT_LENGTH
    }
}
