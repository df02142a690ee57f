//! The cipher suites of TLS 1.3.

use std::sync::Arc;

use rustls::SupportedCipherSuite;
use rustls::crypto::CryptoProvider;
use weir_quic::crypto::tls::{provider, suites};

/// The cipher suite of packets after the handshake's first flight (RFC 8446, appendix B.4; Initial
/// packets always use AES-128-GCM).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CipherSuite {
    /// `TLS_AES_128_GCM_SHA256`: the fastest where the processor has AES instructions.
    Aes128Gcm,
    /// `TLS_AES_256_GCM_SHA384`.
    Aes256Gcm,
    /// `TLS_CHACHA20_POLY1305_SHA256`: the fastest elsewhere.
    ChaCha20Poly1305,
}

impl CipherSuite {
    /// All suites, in the default order of preference.
    pub(super) const ALL: [Self; 3] = [Self::Aes128Gcm, Self::Aes256Gcm, Self::ChaCha20Poly1305];

    fn supported(self) -> SupportedCipherSuite {
        match self {
            Self::Aes128Gcm => suites::aes_128_gcm(),
            Self::Aes256Gcm => suites::aes_256_gcm(),
            Self::ChaCha20Poly1305 => suites::chacha20_poly1305(),
        }
    }
}

/// Returns Weir's cryptography with these suites, in order of preference.
pub(super) fn provider_with(suites: &[CipherSuite]) -> Arc<CryptoProvider> {
    let suites = suites.iter().map(|suite| suite.supported());
    Arc::new(CryptoProvider {
        cipher_suites: suites.collect(),
        ..CryptoProvider::clone(&provider())
    })
}
