//! The cipher suites of TLS 1.3 for QUIC alone.
//!
//! QUIC protects packets, not TLS records (RFC 9001, section 5). rustls makes record keys all the
//! same; these suites make none, so a TLS connection over TCP fails with its first protected record.

use std::sync::LazyLock;

use rustls::crypto::aws_lc_rs::cipher_suite;
use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, MessageDecrypter, MessageEncrypter,
    OutboundOpaqueMessage, OutboundPlainMessage, Tls13AeadAlgorithm, UnsupportedOperationError,
};
use rustls::crypto::{CipherSuiteCommon, hash, tls13};
use rustls::{ConnectionTrafficSecrets, Error, SupportedCipherSuite, Tls13CipherSuite};

use super::sha256;

/// `TLS_AES_128_GCM_SHA256`.
pub fn aes_128_gcm() -> SupportedCipherSuite {
    static SUITE: LazyLock<Tls13CipherSuite> =
        LazyLock::new(|| with_sha256(tls13(cipher_suite::TLS13_AES_128_GCM_SHA256)));
    SupportedCipherSuite::Tls13(&SUITE)
}

/// `TLS_AES_256_GCM_SHA384`.
pub fn aes_256_gcm() -> SupportedCipherSuite {
    static SUITE: LazyLock<Tls13CipherSuite> = LazyLock::new(|| {
        let suite = tls13(cipher_suite::TLS13_AES_256_GCM_SHA384);
        without_records(suite, suite.common.hash_provider, suite.hkdf_provider)
    });
    SupportedCipherSuite::Tls13(&SUITE)
}

/// `TLS_CHACHA20_POLY1305_SHA256`.
pub fn chacha20_poly1305() -> SupportedCipherSuite {
    static SUITE: LazyLock<Tls13CipherSuite> =
        LazyLock::new(|| with_sha256(tls13(cipher_suite::TLS13_CHACHA20_POLY1305_SHA256)));
    SupportedCipherSuite::Tls13(&SUITE)
}

fn tls13(suite: SupportedCipherSuite) -> &'static Tls13CipherSuite {
    suite.tls13().expect("a suite of TLS 1.3")
}

fn with_sha256(suite: &Tls13CipherSuite) -> Tls13CipherSuite {
    without_records(suite, &sha256::Hash, &sha256::HKDF)
}

fn without_records(
    suite: &Tls13CipherSuite,
    hash_provider: &'static dyn hash::Hash,
    hkdf_provider: &'static dyn tls13::Hkdf,
) -> Tls13CipherSuite {
    Tls13CipherSuite {
        common: CipherSuiteCommon {
            suite: suite.common.suite,
            hash_provider,
            confidentiality_limit: suite.common.confidentiality_limit,
        },
        hkdf_provider,
        aead_alg: &NoRecords,
        quic: suite.quic,
    }
}

/// Protects no record.
struct NoRecords;

impl Tls13AeadAlgorithm for NoRecords {
    fn encrypter(&self, _: AeadKey, _: Iv) -> Box<dyn MessageEncrypter> {
        Box::new(Self)
    }

    fn decrypter(&self, _: AeadKey, _: Iv) -> Box<dyn MessageDecrypter> {
        Box::new(Self)
    }

    /// The length of the unused keys that rustls derives.
    fn key_len(&self) -> usize {
        1
    }

    fn extract_keys(
        &self,
        _: AeadKey,
        _: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        Err(UnsupportedOperationError)
    }
}

impl MessageEncrypter for NoRecords {
    fn encrypt(
        &mut self,
        _: OutboundPlainMessage<'_>,
        _: u64,
    ) -> Result<OutboundOpaqueMessage, Error> {
        Err(Error::EncryptError)
    }

    fn encrypted_payload_len(&self, payload_len: usize) -> usize {
        payload_len
    }
}

impl MessageDecrypter for NoRecords {
    fn decrypt<'a>(
        &mut self,
        _: InboundOpaqueMessage<'a>,
        _: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        Err(Error::DecryptError)
    }
}
